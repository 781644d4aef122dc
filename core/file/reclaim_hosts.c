/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which hosts have something that counts, and the header's table of them.
 */
#include "core/file/reclaim_hosts.h"

#include "core/backend/container_dirs.h"
#include "core/backend/stub_hosts.h"
#include "core/base/alloc.h"
#include "core/base/io.h"
#include "core/base/sys.h"
#include "core/dropping/entered.h"
#include "core/dropping/node_index.h"

struct tables {
	struct reclaim *rc;
	uint64_t generation_ns;
	struct stub now;
	struct stub_hosts hosts, needed;
	uint32_t pid, seq; /* of the log that is asked about */
	bool counts; /* a block of the index that is being read */
	bool named;  /* a block of that log is in the index */
	bool full;   /* more hosts have something than @needed has room for */
};

static struct tables *read_tables(struct reclaim *rc, int *ret)
{
	struct tables *t = mem_zalloc(sizeof(*t)); /* too large for a small stack */

	if (t) {
		t->rc = rc;
		*ret = stub_hosts_read(rc->fd, &t->now, &t->hosts);
		t->generation_ns = t->now.generation_ns;
	} else {
		*ret = -ENOMEM;
	}
	return t;
}

static int look_at_block(void *arg, const struct index_block *block)
{
	struct tables *t = arg;

	t->counts |= block->max_stamp_ns > t->generation_ns;
	return 0;
}

/* Since the logs were looked at a process may have gone on with one, and have closed it. */
static bool index_counts(struct tables *t, const char *path)
{
	unsigned damaged = 0;
	int ret;

	t->counts = false;
	ret = node_index_each(&t->rc->ino->c, path, look_at_block, t, &damaged);
	return t->counts || damaged || (ret && ret != -ENOENT);
}

static int look_for_log(void *arg, const struct index_block *block)
{
	struct tables *t = arg;

	t->named |= block->pid == t->pid && block->seq == t->seq;
	return 0;
}

/*
 * Of one that was not there, or had neither a block nor a live file. If it has a block now, index_counts()
 * says it: a log of which nothing counts goes.
 */
static bool log_counts(struct tables *t, const char *path, const char *name)
{
	const struct reclaim_log *log = reclaim_log_of(t->rc, path);
	char index[CONTAINER_PATH_LEN];
	unsigned damaged = 0;
	int ret;

	if (log && (log->indexed || log->open))
		return false;
	t->named = false;
	name_log_numbers(name, &t->pid, &t->seq);
	name_index_of(path, index);
	ret = node_index_each(&t->rc->ino->c, index, look_for_log, t, &damaged);
	return !t->named || (ret && ret != -ENOENT);
}

static int add_needed(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	struct tables *t = arg;
	const struct reclaim_log *log = NULL;
	char of_live[CONTAINER_PATH_LEN];
	bool needed = false;

	if (stub_hosts_find(&t->needed, name))
		return 0;
	if (kind == DROPPING_DATA) {
		needed = log_counts(t, path, name);
	} else if (kind == DROPPING_LIVE) {
		name_log_of_live(path, of_live);
		log = reclaim_log_of(t->rc, of_live);
		needed = !log || !log->open;
	} else if (kind == DROPPING_INDEX) {
		needed = index_counts(t, path);
	}
	if (needed)
		t->full |= !stub_hosts_add(&t->needed, name);
	return 0;
}

/* Those that have something that counts, and those that have begun a log since R2, or gone on with one. */
static int find_needed(struct tables *t)
{
	for (struct reclaim_log *log = t->rc->logs; log; log = log->hh.next)
		if (log->max_ns > t->generation_ns)
			t->full |= !stub_hosts_add(&t->needed, name_of(log->path));
	return container_list(&t->rc->ino->c, add_needed, t);
}

/* The copy itself may have gone, and this host need not be entered. */
static bool lacks_copy(struct tables *t)
{
	char index[CONTAINER_PATH_LEN];

	if (!t->rc->moves && !(t->rc->copies && t->rc->used))
		return false;
	name_index_here(&t->rc->ino->c, index);
	return !t->full && !stub_hosts_find(&t->needed, name_of(index));
}

int reclaim_carry_hosts(struct reclaim *rc, uint64_t generation_ns)
{
	int ret;
	struct tables *t = read_tables(rc, &ret);
	struct stub next;

	if (!ret && t->now.has_container && t->now.generation_ns < generation_ns) {
		ret = stub_hosts_saw_all(&t->hosts, &rc->ino->c);
		t->generation_ns = generation_ns;
		if (!ret)
			ret = find_needed(t);
		if (!ret && (stub_hosts_missing(&t->hosts) || lacks_copy(t)))
			ret = reclaim_refuse(rc, -EIO, "nothing is left of what a host wrote: plfs check says more");
		next = t->now;
		next.generation_ns = generation_ns;
		if (!ret)
			stub_hosts_enter_all(rc->fd, &next, &t->needed, &t->hosts);
	}
	mem_free(t);
	return ret;
}

static int forget(struct tables *t)
{
	struct reclaim *rc = t->rc;
	struct stat before;
	int ret;

	if (!stub_hosts_missing(&t->hosts))
		return 0;
	ret = sys.fstat(rc->fd, &before) ? -errno : entered_forget_missing(&rc->ino->c, rc->fd, &t->hosts);
	if (!ret)
		reclaim_keep_times(rc, &before);
	return !ret && io_fsync(rc->fd) ? -errno : ret;
}

/*
 * Whoever dies behind that must not leave a host entered, with nothing there. What was lost meanwhile is not
 * forgotten by that.
 */
int reclaim_forget_hosts(struct reclaim *rc)
{
	int ret;
	struct tables *t = read_tables(rc, &ret);

	if (!ret && t->hosts.nr)
		ret = find_needed(t);
	if (!ret && !t->full) {
		stub_hosts_saw_those(&t->hosts, &t->needed);
		stub_hosts_saw_losses(&t->hosts);
		ret = forget(t);
	}
	mem_free(t);
	return ret;
}

/* Another reclaim may have removed the last of one that was just entered here: that is forgotten again. */
static void enter_needed(struct tables *t)
{
	struct stub_hosts *before = mem_alloc(sizeof(*before));
	struct stub now;

	if (!before)
		return;
	*before = t->hosts;
	stub_hosts_enter_all(t->rc->fd, &t->now, &t->needed, NULL);
	if (!stub_hosts_read(t->rc->fd, &now, &t->hosts) && !stub_hosts_saw_all(&t->hosts, &t->rc->ino->c)) {
		stub_hosts_saw_those(&t->hosts, before);
		stub_hosts_saw_losses(&t->hosts);
		entered_forget_missing(&t->rc->ino->c, t->rc->fd, &t->hosts);
	}
	mem_free(before);
}

void reclaim_enter_hosts(struct reclaim *rc)
{
	int ret;
	struct tables *t = read_tables(rc, &ret);
	struct stat before;

	if (!ret && t->now.has_container && t->now.generation_ns >= rc->void_ns &&
	    !sys.fstat(rc->fd, &before) && !find_needed(t)) {
		enter_needed(t);
		reclaim_keep_times(rc, &before);
	}
	mem_free(t);
}
