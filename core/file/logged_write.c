/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writing to a logical file: when this process's log of it is opened and closed, and when the size is
 * published. What a write does to the log is writer.c's.
 */
#include "core/file/logged.h"

#include "core/backend/stub_lock.h"
#include "core/file/acquire.h"
#include "core/file/hosts.h"
#include "core/file/owned.h"
#include "core/file/publish.h"
#include "core/file/release.h"
#include "core/write/durable.h"
#include "core/write/resume.h"
#include "core/base/io.h"
#include "core/base/stamp.h"
#include "core/base/sys.h"
#include "core/base/usermem.h"

#include <unistd.h>

/*
 * While a file grows its size is published at least so often, so that ls shows a checkpoint grow, and what a
 * killed job leaves is not far off. Where hosts share the file each time takes the right to its length
 * from all the others: 10 to 200 ms for the writer on CephFS.
 */
#define PUBLISH_NS 50000000
#define PUBLISH_REMOTE_NS 1000000000

/*
 * While a file is overwritten its time of modification is set at once, and again after this time: rsync and
 * make ask for nothing else, and after a kill nobody sets it. Where hosts share the file, less often.
 */
#define DATE_NS PUBLISH_NS
#define DATE_REMOTE_NS 5000000000

uint64_t logged_least_len = 8 << 20;

static void before_spill(void *arg)
{
	struct inode *ino = arg;

	if (unlikely(ino->tally != NULL))
		observe_records(ino->tally, ino->w.tail.live.nr_records);
	if (ino->v.r.loaded && reader_add_own(&ino->v.r, &ino->w))
		reader_release(&ino->v.r); /* no memory: made anew when next needed */
}

static void after_spill(void *arg, const struct index_record *records, size_t nr)
{
	struct inode *ino = arg;

	reader_keep_spilled(&ino->v.r, &ino->w, records, nr);
}

/* How far a file's last change is in the future, by this process's clock; below 0: in the past. */
static int64_t ahead_of_us(const struct stat *st)
{
	struct timespec now;

	if (sys.clock_gettime(CLOCK_REALTIME, &now))
		return 0;
	return (st->st_ctim.tv_sec - now.tv_sec) * 1000000000LL + st->st_ctim.tv_nsec - now.tv_nsec;
}

/*
 * A stub that was changed later than it is now, by this host's clock: the clock was set back, or another
 * host's, or the file system's, is ahead. Then the stamps in the container must be seen before ours can be
 * later. (A stub's ctime cannot be set by programs.)
 */
int logged_heed_clock(struct inode *ino, int fd)
{
	struct stat st;
	int ret;

	if (ino->v.r.loaded && !(ino->v.stub.clocks && ino->v.acquired))
		return 0;
	if (sys.fstat(fd, &st))
		return -errno;
	inode_heed_owner(ino, &st);
	if (!ino->v.stub.clocks && ahead_of_us(&st) < TOLERANCE_NS)
		return 0;
	reader_doubt(&ino->v.r);
	ret = acquire_look_again(ino, fd, &st, true);
	return ret || ino->v.r.loaded || ino->v.stub.in_body ? ret : acquire_load(ino);
}

/*
 * A later writer cannot see by the stub's times that our clock is ahead of the file system's: the header says
 * so.
 */
static void tell_clock(struct inode *ino, int fd)
{
	struct store *s = &ino->m->store;
	struct stat st;

	if (!s->remote || ino->v.stub.clocks || ino->w.tail.near || s->ops->fstat(s, ino->w.tail.live.h, &st))
		return; /* else the live file was made just now, in the file system of the stub */
	if (ahead_of_us(&st) > -TOLERANCE_NS || inode_lock_end(ino))
		return;
	inode_set_feature(ino, fd, stub_set_clocks);
	inode_unlock_end(ino);
}

/* Others learn by the header, of which @has is a feature, that there may be logs elsewhere. */
static bool may_be_elsewhere(struct inode *ino, int fd, const bool *has,
			     int (*set)(int fd, struct stub *stub))
{
	int ret;

	if (!logged_is_ours(&ino->c))
		return false;
	if (*has)
		return true;
	ret = inode_lock_end(ino);
	if (ret)
		return false;
	ret = inode_set_feature(ino, fd, set);
	inode_unlock_end(ino);
	return !ret && *has;
}


