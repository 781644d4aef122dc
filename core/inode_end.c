/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a file ends: truncation, and appending behind whatever others have appended.
 */
#include "inode.h"

#include "bare.h"
#include "body.h"
#include "collect.h"
#include "file.h"
#include "own.h"
#include "stamp.h"
#include "sys.h"
#include "writers.h"

/* ---- one at a time: whoever appends, and whoever cuts ---- */

static int lock_end(struct inode *ino, bool waits)
{
	struct store *s = &ino->m->store;
	char path[CONTAINER_PATH_LEN];
	int ret;

	if (ino->end_locks) {
		ino->end_locks++;
		return 0;
	}
	if (ino->lock_h < 0) {
		ret = inode_check_container(ino, CONTAINER_CHANGE);
		if (ret)
			return ret;
		container_path(&ino->c, "lock", path);
		ino->lock_h = container_open(&ino->c, path, O_RDWR | O_CREAT, container_file_mode(&ino->c, true));
		if (ino->lock_h < 0)
			return ino->lock_h;
	}
	ret = waits ? s->ops->lock(s, ino->lock_h) : s->ops->try_lock(s, ino->lock_h);
	if (ret && ret != -EOPNOTSUPP)
		return ret;
	ino->end_locks = 1;
	return 0;
}

int inode_lock_end(struct inode *ino) { return lock_end(ino, true); }

void inode_unlock_end(struct inode *ino)
{
	if (!--ino->end_locks)
		ino->m->store.ops->unlock(&ino->m->store, ino->lock_h);
}

/*
 * The end as the stub and the map say it, with the end locked, so that no process cuts meanwhile. A lost end is known
 * again afterwards: a process that cuts from here on tells us.
 */
static int look_at_end(struct inode *ino, int fd, bool reload)
{
	struct stat st;
	int ret = sys.fstat(fd, &st) ? -errno : inode_look_again(ino, fd, &st, reload);

	if (!ret && ino->end_lost && !ino->stub.in_body) {
		ino->own_end = inode_known_size(ino);
		ino->end_lost = false;
	}
	return ret;
}

void inode_recall_end(struct inode *ino, int fd)
{
	if (likely(!ino->end_lost) || fd < 0 || inode_lock_end(ino))
		return;
	look_at_end(ino, fd, true);
	inode_unlock_end(ino);
}

/* ---- truncation ---- */

static int resize_body(struct inode *ino, int fd, uint64_t size)
{
	struct stat st;

	if (sys.fstat(fd, &st))
		return -errno;
	if (stub_body_len(st.st_size) > size && sys.ftruncate(fd, (off_t)(PLFS_BODY_OFF + size)))
		return -errno;
	ino->own_end = 0;
	ino->end_lost = false;
	ino->body_len = min_u64(stub_body_len(st.st_size), size);
	return inode_extend(ino, fd, size);
}

/* Writers that were told of the truncation have written since. The cut took from the stub what they had told it of that. */
static int extend_again(struct inode *ino, int fd)
{
	int ret = inode_load(ino);

	return ret || ino->stub.in_body ? ret : inode_extend(ino, fd, inode_known_size(ino));
}

int inode_finish_cut(struct inode *ino, int fd)
{
	struct stub now;
	struct stat st;
	int ret;

	if (likely(!ino->stub.cut_ns) || ino->stub.in_body)
		return 0;
	ret = stub_read(fd, &now);
	if (ret)
		return ret;
	if (now.in_body) {
		inode_enter_body(ino, &now);
		return 0;
	}
	ino->stub = now;
	if (!now.cut_ns)
		return 0;
	stamp_seen(ino->stub.generation_ns);
	ret = inode_load(ino);
	if (ret || !ino->stub.cut_ns || ino->stub.in_body)
		return ret;
	if (sys.fstat(fd, &st))
		return -errno;
	if (inode_is_cut(ino)) {
		inode_notify(ino, stamp_next());
		if (stub_body_len(st.st_size) > ino->stub.cut_size &&
		    sys.ftruncate(fd, (off_t)(PLFS_BODY_OFF + ino->stub.cut_size)))
			return -errno;
		ret = inode_extend(ino, fd, inode_known_size(ino));
	}
	return ret ? ret : stub_set_cut(fd, &ino->stub, 0, 0);
}

