/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by every file of preload/: how a name is exported, how a result becomes errno, and whether there is
 * a mount at all.
 *
 * Never defined here: _FILE_OFFSET_BITS and _FORTIFY_SOURCE. They would rename the functions that preload/
 * defines.
 */
#ifndef PLFS_SHIM_H
#define PLFS_SHIM_H

/*
 * The C library's headers promise the compiler that arguments are not NULL, and the compiler would drop the
 * checks for it. Programs break the promise: then the kernel answers EFAULT, and so does the library.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sys/cdefs.h>
#undef __nonnull
#define __nonnull(params)

#include "core/plfs.h"

#if defined(_FILE_OFFSET_BITS) || (defined(_FORTIFY_SOURCE) && _FORTIFY_SOURCE > 0)
#error "preload/ must be built without _FILE_OFFSET_BITS and without _FORTIFY_SOURCE"
#endif

#define EXPORT __attribute__((visibility("default")))

/* For what programs call most: placed side by side, in few cache lines and pages. */
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

/* Programs still call deprecated functions. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#if __GNUC__ >= 8 && !defined(__clang__)
/* struct stat and struct stat64 are the same on 64-bit machines, which the compiler does not know. */
#pragma GCC diagnostic ignored "-Wattribute-alias"
#endif

/* A second exported name of a function of this file. */
#define ALIAS(name, target) \
	extern __typeof__(target) name \
		__attribute__((SHIM_COPY(target) alias(#target), visibility("default")))

/* The same for a name that a header declares with a 64-bit type, as struct stat64. */
#define ALIAS64(name, target) \
	extern __typeof__(name) name __attribute__((alias(#target), visibility("default")))

/* A name for use in preload/ only. It is bound to the library's own function, whatever else is loaded. */
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
/* There is none, but calls on plain files are counted. */
extern bool shim_observes;

/*
 * Set the library up, once. The first call does it: a wrapper may run long before the library's constructor,
 * in the initialiser of another library. A call from inside the setup returns at once and passes through.
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

/* The C library's end of a program that would overflow a buffer. */
extern void __chk_fail(void) __attribute__((noreturn));

/* Reports a call that a logical file does not support, in the refuse category. Returns -@err. */
static inline long refused(const char *what, int err)
{
	msg_debug(MSG_REFUSE, "%s: %s on a logical file", what, msg_errno_name(err));
	return -err;
}

#endif
