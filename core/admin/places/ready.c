/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Listing a container near: which logs have a live file beside them, and whose.
 */
#include "core/admin/places/ready.h"

#include "core/admin/places/hostdirs.h"
#include "core/backend/container_dirs.h"
#include "core/backend/names.h"
#include "core/base/io.h"
#include "core/dropping/datalog.h"
#include "core/store/dirs.h"

struct ready {
	struct plfs_drain *d;
	unsigned nr_closed, nr_open, nr_begun;
};

/* Whether there is a live file beside the log. */
static bool has_live(int fd, const char *log)
{
	char path[CONTAINER_PATH_LEN], live[CONTAINER_PATH_LEN];
	struct stat st;

	if (snprintf(path, sizeof(path), "./%s", log) >= (int)sizeof(path))
		return false;
	name_live_of_log(path, live);
	return !sys.fstatat(fd, live, &st, AT_SYMLINK_NOFOLLOW);
}

static int look(void *arg, int fd, const char *name, unsigned char type)
{
	struct ready *r = arg;
	struct stat st;

	(void)type;
	if (name_kind(name) == DROPPING_DATA && !has_live(fd, name)) {
		/* one without a byte is being made: its live file comes later */
		if (sys.fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) || !datalog_len(&st))
			r->nr_begun++;
		else
			r->nr_closed++;
	} else if (name_kind(name) == DROPPING_LIVE) {
		r->nr_open++;
		r->d->nr_dead += !name_is_running(name);
	}
	return 0;
}

bool ready_look(int dir, const char *name, struct plfs_drain *d)
{
	struct ready r = { .d = d };

	if (!hostdirs_each(dir, name, look, &r))
		return false;
	d->nr_open += r.nr_open;
	return r.nr_closed || (!r.nr_open && !r.nr_begun);
}