/* The truncation has happened, by one store. Whatever becomes of this process now, all see it. */
static int carry_out(struct inode *ino, int fd, uint64_t size, unsigned nr_others)
{
	int ret;

	ino->told_cut_ns = ino->stub.cut_ns;
	watch_raise(&ino->c); /* before the cut: older maps must not lead to the body then */
	ret = resize_body(ino, fd, size);
	if (!ret && nr_others)
		ret = extend_again(ino, fd);
	return ret || ino->stub.in_body ? ret : stub_set_cut(fd, &ino->stub, 0, 0);
}

/*
 * A stamp behind those of all writers of the host, which take theirs behind it from here on: a process may have seen the
 * future, in another file.
 */
static uint64_t stamp_for_all(const struct inode *ino)
{
	int h = watch_open(&ino->c);
	uint64_t stamp_ns = h < 0 ? stamp_next() : lease_stamp_at(ino->c.store, h);

	if (h >= 0)
		store_close(ino->c.store, &h);
	return stamp_ns;
}

/* To nothing: all records up to now are void, and the logs that hold nothing else can go. */
static int new_generation(struct inode *ino, int fd)
{
	uint64_t now_ns;
	bool counted, synced = stub_is_synced(fd);
	unsigned nr_others;
	int ret;

	ret = inode_check_container(ino, CONTAINER_CHANGE);
	if (ret)
		return ret;
	inode_close_writer(ino, fd);
	inode_heed_clock(ino, fd); /* a file that cannot be read can be emptied all the same */
	now_ns = stamp_for_all(ino);
	/*
	 * stat() must not believe the stub's length until the body is cut. Nor if this process dies when writers have
	 * been told and have forgotten what they had to tell the stub.
	 */
	counted = writers_begin(ino->m, ino->key.ino);
	nr_others = inode_notify_writers(ino, now_ns); /* what they write from here on is later */
	ret = stub_set_cut(fd, &ino->stub, 0, now_ns);
	if (!ret) {
		ret = stub_set_generation(fd, &ino->stub, now_ns);
		if (ret)
			stub_set_cut(fd, &ino->stub, 0, 0);
	}
	if (!ret && !ino->stub.in_body) {
		reader_release(&ino->r);
		ret = carry_out(ino, fd, 0, nr_others);
	}
	if (counted)
		writers_end(ino->m, ino->key.ino);
	if (ret)
		return ret;
	if (ino->stub.in_body) { /* moved meanwhile: what was copied is to go as well */
		inode_enter_body(ino, &ino->stub);
		return 0;
	}
	/* What has been synced goes only when it is sure that it is void. */
	if (synced && (stub_set_synced(fd, false) || (!ino->m->store.keeps_order && own_fdatasync(fd))))
		return 0;
	if (!stub_is_copy(&ino->stub, ino->key.ino) && !inode_check_container(ino, CONTAINER_CHANGE) &&
	    container_is_checked(&ino->c, CONTAINER_CHANGE))
		writers_gone(ino->m, ino->key.ino,
			     collect_void(&ino->c, ino->stub.generation_ns, ino->shared ? -1 : file_marked_fd_of(ino, fd)));
	return 0;
}

/* A record that masks what is older. Writers are told first: what they acknowledge from then on is later. */
static int mask_older(struct inode *ino, int fd, uint64_t size)
{
	int ret = inode_make_writer(ino, fd);
	unsigned nr_others;
	uint64_t now_ns;

	if (ret || ino->stub.in_body)
		return ret;
	now_ns = lease_stamp(&ino->w.lease);
	nr_others = inode_notify_writers(ino, now_ns);
	ret = stub_set_cut(fd, &ino->stub, size, now_ns);
	if (!ret) {
		ret = writer_truncate(&ino->w, size, now_ns);
		if (!ret && !ino->w.stage.shared)
			ret = stage_save(&ino->w.stage);
		if (ret)
			stub_set_cut(fd, &ino->stub, 0, 0);
	}
	if (!ret && ino->r.loaded && reader_add_own(&ino->r, &ino->w))
		reader_release(&ino->r); /* no memory: made anew when next needed */
	if (!ret)
		ret = inode_heed_notice(ino, fd);
	if (ret || ino->stub.in_body)
		return ret;
	ino->touched = true;
	return carry_out(ino, fd, size, nr_others);
}

