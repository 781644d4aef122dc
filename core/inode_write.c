/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writing to a logical file: when it gets a container, when this process's log of it is opened and closed, and when the
 * stub is told. What a write does to the log is writer.c's.
 */
#include "inode.h"

#include "bare.h"
#include "body.h"
#include "durable.h"
#include "file.h"
#include "log.h"
#include "own.h"
#include "stamp.h"
#include "store_acl.h"
#include "sys.h"
#include "usermem.h"
#include "writers.h"

/*
 * While a file grows its stub is told at least so often, so that ls shows a checkpoint grow, and what a
 * killed job leaves is not far off. Where hosts share the file each time takes the right to its length
 * from all the others: 10 to 200 ms for the writer on CephFS.
 */
#define PUBLISH_NS 50000000
#define PUBLISH_REMOTE_NS 1000000000

static void before_spill(void *arg)
{
	struct inode *ino = arg;

	if (ino->r.loaded && reader_add_own(&ino->r, &ino->w))
		reader_release(&ino->r); /* no memory: made anew when next needed */
}

struct claim_arg {
	struct plfs_mount *m;
	struct container c;
	const struct stat *st;
	const void *acl;
	size_t acl_len;
	int fd; /* of the stub */
};

/*
 * The header that will name it may come to the disk at any moment: if bytes of the stub have been synced it must not
 * name nothing.
 */
static int make_container(void *arg, const uint8_t *id)
{
	struct claim_arg *ca = arg;
	int ret;

	inode_init_container(ca->m, &ca->c, id, ca->st);
	ca->c.acl = ca->acl;
	ca->c.acl_len = ca->acl_len;
	ret = container_make(&ca->c, dropping_hostdir(&ca->c));
	return !ret && stub_is_synced(ca->fd) ? durable_sync_way(&ca->c) : ret;
}

/* Have a container. One that was made for nothing goes again, unless the stub names it after all. */
static int claim(struct inode *ino, int fd)
{
	uint8_t acl[ACL_LEN_MAX];
	struct stat st;
	struct claim_arg ca = { .m = ino->m, .st = &st, .acl = acl, .fd = fd };
	struct stub now;
	ssize_t n;
	int ret = mount_prepare(ino->m);

	if (!ret && sys.fstat(fd, &st))
		ret = -errno;
	if (ret)
		return ret;
	n = acl_get(fd, acl);
	if (n < 0)
		return (int)n;
	ca.acl_len = (size_t)n;
	ret = stub_claim(fd, &ino->stub, stamp_next(), st.st_ino, make_container, &ca);
	if (!ret)
		inode_adopt_container(ino, &st);
	if (*ca.c.dir && !stub_read(fd, &now) && (!now.has_container || memcmp(now.id, ca.c.id, STUB_ID_LEN)))
		container_remove(&ca.c);
	return ret;
}

#define TOLERANCE_NS 20000000 /* the kernel's own clocks differ by a tick */

/* How far a file's last change is in the future, by this process's clock; below 0: in the past. */
static int64_t ahead_of_us(const struct stat *st)
{
	struct timespec now;

	if (sys.clock_gettime(CLOCK_REALTIME, &now))
		return 0;
	return (st->st_ctim.tv_sec - now.tv_sec) * 1000000000LL + st->st_ctim.tv_nsec - now.tv_nsec;
}

/*
 * A stub that was changed later than it is now, by this host's clock: the clock was set back, or another host's, or
 * the file system's, is ahead. Then the stamps in the container must be seen before ours can be later. (A stub's
 * ctime cannot be set by programs.)
 */
int inode_heed_clock(struct inode *ino, int fd)
{
	struct stat st;
	int ret;

	if (ino->r.loaded && !(ino->stub.clocks && ino->acquired))
		return 0;
	if (sys.fstat(fd, &st))
		return -errno;
	if (!ino->stub.clocks && ahead_of_us(&st) < TOLERANCE_NS)
		return 0;
	ret = inode_look_again(ino, fd, &st, true);
	return ret || ino->r.loaded || ino->stub.in_body ? ret : inode_load(ino);
}

/* Whoever comes later cannot see by the stub's times that our clock is ahead of the file system's: the header tells him. */
static void tell_clock(struct inode *ino, int fd)
{
	struct store *s = &ino->m->store;
	struct stat st;

	if (!s->remote || ino->stub.clocks || s->ops->fstat(s, ino->w.stage.h, &st))
		return; /* else the live file was made just now */
	if (ahead_of_us(&st) <= -TOLERANCE_NS)
		stub_set_clocks(fd, &ino->stub);
}

