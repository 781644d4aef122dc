/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * System calls without a function in the C library, made inline: every open() makes one.
 */
#ifndef PLFS_RAW_H
#define PLFS_RAW_H

#include "shim.h"

#include <sys/syscall.h>

/*
 * Whether openat2() may replace open(). false: another library behind this one has an open() or fopen() of
 * its own, which must see the calls.
 */
extern bool raw_open_ok;

void raw_init(void);

#ifdef __x86_64__

static inline long raw_syscall4(long nr, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long ret;

	__asm__ volatile("syscall"
	                 : "=a"(ret)
	                 : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10)
	                 : "rcx", "r11", "memory");
	return ret;
}
#else
static inline long raw_syscall4(long nr, long a, long b, long c, long d)
{
	int saved ERRNO_KEPT = errno;
	long ret = sys.syscall(nr, a, b, c, d);

	return ret < 0 ? -errno : ret;
}
#endif

/* openat2(2), for which the C library has no function. -errno. */
static inline int raw_openat2(int dirfd, const char *path, const struct open_how *how)
{
	return (int)raw_syscall4(SYS_openat2, dirfd, (long)path, (long)how, sizeof(*how));
}

#endif
