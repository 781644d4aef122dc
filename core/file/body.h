/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files that are in their body: all bytes lie in the stub itself, behind its header, and there are no logs.
 * So the kernel can do with them what it can do with a plain file, at offsets that are PLFS_BODY_OFF more;
 * above all, map them shared. move.c moves a file there when a program needs that. It stays there until it is
 * removed.
 */
#ifndef PLFS_BODY_H
#define PLFS_BODY_H

#include "core/file/form.h"

/* pread() and pwrite() on the body of the stub @fd, of a file of any form; -errno. They need no lock. */
ssize_t body_read(int fd, void *buf, size_t len, uint64_t logical_off);
ssize_t body_write(int fd, const void *buf, size_t len, uint64_t logical_off);

/* A write() with O_APPEND there; *@end: the offset behind it. */
ssize_t body_append(int fd, const struct iovec *iov, int cnt, uint64_t *end);

/*
 * Give the body this size, and take it as the file's. Nothing that this process wrote counts for the size any
 * more.
 */
int body_resize(struct inode *ino, int fd, uint64_t size);

#endif
