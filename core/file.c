/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The operations that programs do on descriptions. Each takes the inode's lock and calls inode.c.
 */
#include "file.h"

#include "bare.h"
#include "body.h"
#include "durable.h"
#include "own.h"
#include "usermem.h"

/* So many reads after one that had to wait for the lock. */
#define CROWDED_READS 256

#define LOGICAL_MAX ((uint64_t)INT64_MAX - PLFS_BODY_OFF)

int file_any_fd(const struct inode *ino)
{
	const struct plfs_file *best = ino->files;

	for (const struct plfs_file *f = best; f; f = f->next)
		if (f->writable && !f->append_flag)
			return f->fd;
	for (const struct plfs_file *f = best; f; f = f->next)
		if (f->writable)
			best = f;
	return best ? best->fd : -1;
}

int file_marked_fd_of(const struct inode *ino, int fd)
{
	for (const struct plfs_file *f = ino->files; f; f = f->next)
		if (f->fd == fd)
			return file_marked_fd(f);
	return fd;
}

void file_close_fds(struct plfs_file *f)
{
	sys_fd_close(&f->own_fd);
	sys_fd_close(&f->fd);
}

static int begin_locked(struct plfs_file *f)
{
	if (unlikely(f->append_flag)) {
		int flags = sys.fcntl(f->fd, F_GETFL);

		if (flags >= 0)
			sys.fcntl(f->fd, F_SETFL, flags & ~O_APPEND);
	}
	return f->fd;
}

int file_begin(struct plfs_file *f)
{
	mutex_lock(&f->ino->lock);
	return begin_locked(f);
}

/* If others hold the lock, reads had better not do under it what can be done without. */
static int begin_read(struct plfs_file *f)
{
	if (unlikely(!mutex_trylock(&f->ino->lock))) {
		mutex_lock(&f->ino->lock);
		f->ino->r.logs.crowded = CROWDED_READS;
	}
	return begin_locked(f);
}

void file_end(struct plfs_file *f)
{
	if (unlikely(f->append_flag)) {
		int flags = sys.fcntl(f->fd, F_GETFL);

		if (flags >= 0)
			sys.fcntl(f->fd, F_SETFL, flags | O_APPEND);
	}
	mutex_unlock(&f->ino->lock);
}

/* The same at the end of what was to be stored: @ret, or why it was not. */
static ssize_t end_store(struct plfs_file *f, ssize_t ret)
{
	int why = unlikely(inode_is_broken(f->ino)) ? inode_mend(f->ino) : 0;

	file_end(f);
	return why && ret >= 0 ? why : ret;
}

/* ---- data ---- */

static bool bad_range(size_t len, off_t logical_off)
{
	return logical_off < 0 || len > LOGICAL_MAX || (uint64_t)logical_off > LOGICAL_MAX - len;
}

/* Returns the bytes of a part of the request; *@more: there are more. */
static ssize_t read_part(struct plfs_file *f, void *buf, size_t len, uint64_t logical_off, bool *more)
{
	struct inode *ino = f->ino;
	struct reading rd;
	int fd = begin_read(f);
	ssize_t n = inode_begin_read(ino, fd, buf, len, logical_off, &rd);
	bool ok, last;

	file_end(f);
	*more = rd.more;
	if (rd.in_body)
		return body_read(fd, buf, len, logical_off);
	if (!rd.handle && !rd.scatter)
		return n;
	ok = reading_run(&rd, ino->c.store);
	last = reading_end(&ino->r, &rd);
	if (unlikely(!ok || last)) {
		fd = file_begin(f);
		logset_bury(&ino->r.logs);
		if (!ok) {
			ssize_t want = n;

			n = inode_read(ino, fd, buf, (size_t)want, logical_off);
			*more &= n == want;
		}
		file_end(f);
	}
	return n;
}

