/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handful of definitions that every file uses. No functions of substance live here.
 */
#ifndef PLFS_BASE_H
#define PLFS_BASE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

/* The name, directly below a backend, that holds the containers. */
#define PLFS_DIR_NAME ".plfs"

/* Where byte 0 of the logical file would lie in its stub: kernel offset = logical offset + this. */
#define PLFS_BODY_OFF 4096

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* For the few variables that every call reads: they share as few cache lines as possible. */
#define HOT_DATA __attribute__((section("plfs_hot")))

#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

/*
 * int saved ERRNO_KEPT = errno;  restores errno at the end of the scope, whatever our own failed calls set it
 * to.
 */
#define ERRNO_KEPT __attribute__((unused, cleanup(errno_restore)))
static inline void errno_restore(const int *saved) { errno = *saved; }

static inline uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }
static inline size_t min_size(size_t a, size_t b) { return a < b ? a : b; }
static inline uint64_t round_up_u64(uint64_t v, uint64_t unit) { return (v + unit - 1) / unit * unit; }

#endif
