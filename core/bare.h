/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bare files: stubs without a container, whose bytes are all in the body. Every file begins as one. A small file that one
 * process writes stays one: a container with its logs would cost many times what the bytes are worth. As soon as
 * somebody claims the file it has a container, and all writes go to logs; what is in the body by then is the oldest layer.
 *
 * Nobody locks anybody out over a write, so the file may be claimed while one goes to the body. Therefore the header is
 * looked at before the write and after it:
 *
 *   - Before, there is no container. So no write to a log had returned when this one began: it is right that
 *     every log covers what it puts in the body.
 *   - Afterwards, there is still none. Then nobody has begun to write to a log before these bytes were in the body: whatever
 *     is written later covers them, and whoever reads looks at the body.
 *   - Afterwards, there is one. Somebody may have written to a log and returned meanwhile, or cut the file. So the same
 *     bytes are written once more, to a log, with a stamp of now: both writes were under way at the same time, and this one
 *     comes last. What lies in the body is the same, or covered.
 *
 * Appends need more: their place must not be given away to somebody who appends to a log. They are made under the lock of the header,
 * without which no file is claimed.
 *
 * All of these functions are called with the inode's lock held. Those that do something return false if the file is not bare (any more), or
 * must not stay so: then the caller goes on as with any other file. true: it is done, and *@ret is what came out, or -errno.
 */
#ifndef PLFS_BARE_H
#define PLFS_BARE_H

#include "inode.h"

#include <sys/uio.h>

/*
 * Whether it is, by the header as it is now, which the inode follows: 1, 0 or -errno. 1: what has returned by now is in the body, where
 * it can be read, without the lock.
 */
int bare_look(struct inode *ino, int fd);

/*
 * Of a file as small as the mount's options allow, which nobody else has open when this process writes first: ranks that share a
 * file go to their logs at once.
 */
bool bare_write(struct inode *ino, int fd, const void *buf, size_t len, uint64_t logical_off, ssize_t *ret);

/* At the end, wherever that is; *@end is the one after it. */
bool bare_append(struct inode *ino, int fd, const struct iovec *iov, int cnt, size_t len, uint64_t *end, ssize_t *ret);

bool bare_truncate(struct inode *ino, int fd, uint64_t size, ssize_t *ret);

/* What the kernel can do with the body it does; false as well if it cannot. */
bool bare_fallocate(struct inode *ino, int fd, int mode, uint64_t logical_off, uint64_t len, ssize_t *ret);

#endif
