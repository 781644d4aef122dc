/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs drain of one container: its logs, then near.HOST of each place that has none any more.
 */
#include "core/admin/places/drained.h"

#include "core/admin/places/listed.h"
#include "core/admin/places/mend.h"
#include "core/admin/places/pace.h"
#include "core/admin/places/tokens.h"
#include "core/admin/places/yield.h"
#include "core/backend/container_dirs.h"
#include "core/backend/names.h"
#include "core/backend/placed.h"
#include "core/dropping/carry.h"

#include <stdio.h>

struct draining {
	const struct container *c;
	struct plfs_drain *d;
	struct drain_open *open;
	unsigned writers; /* of the mapping */
	bool stays;       /* logs that are home stay in a place that is read-only */
	uint64_t found;   /* by drains of other containers: count_found() */
};

static int drain_log(struct draining *g, const char *log)
{
	struct carry carry = {
		.copied = pace_copied, .arg = g->d, .piece = pace_piece(g->d),
		.direct = pace_is_direct(g->d), .keep = g->d->keep,
	};
	char full[CONTAINER_PATH_LEN];
	int ret, token;

	container_path(g->c, log, full);
	if (!placed_is_near(g->c->store, full))
		return 0;
	if (listed_has_live(g->c, log)) {
		drain_note_open(g->d, g->c, log, g->open);
		return 0;
	}
	yield_to_writers(g->d);
	token = token_take(g->c->store, g->writers, g->d);
	ret = token == -ETIME || pace_is_over(g->d) ? -ETIME : carry_log(g->c, log, &carry);
	token_give(g->c->store, token);
	g->d->nr_logs += carry.nr_logs;
	if (ret == -EBUSY && !placed_is_near(g->c->store, full))
		return 0; /* another drain has moved it */
	if (carry.stays) {
		g->stays = true;
		drain_trouble(g->d, g->c->dir, log,
			      "is in the backend, and stays in its place too, as that is read-only");
		return 0;
	}
	if (!drain_counts(g->d, ret))
		return 0;
	drain_trouble(g->d, g->c->dir, log, strerror(-ret));
	return ret;
}

static uint64_t count_found(const struct draining *g)
{
	return g->d->nr_left + g->d->nr_lost + g->open->nr;
}

static int find_data(void *arg, const char *name)
{
	(void)arg;
	return name_kind(name) == DROPPING_DATA;
}

/* Also if the place cannot be looked at. */
static bool may_have_logs(const struct container *c, const char *hostdir, const char *host, size_t host_len)
{
	struct place_dir near;
	int ret = place_enter(c->store, hostdir, host, host_len, &near);

	if (ret)
		return ret != -ENOENT && ret != -EREMOTE;
	ret = near.store.ops->list(&near.store, ".", find_data, NULL);
	place_leave(&near);
	return ret != 0;
}

/*
 * near.HOST stays. A log for which the place could not be looked at was taken for one at home: what is there
 * still is found now.
 */
static void note_left(struct draining *g, const char *path, const char *hostdir, const char *host,
		      size_t host_len)
{
	if (g->stays || g->d->closed_only || count_found(g) > g->found ||
	    !may_have_logs(g->c, hostdir, host, host_len))
		return;
	g->d->nr_left++;
	drain_trouble(g->d, g->c->dir, path, "leads to logs that are in the place still");
}

/* One near.HOST. Where the place is not here its logs are left to that host. */
static int end_place(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	struct draining *g = arg;
	char hostdir[CONTAINER_PATH_LEN], dir[CONTAINER_PATH_LEN];
	struct place p;
	size_t len;
	const char *host;
	int ret;

	if (kind != DROPPING_NEAR)
		return 0;
	host = name_host(name, &len);
	snprintf(hostdir, sizeof(hostdir), "%.*s", (int)(name_of(path) - path - 1), path);
	ret = carry_end(g->c, hostdir, host, len);
	container_path(g->c, hostdir, dir);
	if (ret != -EREMOTE) {
		if (ret && ret != -ENOENT)
			note_left(g, path, dir, host, len);
		return 0;
	}
	ret = place_read(g->c->store, dir, host, len, &p);
	if (ret != -EBADMSG && g->d->of_place)
		return 0;
	g->d->nr_elsewhere++;
	drain_trouble(g->d, g->c->dir, path,
		ret == -EBADMSG ?
			"damaged: what it leads to is found by plfs drain with the name of the place, on its host" :
			"leads to a place that is not on this host");
	return 0;
}

int drain_container(const struct container *c, struct plfs_drain *d, struct drain_open *open)
{
	const struct place_settings *ps = c->store->near;
	struct draining g = { .c = c, .d = d, .open = open, .writers = ps ? ps->writers : 0 };
	struct listed logs;
	int ret = listed_take(&logs, c), one;

	g.found = count_found(&g);
	for (size_t i = 0; i < logs.nr; i++) {
		one = drain_log(&g, logs.v[i]);
		ret = ret ? ret : one;
	}
	one = container_list(c, end_place, &g);
	listed_release(&logs);
	return ret == -ENOENT ? 0 : ret ? ret : one == -ENOENT ? 0 : one;
}
