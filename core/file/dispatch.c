/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which form a file has, and what comes after -EREMCHG.
 */
#include "core/file/dispatch.h"

#include "core/file/logged.h"
#include "core/file/move.h"
#include "core/base/sys.h"

static const struct form_ops *form_of(const struct inode *ino)
{
	if (ino->v.stub.in_body)
		return &form_body;
	return ino->v.stub.has_container ? &form_logged : &form_bare;
}

/*
 * Whether a container that this user makes would keep the stub's owner out: since the file was opened it has
 * been closed to all but him, or was given to him. Who can give the container to him is root. Where a server
 * makes one user of all, who may set the mode is the owner, whatever his number.
 */
static bool would_keep_owner_out(int fd)
{
	struct stat st;

	return geteuid() && !sys.fstat(fd, &st) && st.st_uid && st.st_uid != geteuid() &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH)) && sys.fchmod(fd, st.st_mode & 07777);
}

static int begin_logs(struct inode *ino, int fd)
{
	if (!ino->v.stub.has_container && unlikely(would_keep_owner_out(fd)))
		return move_into_body(ino);
	return logged_make_writer(ino, fd);
}

/*
 * @ret came out of an operation of the form @was. True: the form has changed, and the operation is to be done
 * anew. It cannot change more than twice.
 */
static bool has_changed(struct inode *ino, int fd, const struct form_ops *was, ssize_t *ret)
{
	if (likely(*ret != -EREMCHG))
		return false;
	*ret = form_of(ino) == was ? begin_logs(ino, fd) : 0;
	return !*ret || *ret == -EREMCHG;
}

static ssize_t write_piece(struct inode *ino, int fd, const void *buf, size_t len, uint64_t logical_off)
{
	const struct form_ops *form;
	ssize_t n;

	do {
		form = form_of(ino);
		n = form->write(ino, fd, buf, len, logical_off);
	} while (has_changed(ino, fd, form, &n));
	return n;
}

ssize_t dispatch_write(struct inode *ino, int fd, const struct iovec *iov, int cnt, uint64_t logical_off)
{
	return form_write_pieces(write_piece, ino, fd, iov, cnt, logical_off);
}

ssize_t dispatch_begin_read(struct inode *ino, int fd, void *buf, size_t len, uint64_t logical_off,
			    struct read_rest *rd)
{
	const struct form_ops *form;
	ssize_t n;

	do {
		form = form_of(ino);
		n = form->begin_read(ino, fd, buf, len, logical_off, rd);
	} while (has_changed(ino, fd, form, &n));
	return n;
}

ssize_t dispatch_append(struct inode *ino, int fd, const struct iovec *iov, int cnt, size_t len,
			uint64_t *end)
{
	const struct form_ops *form;
	ssize_t n;

	do {
		form = form_of(ino);
		n = form->append(ino, fd, iov, cnt, len, end);
	} while (has_changed(ino, fd, form, &n));
	return n;
}

int dispatch_truncate(struct inode *ino, int fd, uint64_t size)
{
	const struct form_ops *form;
	ssize_t ret;

	do {
		form = form_of(ino);
		ret = form->truncate(ino, fd, size);
	} while (has_changed(ino, fd, form, &ret));
	return (int)ret;
}

int dispatch_fallocate(struct inode *ino, int fd, int mode, uint64_t logical_off, uint64_t len)
{
	const struct form_ops *form;
	ssize_t ret;

	do {
		form = form_of(ino);
		ret = form->fallocate(ino, fd, mode, logical_off, len);
	} while (has_changed(ino, fd, form, &ret));
	return (int)ret;
}

int dispatch_sync(struct inode *ino, int fd)
{
	const struct form_ops *form;
	ssize_t ret;

	do {
		form = form_of(ino);
		ret = form->sync(ino, fd);
	} while (has_changed(ino, fd, form, &ret));
	return (int)ret;
}