int inode_make_writer(struct inode *ino, int fd)
{
	int ret, ret2;

	if (ino->stub.in_body || (ino->writing && likely(!ino->stub.clocks || !ino->acquired)))
		return 0;
	ret = ino->stub.has_container ? inode_heed_clock(ino, fd) : claim(ino, fd);
	if (!ret && !ino->stub.in_body)
		ret = inode_check_container(ino, CONTAINER_CHANGE);
	if (ret || ino->stub.in_body || ino->writing)
		return ret;
	ino->counted = writers_begin(ino->m, ino->key.ino);
	ret = writer_open(&ino->w, &ino->c);
	if (!ret && !container_is_checked(&ino->c, CONTAINER_CHANGE)) { /* it was missing: made anew here, or it has appeared since */
		ret = inode_check_container(ino, CONTAINER_CHANGE);
		if (ret)
			writer_abandon(&ino->w);
	}
	if (!ret) {
		ino->w.before_spill = before_spill;
		ino->w.arg = ino;
		ino->writing = true;
		ino->r.own_log = UINT32_MAX;
		ino->last_publish_ns = stamp_coarse_ns();
		ino->notified_ns = ino->cut_ns = stage_notified(&ino->w.stage);
		tell_clock(ino, fd);
	}
	if (ret)
		inode_not_counted(ino);
	/*
	 * Who moves the file into its body, and has not seen our live file yet, has said so in the header before. Or he has
	 * already removed the container in which we tried to make it.
	 */
	ret2 = inode_settle(ino, fd);
	if (!ret2 && ino->stub.in_body)
		return 0;
	return ret ? ret : ret2;
}

void inode_not_counted(struct inode *ino)
{
	if (ino->counted)
		writers_end(ino->m, ino->key.ino);
	ino->counted = false;
}

int inode_close_writer(struct inode *ino, int fd)
{
	bool told;

	/* To close a log that was moved into the body would make its container anew. A move that goes on is not waited for. */
	if (fd >= 0 && inode_is_notified(ino))
		inode_look_for_move(ino, fd);
	inode_recall_end(ino, fd);
	told = !ino->own_end && !ino->touched && !ino->end_lost;
	/* The size before the live file goes: until then that tells appenders where the end is. */
	if (fd >= 0 && !told)
		told = !inode_publish(ino, fd) && !ino->end_lost;
	if (!ino->writing)
		return 0;
	if (ino->r.loaded && reader_add_own(&ino->r, &ino->w))
		reader_release(&ino->r);
	if (!writer_close(&ino->w) && told)
		inode_not_counted(ino);
	ino->counted = false;
	ino->writing = false;
	ino->r.own_log = UINT32_MAX;
	if (!ino->w.lost && !ino->w.close_error)
		return 0;
	if (fd >= 0 && !inode_settle(ino, fd) && ino->stub.in_body) /* whoever moved it there has removed the log */
		return 0;
	return ino->w.lost ? -EIO : ino->w.close_error;
}

static inline bool is_publish_due(const struct inode *ino)
{
	uint64_t since_ns = ino->w.last_write_ns - ino->last_publish_ns;

	return unlikely(since_ns > PUBLISH_NS) && ino->own_end > ino->body_len &&
	       (!ino->m->store.remote || since_ns > PUBLISH_REMOTE_NS);
}

ssize_t inode_write(struct inode *ino, int fd, const void *buf, size_t len, uint64_t logical_off)
{
	ssize_t n;
	int ret;

	if (!ino->stub.has_container && bare_write(ino, fd, buf, len, logical_off, &n))
		return n;
	ret = inode_make_writer(ino, fd);
	if (!ret)
		ret = inode_heed_notice(ino, fd);
	if (ret)
		return ret;
	if (ino->stub.in_body)
		return body_write(fd, buf, len, logical_off);
	n = writer_write(&ino->w, buf, len, logical_off);
	if (unlikely(stage_is_broken(&ino->w.stage)))
		return inode_mend(ino);
	if (unlikely(inode_is_notified(ino))) { /* moved into its body meanwhile, perhaps without these bytes? */
		ret = inode_heed_notice(ino, fd);
		if (ret || ino->stub.in_body)
			return ret ? ret : body_write(fd, buf, n > 0 ? (size_t)n : len, logical_off);
		if (n > 0 && stage_notified(&ino->w.stage) >= ino->w.last.stamp_ns)
			return inode_write(ino, fd, buf, (size_t)n, logical_off); /* a truncation hides it: it comes behind that */
	}
	if (n <= 0)
		return n;
	ino->own_end = max_u64(ino->own_end, logical_off + (uint64_t)n);
	ino->touched = true;
	if (inode_exiting)
		inode_close_writer(ino, fd);
	else if (inode_posix)
		inode_commit(ino, fd);
	else if (is_publish_due(ino))
		inode_publish(ino, fd);
	return n;
}

