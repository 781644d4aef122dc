/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The release side of a view: the stub says the size, and when the file was written. The acquire side is
 * acquire.c's.
 */
#include "core/file/publish.h"

#include "core/base/io.h"
#include "core/base/stamp.h"
#include "core/base/sys.h"
#include "core/file/acquire.h"
#include "core/backend/stub_lock.h"
#include "core/file/hosts.h"
#include "core/store/dirs.h"
#include "core/write/durable.h"

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

/* Whether this stamp is later than a time. */
static bool is_ahead(uint64_t stamp_ns, const struct timespec *ts)
{
	return stamp_ns > dirs_time_ns(ts) + TOLERANCE_NS;
}

/*
 * The stub has just been touched, so its time is now, by the clock of the file system's server or of this
 * host. A later writer on another host compares his clock with that time. If our stamps are later than it, he
 * would not notice that his are older: so the header says so. There are two reasons for such stamps. They
 * come behind those of a host whose clock is ahead: then they are later than this host's clock too. Or this
 * host's clock is ahead of the file system's. For a log at home tell_clock() in logged_write.c has looked for
 * that, by the time of its live file; a live file elsewhere has the time of another file system.
 */
static void tell_stamps(struct inode *ino, int fd)
{
	bool is_elsewhere = ino->w.tail.near || ino->w.tail.backend;
	uint64_t last_ns = ino->w.last.stamp_ns;
	struct timespec now;
	struct stat st;

	if (likely(!ino->m->store.remote) || ino->v.stub.clocks || !ino->writing)
		return;
	if (sys.clock_gettime(CLOCK_REALTIME, &now) ||
	    (!is_ahead(last_ns, &now) &&
	     (!is_elsewhere || sys.fstat(fd, &st) || !is_ahead(last_ns, &st.st_ctim))) ||
	    inode_lock_end(ino))
		return;
	inode_set_feature(ino, fd, stub_set_clocks);
	inode_unlock_end(ino);
}

void publish_date(struct inode *ino, int fd)
{
	stub_touch(fd);
	ino->v.dated_ns = stamp_coarse_ns();
	tell_stamps(ino, fd);
}

/* A sync or a close may come through @fd, a description that only reads. */
static int fd_to_publish(const struct inode *ino, int fd)
{
	int writable = inode_any_fd(ino);

	return writable >= 0 ? writable : fd;
}

int publish_size(struct inode *ino, int fd)
{
	bool telling = ino->writing && ino->v.own_end && tells(ino, true);
	uint64_t before;
	int ret = ino->writing ? writer_save(&ino->w) : 0;

	fd = fd_to_publish(ino, fd);
	/* others may have made the file shorter than it was when it was looked at last */
	if (!ret && ino->v.own_end)
		ret = acquire_length(ino, fd);
	inode_heed_cut(ino); /* after the look: a process notifies before it cuts */
	before = ino->v.told_len;
	if (!ret && ino->writing && ino->v.own_end > ino->v.told_len)
		ret = writer_tell(&ino->w);
	if (!ret)
		ret = extend(ino, fd, ino->v.own_end);
	if (ret == -EBADF) /* what may write is closed, and that close could not publish it */
		ret = -EIO;
	if (telling)
		tells(ino, false);
	if (!ret && ino->writing && ino->v.own_end)
		hosts_enter(ino);
	if (!ret) {
		if (ino->v.told_len != before)
			tell_stamps(ino, fd);
		else if (ino->v.touched)
			publish_date(ino, fd);
		ino->v.touched = false;
		ino->v.own_end = 0;
		ino->v.published_ns = ino->v.dated_ns = stamp_coarse_ns();
	}
	return ret;
}

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