ssize_t plfs_pread(struct plfs_file *f, void *buf, size_t len, off_t logical_off)
{
	int saved ERRNO_KEPT = errno;
	size_t done = 0;
	bool more;

	if (logical_off < 0)
		return -EINVAL;
	len = min_size(len, SSIZE_MAX);
	if ((uint64_t)logical_off >= LOGICAL_MAX || !len)
		return 0;
	len = (size_t)min_u64(len, LOGICAL_MAX - (uint64_t)logical_off);
	do {
		ssize_t n = read_part(f, (char *)buf + done, len - done, (uint64_t)logical_off + done, &more);

		if (n < 0)
			return n == -EFAULT && done ? (ssize_t)done : n;
		done += (size_t)n;
	} while (more);
	return (ssize_t)done;
}

ssize_t plfs_preadv(struct plfs_file *f, const struct iovec *iov, int cnt, off_t logical_off)
{
	ssize_t done = 0;

	for (int i = 0; i < cnt; i++) {
		ssize_t n = plfs_pread(f, iov[i].iov_base, iov[i].iov_len, logical_off + done);

		if (n < 0)
			return done ? done : n;
		done += n;
		if ((size_t)n < iov[i].iov_len)
			break;
	}
	return done;
}

ssize_t plfs_extent(struct plfs_file *f, off_t logical_off, size_t len, int *fd, off_t *fd_off)
{
	int saved ERRNO_KEPT = errno;
	struct inode *ino = f->ino;
	off_t size = plfs_size(f); /* has the map made */
	uint64_t off;
	ssize_t ret;

	*fd = -1;
	if (size < 0)
		return size;
	file_begin(f);
	ret = ino->stub.in_body ? (ssize_t)len : reader_extent(&ino->r, (uint64_t)logical_off, len, fd, &off);
	if (unlikely(reader_is_broken(&ino->r)) && ret > 0) /* then it is to be read, which mends it */
		*fd = -1;
	if (*fd >= 0) {
		*fd_off = (off_t)off;
		*fd = sys_fd_dup(*fd);
	}
	file_end(f);
	return ret;
}

static ssize_t write_locked(struct plfs_file *f, int fd, const struct iovec *iov, int cnt, uint64_t logical_off)
{
	ssize_t done = 0;

	for (int i = 0; i < cnt; i++) {
		ssize_t n = 0;

		if (iov[i].iov_len) {
			size_t len = user_readable(iov[i].iov_base, iov[i].iov_len);

			n = len ? inode_write(f->ino, fd, iov[i].iov_base, len, logical_off + (uint64_t)done) : -EFAULT;
		}
		if (n < 0)
			return done ? done : n;
		done += n;
		if ((size_t)n < iov[i].iov_len)
			break;
	}
	return done;
}

ssize_t plfs_iov_total(const struct iovec *iov, int cnt)
{
	size_t total = 0;

	if (cnt < 0 || cnt > IOV_MAX)
		return -EINVAL;
	for (int i = 0; i < cnt; i++) {
		if (iov[i].iov_len > SSIZE_MAX - total)
			return -EINVAL;
		total += iov[i].iov_len;
	}
	return (ssize_t)total;
}

ssize_t plfs_pwritev(struct plfs_file *f, const struct iovec *iov, int cnt, off_t logical_off)
{
	int saved ERRNO_KEPT = errno;
	ssize_t total = plfs_iov_total(iov, cnt);
	ssize_t ret;
	int fd;

	if (total < 0 || logical_off < 0)
		return -EINVAL;
	if (!total)
		return 0;
	if (bad_range((size_t)total, logical_off))
		return -EFBIG;
	fd = file_begin(f);
	ret = write_locked(f, fd, iov, cnt, (uint64_t)logical_off);
	return end_store(f, ret);
}

