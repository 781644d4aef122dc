/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a file ends: truncation, and appending behind whatever others have appended.
 */
#include "core/file/logged.h"

#include "core/backend/container_dirs.h"
#include "core/backend/stub_lock.h"
#include "core/file/acquire.h"
#include "core/backend/names.h"
#include "core/file/body.h"
#include "core/file/collect.h"
#include "core/file/publish.h"
#include "core/base/io.h"
#include "core/base/stamp.h"
#include "core/base/sys.h"
#include "core/dropping/notice.h"
#include "core/backend/writer_table.h"

/* ---- truncation ---- */

/*
 * Writers that were notified of the truncation have written since, and published. The cut took that from the
 * stub again.
 */
static int extend_again(struct inode *ino, int fd)
{
	int ret = inode_still_logged(ino, acquire_load(ino));

	return ret ? ret : publish_known(ino, fd);
}

int logged_finish_cut(struct inode *ino, int fd)
{
	struct stat st;
	int ret;

	if (likely(!ino->v.stub.cut_ns))
		return inode_still_logged(ino, 0);
	ret = inode_still_logged(ino, inode_read_header(ino, fd, NULL));
	if (!ret && ino->v.stub.cut_ns)
		ret = inode_still_logged(ino, acquire_load(ino));
	if (ret || !ino->v.stub.cut_ns)
		return ret;
	if (sys.fstat(fd, &st))
		return -errno;
	ret = view_is_cut(&ino->v) ? publish_places(ino) : 0; /* the record may be of a killed process */
	if (!ret && view_is_cut(&ino->v)) {
		inode_notify(ino, stamp_next());
		if (stub_body_len(st.st_size) > ino->v.stub.cut_size &&
		    sys.ftruncate(fd, (off_t)(PLFS_BODY_OFF + ino->v.stub.cut_size)))
			return -errno;
		ret = publish_known(ino, fd);
	}
	return ret ? ret : stub_set_cut(fd, &ino->v.stub, 0, 0);
}

/* The truncation has happened, by one store. Whatever becomes of this process now, all see it. */
static int carry_out(struct inode *ino, int fd, uint64_t size, unsigned nr_others)
{
	int ret;

	ino->v.told_cut_ns = ino->v.stub.cut_ns;
	notice_raise(&ino->c); /* before the cut: older maps must not lead to the body then */
	ret = body_resize(ino, fd, size);
	if (!ret && nr_others)
		ret = extend_again(ino, fd);
	return ret ? ret : stub_set_cut(fd, &ino->v.stub, 0, 0);
}

/*
 * A stamp behind those of all writers of the host, which take theirs behind it from here on: a process may
 * have seen the future, in another file.
 */
static uint64_t stamp_for_all(const struct inode *ino)
{
	int h = notice_open(&ino->c, O_RDWR | O_CREAT);
	uint64_t stamp_ns = h < 0 ? stamp_next() : lease_stamp_of_all(ino->c.store, h);

	if (h >= 0)
		store_close(ino->c.store, &h);
	return stamp_ns;
}

