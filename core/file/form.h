/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The form of a file: how it is stored now. One table of operations for each form; dispatch.c finds the one
 * that a file has.
 *
 *   form_bare    no container; all bytes in the body of the stub (bare.h)
 *   form_logged  a container; bytes in logs, the body is the oldest layer (logged.h)
 *   form_body    all bytes in the body, for ever (body.h)
 *
 * The form only advances, bare -> logged -> body, and any process may advance it at any moment. So every
 * operation looks whether the file still has its form, before it acts and after it where bytes could be
 * missed.
 *
 * -EREMCHG: the file has another form. The inode follows the header already; nothing that the operation did
 * counts. The caller calls the same operation of the new form. One case more: write and append of form_bare
 * return it where the file must not stay bare, and it seems bare still. Then the caller has it claimed first
 * (logged_make_writer()).
 *
 * All operations are called with the inode's lock held. @fd is a descriptor of the stub, writable and without
 * O_APPEND where something is written. Results are as of the system call: a count or 0; -errno.
 *
 * inode_write_next() is outside: a small write that continues a log's open record makes no indirect call.
 */
#ifndef PLFS_FORM_H
#define PLFS_FORM_H

#include "core/base/usermem.h"
#include "core/file/inode.h"

#include <sys/uio.h>

/* No file is longer. */
#define FORM_SIZE_MAX ((uint64_t)INT64_MAX - PLFS_BODY_OFF)

struct form_ops {
	/* Write @len readable bytes at @logical_off. > 0: so many, fewer only if the disk is full. */
	ssize_t (*write)(struct inode *ino, int fd, const void *buf, size_t len, uint64_t logical_off);

	/*
	 * Begin a read; @buf need not be good memory. Returns how many bytes @rd is for, 0 at or past the
	 * end, and @rd is to be run and ended without the lock (reader.h). rd->in_body: use body_read()
	 * without the lock instead.
	 */
	ssize_t (*begin_read)(struct inode *ino, int fd, void *buf, size_t len, uint64_t logical_off,
			      struct read_rest *rd);

	/*
	 * Write all of @iov, @len bytes, at the true end, where no other appender writes. > 0: so many, and
	 * *@end is the offset behind them. @iov need not be good memory.
	 */
	ssize_t (*append)(struct inode *ino, int fd, const struct iovec *iov, int cnt, size_t len,
			  uint64_t *end);

	/*
	 * Cut or extend the file to @size. Afterwards no process of this host reads a byte from before a cut.
	 */
	int (*truncate)(struct inode *ino, int fd, uint64_t size);

	/*
	 * fallocate(2). 1: this form cannot; nothing was done, and zeros and logged_grow() stand for it
	 * (form_emulates()).
	 */
	int (*fallocate)(struct inode *ino, int fd, int mode, uint64_t logical_off, uint64_t len);

	/*
	 * Release, and on stable storage. -EBUSY: as logged_sync(). An error of a log that was given up is
	 * reported once.
	 */
	int (*sync)(struct inode *ino, int fd);
};

extern const struct form_ops form_bare, form_logged, form_body;

/* Whether zeros written and a size stand for what fallocate() does in this @mode. */
static inline bool form_emulates(int mode)
{
	return mode == 0 || mode == FALLOC_FL_KEEP_SIZE || mode == FALLOC_FL_ZERO_RANGE ||
	       mode == (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE) ||
	       mode == (FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE);
}

/*
 * Write the pieces of @iov in order, each by @write. Stops at the first that is short, or fails: how many
 * bytes are written by then, or if none its -errno; -EFAULT: memory that cannot be read.
 */
static inline ssize_t form_write_pieces(ssize_t (*write)(struct inode *, int, const void *, size_t, uint64_t),
					struct inode *ino, int fd, const struct iovec *iov, int cnt,
					uint64_t logical_off)
{
	ssize_t done = 0;

	for (int i = 0; i < cnt; i++) {
		ssize_t n = 0;

		if (iov[i].iov_len) {
			size_t len = user_readable(iov[i].iov_base, iov[i].iov_len);

			n = len ? write(ino, fd, iov[i].iov_base, len, logical_off + (uint64_t)done) :
				  -EFAULT;
		}
		if (n < 0)
			return done ? done : n;
		done += n;
		if ((size_t)n < iov[i].iov_len)
			break;
	}
	return done;
}

#endif
