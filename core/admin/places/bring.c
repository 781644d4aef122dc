/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs drain --to home: logs that are in other backends.
 */
#include "core/admin/places/bring.h"

#include "core/admin/places/mend.h"
#include "core/admin/places/pace.h"
#include "core/admin/places/tokens.h"
#include "core/backend/container_dirs.h"
#include "core/backend/names.h"
#include "core/backend/spread_store.h"
#include "core/dropping/carry.h"

struct bringing {
	const struct container *c;
	struct plfs_drain *d;
};

static bool is_there(const struct container *c, const char *log)
{
	char full[CONTAINER_PATH_LEN], top[PLACE_PATH_LEN];

	container_path(c, log, full);
	return !spread_where(c->store, full, top) && *top;
}

static int bring_log(const struct container *c, const char *log, struct plfs_drain *d)
{
	struct carry carry = {
		.copied = pace_copied, .arg = d, .piece = pace_piece(d),
		.direct = pace_is_direct(d),
	};
	int token = token_take(c->store, 0, d);
	int ret = token == -ETIME || pace_is_over(d) ? -ETIME : carry_home(c, log, &carry);

	token_give(c->store, token);
	d->nr_logs += carry.nr_logs;
	if (!drain_counts(d, ret))
		return 0;
	drain_trouble(d, c->dir, log, strerror(-ret));
	return ret;
}

static int end_backend(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	struct bringing *b = arg;
	int ret;

	(void)name;
	if (kind != DROPPING_SPREAD)
		return 0;
	ret = carry_home_end(b->c, path);
	if (!ret || ret == -ENOENT || ret == -EBUSY) /* what is there was counted */
		return 0;
	b->d->nr_left++;
	drain_trouble(b->d, b->c->dir, path,
		      ret == -EREMOTE ? "its backend is not there, or cannot be read" : strerror(-ret));
	return 0;
}

int bring_container(const struct container *c, struct plfs_drain *d, struct drain_open *open)
{
	struct bringing b = { c, d };
	struct listed logs;
	int ret = listed_take_there(&logs, c), one;

	for (size_t i = 0; i < logs.nr; i++) {
		if (!is_there(c, logs.v[i]))
			continue;
		if (listed_has_live(c, logs.v[i])) {
			drain_note_open(d, c, logs.v[i], open);
			continue;
		}
		one = bring_log(c, logs.v[i], d);
		ret = ret ? ret : one;
	}
	one = container_list_there(c, end_backend, &b);
	listed_release(&logs);
	return ret == -ENOENT ? 0 : ret ? ret : one == -ENOENT ? 0 : one;
}
