/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Listing the logs of a container.
 */
#include "core/admin/places/logs.h"

#include "core/backend/container_dirs.h"
#include "core/backend/names.h"
#include "core/base/alloc.h"
#include "core/base/vec.h"

static int note_log(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	struct logs *logs = arg;
	char **v;

	(void)name;
	if (kind != DROPPING_DATA)
		return 0;
	v = vec_room(logs->v, &logs->cap, logs->nr + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	logs->v = v;
	v[logs->nr] = mem_strdup(path);
	return v[logs->nr] ? (logs->nr++, 0) : -ENOMEM;
}

int logs_list(struct logs *logs, const struct container *c) { return container_list(c, note_log, logs); }

void logs_release(struct logs *logs)
{
	for (size_t i = 0; i < logs->nr; i++)
		mem_free(logs->v[i]);
	mem_free(logs->v);
	*logs = (struct logs){ .nr = 0 };
}

bool logs_has_live(const struct container *c, const char *log)
{
	char live[CONTAINER_PATH_LEN], full[CONTAINER_PATH_LEN];
	struct stat st;

	name_live_of_log(log, live);
	container_path(c, live, full);
	return !c->store->ops->stat(c->store, full, &st);
}

void logs_note_open(struct drain_open *open, const char *log)
{
	char live[CONTAINER_PATH_LEN];

	name_live_of_log(log, live);
	open->nr++;
	open->nr_dead += !name_is_running(name_of(live));
}
