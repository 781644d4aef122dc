/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The operations that programs do on descriptions. Each takes the inode's lock and calls inode.c.
 */
#include "core/file/file.h"

#include "core/backend/stub_use.h"
#include "core/file/acquire.h"
#include "core/file/body.h"
#include "core/file/dispatch.h"
#include "core/file/logged.h"
#include "core/file/move.h"
#include "core/file/patience.h"
#include "core/write/durable.h"
#include "core/base/io.h"
#include "core/base/msg.h"

/* So many reads after one that had to wait for the lock. */
#define CROWDED_READS 256

int file_begin(struct plfs_file *f)
{
	mutex_lock(&f->ino->lock);
	return f->fd;
}

/* If others hold the lock, reads had better not do under it what can be done without. */
static int begin_read(struct plfs_file *f)
{
	if (unlikely(!mutex_trylock(&f->ino->lock))) {
		mutex_lock(&f->ino->lock);
		f->ino->v.r.logs.crowded = CROWDED_READS;
	}
	return f->fd;
}

void file_end(struct plfs_file *f) { mutex_unlock(&f->ino->lock); }

ssize_t file_end_store(struct plfs_file *f, ssize_t ret)
{
	int why = unlikely(inode_is_broken(f->ino)) ? inode_mend(f->ino) : 0;

	file_end(f);
	return why && ret >= 0 ? why : ret;
}

/* ---- data ---- */

/* The kernel refuses a transfer whose end is no offset, before it looks at the file. */
static bool has_no_end(size_t len, off_t logical_off)
{
	return logical_off < 0 || len > (uint64_t)(INT64_MAX - logical_off);
}

/* Under the lock, as a read without it failed. A logged file that has changed its form is in its body. */
static ssize_t read_again(struct plfs_file *f, int fd, void *buf, size_t len, uint64_t logical_off)
{
	ssize_t n = logged_read(f->ino, fd, buf, len, logical_off);

	return n == -EREMCHG ? body_read(fd, buf, len, logical_off) : n;
}

/*
 * Returns the bytes of a part of the request; *@more: there are more. -EREMOTE, with @waits: they are near on
 * another host.
 */
static ssize_t read_part(struct plfs_file *f, void *buf, size_t len, uint64_t logical_off, bool waits,
			 bool *more)
{
	struct inode *ino = f->ino;
	struct read_rest rd;
	int fd = begin_read(f);
	bool ok, last;
	ssize_t n;

	ino->v.r.logs.waits = waits;
	n = dispatch_begin_read(ino, fd, buf, len, logical_off, &rd);
	ino->v.r.logs.waits = false;
	file_end(f);
	*more = rd.more;
	if (rd.in_body)
		return body_read(fd, buf, len, logical_off);
	if (!rd.handle && !rd.scatter)
		return n;
	ok = read_rest_run(&rd, ino->c.store);
	if (unlikely(rd.compares) && ok) {
		mutex_lock(&ino->lock);
		reader_compared(&ino->v.r, &rd);
		mutex_unlock(&ino->lock);
	}
	last = read_rest_end(&ino->v.r, &rd);
	if (unlikely(!ok || last)) {
		fd = file_begin(f);
		logset_bury(&ino->v.r.logs);
		if (!ok) {
			ssize_t want = n;

			ino->v.r.logs.waits = waits;
			n = read_again(f, fd, buf, (size_t)want, logical_off);
			ino->v.r.logs.waits = false;
			*more &= n == want;
		}
		file_end(f);
	}
	return n;
}

