/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first steps of reclaim.h: what the logs have, and what of it is hidden.
 */
#include "core/file/reclaim_look.h"

#include "core/backend/container_dirs.h"
#include "core/backend/names.h"
#include "core/backend/stub_use.h"
#include "core/base/io.h"
#include "core/base/stamp.h"
#include "core/base/sys.h"
#include "core/dropping/lease.h"
#include "core/dropping/node_index.h"
#include "core/dropping/notice.h"
#include "core/file/acquire.h"
#include "core/file/logged.h"
#include "core/gather/void_logs.h"

#include <stdio.h>

#define FLOOR_NS 15000000 /* more than the floor may be behind (stamp.c) */


int reclaim_refuse(struct reclaim *rc, int ret, const char *why)
{
	snprintf(rc->why, sizeof(rc->why), "%s", why);
	return ret;
}

/* ---- R1: the stamp ---- */

int reclaim_take_stamp(const struct reclaim *rc, uint64_t *stamp_ns, uint64_t *floor_ns)
{
	const struct container *c = &rc->ino->c;
	int h = notice_open_here(c);

	*floor_ns = 0;
	if (h < 0)
		return h;
	*stamp_ns = lease_stamp_at(c->store, h);
	c->store->ops->pread(c->store, h, floor_ns, sizeof(*floor_ns), LEASE_TABLE_OFF);
	store_close(c->store, &h);
	return 0;
}

int reclaim_take_f(struct reclaim *rc, uint64_t *stamp_ns, uint64_t *floor_ns)
{
	int ret = reclaim_lock_end(rc);

	if (ret)
		return ret;
	ret = reclaim_take_stamp(rc, stamp_ns, floor_ns);
	inode_unlock_end(rc->ino);
	return ret;
}

