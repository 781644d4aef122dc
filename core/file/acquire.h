/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The acquire side of a view (view.h): looking at the stub, the header and the container until the facts are
 * current. All with the inode's lock held; @fd is a descriptor of the stub. Afterwards the file may turn out
 * to be in its body: callers look at v.stub.in_body.
 */
#ifndef PLFS_ACQUIRE_H
#define PLFS_ACQUIRE_H

#include "core/file/inode.h"

/* The stub's length, as it is now, into v.told_len. 0 or -errno. */
int acquire_length(struct inode *ino, int fd);

/*
 * Make the maps anew. 0 or -errno; -EIO: an index or the container is damaged or missing (one line names it).
 */
int acquire_load(struct inode *ino);

/* @ret; for -EACCES one line, unless one has told why the container is refused. */
int acquire_refused(struct inode *ino, int ret);

/*
 * See what the stub says now, with its fresh attributes @st. Where others may have written or truncated, or
 * with @reload, make the maps anew. Afterwards the known size has all that this process wrote, and all that
 * others have published.
 */
int acquire_look_again(struct inode *ino, int fd, const struct stat *st, bool reload);

/* The size now. @st: fresh attributes of the stub. */
int acquire_size(struct inode *ino, int fd, const struct stat *st, uint64_t *size);

/*
 * Have all that a read of a logged file goes by. Returns how many of the @len bytes there are: 0 at or past
 * the end, and where the file turns out to be in its body; or -errno. All that writers of this host had
 * written before one of those bytes is in the maps.
 */
ssize_t acquire_readable(struct inode *ino, int fd, size_t len, uint64_t logical_off);

/* Whether a read has taken bytes from the body that a truncation since then may have made void. */
bool acquire_body_is_doubtful(struct inode *ino);

#endif
