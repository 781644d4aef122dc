/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Closed logs near: who moves them.
 */
#include "core/write/ended.h"

#include "core/backend/helper.h"
#include "core/backend/placed.h"
#include "core/backend/queue.h"
#include "core/backend/names.h"
#include "core/base/msg.h"
#include "core/dropping/carry.h"
#include "core/dropping/copies.h"
#include "core/write/exit_wait.h"

#include <stdio.h>
#include <unistd.h>

/* Neither near nor at home: it is void, and was removed; -EREMOTE: or its place is lost. */
static bool is_void(const struct container *c, const char *path)
{
	char full[CONTAINER_PATH_LEN];
	struct stat st;

	container_path(c, path, full);
	return c->store->ops->stat(c->store, full, &st) != -EREMOTE;
}

/* With the last log of the host goes its near.HOST. */
static int move_home(const struct container *c, const char *path)
{
	struct carry carry = { .bytes = 0 };
	char hostdir[CONTAINER_PATH_LEN];
	const char *name = name_of(path), *host;
	size_t host_len;
	int ret = carry_log(c, path, &carry);

	if (!ret) {
		host = name_host(name, &host_len);
		snprintf(hostdir, sizeof(hostdir), "%.*s", (int)(name - path - 1), path);
		carry_end(c, hostdir, host, host_len);
	} else {
		msg_debug(MSG_WRITE, "%s/%s: stays near: %s", c->dir, path, strerror(-ret));
	}
	if (ret == -ENOENT && is_void(c, path)) /* or another process has moved it */
		return 0;
	return ret == -ENOENT || ret == -EREMOTE ? -EIO : ret;
}

void ended_copied(const struct container *c, const char *path)
{
	const struct spare_settings *ss = c->store->spares;
	struct store home = placed_home(c->store);
	int saved ERRNO_KEPT = errno;
	struct carry carry = { .bytes = 0 };
	int h;

	if (c->give || c->uid != geteuid() || ss->drain == DRAIN_NONE) /* copies are their owner's */
		return;
	for (unsigned i = 0; ss->drain == DRAIN_CLOSE && i < ss->nr; i++)
		copies_make(c, path, &ss->places[i], &carry);
	if (ss->drain == DRAIN_CLOSE)
		return;
	h = queue_add(&home, c->id);
	if (h >= 0)
		helper_copy(&home, h, &ss->places[0], ss->map);
	if (h >= 0)
		store_close(&home, &h);
}

int ended_near(const struct container *c, const char *path)
{
	const struct place_settings *ps = c->store->near;
	int saved ERRNO_KEPT = errno;
	int ret = 0;

	if (!ps)
		return 0;
	if (ps->drain == DRAIN_CLOSE || ps->release == RELEASE_HOME)
		ret = move_home(c, path);
	if ((ret || ps->release != RELEASE_HOME) && helper_start(ps) && ps->exit_wait)
		exit_wait_for(c, path);
	return ps->release == RELEASE_HOME ? ret : 0;
}
