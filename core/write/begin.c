/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All ranks of a host begin at once: struct place_first.
 */
#include "core/write/begin.h"

#include "core/backend/container_dirs.h"
#include "core/backend/names.h"
#include "core/dropping/notice.h"

#include <stdio.h>

int begin_notice(struct begin *b)
{
	if (b->notice == -ENOENT)
		b->notice = notice_open_here(b->c);
	return b->notice < 0 ? b->notice : 0;
}

static int open_notice(void *arg) { return begin_notice(arg); }

void begin_near(struct begin *b)
{
	const struct place_first first = { open_notice, b };
	const struct container *c = b->c;
	char hostdir[32], dir[CONTAINER_PATH_LEN];

	if (b->held || !c->near)
		return;
	snprintf(hostdir, sizeof(hostdir), "hostdir.%u", name_hostdir(c));
	container_path(c, hostdir, dir);
	b->held = !placed_hold(c->store, dir, container_file_mode(c, false), &first, &b->near);
}

void begin_end(struct begin *b)
{
	if (b->notice >= 0)
		store_close(b->c->store, &b->notice);
	if (b->held)
		placed_release(&b->near);
}
