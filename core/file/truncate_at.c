/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * truncate(2). A file on which this process has record locks is not opened, since they would go at the close;
 * unless it has it open only to read.
 */
#include "core/file/file.h"

#include "core/backend/stub_known.h"
#include "core/base/critical.h"
#include "core/base/io.h"
#include "core/file/dispatch.h"

#include <stdio.h>

/* By a description that this process has. -ENOENT: there is none, or no lock. @name: the kernel's. */
static int truncate_locked(const struct stat *st, const char *name, off_t size)
{
	struct inode *ino = inode_find(st->st_dev, st->st_ino);
	struct plfs_file *f = NULL;
	struct seen call;
	int ret = -ENOENT;

	if (!ino)
		return ret;
	mutex_lock(&ino->lock);
	if (ino->record_locks)
		for (f = ino->files; f && !f->writable; f = f->next)
			;
	if (!f) {
		mutex_unlock(&ino->lock);
	} else {
		seen_begin(&call, ino->tally, SEEN_TRUNCATE);
		if (sys.faccessat(AT_FDCWD, name, W_OK, AT_EACCESS))
			ret = -errno;
		else if ((uint64_t)size > FORM_SIZE_MAX)
			ret = -EFBIG;
		else
			ret = dispatch_truncate(ino, f->fd, (uint64_t)size);
		ret = (int)file_end_store(f, ret);
		seen_end(&call, (uint64_t)size, ret);
	}
	inode_put(ino, NULL);
	return ret;
}

/* @fd is of the name alone (O_PATH). -ENOENT: a file that is to be opened. */
static int truncate_unopened(int fd, off_t size)
{
	struct stat st;
	char name[32];

	if (sys.fstat(fd, &st))
		return -errno;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	file_know_at(&st, AT_FDCWD, name, 0);
	if (stub_marked(st.st_mode) && S_ISREG(st.st_mode))
		return truncate_locked(&st, name, size);
	return sys.truncate(name, size) ? -errno : 0;
}

int plfs_truncate_at(struct plfs_mount *m, int dirfd, const char *path, off_t size)
{
	int saved ERRNO_KEPT = errno;
	bool section CRITICAL = critical_begin();
	struct plfs_file *f = NULL;
	int fd, ret, ret2 = 0;

	if (size < 0)
		return -EINVAL;
	fd = io_openat(dirfd, path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = truncate_unopened(fd, size);
	io_close(fd);
	if (ret != -ENOENT)
		return ret;
	fd = plfs_open(m, dirfd, path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0, &f);
	if (fd < 0)
		return fd == -ENXIO ? -EINVAL : fd; /* a fifo that nobody reads */
	ret = f ? plfs_truncate(f, size) : sys.ftruncate(fd, size) ? -errno : 0;
	io_close(fd);
	if (f)
		ret2 = plfs_close(f);
	return ret ? ret : ret2;
}
