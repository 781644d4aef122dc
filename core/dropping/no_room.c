/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looks where live files are, for an error line.
 */
#include "core/dropping/no_room.h"

#include "core/backend/container_dirs.h"
#include "core/backend/names.h"
#include "core/backend/spread_store.h"

#include <stdio.h>

bool no_room_for(const struct container *c, const char *live, int err, char *text, size_t len)
{
	char log[CONTAINER_PATH_LEN], full[CONTAINER_PATH_LEN], top[PLACE_PATH_LEN];

	if (err != -ENOSPC && err != -EDQUOT)
		return false;
	name_log_of_live(live, log);
	container_path(c, log, full);
	if (!c->store->base || spread_where(c->store, full, top) || !*top)
		return false;
	snprintf(text, len,
		 "the log of a killed process cannot be closed in %s: %s; plfs drain --to=home FILE makes room there, or plfs flatten FILE saves it",
		 top, strerror(-err));
	return true;
}

struct looking {
	const struct container *c;
	int err;
	char *text;
	size_t len;
};

static int look(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	const struct looking *g = arg;

	(void)name;
	return kind == DROPPING_LIVE && no_room_for(g->c, path, g->err, g->text, g->len);
}

bool no_room_for_any(const struct container *c, int err, char *text, size_t len)
{
	struct looking g = { c, err, text, len };

	return (err == -ENOSPC || err == -EDQUOT) && container_list_there(c, look, &g) > 0;
}