/* To nothing: all records up to now are void, and the logs that hold nothing else can go. */
static int new_generation(struct inode *ino, int fd)
{
	uint64_t now_ns;
	bool synced = stub_is_synced(fd);
	struct counted counted;
	unsigned nr_others;
	int ret;

	ret = inode_check_container(ino, CONTAINER_CHANGE);
	if (ret)
		return ret;
	logged_close_writer(ino, fd);
	logged_heed_clock(ino, fd); /* a file that cannot be read can be emptied all the same */
	ret = inode_still_logged(ino, 0);
	if (ret)
		return ret;
	now_ns = stamp_for_all(ino);
	/*
	 * stat() must not believe the stub's length until the body is cut. Nor if this process dies when
	 * writers have been notified and have dropped what they had to publish.
	 */
	counted = inode_count(ino);
	nr_others = inode_notify_writers(ino, now_ns); /* what they write from here on is later */
	ret = stub_set_cut(fd, &ino->v.stub, 0, now_ns);
	if (!ret) {
		ret = stub_set_generation(fd, &ino->v.stub, now_ns);
		if (ret)
			stub_set_cut(fd, &ino->v.stub, 0, 0);
	}
	if (!ret && ino->v.stub.in_body) { /* moved meanwhile: what was copied is to go as well */
		inode_enter_body(ino, &ino->v.stub);
		ret = -EREMCHG;
	}
	if (!ret) {
		reader_release(&ino->v.r);
		ret = carry_out(ino, fd, 0, nr_others);
	}
	inode_uncount(ino, &counted);
	if (ret)
		return ret;
	/* What has been synced goes only when it is sure that it is void. */
	if (synced && (stub_set_synced(fd, false) || (!ino->m->store.keeps_order && io_fdatasync(fd))))
		return 0;
	if (!stub_is_copy(&ino->v.stub, ino->key.ino) && !inode_check_container(ino, CONTAINER_CHANGE) &&
	    container_is_checked(&ino->c, CONTAINER_CHANGE))
		writer_table_gone(ino->m, &ino->c, ino->key.ino,
				  collect_void(&ino->c, ino->v.stub.generation_ns,
					       ino->shared ? -1 : inode_marked_fd(ino, fd)));
	return 0;
}

/*
 * A record that masks what is older. Writers are notified first: what they acknowledge from then on is later.
 */
static int mask_older(struct inode *ino, int fd, uint64_t size)
{
	int ret = logged_make_writer(ino, fd);
	unsigned nr_others;
	uint64_t now_ns;

	if (!ret)
		ret = writer_tell(&ino->w);
	if (ret)
		return ret;
	now_ns = lease_stamp(&ino->w.leased.lease);
	nr_others = inode_notify_writers(ino, now_ns);
	ret = stub_set_cut(fd, &ino->v.stub, size, now_ns);
	if (!ret) {
		ret = writer_truncate(&ino->w, size, now_ns);
		if (!ret)
			ret = writer_save(&ino->w);
		if (ret)
			stub_set_cut(fd, &ino->v.stub, 0, 0);
	}
	if (!ret && ino->v.r.loaded && reader_add_own(&ino->v.r, &ino->w))
		reader_release(&ino->v.r); /* no memory: made anew when next needed */
	if (!ret)
		ret = inode_heed_notice(ino, fd);
	if (ret)
		return ret;
	ino->v.touched = true;
	return carry_out(ino, fd, size, nr_others);
}

/* A host whose clock is ahead may have truncated it since the header was read: then this is later still. */
static int truncate_locked(struct inode *ino, int fd, uint64_t size)
{
	int ret = ino->m->store.remote ? inode_read_header(ino, fd, NULL) : 0;

	ret = ret ? ret : logged_finish_cut(ino, fd);
	if (!size && ret != -EREMCHG)
		ret = 0; /* a file that cannot be read can be emptied all the same */
	if (!ret)
		ret = size ? mask_older(ino, fd, size) : new_generation(ino, fd);
	if (!ret)
		ret = inode_heed_notice(ino, fd); /* a mover may have seen the old size */
	return ret;
}

/* Of a file that is empty: what is lost was void. */
static int remake_purged(struct inode *ino, int fd)
{
	ino->c.filled = true;
	if (!container_is_purged(&ino->c) || inode_find_elsewhere(ino, fd))
		return 0;
	return inode_make_container(ino, fd);
}

int logged_truncate(struct inode *ino, int fd, uint64_t size)
{
	/*
	 * Not between an appender's look at the end and its write. Where the container is gone there is no
	 * appender.
	 */
	bool locked = !inode_lock_end(ino);
	int ret = inode_still_logged(ino, inode_settle(ino, fd));

	if (!ret)
		ret = truncate_locked(ino, fd, size);
	if (!ret) /* a reader that was notified before may have looked before it was done */
		notice_raise(&ino->c);
	if (locked)
		inode_unlock_end(ino);
	if (!ret && !locked && !size) /* it can be extended now without a record */
		ret = remake_purged(ino, fd);
	return ret;
}

