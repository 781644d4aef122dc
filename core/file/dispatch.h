/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The operations of form.h on a file of whatever form: that of the form which it has now, and of the next one
 * if it turns out to have changed. -EREMCHG does not come out of here. With the inode's lock held, as in
 * form.h.
 */
#ifndef PLFS_DISPATCH_H
#define PLFS_DISPATCH_H

#include "core/file/form.h"

ssize_t dispatch_write(struct inode *ino, int fd, const struct iovec *iov, int cnt, uint64_t logical_off);
ssize_t dispatch_begin_read(struct inode *ino, int fd, void *buf, size_t len, uint64_t logical_off,
			    struct read_rest *rd);
ssize_t dispatch_append(struct inode *ino, int fd, const struct iovec *iov, int cnt, size_t len,
			uint64_t *end);
int dispatch_truncate(struct inode *ino, int fd, uint64_t size);
int dispatch_fallocate(struct inode *ino, int fd, int mode, uint64_t logical_off, uint64_t len);
int dispatch_sync(struct inode *ino, int fd);

#endif
