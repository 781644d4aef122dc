/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls on bare files. What there is to know of them stands in bare.h.
 */
#include "bare.h"

#include "body.h"
#include "file.h"
#include "newer.h"
#include "own.h"
#include "sys.h"

/* As far as this process knows. */
static bool seems_bare(const struct inode *ino)
{
	return !ino->stub.has_container && !ino->stub.in_body;
}

int bare_look(struct inode *ino, int fd)
{
	struct stub now;
	struct stat st;
	int ret;

	if (!seems_bare(ino))
		return 0;
	ret = stub_settle(fd, &now);
	if (!ret && ino->m->store.remote)
		store_posix_forget(fd, 0);
	if (!ret && now.has_container && sys.fstat(fd, &st))
		ret = -errno;
	if (ret)
		return ret;
	if (now.in_body) {
		inode_enter_body(ino, &now);
	} else if (now.has_container) {
		ino->stub = now;
		inode_adopt_container(ino, &st);
		inode_refresh(ino);
	}
	return seems_bare(ino);
}

/* bare_look() as the functions below return it: whether they are through. */
static bool is_not_bare(struct inode *ino, int fd, bool *through, ssize_t *ret)
{
	int bare = bare_look(ino, fd);

	*ret = bare < 0 ? bare : 0;
	*through = bare < 0;
	return bare <= 0;
}

static bool is_small(const struct inode *ino, uint64_t logical_off, uint64_t len)
{
	uint64_t small = ino->m->spec->small;

	return len <= small && logical_off <= small - len;
}

bool bare_write(struct inode *ino, int fd, const void *buf, size_t len, uint64_t logical_off, ssize_t *ret)
{
	bool through;
	ssize_t n;

	if (!seems_bare(ino) || !is_small(ino, logical_off, len))
		return false;
	*ret = mount_prepare(ino->m);
	if (*ret)
		return true;
	if (!ino->bare_writer && !stub_is_alone(file_marked_fd_of(ino, fd)))
		return false;
	ino->bare_writer = true;
	if (is_not_bare(ino, fd, &through, ret))
		return through;
	n = body_write(fd, buf, len, logical_off);
	if (n > 0 && is_not_bare(ino, fd, &through, ret))
		return through;
	if (n > 0)
		ino->body_len = max_u64(ino->body_len, logical_off + (uint64_t)n);
	*ret = n;
	return true;
}

/*
 * The lock is the process's, and goes when another thread closes any descriptor of the file: then a process with threads
 * could not rely on it.
 */
bool bare_append(struct inode *ino, int fd, const struct iovec *iov, int cnt, size_t len, uint64_t *end, ssize_t *ret)
{
	struct stub now;
	struct stat st;
	ssize_t n;

	if (!seems_bare(ino) || !is_small(ino, ino->body_len, len) || !__libc_single_threaded)
		return false;
	*ret = mount_prepare(ino->m);
	if (*ret)
		return true;
	if (stub_begin_append(fd, &now))
		return false;
	n = -EOPNOTSUPP;
	if (!now.has_container && !now.in_body && !now.moving && !sys.fstat(fd, &st) &&
	    is_small(ino, stub_body_len(st.st_size), len)) {
		n = stub_fill_header(fd, &st);
		n = n ? n : body_append(fd, iov, cnt, end);
	}
	stub_end_append(fd);
	if (n > 0)
		ino->body_len = max_u64(ino->body_len, *end);
	*ret = n;
	return n != -EOPNOTSUPP && n != -ENOSYS;
}

bool bare_truncate(struct inode *ino, int fd, uint64_t size, ssize_t *ret)
{
	bool through;

	if (is_not_bare(ino, fd, &through, ret))
		return through;
	if (sys.ftruncate(fd, (off_t)(PLFS_BODY_OFF + size))) {
		*ret = -errno;
		return true;
	}
	if (is_not_bare(ino, fd, &through, ret)) /* what others have logged meanwhile has to be cut as well */
		return through;
	ino->body_len = size;
	return true;
}

bool bare_fallocate(struct inode *ino, int fd, int mode, uint64_t logical_off, uint64_t len, ssize_t *ret)
{
	bool through;
	int failed;

	if (!seems_bare(ino) || !is_small(ino, logical_off, len))
		return false;
	if (is_not_bare(ino, fd, &through, ret))
		return through;
	failed = own_fallocate(fd, mode, (off_t)(PLFS_BODY_OFF + logical_off), (off_t)len) ? -errno : 0;
	if (failed == -EOPNOTSUPP || failed == -ENOSYS || is_not_bare(ino, fd, &through, ret))
		return false;
	*ret = failed;
	return true;
}
