/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The last steps of reclaim.h: the copy, the new generation, and what goes by it.
 */
#include "core/file/reclaim.h"

#include "core/backend/container_dirs.h"
#include "core/backend/stub_lock.h"
#include "core/backend/writer_table.h"
#include "core/base/io.h"
#include "core/base/sys.h"
#include "core/dropping/notice.h"
#include "core/file/collect.h"
#include "core/file/logged.h"
#include "core/file/reclaim_hosts.h"
#include "core/gather/void_logs.h"
#include "core/write/durable.h"
#include "core/write/resume.h"

/* ---- R4 ---- */

static void discard(struct reclaim *rc)
{
	struct inode *ino = rc->ino;

	if (!ino->writing) /* the file has entered its body */
		return;
	writer_discard(&ino->w);
	inode_not_counted(ino);
	inode_stop_writing(ino);
	reader_release(&ino->v.r);
}

/*
 * A log of its own: one that this process goes on with would have older records. The index knows it before it
 * has bytes: after a power failure it may have lost its live file.
 */
int reclaim_begin_copy(struct reclaim *rc)
{
	struct inode *ino = rc->ino;
	int ret;

	if (ino->writing)
		return -EBUSY;
	resume_forget(&ino->c);
	ret = inode_still_logged(ino, logged_make_writer(ino, rc->fd));
	if (!ret)
		ret = writer_settle(&ino->w);
	if (ret)
		discard(rc);
	return ret;
}

int reclaim_end_copy(struct reclaim *rc, struct index_record *records, size_t nr, int ret)
{
	struct inode *ino = rc->ino;

	if (!ret && !ino->writing)
		ret = -EREMCHG;
	if (!ret && ino->v.stub.generation_ns >= rc->stamp_ns)
		ret = reclaim_refuse(rc, -EBUSY, "was truncated meanwhile");
	if (!ret)
		ret = writer_settle(&ino->w);
	if (ret || live_is_broken(&ino->w.tail.live)) {
		discard(rc);
		return ret ? ret : -EIO;
	}
	for (size_t i = 0; i < nr; i++)
		records[i].stamp_ns = rc->stamp_ns;
	ret = writer_index(&ino->w, records, nr);
	reader_release(&ino->v.r); /* what it knows of this log is not in its maps */
	if (logged_close_writer(ino, rc->fd) && !ret)
		ret = -EIO;
	return ret;
}

static int sync_dropping(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	struct reclaim *rc = arg;
	const struct reclaim_log *log = NULL;
	char full[CONTAINER_PATH_LEN];
	int ret;

	(void)name;
	if (kind == DROPPING_DATA)
		HASH_FIND(hh, rc->logs, path, strlen(path), log);
	if (kind != DROPPING_INDEX && !(log && log->used && !rc->copies))
		return 0;
	container_path(&rc->ino->c, path, full);
	ret = store_sync_path(rc->ino->c.store, full, false);
	if (!ret && kind == DROPPING_INDEX) { /* the names beside it */
		*strrchr(full, '/') = '\0';
		ret = store_sync_path(rc->ino->c.store, full, true);
	}
	return ret == -ENOENT ? 0 : ret;
}

int reclaim_sync(struct reclaim *rc)
{
	int ret = container_list(&rc->ino->c, sync_dropping, rc);

	return ret ? ret : durable_sync_way(&rc->ino->c);
}

/* ---- R5, R6 ---- */

static int store_generation(struct reclaim *rc, uint64_t generation_ns)
{
	struct inode *ino = rc->ino;
	struct stat before;
	int ret = sys.fstat(rc->fd, &before) ? -errno : 0;

	if (!ret)
		ret = reclaim_carry_hosts(rc, generation_ns);
	if (!ret)
		ret = stub_set_generation(rc->fd, &ino->v.stub, generation_ns);
	if (!ret && !ino->v.stub.has_container)
		ret = -EREMCHG;
	if (!ret)
		reclaim_keep_times(rc, &before);
	return ret;
}

static int void_them(struct reclaim *rc, uint64_t generation_ns)
{
	struct inode *ino = rc->ino;
	int ret = reclaim_lock_end(rc);

	if (ret)
		return ret;
	if (io_fsync(rc->fd)) /* a body that was cut must not be longer than before */
		ret = -errno;
	if (!ret)
		ret = store_generation(rc, generation_ns);
	if (!ret && io_fsync(rc->fd))
		ret = -errno;
	inode_unlock_end(ino);
	return ret;
}

/* What the generation has made void goes, and the generation is raised once more. */
static int remove_void(struct reclaim *rc, uint64_t *nr_left)
{
	struct inode *ino = rc->ino;
	struct void_logs out = { 0 };
	unsigned nr_dead;
	int ret = kept_map_revoke(&ino->c);

	notice_raise(&ino->c);
	if (!ret)
		ret = reclaim_forget_hosts(rc);
	if (ret)
		return ret;
	nr_dead = collect_dead(&ino->c, ino->v.stub.generation_ns, rc->marked);
	writer_table_gone(ino->m, &ino->c, ino->key.ino, nr_dead);
	ret = void_logs_remove(&ino->c, ino->v.stub.generation_ns, &out);
	*nr_left = out.nr_left;
	if (!ret && rc->next_ns > rc->void_ns)
		ret = void_them(rc, rc->next_ns);
	kept_map_revoke(&ino->c);
	notice_raise(&ino->c);
	return ret;
}

int reclaim_commit(struct reclaim *rc, uint64_t *nr_left)
{
	int ret = void_them(rc, rc->void_ns);

	*nr_left = 0;
	if (!ret) {
		reader_release(&rc->ino->v.r);
		ret = remove_void(rc, nr_left);
	}
	reclaim_enter_hosts(rc);
	return ret;
}