static ssize_t read_all(struct plfs_file *f, void *buf, size_t len, off_t logical_off)
{
	int saved ERRNO_KEPT = errno;
	struct inode *ino = f->ino;
	struct patience patience = { .over = !ino->m->spec->wait };
	size_t done = 0;
	bool more;

	if (has_no_end(len, logical_off))
		return -EINVAL;
	if ((uint64_t)logical_off >= FORM_SIZE_MAX || !len)
		return 0;
	len = (size_t)min_u64(len, FORM_SIZE_MAX - (uint64_t)logical_off);
	do {
		ssize_t n = read_part(f, (char *)buf + done, len - done, (uint64_t)logical_off + done,
				      !patience.over, &more);

		if (unlikely(n == -EREMOTE)) {
			patience_wait(&patience, ino->m->spec->wait);
			more = true;
			continue;
		}
		if (n < 0)
			return n == -EFAULT && done ? (ssize_t)done : n;
		done += (size_t)n;
	} while (more);
	return (ssize_t)done;
}

ssize_t plfs_pread(struct plfs_file *f, void *buf, size_t len, off_t logical_off)
{
	struct seen call;
	ssize_t n;

	seen_begin(&call, f->ino->tally, SEEN_READ);
	n = read_all(f, buf, len, logical_off);
	seen_end(&call, (uint64_t)logical_off, n);
	return n;
}

static ssize_t read_pieces(struct plfs_file *f, const struct iovec *iov, int cnt, off_t logical_off)
{
	ssize_t done = 0;

	for (int i = 0; i < cnt; i++) {
		ssize_t n = read_all(f, iov[i].iov_base, iov[i].iov_len, logical_off + done);

		if (n < 0)
			return done ? done : n;
		done += n;
		if ((size_t)n < iov[i].iov_len)
			break;
	}
	return done;
}

ssize_t plfs_preadv(struct plfs_file *f, const struct iovec *iov, int cnt, off_t logical_off)
{
	struct seen call;
	ssize_t n;

	seen_begin(&call, f->ino->tally, SEEN_READ);
	n = read_pieces(f, iov, cnt, logical_off);
	seen_end(&call, (uint64_t)logical_off, n);
	return n;
}

void plfs_set_verify(struct plfs_file *f, bool verify)
{
	file_begin(f);
	logset_set_verify(&f->ino->v.r.logs, verify ? SUMS_ALWAYS : SUMS_OFF);
	file_end(f);
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
	ret = ino->v.stub.in_body ? (ssize_t)len :
				    reader_extent(&ino->v.r, (uint64_t)logical_off, len, fd, &off);
	if (unlikely(reader_is_broken(&ino->v.r)) && ret > 0) /* then it is to be read, which mends it */
		*fd = -1;
	if (*fd >= 0) {
		*fd_off = (off_t)off;
		*fd = sys_fd_dup(*fd);
	}
	file_end(f);
	return ret;
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

static ssize_t write_pieces(struct plfs_file *f, const struct iovec *iov, int cnt, off_t logical_off)
{
	int saved ERRNO_KEPT = errno;
	ssize_t total = plfs_iov_total(iov, cnt);
	ssize_t ret;
	int fd;

	if (total < 0 || has_no_end((size_t)total, logical_off))
		return -EINVAL;
	if (!total)
		return 0;
	if (file_bad_range((size_t)total, logical_off))
		return -EFBIG;
	fd = file_begin(f);
	ret = dispatch_write(f->ino, fd, iov, cnt, (uint64_t)logical_off);
	return file_end_store(f, ret);
}

ssize_t plfs_pwritev(struct plfs_file *f, const struct iovec *iov, int cnt, off_t logical_off)
{
	struct seen call;
	ssize_t n;

	seen_begin(&call, f->ino->tally, SEEN_WRITE);
	n = write_pieces(f, iov, cnt, logical_off);
	seen_end(&call, (uint64_t)logical_off, n);
	return n;
}

/* Whether a write may be one that continues the log's open record: nearly all there are. */
static inline bool may_be_next(size_t len, off_t logical_off)
{
	return len - 1 < WRITER_DIRECT_LEN - 1 &&
	       (uint64_t)logical_off < FORM_SIZE_MAX - WRITER_DIRECT_LEN;
}

static __attribute__((noinline)) ssize_t pwrite_whole(struct plfs_file *f, const void *buf, size_t len,
						      off_t logical_off, const struct tally *t)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = min_size(len, SSIZE_MAX) };

	return t ? plfs_pwritev(f, &iov, 1, logical_off) : write_pieces(f, &iov, 1, logical_off);
}

