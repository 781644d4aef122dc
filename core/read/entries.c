/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The times at which directories changed, by their handles. The kernel sets these itself, so no program can
 * set them back.
 */
#include "core/read/entries.h"

#include "core/backend/container_dirs.h"
#include "core/base/sys.h"

#include <stdio.h>

#define ROUNDED_NS INT64_C(3000000000) /* of a file system that knows no nanoseconds */

/* The clock of which file systems take their times. */
struct timespec entries_now(void)
{
	struct timespec now = { 0 }; /* at which nothing has rested */

	sys.clock_gettime(CLOCK_REALTIME_COARSE, &now);
	return now;
}

/* What changes after @began has a later time than @changed then. */
static bool had_rested(const struct timespec *changed, const struct timespec *began)
{
	int64_t s = began->tv_sec - changed->tv_sec, ns = s * 1000000000 + began->tv_nsec - changed->tv_nsec;

	return ns > (changed->tv_nsec % 1000 ? 0 : ROUNDED_NS);
}

void entries_forget(struct entries *e, const struct container *c)
{
	e->known = false;
	while (e->nr)
		store_close(c->store, &e->dirs[--e->nr].h);
}

struct note {
	struct entries *e;
	const struct container *c;
	const struct timespec *began;
};

/* 0; 1: nothing can be known. */
static int note(struct note *n, const char *path)
{
	struct store *s = n->c->store;
	struct entries_dir *dir = &n->e->dirs[n->e->nr];
	struct stat st;

	if (n->e->nr == ENTRIES_DIRS_MAX)
		return 1;
	dir->h = store_open(s, path, O_RDONLY | O_DIRECTORY, 0);
	if (dir->h < 0)
		return 1;
	store_keep(s, &dir->h);
	n->e->nr++;
	if (s->ops->fstat(s, dir->h, &st) || !had_rested(&st.st_ctim, n->began))
		return 1;
	dir->changed = st.st_ctim;
	return 0;
}

static int note_hostdir(void *arg, const char *name)
{
	struct note *n = arg;
	char path[CONTAINER_PATH_LEN];

	if (!container_is_hostdir(name, strlen(name)))
		return 0;
	container_path(n->c, name, path);
	return note(n, path);
}

void entries_note(struct entries *e, const struct container *c, const struct timespec *began)
{
	struct note n = { .e = e, .c = c, .began = began };
	int ret;

	entries_forget(e, c);
	ret = note(&n, c->dir);
	if (!ret)
		ret = c->store->ops->list(c->store, c->dir, note_hostdir, &n);
	e->known = !ret;
	if (ret)
		entries_forget(e, c);
}

bool entries_rest(const struct entries *e, const struct container *c)
{
	struct stat st;

	for (unsigned i = 0; e->known && i < e->nr; i++)
		if (c->store->ops->fstat(c->store, e->dirs[i].h, &st) ||
		    st.st_ctim.tv_sec != e->dirs[i].changed.tv_sec ||
		    st.st_ctim.tv_nsec != e->dirs[i].changed.tv_nsec)
			return false;
	return e->known;
}