int logged_make_writer(struct inode *ino, int fd)
{
	int ret, ret2;
	bool claimed;

	if (ino->writing && likely(!ino->v.stub.clocks || !ino->v.acquired))
		return 0;
	claimed = !ino->v.stub.has_container; /* then no log of it can be lost */
	ret = ino->v.stub.has_container ? logged_heed_clock(ino, fd) : logged_claim(ino, fd);
	ret = inode_still_logged(ino, ret);
	if (!ret)
		ret = inode_check_container(ino, CONTAINER_CHANGE);
	if (ret || ino->writing)
		return ret;
	ino->counted = inode_count(ino);
	ino->c.filled = ino->v.told_len > 0 && !claimed;
	ino->c.near = logged_wants_near(ino) &&
		      may_be_elsewhere(ino, fd, &ino->v.stub.placed, stub_set_placed);
	ino->c.spreads = unlikely(ino->m->store.spread) &&
			 may_be_elsewhere(ino, fd, &ino->v.stub.spread, stub_set_spread);
	if (!claimed) /* the length is of before: another process may have written since */
		hosts_look_before_log(ino);
	ret = acquire_refused(ino, writer_open(&ino->w, &ino->c));
	ino->c.made = false;
	if (!ret)
		owned_heed(ino, fd);
	/* it was missing: made anew here, or it has appeared since */
	if (!ret && !container_is_checked(&ino->c, CONTAINER_CHANGE)) {
		ret = inode_check_container(ino, CONTAINER_CHANGE);
		if (ret)
			writer_abandon(&ino->w);
	}
	if (!ret) {
		ino->w.before_spill = before_spill;
		ino->w.after_spill = after_spill;
		ino->w.arg = ino;
		ino->writing = true;
		ino->entered = 0; /* since the last log a reclaim may have forgotten the host */
		reader_begin_own(&ino->v.r, &ino->w);
		ino->v.published_ns = stamp_coarse_ns();
		ino->v.dated_ns = ino->m->store.remote ? ino->v.published_ns : 0;
		ino->v.notified_ns = ino->v.heeded_ns = live_notified(&ino->w.tail.live);
		/* no word told this process of others of the host that began before it */
		ino->v.acquired |= ino->v.r.loaded && !ino->v.r.watch.word;
		tell_clock(ino, fd);
	}
	if (ret)
		inode_not_counted(ino);
	/*
	 * A mover that has not seen our live file yet has set "moving" in the header before. Or it has
	 * already removed the container in which we tried to make it.
	 */
	ret2 = inode_still_logged(ino, inode_settle(ino, fd));
	if (ret == -EIDRM && !ret2) {
		ret = claimed ? 0 : inode_container_gone(ino, fd);
		if (!ret)
			ret = inode_make_container(ino, fd);
		return ret ? ret : logged_make_writer(ino, fd);
	}
	return ret && ret2 != -EREMCHG ? ret : ret2;
}

int logged_close_writer(struct inode *ino, int fd)
{
	bool told, carried;
	int ret;

	/*
	 * To close a log that was moved into the body would make its container anew. A move that goes on is
	 * not waited for.
	 */
	if (fd >= 0 && inode_is_notified(ino))
		inode_look_for_move(ino, fd);
	publish_recall_end(ino, fd);
	told = !view_is_unpublished(&ino->v) && !ino->v.end_lost;
	/* The size before the live file goes: until then that tells appenders where the end is. */
	if (fd >= 0 && !told && !(ino->writing && writer_tell_last(&ino->w)))
		told = !publish_release(ino, fd) && !ino->v.end_lost;
	if (!ino->writing)
		return 0;
	carried = reader_carry(&ino->v.r, &ino->w, ino->v.stub.generation_ns);
	if (ino->v.r.loaded && reader_add_own(&ino->v.r, &ino->w))
		reader_release(&ino->v.r);
	ret = writer_close(&ino->w);
	if (!ret && told)
		inode_not_counted(ino);
	if (!ret)
		reader_end_own(&ino->v.r, &ino->w);
	if (carried && ret)
		reader_release(&ino->v.r);
	else if (carried)
		reader_park(&ino->v.r);
	/* Where hosts share the file such a look is a message: only if the owner is known to have changed. */
	if (fd >= 0 && (!ino->m->store.remote || ino->owner_due))
		owned_heed(ino, fd);
	release_note(ino, ino->w.release_error, false);
	inode_stop_writing(ino);
	if (!ino->w.lost && !ino->w.close_error)
		return 0;
	if (fd >= 0 && !inode_settle(ino, fd) && ino->v.stub.in_body) /* the mover has removed the log */
		return 0;
	return ino->w.lost ? -EIO : ino->w.close_error;
}