ssize_t plfs_pwrite(struct plfs_file *f, const void *buf, size_t len, off_t logical_off)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = min_size(len, SSIZE_MAX) };
	bool next;

	/* Nearly all writes there are. */
	if (likely(len - 1 < WRITER_DIRECT_LEN - 1 && (uint64_t)logical_off < LOGICAL_MAX - WRITER_DIRECT_LEN &&
		   !f->append_flag)) {
		mutex_lock(&f->ino->lock);
		next = inode_write_next(f->ino, buf, len, (uint64_t)logical_off);
		if (unlikely(f->ino->writing && stage_is_broken(&f->ino->w.stage)))
			return end_store(f, (ssize_t)len);
		mutex_unlock(&f->ino->lock);
		if (likely(next))
			return (ssize_t)len;
	}
	return plfs_pwritev(f, &iov, 1, logical_off);
}

ssize_t plfs_appendv(struct plfs_file *f, const struct iovec *iov, int cnt, off_t *end_out)
{
	int saved ERRNO_KEPT = errno;
	ssize_t total = plfs_iov_total(iov, cnt);
	uint64_t at;
	ssize_t ret;
	int fd;

	if (total < 0)
		return total;
	if (!total) {
		*end_out = plfs_size(f);
		return 0;
	}
	fd = file_begin(f);
	if (bare_append(f->ino, fd, iov, cnt, (size_t)total, &at, &ret)) {
		if (ret > 0)
			*end_out = (off_t)at;
		file_end(f);
		return ret;
	}
	ret = inode_begin_append(f->ino, fd, &at);
	if (!ret && f->ino->stub.in_body) {
		ret = body_append(fd, iov, cnt, &at);
		if (ret >= 0)
			*end_out = (off_t)at;
	} else if (!ret) {
		ret = bad_range((size_t)total, (off_t)at) ? -EFBIG : write_locked(f, fd, iov, cnt, at);
		inode_end_append(f->ino, fd);
		if (ret >= 0)
			*end_out = (off_t)at + ret;
	}
	return end_store(f, ret);
}

void plfs_note_record_lock(struct plfs_file *f)
{
	file_begin(f);
	f->ino->record_locks = true;
	file_end(f);
}

/* ---- size ---- */

off_t plfs_size(struct plfs_file *f)
{
	int saved ERRNO_KEPT = errno;
	struct stat st;
	uint64_t size;
	int fd = file_begin(f);
	int ret = sys.fstat(fd, &st) ? -errno : inode_size(f->ino, fd, &st, &size);

	file_end(f);
	return ret ? ret : (off_t)size;
}

int plfs_truncate(struct plfs_file *f, off_t size)
{
	int saved ERRNO_KEPT = errno;
	int ret;

	if (size < 0)
		return -EINVAL;
	if ((uint64_t)size > LOGICAL_MAX)
		return -EFBIG;
	ret = inode_truncate(f->ino, file_begin(f), (uint64_t)size);
	return (int)end_store(f, ret);
}

static int write_zeros(struct plfs_file *f, off_t logical_off, off_t len)
{
	static const char zeros[65536];

	while (len) {
		ssize_t n = plfs_pwrite(f, zeros, (size_t)min_u64(sizeof(zeros), (uint64_t)len), logical_off);

		if (n < 0)
			return (int)n;
		logical_off += n;
		len -= n;
	}
	return 0;
}

int plfs_fallocate(struct plfs_file *f, int mode, off_t logical_off, off_t len)
{
	int saved ERRNO_KEPT = errno;
	bool keep = mode & FALLOC_FL_KEEP_SIZE;
	off_t size, stop;
	ssize_t done;
	bool bare;
	int ret;

	if (logical_off < 0 || len <= 0)
		return -EINVAL;
	if (bad_range((size_t)len, logical_off))
		return -EFBIG;
	stop = logical_off + len;
	size = plfs_size(f);
	if (size < 0)
		return (int)size;
	if (mode == FALLOC_FL_COLLAPSE_RANGE || mode == FALLOC_FL_INSERT_RANGE) { /* what logs say lies where it lies */
		ret = plfs_in_body(f, PLFS_MAP_WRITE);
		if (ret < 0)
			return ret == -EBUSY ? -EOPNOTSUPP : ret;
	}
	if (f->ino->stub.in_body)
		return own_fallocate(f->fd, mode, logical_off + PLFS_BODY_OFF, len) ? -errno : 0;
	if (mode == (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE) || mode == (FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE))
		stop = stop < size ? stop : size;
	else if (mode != 0 && mode != FALLOC_FL_KEEP_SIZE && mode != FALLOC_FL_ZERO_RANGE)
		return -EOPNOTSUPP;
	bare = bare_fallocate(f->ino, file_begin(f), mode, (uint64_t)logical_off, (uint64_t)len, &done);
	file_end(f);
	if (bare)
		return (int)done;
	ret = 0;
	if (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE) && logical_off < size)
		ret = write_zeros(f, logical_off, (stop < size ? stop : size) - logical_off);
	if (!ret && !keep && stop > size) {
		ret = inode_grow(f->ino, file_begin(f), (uint64_t)stop);
		file_end(f);
	}
	return ret;
}

