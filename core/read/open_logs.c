/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which logs of a reader are open, and room for one more.
 */
#include "core/read/open_logs.h"

#include "core/backend/names.h"
#include "core/backend/placed.h"
#include "core/backend/rebuilt.h"
#include "core/backend/staged.h"
#include "core/base/alloc.h"
#include "core/base/msg.h"
#include "core/base/sys.h"

#include <stdio.h>

#define OPEN_LOGS_MAX 64 /* and no more than a quarter of what the process may have */
#define WINDOW_MIN 4096
#define WINDOWS_BUDGET \
	(16 * 1024 * 1024) /* for all; where there are thousands of logs they get smaller ones */

/*
 * A file system that likes to be read in blocks of more than a few pages is one across a network (4 MiB on
 * CephFS and Lustre, 1 MiB on NFS, 128 KiB through FUSE), where a read may be a message: when another host
 * writes the log, nothing is cached here.
 */
#define FAR_BLOCK_LEN (64 * 1024)

uint32_t logset_window_min(const struct logset *set)
{
	uint32_t share = WINDOWS_BUDGET / WINDOW_UNIT / (set->nr + 1) * WINDOW_UNIT;

	return share < WINDOW_UNIT ? WINDOW_UNIT : (uint32_t)min_u64(share, WINDOW_MIN);
}

/* ---- handles ---- */

static bool let_go(struct log_handle *handle)
{
	return !__atomic_sub_fetch(&handle->refs, 1, __ATOMIC_ACQ_REL);
}

bool log_handle_put(struct log_handle *handle)
{
	/* first: the handle may be gone afterwards */
	__atomic_sub_fetch(&handle->set->nr_taken, 1, __ATOMIC_RELAXED);
	return let_go(handle);
}

void logset_bury(struct logset *set)
{
	struct log_handle **at = &set->let_go;

	while (*at) {
		struct log_handle *handle = *at;

		if (__atomic_load_n(&handle->refs, __ATOMIC_ACQUIRE)) {
			at = &handle->next;
			continue;
		}
		*at = handle->next;
		store_close(set->c->store, &handle->h);
		mem_free(handle);
	}
}

void logset_close(struct logset *set, struct logset_log *log)
{
	struct log_handle *handle = log->handle;

	if (!handle)
		return;
	log->handle = NULL;
	set->nr_open--;
	handle->next = set->let_go; /* before the reference is dropped: the last user looks for it there */
	set->let_go = handle;
	if (let_go(handle))
		logset_bury(set);
}

static bool is_read_from(const struct logset_log *log)
{
	return log->handle && __atomic_load_n(&log->handle->refs, __ATOMIC_RELAXED) > 1;
}

void logset_after_fork(struct logset *set)
{
	for (uint32_t i = 0; i < set->nr; i++)
		if (set->logs[i].handle)
			set->logs[i].handle->refs = 1;
	for (struct log_handle *handle = set->let_go; handle; handle = handle->next)
		handle->refs = 0;
	set->nr_taken = 0;
	logset_bury(set);
}

void logset_drop_window(struct logset *set, struct logset_log *log)
{
	set->window_bytes -= log->win_cap;
	mem_free(log->window);
	log->window = NULL;
	log->win_len = log->win_cap = 0;
}

void logset_make_room(struct logset *set, const struct logset_log *keep, size_t window)
{
	for (uint32_t i = 0; i < set->nr; i++) {
		struct logset_log *log = &set->logs[set->hand];

		if (set->nr_open < set->max_open && set->window_bytes + window <= WINDOWS_BUDGET)
			return;
		set->hand = (set->hand + 1) % set->nr;
		if (log == keep)
			continue;
		if (set->nr_open >= set->max_open && !is_read_from(log))
			logset_close(set, log);
		if (set->window_bytes + window > WINDOWS_BUDGET && log->window) {
			logset_drop_window(set, log);
			/* there are too many: smaller ones from now on */
			log->ahead = logset_window_min(set) / 2;
		}
	}
}

void logset_close_others(struct logset *set, const struct logset_log *keep)
{
	for (uint32_t i = 0; i < set->nr; i++)
		if (&set->logs[i] != keep && !is_read_from(&set->logs[i]))
			logset_close(set, &set->logs[i]);
}

bool logset_give_back(struct logset *set)
{
	uint32_t before = set->nr_open;

	logset_close_others(set, NULL);
	return set->nr_open < before;
}

/* With the first log. */
static void look_how_far(struct logset *set, int h)
{
	struct stat st;

	set->looked = true;
	set->far = !set->c->store->ops->fstat(set->c->store, h, &st) && st.st_blksize >= FAR_BLOCK_LEN;
}

