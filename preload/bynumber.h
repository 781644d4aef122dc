/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * System calls that have no function in the C library, or mean something else there: for wrap_syscall.c. All as
 * syscall() has them: a result, or -1 and errno.
 */
#ifndef PLFS_BYNUMBER_H
#define PLFS_BYNUMBER_H

#include "shim.h"

#include <linux/openat2.h>

/* openat2(2) */
long bynumber_openat2(int dirfd, const char *path, const struct open_how *how, size_t size);

/* SYS_getdents and SYS_getdents64, whose names begin at @name_at of an entry. */
long bynumber_getdents(long nr, int fd, void *buf, size_t len, size_t name_at);

/* getcwd(2): returns the length with the zero. */
long bynumber_getcwd(char *buf, size_t len);

/* mmap(2): as the function, whatever the function's code has been overwritten with. */
long bynumber_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);

/* io_submit(2) */
long bynumber_io_submit(unsigned long ctx, long nr, void *list);

/* The call @nr, by which a child returns from here with memory of its own: as fork() does it. */
long bynumber_fork(long nr, long a, long b, long c, long d, long e);

#endif