/* One that does not go on with the run of calls that is being counted. The lock is held, and dropped. */
static __attribute__((noinline)) ssize_t write_unexpected(struct plfs_file *f, const void *buf, size_t len,
							  off_t logical_off)
{
	struct inode *ino = f->ino;
	uint64_t off = (uint64_t)logical_off, begin_ns = stamp_fine_ns();
	bool next = inode_write_next(ino, buf, len, off);

	if (next)
		seen_short(ino->tally, off, len, begin_ns);
	if (unlikely(ino->writing && live_is_broken(&ino->w.tail.live)))
		return file_end_store(f, (ssize_t)len);
	mutex_unlock(&ino->lock);
	return next ? (ssize_t)len : pwrite_whole(f, buf, len, logical_off, ino->tally);
}

/*
 * @t: NULL, or the calls are counted: that costs some 20 instructions while a run goes on.
 */
static inline ssize_t pwrite_seen(struct plfs_file *f, const void *buf, size_t len, off_t logical_off,
				  struct tally *t)
{
	struct inode *ino = f->ino;
	uint64_t off = (uint64_t)logical_off;
	bool next;

	if (unlikely(!may_be_next(len, logical_off)))
		return pwrite_whole(f, buf, len, logical_off, t);
	mutex_lock(&ino->lock);
	if (unlikely(t != NULL) && unlikely(!seen_expects(t, off, len)))
		return write_unexpected(f, buf, len, logical_off);
	next = inode_write_next(ino, buf, len, off);
	if (unlikely(t != NULL) && likely(next))
		seen_again(t, off, len, ino->w.last_write_ns);
	if (unlikely(ino->writing && live_is_broken(&ino->w.tail.live)))
		return file_end_store(f, (ssize_t)len);
	mutex_unlock(&ino->lock);
	return likely(next) ? (ssize_t)len : pwrite_whole(f, buf, len, logical_off, t);
}

ssize_t file_write_uncounted(struct plfs_file *f, const void *buf, size_t len, off_t logical_off)
{
	return pwrite_seen(f, buf, len, logical_off, NULL);
}

ssize_t plfs_pwrite(struct plfs_file *f, const void *buf, size_t len, off_t logical_off)
{
	return pwrite_seen(f, buf, len, logical_off, f->ino->tally);
}

static ssize_t append_pieces(struct plfs_file *f, const struct iovec *iov, int cnt, off_t *end_out)
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
	ret = dispatch_append(f->ino, fd, iov, cnt, (size_t)total, &at);
	if (ret >= 0)
		*end_out = (off_t)at;
	return file_end_store(f, ret);
}

ssize_t plfs_appendv(struct plfs_file *f, const struct iovec *iov, int cnt, off_t *end_out)
{
	struct seen call;
	ssize_t n;

	seen_begin(&call, f->ino->tally, SEEN_APPEND);
	n = append_pieces(f, iov, cnt, end_out);
	seen_end(&call, n > 0 ? (uint64_t)(*end_out - n) : 0, n);
	return n;
}

void plfs_note_record_lock(struct plfs_file *f)
{
	file_begin(f);
	f->ino->record_locks = true;
	file_end(f);
}

/* ---- what else a description is asked for ---- */

off_t plfs_size(struct plfs_file *f)
{
	int saved ERRNO_KEPT = errno;
	struct stat st;
	uint64_t size;
	int fd = file_begin(f);
	int ret = sys.fstat(fd, &st) ? -errno : acquire_size(f->ino, fd, &st, &size);

	file_end(f);
	return ret ? ret : (off_t)size;
}

