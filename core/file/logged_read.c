/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading a logged file, as far as acquire.c says that there is something.
 */
#include "core/file/logged.h"

#include "core/file/acquire.h"
#include "core/base/sys.h"
#include "core/base/usermem.h"

/*
 * So often a log may be missing and the map be made anew, in one read: after a truncation to 0 or a reclaim
 * (reclaim.h) that this process has not seen yet.
 */
#define MISSING_MAX 10

static ssize_t read_at(struct inode *ino, int fd, void *buf, size_t len, uint64_t logical_off, int tries)
{
	ssize_t n = acquire_readable(ino, fd, len, logical_off);
	int ret;

	if (ino->v.stub.in_body)
		return -EREMCHG;
	if (n <= 0)
		return n;
	len = user_writable(buf, (size_t)n);
	if (!len)
		return -EFAULT;
	ret = reader_read(&ino->v.r, ino->writing ? &ino->w : NULL, fd, buf, len, logical_off);
	if (ret == -ENOENT && tries < MISSING_MAX) {
		struct stat st;
		uint64_t before = ino->v.stub.generation_ns;

		reader_doubt(&ino->v.r);
		ret = sys.fstat(fd, &st) ? -errno : acquire_look_again(ino, fd, &st, true);
		/* What is missing in a map of now is missing: once more for a log that was listed before. */
		if (ino->v.stub.generation_ns == before)
			tries = MISSING_MAX - 1;
		return ret ? ret : read_at(ino, fd, buf, len, logical_off, tries + 1);
	}
	if (ret == -ENOENT && !ino->v.r.logs.missing_is_lost) {
		ino->v.r.logs.missing_is_lost = true;
		return read_at(ino, fd, buf, len, logical_off, MISSING_MAX);
	}
	if (ret == -ENOENT) {
		reader_log_missing(&ino->v.r);
		ret = -EIO;
	}
	return ret ? ret : (ssize_t)len;
}

ssize_t logged_read(struct inode *ino, int fd, void *buf, size_t len, uint64_t logical_off)
{
	ssize_t n = 0;

	for (int tries = 0; tries < 3; tries++) {
		if (inode_is_broken(ino))
			inode_mend(ino);
		ino->v.r.took_body = false;
		n = read_at(ino, fd, buf, len, logical_off, 0);
		if (likely(!inode_is_broken(ino)) && likely(!acquire_body_is_doubtful(ino)))
			return n;
	}
	return inode_is_broken(ino) ? -EIO : n;
}

ssize_t logged_begin_read(struct inode *ino, int fd, void *buf, size_t len, uint64_t logical_off,
			  struct read_rest *rd)
{
	ssize_t n = acquire_readable(ino, fd, len, logical_off), begun;

	*rd = (struct read_rest){ .handle = NULL };
	if (unlikely(inode_is_broken(ino)))
		return logged_read(ino, fd, buf, len, logical_off);
	if (unlikely(ino->v.stub.in_body))
		return -EREMCHG;
	if (n <= 0)
		return n;
	ino->v.r.took_body = false;
	begun = reader_begin(&ino->v.r, ino->writing ? &ino->w : NULL, fd, buf, (size_t)n, logical_off, rd);
	if (unlikely(inode_is_broken(ino)) || unlikely(acquire_body_is_doubtful(ino))) {
		if (begun >= 0 && read_rest_end(&ino->v.r, rd))
			logset_bury(&ino->v.r.logs);
		begun = -EIO;
	}
	return begun < 0 ? logged_read(ino, fd, buf, len, logical_off) : begun;
}
