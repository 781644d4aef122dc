/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The data calls on a file in its body. How a file gets there is move.c's.
 */
#include "core/file/body.h"

#include "core/base/io.h"
#include "core/base/sys.h"
#include "core/file/publish.h"

ssize_t body_read(int fd, void *buf, size_t len, uint64_t logical_off)
{
	ssize_t n;

	do { /* in one call: what comes behind a short one may be later */
		n = io_pread(fd, buf, len, (off_t)(PLFS_BODY_OFF + logical_off));
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

ssize_t body_write(int fd, const void *buf, size_t len, uint64_t logical_off)
{
	return io_pwrite_all(fd, buf, len, PLFS_BODY_OFF + logical_off);
}

/* Without RWF_APPEND (before Linux 4.16, in some emulators): by a description of our own that appends. */
static ssize_t append_by_another(int fd, const struct iovec *iov, int cnt, off_t *off)
{
	int own = stub_reopen(fd, O_WRONLY | O_APPEND);
	ssize_t n = own < 0 ? own : io_writev(own, iov, cnt);

	if (own < 0)
		return n;
	n = n < 0 ? -errno : n;
	*off = sys.lseek(own, 0, SEEK_CUR);
	sys_fd_close(&own);
	return n;
}

/*
 * The kernel finds the end: the body's is the stub's. The offset says where that was; it is the program's,
 * and is put back.
 */
ssize_t body_append(int fd, const struct iovec *iov, int cnt, uint64_t *end)
{
	off_t before = sys.lseek(fd, 0, SEEK_CUR), off = -1;
	ssize_t n = io_pwritev2(fd, iov, cnt, -1, RWF_APPEND);

	if (n < 0 && (errno == EOPNOTSUPP || errno == ENOSYS)) {
		n = append_by_another(fd, iov, cnt, &off);
	} else {
		n = n < 0 ? -errno : n;
		off = sys.lseek(fd, 0, SEEK_CUR);
		sys.lseek(fd, before, SEEK_SET);
	}
	if (n < 0)
		return n;
	if (off < PLFS_BODY_OFF)
		return -EIO;
	*end = (uint64_t)off - PLFS_BODY_OFF;
	return n;
}

int body_resize(struct inode *ino, int fd, uint64_t size)
{
	struct stat st;

	if (sys.fstat(fd, &st))
		return -errno;
	if (stub_body_len(st.st_size) > size && sys.ftruncate(fd, (off_t)(PLFS_BODY_OFF + size)))
		return -errno;
	view_drop_end(&ino->v);
	ino->v.told_len = min_u64(stub_body_len(st.st_size), size);
	return publish_extend(ino, fd, size);
}

/* ---- form_body: nothing can change its form any more ---- */

static ssize_t form_write(struct inode *ino, int fd, const void *buf, size_t len, uint64_t logical_off)
{
	(void)ino;
	return body_write(fd, buf, len, logical_off);
}

static ssize_t form_begin_read(struct inode *ino, int fd, void *buf, size_t len, uint64_t logical_off,
			       struct read_rest *rd)
{
	(void)ino, (void)fd, (void)buf, (void)len, (void)logical_off;
	*rd = (struct read_rest){ .in_body = true };
	return 0;
}

static ssize_t form_append(struct inode *ino, int fd, const struct iovec *iov, int cnt, size_t len,
			   uint64_t *end)
{
	(void)ino, (void)len;
	return body_append(fd, iov, cnt, end);
}

static int form_fallocate(struct inode *ino, int fd, int mode, uint64_t logical_off, uint64_t len)
{
	(void)ino;
	return io_fallocate(fd, mode, (off_t)(PLFS_BODY_OFF + logical_off), (off_t)len) ? -errno : 0;
}

/* What a log that was given up had, the mover has copied and synced. */
static int form_sync(struct inode *ino, int fd)
{
	ino->sync_error = 0;
	ino->way_due = false;
	return io_fsync(fd) ? -errno : 0;
}

const struct form_ops form_body = {
	.write = form_write,
	.begin_read = form_begin_read,
	.append = form_append,
	.truncate = body_resize,
	.fallocate = form_fallocate,
	.sync = form_sync,
};
