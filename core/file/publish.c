/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The release side of a view: the stub says the size, and when the file was written. The acquire side is
 * acquire.c's.
 */
#include "core/file/publish.h"

#include "core/base/io.h"
#include "core/base/stamp.h"
#include "core/base/sys.h"
#include "core/file/accessed.h"
#include "core/file/acquire.h"
#include "core/backend/stub_lock.h"
#include "core/file/hosts.h"
#include "core/dropping/published.h"
#include "core/store/dirs.h"
#include "core/write/durable.h"

#define LATE_NS 20000000 /* a time of modification that is so much later than the write is put right */

/*
 * The rest of publish_extend(), when the length has just been looked at. Others may have written and cut the
 * file, or moved it into its body, since then, which stub_extend() allows for.
 */
static int extend(struct inode *ino, int fd, uint64_t end)
{
	int ret;

	if (end <= ino->v.told_len)
		return 0;
	ret = inode_seems_bare(ino) ? inode_explain(ino, fd) : 0;
	if (!ret)
		ret = stub_extend(fd, end);
	if (!ret)
		ino->v.told_len = end;
	return ret;
}

int publish_extend(struct inode *ino, int fd, uint64_t end)
{
	struct stat st;
	int ret;

	if (sys.fstat(fd, &st))
		return -errno;
	ino->v.told_len = stub_body_len(st.st_size);
	ret = end > ino->v.told_len ? inode_check_stub(ino, fd) : 0;
	if (!ret)
		ret = extend(ino, fd, end);
	if (view_is_cut(&ino->v))
		ino->v.told_len = ino->v.stub.cut_size;
	return ret;
}

/*
 * Publishing touches the mapped live file and may hit ENOSPC; the write itself is safe there. So the log is
 * abandoned as after a crash, and the next write begins another.
 */
static bool tells(struct inode *ino, bool more)
{
	int why;

	if (more)
		live_begin_telling(&ino->w.tail.live);
	else
		live_end_telling(&ino->w.tail.live);
	if (likely(!live_is_broken(&ino->w.tail.live)))
		return true;
	why = live_why_broken(&ino->w.tail.live);
	if (why == -ENOSPC || why == -EDQUOT)
		inode_mend(ino);
	return false;
}

/* Whether the log's last stamp is later than this host's clock says, or than @ctime_ns, if that is known. */
static bool is_ahead(const struct inode *ino, uint64_t ctime_ns)
{
	uint64_t last_ns = ino->w.last.stamp_ns;
	struct timespec now;

	if (sys.clock_gettime(CLOCK_REALTIME, &now))
		return false;
	return last_ns > dirs_time_ns(&now) + TOLERANCE_NS || (ctime_ns && last_ns > ctime_ns + TOLERANCE_NS);
}

/* Whether the stub has to say so. */
static bool may_be_ahead(const struct inode *ino)
{
	return unlikely(ino->m->store.remote) && !ino->v.stub.clocks && ino->writing;
}

static bool is_elsewhere(const struct inode *ino) { return ino->w.tail.near || ino->w.tail.backend; }

/*
 * The stub has just been touched, so its time is now, by the clock of the file system's server or of this
 * host. A later writer on another host compares his clock with that time. If our stamps are later than it, he
 * would not notice that his are older: so the header says so. There are two reasons for such stamps. They
 * come behind those of a host whose clock is ahead: then they are later than this host's clock too. Or this
 * host's clock is ahead of the file system's. For a log at home tell_clock() in logged_write.c has looked for
 * that, by the time of its live file; a live file elsewhere has the time of another file system.
 */
static void tell_stamps(struct inode *ino, int fd, uint64_t *ctime_ns)
{
	struct stat st;

	if (!may_be_ahead(ino))
		return;
	if (is_elsewhere(ino) && !sys.fstat(fd, &st))
		*ctime_ns = dirs_time_ns(&st.st_ctim);
	if (likely(!is_ahead(ino, *ctime_ns)) || inode_lock_end(ino))
		return;
	inode_set_feature(ino, fd, stub_set_clocks);
	inode_unlock_end(ino);
}