int reclaim_check_clock(struct reclaim *rc, uint64_t stamp_ns)
{
	struct timespec now;

	if (sys.clock_gettime(CLOCK_REALTIME, &now))
		return -errno;
	if (stamp_ns <= (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec)
		return 0;
	return reclaim_refuse(rc, -EAGAIN,
			      "its times lie in the future by the clock of this host: try again later");
}

/* A table that could be mapped has the stamp that was taken: a write says whether it lacks room. */
int reclaim_lacks_floor(struct reclaim *rc)
{
	const struct container *c = &rc->ino->c;
	int h = notice_open_here(c), ret = h < 0 ? h : notice_change(c, h);

	if (h >= 0)
		store_close(c->store, &h);
	return ret == -ENOSPC || ret == -EDQUOT ?
		       ret : reclaim_refuse(rc, -EOPNOTSUPP, "the file system of the backend cannot map files");
}

static int take_floor(struct reclaim *rc)
{
	struct timespec wait = { .tv_nsec = rc->alone ? RECLAIM_CLOCKS_NS : FLOOR_NS };
	uint64_t after, floor_ns;
	int ret = reclaim_take_f(rc, &rc->stamp_ns, &floor_ns);

	while (io_nanosleep(&wait, &wait) && errno == EINTR)
		;
	if (!ret)
		ret = reclaim_take_stamp(rc, &after, &floor_ns);
	if (!ret)
		ret = reclaim_check_clock(rc, after);
	if (ret)
		return ret;
	if (floor_ns < rc->stamp_ns && !rc->alone)
		return reclaim_lacks_floor(rc);
	return 0;
}

/* ---- R2: who writes ---- */

struct live_arg {
	bool any;
	char name[CONTAINER_PATH_LEN]; /* of one whose process runs, for all that is known */
};

static int note_live(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	struct live_arg *la = arg;

	(void)path;
	if (kind != DROPPING_LIVE)
		return 0;
	la->any = true;
	if (!*la->name || name_is_running(name))
		snprintf(la->name, sizeof(la->name), "%s", name);
	return 0;
}

int reclaim_check_writers(struct reclaim *rc)
{
	struct live_arg la = { .any = false };
	uint32_t pid, seq;
	int ret = container_list(&rc->ino->c, note_live, &la);

	if (ret || !la.any || rc->alone || stub_is_alone(rc->marked))
		return ret;
	name_log_numbers(la.name, &pid, &seq);
	if (name_is_running(la.name))
		snprintf(rc->why, sizeof(rc->why),
			 "is being written by process %u: compact it when that has closed it", pid);
	else
		snprintf(rc->why, sizeof(rc->why),
			 "process %u was killed while it wrote it, or runs elsewhere, and others have the file open: "
			 "compact it when they have closed it", pid);
	return -EBUSY;
}

/* ---- what the logs have ---- */

struct reclaim_log *reclaim_log_of(struct reclaim *rc, const char *path)
{
	struct reclaim_log *log;

	HASH_FIND(hh, rc->logs, path, strlen(path), log);
	return log;
}

static struct reclaim_log *log_of(struct reclaim *rc, const char *path)
{
	struct reclaim_log *log;
	size_t len = strlen(path);

	HASH_FIND(hh, rc->logs, path, len, log);
	if (log)
		return log;
	log = mem_zalloc(sizeof(*log) + len + 1);
	if (!log)
		return NULL;
	log->min_ns = UINT64_MAX;
	memcpy(log->path, path, len + 1);
	HASH_ADD(hh, rc->logs, path, len, log);
	if (log->hh.tbl)
		return log;
	mem_free(log);
	return NULL;
}

static void add_record(const struct reclaim *rc, struct reclaim_log *log, const struct index_record *rec)
{
	if (rec->stamp_ns <= rc->ino->v.stub.generation_ns)
		return;
	log->max_ns = max_u64(log->max_ns, rec->stamp_ns);
	if (rec->type != INDEX_WRITE)
		return;
	log->min_ns = min_u64(log->min_ns, rec->stamp_ns);
	/* a sync by another process has put some into the index twice */
	if (index_record_log_end(rec) > log->written_end) {
		log->written += index_record_log_end(rec) - max_u64(rec->log_off, log->written_end);
		log->written_end = index_record_log_end(rec);
	}
}

struct index_arg {
	struct reclaim *rc;
	const char *path;
};

static int add_block(void *arg, const struct index_block *block)
{
	struct index_arg *ia = arg;
	char path[CONTAINER_PATH_LEN];
	struct index_cursor cur = { 0 };
	struct index_record rec;
	struct reclaim_log *log;

	name_log_of_block(ia->path, block, path);
	log = log_of(ia->rc, path);
	if (!log)
		return -ENOMEM;
	log->indexed = true;
	log->indexed_len = max_u64(log->indexed_len, block->log_len);
	while (index_block_record(block, &cur, &rec) > 0)
		add_record(ia->rc, log, &rec);
	return 0;
}

static int add_live(struct reclaim *rc, const char *path)
{
	struct index_record *records = NULL;
	struct live_state state;
	struct reclaim_log *log;
	char log_path[CONTAINER_PATH_LEN];
	int ret = live_load(&rc->ino->c, path, &state, &records);

	name_log_of_live(path, log_path);
	log = log_of(rc, log_path);
	if (log)
		log->open = true;
	for (uint64_t i = 0; !ret && log && i < state.nr_records; i++)
		add_record(rc, log, &records[i]);
	mem_free(records);
	return !log ? -ENOMEM : ret == -ENODATA || ret == -ENOENT ? 0 : ret;
}

int reclaim_add_dropping(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	struct reclaim *rc = arg;
	struct container *c = &rc->ino->c;
	struct index_arg ia = { rc, path };
	char full[CONTAINER_PATH_LEN];
	struct reclaim_log *log;
	unsigned damaged = 0;
	struct stat st;
	int ret = 0;

	(void)name;
	if (kind == DROPPING_INDEX)
		ret = node_index_each(c, path, add_block, &ia, &damaged);
	else if (kind == DROPPING_LIVE)
		ret = add_live(rc, path);
	if (damaged)
		return reclaim_refuse(rc, -EIO, "a node index is damaged: plfs repair builds it anew");
	if (ret || kind != DROPPING_DATA)
		return ret;
	container_path(c, path, full);
	log = log_of(rc, path);
	if (log && !c->store->ops->stat(c->store, full, &st)) {
		log->len = datalog_len(&st);
		log->listed = true;
		rc->nr_logs++;
	}
	return log ? 0 : -ENOMEM;
}

int reclaim_begin_pieces(struct reclaim_pieces *p, struct reclaim *rc, uint32_t nr)
{
	*p = (struct reclaim_pieces){ rc, mem_zalloc((nr + (size_t)1) * sizeof(*p->logs)), nr };
	return p->logs ? 0 : -ENOMEM;
}

int reclaim_add_piece(void *arg, const struct index_piece *piece)
{
	struct reclaim_pieces *p = arg;

	if (piece->log_no >= p->nr || !p->logs[piece->log_no])
		return piece->log_no == INDEX_LOG_CUT ? 0 :
			reclaim_refuse(p->rc, -EIO, "some of it is lost: plfs check says which bytes");
	p->logs[piece->log_no]->used += piece->len;
	p->rc->used += piece->len;
	return 0;
}

/* Which bytes of each log are visible, by the maps that were just made. */
static int add_pieces(struct reclaim *rc)
{
	struct reader *r = &rc->ino->v.r;
	struct reclaim_pieces p;
	int ret = r->levels.nr == 1 ? reclaim_begin_pieces(&p, rc, r->logs.nr) : -ENOMEM;

	if (ret)
		return ret;
	for (uint32_t i = 0; i < r->logs.nr; i++)
		p.logs[i] = reclaim_log_of(rc, r->logs.logs[i].path);
	ret = index_map_each(&r->levels.v[0].map, reclaim_add_piece, &p);
	mem_free(p.logs);
	return ret || !reader_is_broken(r) ? ret : -EIO;
}

/*
 * What is visible and oldest says what can be voided as it is. A killed writer's log is copied, not looked at
 * so closely.
 */
static void choose(struct reclaim *rc)
{
	uint64_t oldest = rc->stamp_ns;
	bool open = false;

	for (struct reclaim_log *log = rc->logs; log; log = log->hh.next) {
		if (log->used)
			oldest = min_u64(oldest, log->min_ns);
		open |= log->open;
	}
	rc->next_ns = oldest - 1;
	rc->void_ns = rc->ino->v.stub.generation_ns;
	for (struct reclaim_log *log = rc->logs; log; log = log->hh.next) {
		log->goes = log->indexed && !log->open && !log->used && log->max_ns < oldest;
		if (log->goes) {
			rc->void_ns = max_u64(rc->void_ns, log->max_ns);
			rc->nr_goes += log->listed;
			rc->nr_gone += !log->listed;
			rc->goes_bytes += log->len;
		} else {
			rc->overwritten += log->written - min_u64(log->used, log->written);
		}
	}
	rc->copies = rc->overwritten || open;
	if (rc->copies) {
		rc->void_ns = rc->stamp_ns - 2;
		rc->next_ns = rc->stamp_ns - 1;
	}
}

/* Of a host that has nothing left nobody would know any more, in another generation. */
static int check_hosts(struct reclaim *rc)
{
	if (!rc->ino->v.r.lacks_hosts)
		return 0;
	return reclaim_refuse(rc, -EIO, "nothing is left of what a host wrote: plfs check says more");
}

/* All that becomes void must be known: so all that goes ends as a closed log does. -ESTALE: one does not. */
int reclaim_check_logs(struct reclaim *rc)
{
	for (struct reclaim_log *log = rc->logs; log; log = log->hh.next)
		if (log->len && !log->open && (log->goes || rc->copies) &&
		    !log_is_all_indexed(&rc->ino->c, log->path, log->indexed_len)) {
			snprintf(rc->why, sizeof(rc->why),
				 "%.150s: the log ends otherwise than its index says: plfs check", log->path);
			return -ESTALE;
		}
	return 0;
}

void reclaim_keep_times(struct reclaim *rc, const struct stat *before)
{
	struct timespec times[2] = { rc->times[0], rc->alone ? rc->times[1] : before->st_mtim };
	struct stat after;

	if (!sys.fstat(rc->fd, &after) && after.st_size == before->st_size)
		sys.futimens(rc->fd, times);
}

void reclaim_end(struct reclaim *rc)
{
	struct reclaim_log *log, *next;

	HASH_ITER(hh, rc->logs, log, next) {
		HASH_DEL(rc->logs, log);
		mem_free(log);
	}
}

/* ---- R1 to R3 ---- */

/* No truncation is under way afterwards. The locks must be real ones. */
int reclaim_lock_end(struct reclaim *rc)
{
	struct inode *ino = rc->ino;
	int ret = inode_lock_end(ino);

	if (ret)
		return ret;
	ret = store_try_lock(ino->c.store, ino->lock_h);
	if (ret == -EOPNOTSUPP)
		reclaim_refuse(rc, ret, "the file system of the backend has no locks");
	if (!ret)
		ret = inode_still_logged(ino, inode_settle(ino, rc->fd));
	if (!ret)
		ret = logged_finish_cut(ino, rc->fd);
	if (ret)
		inode_unlock_end(ino);
	return ret;
}

int reclaim_check_file(struct reclaim *rc)
{
	struct inode *ino = rc->ino;
	struct stat st;
	int ret = sys.fstat(rc->fd, &st) ? -errno : inode_read_header(ino, rc->fd, &st);

	if (ret || !ino->v.stub.has_container)
		return ret ? ret : 1;
	rc->times[0] = st.st_atim;
	rc->times[1] = st.st_mtim;
	if (stub_is_copy(&ino->v.stub, ino->key.ino))
		return reclaim_refuse(rc, -EPERM,
			      "the stub was copied or restored without the library, and its logs may be another file's: "
			      "plfs repair -r of the backend makes it their owner");
	ret = inode_check_container(ino, CONTAINER_CHANGE);
	if (!ret)
		ret = reclaim_lock_end(rc);
	if (ret == -EREMCHG)
		return 1;
	if (!ret)
		inode_unlock_end(ino);
	return ret;
}

/* @ret of a look; -ESTALE, look again: the file was emptied meanwhile, and what it lacks went with that. */
static int heed_emptied(const struct reclaim *rc, int ret)
{
	struct stub now;

	if (ret != -EIO || stub_read(rc->fd, &now))
		return ret;
	return now.generation_ns != rc->ino->v.stub.generation_ns ? -ESTALE : ret;
}

static int look(struct reclaim *rc)
{
	struct inode *ino = rc->ino;
	int ret = reclaim_check_file(rc);

	if (!ret)
		ret = inode_still_logged(ino, acquire_load(ino));
	if (!ret)
		ret = take_floor(rc); /* later than all stamps that were seen */
	if (!ret)
		ret = reclaim_check_writers(rc);
	if (!ret)
		ret = inode_still_logged(ino, acquire_load(ino));
	if (!ret)
		ret = check_hosts(rc);
	if (!ret)
		ret = container_list(&ino->c, reclaim_add_dropping, rc);
	if (!ret)
		ret = add_pieces(rc);
	if (!ret) {
		choose(rc);
		ret = reclaim_check_logs(rc);
	}
	return heed_emptied(rc, ret);
}

#define LOOKS_MAX 3 /* for a process that goes on with a log meanwhile */

int reclaim_begin(struct reclaim *rc)
{
	const struct reclaim all = *rc;
	int ret = look(rc);

	for (int i = 1; i < LOOKS_MAX && ret == -ESTALE; i++) {
		reclaim_end(rc);
		*rc = all;
		ret = look(rc);
	}
	return ret == -EREMCHG ? 1 : ret == -ESTALE ? -EIO : ret;
}
