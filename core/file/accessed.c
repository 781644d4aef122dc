/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Accessing what was not read. Reading a byte needs no more rights than the reader has, and leaves it to the
 * mount's options what comes of it.
 */
#include "core/file/accessed.h"

#include "core/backend/container_dirs.h"
#include "core/backend/names.h"
#include "core/base/stamp.h"
#include "core/base/sys.h"

#define DAY_S 86400
#define FRESH_MAX 4 /* so many side by side that others have accessed: they do the rest */
#define LONGEST_NS 1000000000 /* what is left then the next day does, and begins elsewhere if it has maps */

static bool is_past(int64_t s)
{
	struct timespec now;

	return !sys.clock_gettime(CLOCK_REALTIME_COARSE, &now) && s + DAY_S <= now.tv_sec;
}

static bool is_old(const struct stat *st) { return is_past(st->st_atim.tv_sec); }

bool accessed_is_due(const struct stat *st) { return st->st_size && is_old(st); }

/* @path: relative to the store. False: it needs no access, or cannot have it. */
static bool touch(struct store *s, const char *path)
{
	struct stat st;
	char byte;
	int h;

	if (s->ops->stat(s, path, &st) || !S_ISREG(st.st_mode) || !is_old(&st))
		return false;
	h = store_open(s, path, O_RDONLY | STORE_BRIEFLY, 0);
	if (h < 0)
		return false;
	s->ops->pread(s, h, &byte, 1, 0);
	store_close(s, &h);
	return true;
}

static bool touch_in(const struct container *c, const char *path)
{
	char full[CONTAINER_PATH_LEN];

	container_path(c, path, full);
	return touch(c->store, full);
}

static void touch_all(const struct container *c, const struct logset *logs)
{
	char index[CONTAINER_PATH_LEN], last[CONTAINER_PATH_LEN] = "";
	uint32_t first = (uint32_t)sys.getpid() * 2654435761u % logs->nr, fresh = 0;
	uint64_t begin_ns = stamp_coarse_ns();

	for (uint32_t i = 0; i < logs->nr && fresh < FRESH_MAX; i++) {
		if (stamp_coarse_ns() - begin_ns > LONGEST_NS)
			return;
		const struct logset_log *log = &logs->logs[(first + i) % logs->nr];

		name_index_of(log->path, index);
		if (strcmp(index, last)) /* logs of one host follow each other */
			touch_in(c, index);
		memcpy(last, index, sizeof(last));
		if (log->next_off || log->handle) /* read */
			continue;
		fresh = touch_in(c, log->path) ? 0 : fresh + 1;
	}
}

/* Of who has no maps: all that is there, but not for long. */
struct listing {
	const struct container *c;
	uint64_t begin_ns;
};

static int touch_listed(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	const struct listing *l = arg;

	(void)name, (void)kind;
	touch_in(l->c, path);
	return stamp_coarse_ns() - l->begin_ns > LONGEST_NS;
}

static bool is_lock_old(const struct container *c)
{
	char path[CONTAINER_PATH_LEN];
	struct stat st;

	container_path(c, "lock", path);
	return !c->store->ops->stat(c->store, path, &st) && is_old(&st);
}

static bool is_due(const struct inode *ino)
{
	if (!ino->v.stub.has_container || ino->v.stub.in_body || (!ino->v.r.loaded && !ino->v.published_ns))
		return false;
	return ino->access_due || (is_past((int64_t)(ino->v.stub.created_ns / 1000000000)) &&
				   is_lock_old(&ino->c));
}

void accessed_note(struct inode *ino, int fd)
{
	struct listing listing = { &ino->c, stamp_coarse_ns() };
	char path[CONTAINER_PATH_LEN];
	struct stat st;

	if (!is_due(ino))
		return;
	ino->access_due = false;
	if (sys.fstat(fd, &st) || !st.st_nlink || is_old(&st))
		return;
	touch(ino->c.store, PLFS_DIR_NAME "/format");
	container_for_path(&ino->c, path);
	touch(ino->c.store, path);
	touch_in(&ino->c, "lock"); /* first: whoever ends meanwhile leaves the rest to this process */
	if (ino->v.r.loaded && ino->v.r.logs.nr)
		touch_all(&ino->c, &ino->v.r.logs);
	else
		container_list_there(&ino->c, touch_listed, &listing);
}