/*
 * When the file was written last, if that is some time ago: *@mtime is what its time of modification is to
 * be. Another process may have written it since, or set another time: then that stays. Where hosts share the
 * file its server says what the time is.
 */
static bool was_written_before(const struct inode *ino, int fd, struct timespec *mtime)
{
	uint64_t age_ns = stamp_coarse_ns() - ino->w.last_write_ns, written_ns;
	struct timespec now;
	struct stat st;

	if (!ino->writing || !ino->w.last_write_ns || ino->m->store.remote || age_ns < LATE_NS)
		return false;
	if (sys.fstat(fd, &st) || sys.clock_gettime(CLOCK_REALTIME, &now))
		return false;
	written_ns = dirs_time_ns(&now) - age_ns;
	*mtime = (struct timespec){ (time_t)(written_ns / 1000000000), (long)(written_ns % 1000000000) };
	if (dirs_time_ns(&st.st_ctim) >= written_ns && dirs_time_ns(&st.st_mtim) >= written_ns)
		*mtime = st.st_mtim;
	return true;
}

/* Another process may have written since that look, and set its time. */
static bool is_later_by_now(int fd, const struct timespec *mtime)
{
	struct stat st;

	return !sys.fstat(fd, &st) && dirs_time_ns(&st.st_mtim) > dirs_time_ns(mtime) &&
	       dirs_time_ns(&st.st_ctim) > dirs_time_ns(mtime);
}

/* @mtime: NULL, or as above. */
static void date(struct inode *ino, int fd, const struct timespec *mtime, uint64_t *ctime_ns)
{
	if (!mtime || is_later_by_now(fd, mtime) || !stub_set_mtime(fd, mtime))
		stub_touch(fd);
	ino->v.dated_ns = stamp_coarse_ns();
	accessed_daily(ino, fd);
	tell_stamps(ino, fd, ctime_ns);
}

void publish_date(struct inode *ino, int fd)
{
	uint64_t ctime_ns = 0;

	date(ino, fd, NULL, &ctime_ns);
}

/* A sync or a close may come through @fd, a description that only reads. */
static int fd_to_publish(const struct inode *ino, int fd)
{
	int writable = inode_any_fd(ino);

	return writable >= 0 ? writable : fd;
}

static uint64_t owner_of(const struct inode *ino) { return ino->c.uid | (uint64_t)ino->c.gid << 32; }

/*
 * Whether @p, which another process of this host has published since this one released what it wrote, is all
 * that this one has to publish.
 */
static bool covers(struct inode *ino, const struct published *p)
{
	if (p->generation_ns != ino->v.stub.generation_ns || ino->v.own_end > p->len || ino->v.stub.cut_ns ||
	    p->owner != owner_of(ino))
		return false;
	return !may_be_ahead(ino) ||
	       (!(is_elsewhere(ino) && !p->ctime_ns) && !is_ahead(ino, p->ctime_ns));
}

static void note_published(struct inode *ino, int fd)
{
	ino->v.touched = false;
	ino->v.own_end = 0;
	ino->v.published_ns = ino->v.dated_ns = stamp_coarse_ns();
	accessed_daily(ino, fd);
}

