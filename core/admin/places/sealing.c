/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sealing directories of logs in other backends.
 */
#include "core/admin/places/grouped.h"

#include "core/backend/container_dirs.h"
#include "core/backend/name_list.h"
#include "core/backend/names.h"
#include "core/backend/sealed.h"
#include "core/backend/spread_store.h"
#include "core/base/alloc.h"

#include <stdio.h>

struct sealing {
	struct grouped *g;
	int ret;
};

struct counting {
	const struct name_list *names;
	size_t nr; /* of them, so far */
};

static int count(void *arg, const char *name)
{
	struct counting *seen = arg;

	if (!name_list_has(seen->names, name))
		return 1;
	seen->nr++;
	return 0;
}

/* Whether it is sealed with just these names. */
static bool is_sealed(struct grouped *g, const char *dir, const char *spread, const struct name_list *names)
{
	struct counting seen = { .names = names };

	return !sealed_list(g->c->store, dir, spread, count, &seen) && seen.nr == names->nr;
}

/* Whether all there is closed and covered, as it is now; @names: to be released. */
static bool is_covered(struct grouped *g, const char *dir, const char *spread, struct name_list *names)
{
	const char *hostdir = strrchr(dir, '/') + 1;
	bool covered = !spread_list(g->c->store, dir, spread, names);

	for (size_t i = 0; i < names->nr && covered; i++) {
		char path[CONTAINER_PATH_LEN], full[CONTAINER_PATH_LEN];
		const struct grouped_log *log;
		struct stat st;

		snprintf(path, sizeof(path), "%.64s/%.180s", hostdir, names->v[i]);
		log = name_kind(names->v[i]) == DROPPING_DATA ? grouped_find(g, path) : NULL;
		container_path(g->c, path, full);
		covered = log && log->covered && !g->c->store->ops->stat(g->c->store, full, &st) &&
			  (uint64_t)st.st_size == log->len;
	}
	return covered;
}

static char *text_of(const struct name_list *names, size_t *len)
{
	char *text;

	*len = 0;
	for (size_t i = 0; i < names->nr; i++)
		*len += strlen(names->v[i]) + 1;
	text = mem_alloc(*len + 1);
	for (size_t i = 0, at = 0; text && i < names->nr; i++)
		at += (size_t)sprintf(text + at, "%s\n", names->v[i]);
	return text;
}

/* All is looked at anew behind sealed_begin(): who makes a log meanwhile is seen, or removes the file. */
static int seal(struct grouped *g, const char *dir, const char *spread)
{
	struct store home = store_bare(g->c->store);
	struct name_list names = { .nr = 0 };
	char *text = NULL;
	size_t len;
	int ret = 0, h = sealed_begin(g->c->store, dir, spread, container_file_mode(g->c, false));

	if (h < 0)
		return h;
	if (g->c->give)
		store_give(&home, h, g->c->uid);
	if (is_covered(g, dir, spread, &names)) {
		text = text_of(&names, &len);
		ret = text ? sealed_end(g->c->store, dir, h, text, len) : -ENOMEM;
	} else {
		ret = sealed_break(g->c->store, dir, spread);
	}
	store_close(&home, &h);
	mem_free(text);
	name_list_release(&names);
	return ret;
}

static int look_at(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	struct sealing *s = arg;
	struct name_list names = { .nr = 0 };
	char dir[CONTAINER_PATH_LEN], hostdir[CONTAINER_PATH_LEN];
	int ret = 0;

	if (kind != DROPPING_SPREAD)
		return 0;
	snprintf(hostdir, sizeof(hostdir), "%.*s", (int)(name_of(path) - 1 - path), path);
	container_path(s->g->c, hostdir, dir);
	if (is_covered(s->g, dir, name, &names) && !is_sealed(s->g, dir, name, &names))
		ret = seal(s->g, dir, name);
	name_list_release(&names);
	s->ret = s->ret ? s->ret : ret;
	return 0;
}

int grouped_seal(struct grouped *g)
{
	struct sealing s = { .g = g };
	int ret = container_list(g->c, look_at, &s);

	return ret ? ret : s.ret;
}