int plfs_in_body(struct plfs_file *f, enum plfs_map_use use)
{
	int saved ERRNO_KEPT = errno;
	struct inode *ino = f->ino;
	int fd = file_begin(f), ret = inode_settle(ino, fd);

	if (!ret && !ino->v.stub.in_body && use == PLFS_MAP_READ) {
		ret = move_finds_writers(ino);
		use = ret > 0 ? PLFS_MAP_WRITE : PLFS_MAP_COPY;
		/* another process may be writing it, and the map is to show that */
		if (!ret && inode_look_bare(ino, fd) > 0) {
			if (stub_in_use(file_marked_fd(f))) /* also when it goes beyond what stays bare */
				move_unseen(ino, fd);
			use = inode_look_bare(ino, fd) > 0 || ino->v.stub.in_body ? PLFS_MAP_READ :
										    PLFS_MAP_COPY;
			if (use == PLFS_MAP_READ) {
				file_end(f);
				return 1;
			}
		}
	}
	if (ret >= 0 && !ino->v.stub.in_body && use == PLFS_MAP_WRITE)
		ret = move_into_body(ino);
	if (ret >= 0)
		ret = ino->v.stub.in_body;
	file_end(f);
	return ret;
}

int plfs_before_user(struct plfs_file *f, uid_t uid)
{
	int saved ERRNO_KEPT = errno;
	int ret = move_before_user(f->ino, file_begin(f), uid, f->writable);

	file_end(f);
	return ret;
}

bool plfs_has_own_flock(const struct plfs_file *f) { return f->ino->m->store.flock_is_range; }

int plfs_flock(int fd, int op)
{
	int saved ERRNO_KEPT = errno;

	return stub_flock(fd, op);
}

int plfs_commit(struct plfs_file *f)
{
	int saved ERRNO_KEPT = errno;
	int ret = logged_commit(f->ino, file_begin(f));

	return (int)file_end_store(f, ret);
}

int plfs_share(struct plfs_file *f)
{
	int saved ERRNO_KEPT = errno;
	int ret = logged_commit(f->ino, file_begin(f));

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

/* Its own function: the name takes 4 KiB of the stack. */
static __attribute__((noinline, cold)) void tell_not_synced(struct plfs_file *f)
{
	struct inode *ino = f->ino;
	const char *at = ino->sync_failed && !ino->v.stub.in_body ? ino->sync_failed : "the file";
	char name[PATH_MAX];

	if (ino->sync_told)
		return;
	ino->sync_told = true;
	msg_error("%s: fsync(): %s is not on stable storage (%s): sync it again, or write it again elsewhere",
		  stub_name(f->fd, name, sizeof(name)), at, strerror(EIO));
}

/* An EIO has its line, if nothing said one since there were @lines. */
static int synced(struct plfs_file *f, int ret, unsigned lines)
{
	if (unlikely(ret == -EIO) && msg_nr_errors() == lines)
		tell_not_synced(f);
	if (!ret)
		f->ino->sync_told = false;
	return (int)file_end_store(f, ret);
}

/* Another process that is syncing the file is waited for without the lock: it may have been stopped. */
static int sync_file(struct plfs_file *f)
{
	int saved ERRNO_KEPT = errno;
	struct timespec pause = { .tv_nsec = 100000 };
	struct inode *ino = f->ino;
	unsigned lines = msg_nr_errors();

	for (uint64_t waited_ns = 0;; waited_ns += (uint64_t)pause.tv_nsec) {
		int fd = file_begin(f), ret = -EBUSY;
		unsigned depth;

		ino->impatient |= waited_ns >= plfs_sync_patience_ms * 1000000ULL;
		if (!waited_ns || ino->impatient || ino->v.stub.in_body || !durable_is_busy(&ino->c))
			ret = dispatch_sync(ino, fd);
		if (ret != -EBUSY)
			return synced(f, ret, lines);
		file_end(f);
		depth = critical_pause();
		io_nanosleep(&pause, NULL);
		critical_resume(depth);
		pause.tv_nsec = min_u64(2 * (uint64_t)pause.tv_nsec, 4000000);
	}
}

int plfs_sync(struct plfs_file *f)
{
	struct seen call;
	int ret;

	seen_begin(&call, f->ino->tally, SEEN_SYNC);
	ret = sync_file(f);
	seen_end(&call, 0, ret);
	return ret;
}
