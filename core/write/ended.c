/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Closed logs near: who moves them.
 */
#include "core/write/ended.h"

#include "core/backend/helper.h"
#include "core/backend/names.h"
#include "core/base/msg.h"
#include "core/dropping/carry.h"

#include <stdio.h>

/* With the last log of the host goes its near.HOST. */
static void move_home(const struct container *c, const char *path)
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
}

void ended_near(const struct container *c, const char *path)
{
	const struct place_settings *ps = c->store->near;
	int saved ERRNO_KEPT = errno;

	if (!ps)
		return;
	if (ps->drain == DRAIN_CLOSE)
		move_home(c, path);
	else
		helper_start(ps);
}
