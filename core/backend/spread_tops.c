/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The trees of one container in other backends.
 */
#include "core/backend/spread_tops.h"

#include "core/backend/container.h"
#include "core/backend/names.h"
#include "core/base/alloc.h"

#include <stdio.h>

#define TOPS_MAX 16 /* of one container; more stay, for plfs gc --places */

struct spread_tops {
	struct store *s;
	const char *container;
	char hostdir[CONTAINER_PATH_LEN];
	struct place_dir tops[TOPS_MAX];
	char *paths[TOPS_MAX];
	unsigned nr;
};

static bool has_top(const struct spread_tops *t, const char *path)
{
	for (unsigned i = 0; i < t->nr; i++)
		if (!strcmp(t->paths[i], path))
			return true;
	return false;
}

/* Of many hosts' files that lead to one backend the first is enough. */
static int find_top(void *arg, const char *name)
{
	struct spread_tops *t = arg;
	struct place p;

	if (!name_spread_slot(name) || t->nr == TOPS_MAX || place_read_as(t->s, t->hostdir, name, &p) ||
	    has_top(t, p.path))
		return 0;
	t->paths[t->nr] = mem_strdup(p.path);
	if (!t->paths[t->nr])
		return 0;
	if (place_enter_as(t->s, t->hostdir, name, &t->tops[t->nr], true))
		mem_free(t->paths[t->nr]);
	else
		t->nr++;
	return 0;
}

static int find_in_hostdir(void *arg, const char *name)
{
	struct spread_tops *t = arg;

	if (strncmp(name, "hostdir.", 8) ||
	    snprintf(t->hostdir, sizeof(t->hostdir), "%s/%s", t->container, name) >= (int)sizeof(t->hostdir))
		return 0;
	t->s->ops->list(t->s, t->hostdir, find_top, t);
	return 0;
}

struct spread_tops *spread_tops_open(struct store *s, const char *path)
{
	struct spread_tops *t = mem_zalloc(sizeof(*t));
	struct store bare = store_bare(s);

	if (!t)
		return NULL;
	t->s = &bare;
	t->container = path;
	bare.ops->list(&bare, path, find_in_hostdir, t);
	if (t->nr)
		return t;
	mem_free(t);
	return NULL;
}

void spread_tops_close(struct spread_tops *t, const char *path, dirs_known *known)
{
	for (unsigned i = 0; t && i < t->nr; i++) {
		if (known)
			store_remove_tree(&t->tops[i].store, strchr(path, '/') + 1, known);
		place_leave(&t->tops[i]);
		mem_free(t->paths[i]);
	}
	mem_free(t);
}
