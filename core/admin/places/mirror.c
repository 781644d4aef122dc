/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies of the logs of one container.
 */
#include "core/admin/places/mirror.h"

#include "core/admin/places/grouping.h"
#include "core/admin/places/listed.h"
#include "core/admin/places/mend.h"
#include "core/admin/places/pace.h"
#include "core/admin/places/tokens.h"
#include "core/backend/placed.h"
#include "core/dropping/copies.h"

#include <stdio.h>

/* One log in one place. 0: also if it has to wait; -errno: no other log will do better there. */
static int mirror_log(const struct container *c, const char *log, const struct place_settings *ps,
		      struct plfs_drain *d)
{
	struct carry carry = {
		.copied = pace_copied, .arg = d, .piece = pace_piece(d),
		.direct = pace_is_direct(d),
	};
	int token = token_take(c->store, ps->writers, d);
	int ret = token == -ETIME || pace_is_over(d) ? -ETIME : copies_make(c, log, ps, &carry);

	token_give(c->store, token);
	d->nr_copies += carry.nr_logs;
	if (!drain_counts(d, ret))
		return 0;
	drain_not_copied(d, c, log, ps->near, ret);
	return ret == -EIO || ret == -EBADMSG ? 0 : ret;
}

/* Before it has a copy it comes home. */
static bool is_near(const struct container *c, const char *log)
{
	char full[CONTAINER_PATH_LEN];

	container_path(c, log, full);
	return placed_is_near(c->store, full);
}

int mirror_open(const struct container *c, struct plfs_drain *d, struct drain_open *open)
{
	struct listed logs = { .nr = 0 };
	int ret = c->store->spares ? listed_take_there(&logs, c) : 0;

	for (size_t k = 0; k < logs.nr; k++)
		if (listed_has_live(c, logs.v[k]) && !is_near(c, logs.v[k]))
			drain_note_open(d, c, logs.v[k], open);
	listed_release(&logs);
	return ret == -ENOENT ? 0 : ret;
}

int mirror_container(const struct container *c, uint64_t void_ns, struct plfs_drain *d)
{
	const struct spare_settings *ss = c->store->spares;
	struct listed logs = { .nr = 0 };
	int ret, one;

	if (!ss)
		return 0;
	if (ss->parity)
		return grouping_container(c, void_ns, d);
	ret = listed_take(&logs, c);
	for (unsigned i = 0; i < ss->nr; i++)
		for (size_t k = 0; k < logs.nr; k++) {
			if (listed_has_live(c, logs.v[k])) /* who closes it has it copied */
				continue;
			if (is_near(c, logs.v[k])) {
				d->nr_left += d->closed_only;
				continue;
			}
			one = mirror_log(c, logs.v[k], &ss->places[i], d);
			ret = ret ? ret : one;
			if (one)
				break;
		}
	listed_release(&logs);
	return ret == -ENOENT ? 0 : ret;
}