static int truncate_locked(struct inode *ino, int fd, uint64_t size)
{
	bool logged = ino->stub.has_container && !ino->stub.in_body;
	int ret = logged ? inode_finish_cut(ino, fd) : 0;

	ret = size ? ret : 0; /* a file that cannot be read can be emptied all the same */
	if (!ret && logged && !ino->stub.in_body)
		ret = size ? mask_older(ino, fd, size) : new_generation(ino, fd);
	if (!ret && logged && !ino->stub.in_body)
		ret = inode_heed_notice(ino, fd);
	/* Whoever moved it may have seen the old size. */
	return !ret && ino->stub.in_body ? resize_body(ino, fd, size) : ret;
}

int inode_truncate(struct inode *ino, int fd, uint64_t size)
{
	bool locked = false;
	ssize_t done;
	int ret;

	if (bare_truncate(ino, fd, size, &done))
		return (int)done;
	/*
	 * Not between an appender's look at the end and its write. Where the container is gone there is nobody to
	 * wait for.
	 */
	if (ino->stub.has_container && !ino->stub.in_body)
		locked = !inode_lock_end(ino);
	ret = inode_settle(ino, fd);
	if (!ret)
		ret = truncate_locked(ino, fd, size);
	/* Who was told of it before may have looked before it was done. */
	if (!ret && ino->stub.has_container && !ino->stub.in_body)
		watch_raise(&ino->c);
	if (locked)
		inode_unlock_end(ino);
	return ret;
}

int inode_grow(struct inode *ino, int fd, uint64_t end)
{
	int ret;

	if (unlikely(ino->stub.cut_ns) && !ino->stub.in_body && !inode_lock_end(ino)) {
		ret = inode_finish_cut(ino, fd);
		inode_unlock_end(ino);
		if (ret)
			return ret;
	}
	return inode_extend(ino, fd, end);
}

/* ---- appending ---- */

static int find_live(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	const struct inode *ino = arg;

	(void)path;
	return kind == DROPPING_LIVE && !(ino->writing && !strcmp(name + 5, ino->w.log_name + 5));
}

int inode_begin_append(struct inode *ino, int fd, uint64_t *end)
{
	int ret = inode_make_writer(ino, fd), locked;

	if (ret || ino->stub.in_body)
		return ret;
	locked = inode_lock_end(ino);
	ret = inode_settle(ino, fd);
	if (!ret && ino->stub.in_body) { /* then the container may have gone, with its lock file */
		if (!locked)
			inode_unlock_end(ino);
		return 0;
	}
	if (locked)
		return locked;
	if (!ret)
		ret = inode_finish_cut(ino, fd);
	if (!ret)
		ret = look_at_end(ino, fd, watch_changed(&ino->r.watch));
	/* What a killed or still writing process has beyond the stub's size is known to its live index only. */
	if (!ret && !ino->r.inputs.nr_lives && container_list(&ino->c, find_live, ino) == 1)
		ret = inode_load(ino);
	if (ret)
		inode_unlock_end(ino);
	*end = inode_known_size(ino);
	return ret;
}

void inode_end_append(struct inode *ino, int fd)
{
	if (ino->own_end > ino->body_len)
		inode_publish(ino, fd);
	inode_unlock_end(ino);
}

void inode_publish_found(struct inode *ino, int fd)
{
	bool longer = inode_known_size(ino) > ino->body_len;
	int flags;

	if (ino->stub.in_body || !ino->r.loaded || (!longer && !ino->stub.cut_ns))
		return;
	flags = sys.fcntl(fd, F_GETFL);
	if ((flags & O_ACCMODE) == O_RDONLY || lock_end(ino, longer)) /* who is truncating it needs no help */
		return;
	/* Nobody truncates it while we have that lock. */
	if (!look_at_end(ino, fd, true) && (flags & O_APPEND || !inode_finish_cut(ino, fd)) && !ino->stub.in_body)
		inode_extend(ino, fd, inode_known_size(ino));
	inode_unlock_end(ino);
}