int logged_grow(struct inode *ino, int fd, uint64_t end)
{
	int ret;

	if (unlikely(ino->v.stub.cut_ns) && !inode_lock_end(ino)) {
		ret = logged_finish_cut(ino, fd);
		inode_unlock_end(ino);
		if (ret && ret != -EREMCHG)
			return ret;
	}
	ret = ino->v.stub.has_container && !ino->v.told_len ? remake_purged(ino, fd) : 0;
	return ret ? ret : publish_extend(ino, fd, end);
}

/* ---- appending ---- */

static int find_live(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	const struct inode *ino = arg;

	(void)path;
	return kind == DROPPING_LIVE && !(ino->writing && name_is_live_of(name, ino->w.tail.log_name));
}

/* With the end locked: have the true end in the view. */
static int find_end(struct inode *ino, int fd)
{
	int ret = logged_finish_cut(ino, fd), found = 0;
	uint64_t nr_lists = ino->v.r.nr_lists;

	if (!ret)
		ret = inode_still_logged(ino, publish_look_at_end(ino, fd, watch_changed(&ino->v.r.watch)));
	if (ret || ino->v.r.inputs.nr_lives)
		return ret;
	/*
	 * Bytes of a killed or still writing process beyond the stub's size are known to its live index only.
	 * That may be in a backend that is not there.
	 */
	if (ino->v.r.nr_lists == nr_lists) /* else the look has found that there are none */
		found = container_list_there(&ino->c, find_live, ino);
	if (found == 1 || found == -EIO)
		return inode_still_logged(ino, acquire_load(ino));
	/* Who has closed its log since the look at the stub is in no list: its end was published before. */
	return inode_still_logged(ino, publish_look_at_end(ino, fd, false));
}

static ssize_t append_locked(struct inode *ino, int fd, const struct iovec *iov, int cnt, size_t len,
			     uint64_t *end)
{
	uint64_t at = view_known_size(&ino->v);
	ssize_t n;

	if (len > FORM_SIZE_MAX || at > FORM_SIZE_MAX - len)
		return -EFBIG;
	/* what others have written there is to be known at home before a size that covers it */
	n = unlikely(at > ino->v.told_len) && at > ino->v.own_end ? publish_places(ino) : 0;
	if (n)
		return n;
	n = form_write_pieces(logged_write, ino, fd, iov, cnt, at);
	/* Home may have no room for the records: an appender on another host would write over it. */
	if (ino->v.own_end > ino->v.told_len && publish_size(ino, fd))
		publish_extend(ino, fd, ino->v.own_end);
	*end = at + (uint64_t)(n > 0 ? n : 0);
	return n;
}

ssize_t logged_append(struct inode *ino, int fd, const struct iovec *iov, int cnt, size_t len, uint64_t *end)
{
	ssize_t ret = logged_make_writer(ino, fd);
	int locked;

	if (ret)
		return ret;
	locked = inode_lock_end(ino);
	ret = inode_still_logged(ino, inode_settle(ino, fd));
	/* of a file in its body the container may have gone, with its lock file */
	if (locked && ret != -EREMCHG)
		return locked;
	if (!ret)
		ret = find_end(ino, fd);
	if (!ret)
		ret = append_locked(ino, fd, iov, cnt, len, end);
	if (!locked)
		inode_unlock_end(ino);
	return ret;
}

int logged_fallocate(struct inode *ino, int fd, int mode, uint64_t logical_off, uint64_t len)
{
	(void)ino, (void)fd, (void)mode, (void)logical_off, (void)len;
	return 1;
}

void logged_publish_found(struct inode *ino, int fd)
{
	bool longer = view_known_size(&ino->v) > ino->v.told_len;
	int flags;

	if (ino->v.stub.in_body || !ino->v.r.loaded || (!longer && !ino->v.stub.cut_ns))
		return;
	flags = sys.fcntl(fd, F_GETFL);
	/* a process that is truncating it needs no help */
	if ((flags & O_ACCMODE) == O_RDONLY || (longer ? inode_lock_end(ino) : inode_try_lock_end(ino)))
		return;
	/* No process truncates it while we have that lock. */
	if (!publish_look_at_end(ino, fd, true) && (flags & O_APPEND || !logged_finish_cut(ino, fd)) &&
	    !ino->v.stub.in_body)
		publish_known(ino, fd);
	inode_unlock_end(ino);
}