/* Of a log near only releases publish: a write into it goes on while the backend hangs. */
static inline bool is_publish_due(const struct inode *ino)
{
	uint64_t since_ns = ino->w.last_write_ns - ino->v.published_ns;

	return unlikely(since_ns > PUBLISH_NS) && ino->v.own_end > ino->v.told_len && !ino->w.tail.near &&
	       (!ino->m->store.remote || since_ns > PUBLISH_REMOTE_NS);
}

static inline bool is_date_due(const struct inode *ino)
{
	uint64_t since_ns = ino->w.last_write_ns - ino->v.dated_ns;

	return unlikely(since_ns > DATE_NS) && ino->v.own_end <= ino->v.told_len && !ino->w.tail.near &&
	       (!ino->m->store.remote || since_ns > DATE_REMOTE_NS);
}

/* What cannot be flushed now stays in the live file, as at a close. */
static __attribute__((noinline, cold)) int end_log(struct inode *ino, int fd)
{
	int ret = logged_close_writer(ino, fd);

	resume_forget(&ino->c);
	return ret;
}

/* Whether a write that ended with @n for want of space may go on in a log elsewhere. */
static bool may_go_on(const struct inode *ino, ssize_t n)
{
	const struct tail *t = &ino->w.tail;

	if (n < 0 && n != -ENOSPC && n != -EDQUOT)
		return false;
	return t->near || (ino->c.spreads && !(ino->c.full & 1u << t->backend));
}

/*
 * Of @len bytes the log has taken @n, or none and an error, and there is no space any more: the rest goes to
 * a log at home, or in another backend.
 */
static __attribute__((noinline, cold)) ssize_t go_on(struct inode *ino, int fd, const void *buf, size_t len,
						     uint64_t logical_off, ssize_t n)
{
	size_t done = n > 0 ? (size_t)n : 0;
	int ret;

	if (ino->w.tail.near)
		ino->near_full = true;
	else
		ino->c.full |= 1u << ino->w.tail.backend;
	if (done)
		view_wrote(&ino->v, logical_off + done);
	ret = end_log(ino, fd);
	n = ret ? ret : logged_write(ino, fd, (const char *)buf + done, len - done, logical_off + done);
	if (n == -ENOSPC || n == -EDQUOT) /* of all backends: the next write asks them again */
		ino->c.full = 0;
	return n >= 0 ? (ssize_t)done + n : done ? (ssize_t)done : n;
}

/* Whether the log is near, and so long that it ends: it is moved while the process goes on with another. */
static bool is_long(const struct inode *ino)
{
	const struct place_settings *ps = ino->m->store.near;

	return unlikely(ino->w.tail.near) && ps && tail_len(&ino->w.tail) >= ps->log_max;
}

