/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Removing notes that killed processes have left.
 */
#include "core/admin/repair/notes.h"

#include "core/backend/container_dirs.h"
#include "core/backend/spread_open.h"

#include <stdio.h>

static int find_live(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	(void)arg, (void)path, (void)name;
	return kind == DROPPING_LIVE ? -EBUSY : 0;
}

static int drop_one(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	const struct container *c = arg;
	char dir[CONTAINER_PATH_LEN];

	if (kind != DROPPING_SPREAD)
		return 0;
	container_path(c, path, dir);
	*strrchr(dir, '/') = '\0';
	return spread_forget_notes(c->store, dir, name);
}

int notes_drop(const struct container *c)
{
	int ret = container_list_there(c, find_live, NULL);

	return ret ? ret : container_list_there(c, drop_one, (void *)c);
}