/* *@p: what is published then. *@all: that is what all need, length and time, and has been looked at. */
static int publish(struct inode *ino, int fd, struct published *p, bool *all)
{
	uint64_t generation_ns = ino->v.stub.generation_ns, was = ino->v.told_len;
	bool looked = ino->v.own_end, telling = ino->writing && looked && tells(ino, true);
	struct timespec mtime;
	bool late = false;
	uint64_t before;
	int ret = 0;

	/* others may have made the file shorter than it was when it was looked at last */
	if (looked)
		ret = acquire_length(ino, fd);
	inode_heed_cut(ino); /* after the look: a process notifies before it cuts */
	before = ino->v.told_len;
	/* where hosts share the file that may be a message: only if its length gives a reason */
	if (!ret && looked && (!ino->m->store.remote || !before || before < was))
		ret = inode_check_stub(ino, fd);
	if (!ret && ino->writing && ino->v.own_end > ino->v.told_len)
		ret = writer_tell(&ino->w);
	if (!ret && view_is_unpublished(&ino->v))
		late = was_written_before(ino, fd, &mtime);
	if (!ret)
		ret = extend(ino, fd, ino->v.own_end);
	if (ret == -EBADF) /* what may write is closed, and that close could not publish it */
		ret = -EIO;
	if (telling)
		tells(ino, false);
	if (!ret && ino->writing && ino->v.own_end)
		hosts_enter(ino);
	if (ret)
		return ret;
	*p = (struct published){ p->begun, generation_ns, ino->v.told_len, 0, owner_of(ino), p->turn };
	*all = looked && (ino->v.told_len != before || ino->v.touched);
	if (ino->v.told_len != before) {
		if (late)
			stub_set_mtime(fd, &mtime); /* else it is now */
		tell_stamps(ino, fd, &p->ctime_ns);
	} else if (ino->v.touched) {
		date(ino, fd, late ? &mtime : NULL, &p->ctime_ns);
	}
	*all &= ino->v.stub.generation_ns == generation_ns && !ino->v.stub.cut_ns;
	note_published(ino, fd);
	return 0;
}

/* The turn is taken when all is released that is published with it. */
static int publish_in_turn(struct inode *ino, int fd, bool patient)
{
	enum published_by by = PUBLISHED_BY_NONE;
	struct published p = { 0 };
	bool all = false;
	int ret = ino->writing ? writer_save(&ino->w) : 0;

	if (ret)
		return ret;
	fd = fd_to_publish(ino, fd);
	if (ino->writing && ino->m->store.remote)
		by = published_take(&ino->w.leased.lease, patient, &p);
	if (by == PUBLISHED_BY_OTHER && covers(ino, &p)) {
		ino->v.told_len = p.len;
		inode_heed_cut(ino);
		if (ino->v.own_end)
			hosts_enter(ino);
		note_published(ino, fd);
		return 0;
	}
	ret = publish(ino, fd, &p, &all);
	if (by == PUBLISHED_BY_CALLER)
		published_end(&ino->w.leased.lease, &p, !ret && all);
	return ret;
}

int publish_size(struct inode *ino, int fd) { return publish_in_turn(ino, fd, false); }

int publish_release(struct inode *ino, int fd) { return publish_in_turn(ino, fd, true); }

int publish_places(struct inode *ino)
{
	struct writer *own = ino->writing ? &ino->w : NULL;
	int ret;

	if (likely(!ino->v.stub.placed))
		return 0;
	ret = own ? writer_tell(own) : 0;
	return ret ? ret : durable_adopt(&ino->c, own);
}

int publish_known(struct inode *ino, int fd)
{
	int ret = view_known_size(&ino->v) > ino->v.told_len ? publish_places(ino) : 0;

	return ret ? ret : publish_extend(ino, fd, view_known_size(&ino->v));
}

/* A log stays open for descriptions that only read. With them nothing can be published. */
static bool can_publish(int fd)
{
	return (sys.fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
}

int publish_look_at_end(struct inode *ino, int fd, bool reload)
{
	int ret, writable = fd_to_publish(ino, fd);
	struct stat st;

	if (reload)
		reader_doubt(&ino->v.r);
	ret = sys.fstat(fd, &st) ? -errno : acquire_look_again(ino, fd, &st, reload);

	if (ret || !ino->v.end_lost || ino->v.stub.in_body || !can_publish(writable))
		return ret;
	if (ino->writing)
		ret = publish_places(ino);
	if (!ret && ino->writing)
		ino->v.own_end = view_known_size(&ino->v);
	else if (!ret)
		ret = publish_known(ino, writable);
	ino->v.end_lost = ret != 0;
	return ret;
}

void publish_recall_end(struct inode *ino, int fd)
{
	if (likely(!ino->v.end_lost) || fd < 0 || inode_lock_end(ino))
		return;
	publish_look_at_end(ino, fd, true);
	inode_unlock_end(ino);
}