ssize_t logged_write(struct inode *ino, int fd, const void *buf, size_t len, uint64_t logical_off)
{
	ssize_t n;
	int ret;

	if (unlikely(!ino->writing) && logical_off < view_known_size(&ino->v) && ino->v.stub.has_container)
		resume_overwrite(&ino->c, max_u64(view_known_size(&ino->v), logged_least_len));
	ret = logged_make_writer(ino, fd);
	if (!ret)
		ret = inode_heed_notice(ino, fd);
	if (ret)
		return ret;
	n = writer_write(&ino->w, buf, len, logical_off);
	if (unlikely(live_is_broken(&ino->w.tail.live)))
		return inode_mend(ino);
	if (unlikely(n != (ssize_t)len) && may_go_on(ino, n))
		return go_on(ino, fd, buf, len, logical_off, n);
	/* moved into its body meanwhile, perhaps without these bytes? */
	if (unlikely(inode_is_notified(ino))) {
		ret = inode_heed_notice(ino, fd);
		if (ret)
			return ret;
		if (n > 0 && live_notified(&ino->w.tail.live) >= ino->w.last.stamp_ns)
			/* a truncation hides it: it comes behind that */
			return logged_write(ino, fd, buf, (size_t)n, logical_off);
	}
	if (n <= 0)
		return n;
	view_wrote(&ino->v, logical_off + (uint64_t)n);
	if (inode_exiting)
		logged_close_writer(ino, fd);
	else if (is_long(ino))
		ret = end_log(ino, fd);
	else if (inode_posix)
		logged_commit(ino, fd);
	else if (is_publish_due(ino))
		publish_size(ino, fd);
	else if (is_date_due(ino))
		publish_date(ino, fd);
	return ret ? ret : n;
}

static __attribute__((noinline, cold)) void publish_quietly(struct inode *ino)
{
	int saved ERRNO_KEPT = errno;

	publish_size(ino, inode_any_fd(ino));
}

bool inode_write_next(struct inode *ino, const void *buf, size_t len, uint64_t logical_off)
{
	struct writer *w = &ino->w;

	if (!ino->writing || inode_exiting || inode_posix || !user_has_bytes(buf, len) ||
	    !writer_write_next(w, buf, len, logical_off, ino->v.notified_ns) ||
	    unlikely(live_is_broken(&w->tail.live)))
		return false;
	view_wrote(&ino->v, logical_off + len);
	if (is_publish_due(ino))
		publish_quietly(ino);
	else if (is_date_due(ino))
		publish_date(ino, inode_any_fd(ino));
	return true;
}

/*
 * Bytes that cannot be flushed now stay in the stage, where readers find them: no error yet. Nor is it one if
 * home has no room for the records of a log near: an unlock that failed would leave the lock where it is.
 */
int logged_commit(struct inode *ino, int fd)
{
	int ret;

	if (ino->writing)
		release_note(ino, writer_commit(&ino->w), true);
	publish_recall_end(ino, fd);
	ret = view_is_unpublished(&ino->v) ? publish_release(ino, fd) : 0;
	return (ret == -ENOSPC || ret == -EDQUOT) && ino->writing && ino->w.tail.near ? 0 : ret;
}

/*
 * The stub says that it is synced before it is. A process that gives it a container from then on syncs the
 * way to that before the stub names it. A container that it has got before is seen here, and its way synced
 * with it.
 */
int logged_sync(struct inode *ino, int fd)
{
	int looked = inode_is_notified(ino) ? inode_look_for_move(ino, fd) : 0;
	int ret = ino->writing ? writer_sync(&ino->w) : 0, ret2;

	ino->sync_failed = ret ? "its log" : "a log that was given up";
	publish_recall_end(ino, fd);
	ret2 = view_is_unpublished(&ino->v) ? publish_release(ino, fd) : 0;
	if (inode_mark_synced(ino, fd))
		ino->way_due = true;
	if (!ret)
		ret = looked ? looked : ino->sync_error;
	if (!ret && !ino->v.stub.in_body) {
		ino->sync_failed = "what processes of this host have written";
		ret = durable_sync(&ino->c, ino->writing ? &ino->w : NULL, &ino->impatient);
		if (ret == -EBUSY)
			return ret;
		if (!ret && ino->way_due)
			ret = durable_sync_way(&ino->c);
		ret = ret > 0 ? 0 : ret;
	}
	if (!ret)
		release_forget(ino);
	ino->way_due &= ret < 0;
	ino->sync_error = 0;
	ino->v.acquired = true;
	if (ret)
		inode_settle(ino, fd); /* no notice reaches a process without a log */
	if (ino->v.stub.in_body) /* the mover has synced what the log had, and removed that */
		return -EREMCHG;
	if (ret && ino->writing)
		writer_tell_lost(&ino->w);
	if (!ret) {
		ino->sync_failed = ret2 ? "its size" : "its stub";
		ret = ret2;
	}
	if (io_fsync(fd) && !ret)
		ret = -errno;
	return ret;
}