int inode_mend(struct inode *ino)
{
	int ret = 0, sync_error;

	if (ino->writing && stage_is_broken(&ino->w.stage)) {
		char path[CONTAINER_PATH_LEN];

		dropping_live_path(ino->w.log_path, path);
		ret = writer_give_up(&ino->w, &sync_error);
		ino->writing = ino->counted = false; /* it goes on to be told of, as a killed process's */
		if (!ino->sync_error)
			ino->sync_error = sync_error;
		if (ret != -ENOSPC && ret != -EDQUOT)
			log_error("%s/%s: the live file was cut, or its file system failed (%s): what it still has stays readable, and a new log is begun",
				  ino->c.dir, path, strerror(-ret));
	}
	reader_release(&ino->r);
	return ret;
}

static __attribute__((noinline, cold)) void publish_quietly(struct inode *ino)
{
	int saved ERRNO_KEPT = errno;

	inode_publish(ino, file_any_fd(ino));
}

bool inode_write_next(struct inode *ino, const void *buf, size_t len, uint64_t logical_off)
{
	struct writer *w = &ino->w;

	if (!ino->writing || inode_exiting || inode_posix || !user_has_bytes(buf, len) ||
	    !writer_write_next(w, buf, len, logical_off, ino->notified_ns) || unlikely(stage_is_broken(&w->stage)))
		return false;
	ino->own_end = max_u64(ino->own_end, logical_off + len);
	ino->touched = true;
	if (is_publish_due(ino))
		publish_quietly(ino);
	return true;
}

int inode_commit(struct inode *ino, int fd)
{
	/* Bytes that cannot be flushed now stay in the stage, where readers find them: no error yet. */
	if (ino->writing)
		writer_commit(&ino->w);
	inode_recall_end(ino, fd);
	return ino->own_end || ino->touched ? inode_publish(ino, fd) : 0;
}

void inode_refresh(struct inode *ino)
{
	if (ino->writing)
		writer_break(&ino->w);
	ino->acquired = true;
}

/*
 * Say that something is synced, which is no change of the file. Who can only read leaves it to those who write. Returns whether it had not been said
 * before.
 */
static bool mark_synced(const struct inode *ino, int fd)
{
	int flags = sys.fcntl(fd, F_GETFL);
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };
	struct stat st;

	if ((flags & O_ACCMODE) == O_RDONLY || flags & O_APPEND || ino->stub.in_body ||
	    (!ino->stub.has_container && !ino->body_len))
		return false;
	if (stub_is_synced(fd) || sys.fstat(fd, &st))
		return false;
	times[1] = st.st_mtim;
	if (!stub_mark_synced(fd))
		sys.futimens(fd, times);
	return true;
}

/*
 * The stub says that it is synced before it is. Whoever gives it a container from then on syncs the way to that before the stub
 * names it; one that it has got before is seen here, and its way synced with it.
 */
int inode_sync(struct inode *ino, int fd)
{
	int looked = inode_is_notified(ino) ? inode_look_for_move(ino, fd) : 0;
	int ret = ino->writing ? writer_sync(&ino->w) : 0, ret2, bare;

	inode_recall_end(ino, fd);
	ret2 = ino->own_end || ino->touched ? inode_publish(ino, fd) : 0;
	bare = bare_look(ino, fd);
	if (bare >= 0 && mark_synced(ino, fd)) {
		ino->way_due = true;
		bare = bare_look(ino, fd);
	}
	if (!ret)
		ret = looked ? looked : bare < 0 ? bare : ino->sync_error;
	if (!ret && ino->stub.has_container && !ino->stub.in_body) {
		ret = durable_sync(&ino->c, ino->writing ? &ino->w : NULL, &ino->impatient);
		if (ret == -EBUSY)
			return ret;
		if (!ret && ino->way_due)
			ret = durable_sync_way(&ino->c);
		ret = ret > 0 ? 0 : ret;
	}
	ino->way_due &= ret < 0;
	ino->sync_error = 0;
	ino->acquired = true;
	if (ret && !inode_settle(ino, fd) && ino->stub.in_body) /* no notice reaches a process without a log */
		ret = 0; /* whoever moved it has synced what the log had, and removed that */
	if (!ret)
		ret = ret2;
	if (own_fsync(fd) && !ret)
		ret = -errno;
	return ret;
}
