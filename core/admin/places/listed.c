/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of logs.
 */
#include "core/admin/places/listed.h"

#include "core/backend/container_dirs.h"
#include "core/backend/names.h"
#include "core/base/alloc.h"
#include "core/base/vec.h"

int listed_add(struct listed *l, const char *path)
{
	char **v = vec_room(l->v, &l->cap, l->nr + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	l->v = v;
	v[l->nr] = mem_strdup(path);
	return v[l->nr] ? (l->nr++, 0) : -ENOMEM;
}

static int note_log(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	(void)name;
	return kind == DROPPING_DATA ? listed_add(arg, path) : 0;
}

int listed_take(struct listed *l, const struct container *c)
{
	*l = (struct listed){ .nr = 0 };
	return container_list(c, note_log, l);
}

int listed_take_there(struct listed *l, const struct container *c)
{
	*l = (struct listed){ .nr = 0 };
	return container_list_there(c, note_log, l);
}

void listed_release(struct listed *l)
{
	for (size_t i = 0; i < l->nr; i++)
		mem_free(l->v[i]);
	mem_free(l->v);
}

bool listed_has_live(const struct container *c, const char *log)
{
	char live[CONTAINER_PATH_LEN], full[CONTAINER_PATH_LEN];
	struct stat st;

	name_live_of_log(log, live);
	container_path(c, live, full);
	return !c->store->ops->stat(c->store, full, &st);
}

bool listed_has(const struct listed *l, const char *path)
{
	for (size_t i = 0; i < l->nr; i++)
		if (!strcmp(l->v[i], path))
			return true;
	return false;
}