off_t plfs_seek_hole(struct plfs_file *f, off_t logical_off, int whence)
{
	off_t size = plfs_size(f);

	if (size < 0)
		return size;
	if (logical_off < 0 || logical_off >= size)
		return -ENXIO;
	return whence == SEEK_DATA ? logical_off : size;
}

int plfs_in_body(struct plfs_file *f, enum plfs_map_use use)
{
	int saved ERRNO_KEPT = errno;
	struct inode *ino = f->ino;
	int fd = file_begin(f), ret = inode_settle(ino, fd);

	if (!ret && !ino->stub.in_body && use == PLFS_MAP_READ) {
		ret = body_is_written(ino);
		use = ret > 0 ? PLFS_MAP_WRITE : PLFS_MAP_COPY;
		if (!ret && bare_look(ino, fd) > 0) { /* somebody may be writing it, and the map is to show that */
			if (stub_in_use(file_marked_fd(f))) /* also when he goes beyond what stays bare */
				body_move_unseen(ino, fd);
			use = bare_look(ino, fd) > 0 || ino->stub.in_body ? PLFS_MAP_READ : PLFS_MAP_COPY;
			if (use == PLFS_MAP_READ) {
				file_end(f);
				return 1;
			}
		}
	}
	if (ret >= 0 && !ino->stub.in_body && use == PLFS_MAP_WRITE)
		ret = body_move(ino);
	if (ret >= 0)
		ret = ino->stub.in_body;
	file_end(f);
	return ret;
}

int plfs_commit(struct plfs_file *f)
{
	int saved ERRNO_KEPT = errno;
	int ret = inode_commit(f->ino, file_begin(f));

	return (int)end_store(f, ret);
}

int plfs_share(struct plfs_file *f)
{
	int saved ERRNO_KEPT = errno;
	int ret = inode_commit(f->ino, file_begin(f));

	f->ino->shared = true;
	file_end(f);
	return ret;
}

int plfs_refresh(struct plfs_file *f)
{
	int saved ERRNO_KEPT = errno;

	file_begin(f);
	inode_refresh(f->ino);
	file_end(f);
	return 0;
}

unsigned plfs_sync_patience_ms = 10000; /* longer than most syncs take */

/* Whoever is syncing the file is waited for without the lock: he may have been stopped. */
int plfs_sync(struct plfs_file *f)
{
	int saved ERRNO_KEPT = errno;
	struct timespec pause = { .tv_nsec = 100000 };
	struct inode *ino = f->ino;

	for (uint64_t waited_ns = 0;; waited_ns += (uint64_t)pause.tv_nsec) {
		int fd = file_begin(f), ret = -EBUSY;
		unsigned depth;

		ino->impatient |= waited_ns >= plfs_sync_patience_ms * 1000000ULL;
		if (!waited_ns || ino->impatient || ino->stub.in_body || !durable_is_busy(&ino->c))
			ret = inode_sync(ino, fd);
		if (ret != -EBUSY)
			return (int)end_store(f, ret);
		file_end(f);
		depth = critical_pause();
		own_nanosleep(&pause, NULL);
		critical_resume(depth);
		pause.tv_nsec = min_u64(2 * (uint64_t)pause.tv_nsec, 4000000);
	}
}
