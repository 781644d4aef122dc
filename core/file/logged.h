/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Logged files: the bytes are in logs, the body of the stub is the oldest layer. logged_claim.c has the
 * container, logged_write.c the process's own log, logged_read.c the reads, logged_end.c truncation and
 * appending.
 *
 * All with the inode's lock held. @fd is a descriptor of the stub, writable and without O_APPEND where
 * something is written. Any of these may find that the file has moved into its body; v.stub.in_body then says
 * so.
 */
#ifndef PLFS_LOGGED_H
#define PLFS_LOGGED_H

#include "core/file/form.h"

/* ---- the operations of form_logged (form.h) ---- */

ssize_t logged_write(struct inode *ino, int fd, const void *buf, size_t len, uint64_t logical_off);

ssize_t logged_begin_read(struct inode *ino, int fd, void *buf, size_t len, uint64_t logical_off,
			  struct read_rest *rd);
ssize_t logged_append(struct inode *ino, int fd, const struct iovec *iov, int cnt, size_t len, uint64_t *end);
int logged_truncate(struct inode *ino, int fd, uint64_t size);
int logged_fallocate(struct inode *ino, int fd, int mode, uint64_t logical_off, uint64_t len);

/*
 * -EBUSY: another process of the host is syncing the file, and may have been stopped. Try again, with the
 * lock given back meanwhile; with ino->impatient the other is not waited for.
 */
int logged_sync(struct inode *ino, int fd);

/* ---- beside them ---- */

/*
 * The same for a small write that goes on where the last one had it expected: nothing but a copy and a count,
 * and no call that could change errno. False: use logged_write(), and the bytes may be there already.
 */
bool inode_write_next(struct inode *ino, const void *buf, size_t len, uint64_t logical_off);

/* The whole of a read under the lock; -EREMCHG as logged_begin_read(). */
ssize_t logged_read(struct inode *ino, int fd, void *buf, size_t len, uint64_t logical_off);

/*
 * Have a container, or learn that the file is in its body. 0; -EREMCHG: the stub's owner, group or mode has
 * changed meanwhile, and it has none yet; -errno.
 */
int logged_claim(struct inode *ino, int fd);

/* Whether logs may be elsewhere: of a file of this process's user, for what is there belongs to him. */
bool logged_is_ours(const struct container *c);

/* Whether new logs are to be near. */
bool logged_wants_near(const struct inode *ino);

/*
 * Where space is given back, a smaller file counts as one of this length: by what is hidden in its logs
 * (sweep.h), and by how long a log may get when it is overwritten. Tests change it.
 */
extern uint64_t logged_least_len;

/* Have a container and a log. 0; -EREMCHG: the file is in its body; -errno. */
int logged_make_writer(struct inode *ino, int fd);

/* Where clocks cannot be trusted, see all stamps in the container, so that what comes now is later. */
int logged_heed_clock(struct inode *ino, int fd);

/*
 * Close the log if there is one, and publish; the next write opens another. -errno: acknowledged bytes could
 * not be kept (writer_close(), or the error with which the log was closed).
 */
int logged_close_writer(struct inode *ino, int fd);

/* Release. */
int logged_commit(struct inode *ino, int fd);

/*
 * publish_extend() for fallocate(). No record says such a size, so a truncation under way is finished first.
 */
int logged_grow(struct inode *ino, int fd, uint64_t end);

/* If the maps know of more than the stub says, as of what a killed process wrote, make the stub say it. */
void logged_publish_found(struct inode *ino, int fd);

/*
 * Finish the truncation of which the header says that it is under way, with the end locked: its process has
 * died. If it has happened the body is cut, else it is forgotten. 0; -EREMCHG: the file is in its body;
 * -errno.
 */
int logged_finish_cut(struct inode *ino, int fd);

#endif
