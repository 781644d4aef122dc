/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What every file of preload/ shares: how a name is exported, how a result becomes errno, and the
 * question "is there anything to do at all".
 *
 * Never defined here: _FILE_OFFSET_BITS and _FORTIFY_SOURCE, which would rename the very functions that we
 * define.
 */
#ifndef PLFS_SHIM_H
#define PLFS_SHIM_H

/*
 * The C library's headers promise the compiler arguments that are not NULL, and it drops our checks for it.
 * Programs break the promise; the kernel's answer is EFAULT, and so is ours.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sys/cdefs.h>
#undef __nonnull
#define __nonnull(params)

#include "../core/plfs.h"

#if defined(_FILE_OFFSET_BITS) || (defined(_FORTIFY_SOURCE) && _FORTIFY_SOURCE > 0)
#error "preload/ must be built without _FILE_OFFSET_BITS and without _FORTIFY_SOURCE"
#endif

#define EXPORT __attribute__((visibility("default")))

/* For what programs call most: side by side, and so in as few cache lines and pages as can be. */
#define HOT __attribute__((hot))
#define COLD __attribute__((noinline, cold))

#if defined(__has_attribute)
#if __has_attribute(copy)
#define SHIM_COPY(target) copy(target),
#endif
#endif
#ifndef SHIM_COPY
#define SHIM_COPY(target)
#endif

/* Some of what programs still call is deprecated; they get it all the same. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#if defined(__GNUC__) && !defined(__clang__)
/*
 * struct stat and struct stat64 are the same thing on the machines that we run on, which the compiler cannot
 * know.
 */
#pragma GCC diagnostic ignored "-Wattribute-alias"
#endif

/* A second exported name of a function of this file. */
#define ALIAS(name, target) \
	extern __typeof__(target) name \
		__attribute__((SHIM_COPY(target) alias(#target), visibility("default")))

/* The same for a name that a header declares with the 64-bit twin of a type. */
#define ALIAS64(name, target) \
	extern __typeof__(name) name __attribute__((alias(#target), visibility("default")))

/* A name for use in preload/ only, bound to our own function whatever else is loaded. */
#define SHIM_NAME(name, target) \
	extern __typeof__(target) name __attribute__((SHIM_COPY(target) alias(#target), visibility("hidde" \
	                                                                                           "n")))

static_assert(sizeof(off_t) == 8 && sizeof(struct stat) == sizeof(struct stat64) &&
                      sizeof(struct dirent) == sizeof(struct dirent64),
              "the 64-bit names are aliases: only for machines where off_t has 64 bits");

/* 0 until shim_init() is through, then 1. Written once. */
extern int shim_ready;
/* Whether there is a mount. Without one everything passes through. */
extern bool shim_active;

/*
 * Set the library up, once. Called by whoever comes first: a wrapper may run long before our constructor, in
 * another library's initialiser. A call from inside the setup itself returns at once, and then passes
 * through.
 */
void shim_init(void);

static inline bool shim_on(void)
{
	if (unlikely(!__atomic_load_n(&shim_ready, __ATOMIC_ACQUIRE)))
		shim_init();
	return shim_active;
}

/* -errno becomes errno and -1; success leaves errno alone. */
static inline long done(long ret)
{
	if (likely(ret >= 0))
		return ret;
	errno = (int)-ret;
	return -1;
}

/* The C library's way to end a program that overflows a buffer. */
extern void __chk_fail(void) __attribute__((noreturn));

/* One line of the refuse category, then the errno: for what cannot be served on a logical file. */
static inline long refused(const char *what, int err)
{
	log_debug(LOG_REFUSE, "%s: %s on a logical file", what, log_errno_name(err));
	return -err;
}

#endif