static uint32_t max_open(struct logset *set)
{
	struct rlimit limit;

	if (!set->max_open) {
		set->max_open = OPEN_LOGS_MAX;
		if (!sys.getrlimit(RLIMIT_NOFILE, &limit))
			set->max_open = (uint32_t)max_u64(1, min_u64(OPEN_LOGS_MAX, limit.rlim_cur / 4));
	}
	return set->max_open;
}

uint32_t logset_at_once(struct logset *set)
{
	uint32_t max = max_open(set), taken = __atomic_load_n(&set->nr_taken, __ATOMIC_RELAXED);

	return taken < max ? (max - taken + 1) / 2 : 0;
}

/* @p is where the log @full is. */
static int tell_elsewhere(const struct logset *set, const char *full, const struct place *p)
{
	char host[64];

	if (set->waits && !(p->features & PLACE_SHARED))
		return -EREMOTE;
	place_host(p, host, sizeof(host));
	if (p->features & PLACE_SHARED) {
		msg_error("%s: of %s, in another backend, %s, which is not there or cannot be read: bring it back, or give it up with: plfs places --forget %.*s FILE",
			  full, host, p->path, place_near_len(p->path), p->path);
		return -EIO;
	}
	msg_error("%s: on %s in %s, not drained: it cannot be read from here; run plfs drain there (ranks that read what other nodes write need release=home)",
		  full, host, p->path);
	return -EIO;
}

__attribute__((noinline, cold)) int logset_find_elsewhere(struct logset *set, const struct logset_log *log)
{
	struct place *p = mem_alloc(sizeof(*p)); /* too large for a small stack */
	char full[CONTAINER_PATH_LEN];
	int ret = -ENOMEM;

	if (p) {
		container_path(set->c, log->path, full);
		ret = placed_is_elsewhere(set->c->store, full, p) ? tell_elsewhere(set, full, p) : 0;
	}
	mem_free(p);
	return ret;
}

void logset_take_handle(struct logset *set, struct logset_log *log, struct log_handle *handle, int h)
{
	if (!set->looked)
		look_how_far(set, h);
	*handle = (struct log_handle){ .set = set, .h = h, .refs = 1 };
	store_keep(set->c->store, &handle->h);
	log->handle = handle;
	set->nr_open++;
}

void logset_use_rebuilt(struct logset *set, int h)
{
	if (!rebuilt_is(h))
		return;
	set->rebuilt = true;
	set->compared.how = SUMS_ALWAYS;
}

/* The log cannot be opened, for @err. A handle of a copy; else @err. */
static __attribute__((noinline, cold)) int open_copy(struct logset *set, struct logset_log *log, int err)
{
	int h;

	if (log->growing || name_is_lost(log->path) ||
	    (err == -ENOENT  ? !set->missing_is_lost :
	     err == -EREMOTE ? !set->c->store->base :
			       !turned_may_help(err)))
		return err;
	h = turned_next(&log->turned, set->c, log->path,
			err == -ENOENT ? "the data log is missing" :
			err == -EIO ? "the data log is damaged" :
			err == -EREMOTE ? "its backend is not there" : strerror(-err), &set->told_copy);
	logset_use_rebuilt(set, h);
	return h < 0 ? err : h;
}

/* A copy on this node is read in the place of what is far. */
static __attribute__((noinline, cold)) int use_staged(struct logset *set, const struct logset_log *log, int h)
{
	char full[CONTAINER_PATH_LEN];

	container_path(set->c, log->path, full);
	return staged_use(set->c->store, full, h);
}

int logset_open_anew(struct logset *set, struct logset_log *log)
{
	struct log_handle *handle;
	int h;

	max_open(set);
	logset_make_room(set, log, 0);
	handle = mem_alloc(sizeof(*handle));
	if (!handle)
		return -ENOMEM;
	h = turned_open(&log->turned, set->c, log->path, log->growing);
	if (h == -EMFILE || h == -ENFILE) { /* give back what we hold and try once more */
		logset_close_others(set, log);
		h = turned_open(&log->turned, set->c, log->path, log->growing);
	}
	if (unlikely(h < 0))
		h = open_copy(set, log, h);
	if (h < 0) {
		mem_free(handle);
		set->missing = (uint32_t)(log - set->logs);
		if (name_is_lost(log->path)) {
			msg_error(
				"%s/%s: the last writes before its host went down were not synced, and may be lost",
				set->c->dir, log->path);
			return -EIO;
		}
		if (h == -EIO)
			msg_error("%s/%s: the data log is damaged", set->c->dir, log->path);
		if (h == -EREMOTE)
			h = logset_find_elsewhere(set, log);
		return h ? h : -EIO;
	}
	if (unlikely(set->c->store->near) && !log->growing && !log->turned.no)
		h = use_staged(set, log, h);
	logset_take_handle(set, log, handle, h);
	return 0;
}

int logset_open(struct logset *set, uint32_t no)
{
	int ret = logset_open_log(set, &set->logs[no]);

	return ret ? ret : set->logs[no].handle->h;
}
