/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * form_bare. The argument why this is right stands in bare.h.
 */
#include "core/file/bare.h"

#include "core/backend/stub_lock.h"
#include "core/backend/stub_use.h"
#include "core/file/body.h"
#include "core/base/io.h"
#include "core/base/single.h"
#include "core/base/sys.h"
#include "core/store/posix.h"

/* 0: the file is bare still, by its header; -EREMCHG: it is not, and the inode knows; -errno. */
static int still_bare(struct inode *ino, int fd)
{
	int bare = inode_look_bare(ino, fd);

	return bare > 0 ? 0 : bare ? bare : -EREMCHG;
}

static bool is_small(const struct inode *ino, uint64_t logical_off, uint64_t len)
{
	uint64_t small = ino->m->spec->small;

	return len <= small && logical_off <= small - len;
}

/*
 * Whether a write may stay in the body: it is small, or one of the few of this process in a file that is not.
 * *@cost: what it takes of those.
 */
static bool may_stay(const struct inode *ino, uint64_t logical_off, uint64_t len, uint64_t *cost)
{
	uint64_t small = ino->m->spec->small;

	*cost = 0;
	if (is_small(ino, logical_off, len))
		return true;
	*cost = max_u64(len, small / BARE_FEW);
	return !ino->m->store.remote && logical_off + len <= BARE_SHARED * small &&
	       *cost <= small - ino->bare_spent;
}

/* On a store that other hosts share, the first write must find nobody else. */
static bool may_write(struct inode *ino, int fd, uint64_t logical_off, uint64_t len)
{
	uint64_t cost;

	if (!may_stay(ino, logical_off, len, &cost))
		return false;
	ino->bare_spent += cost;
	if (ino->m->store.remote && !ino->bare_writer)
		ino->bare_writer = stub_is_alone(inode_marked_fd(ino, fd));
	return !ino->m->store.remote || ino->bare_writer;
}

static ssize_t bare_write(struct inode *ino, int fd, const void *buf, size_t len, uint64_t logical_off)
{
	ssize_t n;
	int ret;

	if (!may_write(ino, fd, logical_off, len))
		return -EREMCHG;
	ret = mount_prepare(ino->m);
	if (!ret)
		ret = still_bare(ino, fd);
	if (!ret)
		ret = inode_explain(ino, fd);
	if (ret)
		return ret;
	n = body_write(fd, buf, len, logical_off);
	ret = n > 0 ? still_bare(ino, fd) : 0;
	if (ret)
		return ret;
	if (n > 0)
		ino->v.told_len = max_u64(ino->v.told_len, logical_off + (uint64_t)n);
	return n;
}

static ssize_t bare_begin_read(struct inode *ino, int fd, void *buf, size_t len, uint64_t logical_off,
			       struct read_rest *rd)
{
	ssize_t n = body_read(fd, buf, len, logical_off);
	/*
	 * After it: as soon as a process claims the file, others may write to logs and make the stub longer,
	 * whose body has a hole there.
	 */
	int ret = still_bare(ino, fd);

	*rd = (struct read_rest){ .handle = NULL };
	return ret ? ret : n;
}

/*
 * Where hosts share the file, the kernel of one may not know the end that another has just made.
 *
 * The lock is the process's, and goes when another thread closes any descriptor of the file: then a process
 * with threads could not rely on it.
 */
static ssize_t bare_append(struct inode *ino, int fd, const struct iovec *iov, int cnt, size_t len,
			   uint64_t *end)
{
	struct stub now;
	struct stat st;
	uint64_t cost;
	ssize_t n;
	int ret;

	if (ino->m->store.remote || !may_stay(ino, ino->v.told_len, len, &cost) || !is_single_threaded())
		return -EREMCHG;
	ret = mount_prepare(ino->m);
	if (ret)
		return ret;
	if (stub_begin_append(fd, &now))
		return -EREMCHG;
	n = -EOPNOTSUPP;
	if (!now.has_container && !now.claim && !now.in_body && !now.moving && !sys.fstat(fd, &st) &&
	    may_stay(ino, stub_body_len(st.st_size), len, &cost)) {
		n = stub_fill_header(fd, &st);
		if (!n)
			n = inode_explain(ino, fd);
		n = n ? n : body_append(fd, iov, cnt, end);
	}
	stub_end_append(fd);
	if (n > 0) {
		ino->bare_spent += cost;
		ino->v.told_len = max_u64(ino->v.told_len, *end);
	}
	return n == -EOPNOTSUPP || n == -ENOSYS ? -EREMCHG : n;
}

/*
 * Under the lock of the header no process claims the file, and appends to a log behind the new end. Otherwise
 * the truncation of the logs that comes next takes that append away, and leaves the hole before it. A
 * truncation to nothing leaves no such hole. True: the file was bare, and *@ret is the result.
 */
static bool truncate_locked(struct inode *ino, int fd, uint64_t size, int *ret)
{
	struct stub now;
	bool bare;

	if (!size || !is_single_threaded() || stub_begin_append(fd, &now))
		return false;
	bare = !now.has_container && !now.claim && !now.in_body && !now.moving;
	if (bare)
		*ret = inode_explain(ino, fd);
	if (bare && !*ret)
		*ret = sys.ftruncate(fd, (off_t)(PLFS_BODY_OFF + size)) ? -errno : 0;
	stub_end_append(fd);
	if (bare && !*ret)
		ino->v.told_len = size;
	return bare;
}

static int bare_truncate(struct inode *ino, int fd, uint64_t size)
{
	int ret;

	if (truncate_locked(ino, fd, size, &ret))
		return ret;
	ret = still_bare(ino, fd);
	if (!ret && size)
		ret = inode_explain(ino, fd);
	if (!ret && sys.ftruncate(fd, (off_t)(PLFS_BODY_OFF + size)))
		ret = -errno;
	if (!ret)
		/* bytes that others have logged meanwhile have to be cut as well */
		ret = still_bare(ino, fd);
	if (!ret)
		ino->v.told_len = size;
	return ret;
}

static int bare_fallocate(struct inode *ino, int fd, int mode, uint64_t logical_off, uint64_t len)
{
	int ret, failed;

	if (!form_emulates(mode) || !is_small(ino, logical_off, len))
		return 1;
	ret = still_bare(ino, fd);
	if (!ret)
		ret = inode_explain(ino, fd);
	if (ret)
		return ret;
	failed = io_fallocate(fd, mode, (off_t)(PLFS_BODY_OFF + logical_off), (off_t)len) ? -errno : 0;
	if (failed == -EOPNOTSUPP || failed == -ENOSYS)
		return 1;
	ret = still_bare(ino, fd);
	return ret ? ret : failed;
}

/*
 * The stub says that it is synced before it is: a container made from then on has its way synced before the
 * stub names it.
 */
static int bare_sync(struct inode *ino, int fd)
{
	int ret = still_bare(ino, fd);

	if (!ret && inode_mark_synced(ino, fd)) {
		ino->way_due = true; /* of a container that the file has got just before */
		ret = still_bare(ino, fd);
	}
	if (ret == -EREMCHG)
		return ret;
	ino->way_due &= ret < 0;
	ino->v.acquired = true;
	if (io_fsync(fd) && !ret)
		ret = -errno;
	return ret;
}

const struct form_ops form_bare = {
	.write = bare_write,
	.begin_read = bare_begin_read,
	.append = bare_append,
	.truncate = bare_truncate,
	.fallocate = bare_fallocate,
	.sync = bare_sync,
};
