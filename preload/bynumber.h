/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * System calls for wrap_syscall.c that have no function in the C library, or another meaning there. Results
 * as of syscall(): -1 and errno on failure.
 */
#ifndef PLFS_BYNUMBER_H
#define PLFS_BYNUMBER_H

#include "shim.h"

/* openat2(2) */
long bynumber_openat2(int dirfd, const char *path, const struct open_how *how, size_t size);

/* SYS_getdents and SYS_getdents64, whose names begin at @name_at of an entry. */
long bynumber_getdents(long nr, int fd, void *buf, size_t len, size_t name_at);

/* getcwd(2): the length with the zero. */
long bynumber_getcwd(char *buf, size_t len);

/* mmap(2), past the code of mmap(), which another library may have overwritten. */
long bynumber_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);

/* From here on sys.mmap() remembers its descriptor, in this thread and until it returns. */
void mmap_start(void);

/* Whether it is that of sys.mmap(), which another library has sent back to us: for the kernel as it is. */
bool mmap_is_passed(int fd);

/* io_submit(2) */
long bynumber_io_submit(unsigned long ctx, long nr, void *list);

/* A fork by the call @nr: the child has memory of its own and returns from here too. */
long bynumber_fork(long nr, long a, long b, long c, long d, long e);

/* poll(2), ppoll(2); select(2), pselect6(2) */
long bynumber_poll(long nr, void *fds, unsigned long nr_fds, long c, long d, long e);
long bynumber_select(long nr, int nr_fds, void *in, void *out, long d, long e, long f);

#endif
