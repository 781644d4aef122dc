/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups of logs for parity.
 */
#include "core/admin/places/grouping.h"

#include "core/admin/places/grouped.h"
#include "core/admin/places/mend.h"
#include "core/admin/places/pace.h"
#include "core/admin/places/tokens.h"
#include "core/backend/container_dirs.h"
#include "core/backend/names.h"
#include "core/backend/spare.h"
#include "core/backend/spread.h"
#include "core/base/alloc.h"
#include "core/base/as_owner.h"
#include "core/dropping/parities.h"

#include <stdio.h>
#include <stdlib.h>

/* The logs of one backend that are to be covered, the longest first. */
struct bucket {
	struct grouped_log **v;
	size_t nr, next;
};

struct grouping {
	struct grouped g;
	struct plfs_drain *d;
	int record; /* of parity_lock() */
	struct bucket buckets[GROUPED_TOPS_MAX];
	struct grouped_log **logs;                     /* of all buckets */
	unsigned own[CONFIG_BACKENDS_MAX], nr_own;     /* backends of the mapping, in g.tops; 0: home */
	uint64_t load[CONFIG_BACKENDS_MAX];            /* bytes of parity that each was given */
	bool gone[CONFIG_BACKENDS_MAX];
};

/* ---- which ---- */

static int by_length(const void *a, const void *b)
{
	const struct grouped_log *x = *(struct grouped_log *const *)a, *y = *(struct grouped_log *const *)b;

	return x->top != y->top ? (x->top < y->top ? -1 : 1) : x->len < y->len ? 1 : x->len > y->len ? -1 : 0;
}

static bool is_wanted(const struct grouped_log *log) { return !log->ret && !log->covered; }

/* -ENOMEM */
static int fill_buckets(struct grouping *gr)
{
	size_t nr = 0;

	mem_free(gr->logs);
	memset(gr->buckets, 0, sizeof(gr->buckets));
	gr->logs = mem_alloc((gr->g.listed.nr + 1) * sizeof(struct grouped_log *));
	if (!gr->logs)
		return -ENOMEM;
	for (size_t i = 0; i < gr->g.listed.nr; i++)
		if (is_wanted(&gr->g.logs[i]))
			gr->logs[nr++] = &gr->g.logs[i];
	qsort(gr->logs, nr, sizeof(*gr->logs), by_length);
	for (size_t i = 0; i < nr; i++) {
		struct bucket *b = &gr->buckets[gr->logs[i]->top];

		b->v = b->nr ? b->v : &gr->logs[i];
		b->nr++;
	}
	return 0;
}

/* The backend with most logs that is not among the @nr first of @from. */
static struct bucket *largest(struct grouping *gr, struct bucket *const *from, unsigned nr)
{
	struct bucket *best = NULL;

	for (unsigned i = 0; i < gr->g.nr_tops; i++) {
		struct bucket *b = &gr->buckets[i];
		bool used = b->nr == b->next;

		for (unsigned k = 0; k < nr && !used; k++)
			used = from[k] == b;
		if (!used && (!best || b->nr - b->next > best->nr - best->next))
			best = b;
	}
	return best;
}

/* ---- where ---- */

/* One that lacks what leads there may be the directory below a mount point. */
static int find_gone(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	struct grouping *gr = arg;
	const struct container *c = gr->g.c;
	char dir[CONTAINER_PATH_LEN];
	struct place_dir to;
	struct place p;

	if (kind != DROPPING_SPREAD)
		return 0;
	snprintf(dir, sizeof(dir), "%s/%.*s", c->dir, (int)(name_of(path) - 1 - path), path);
	if (place_read_as(c->store, dir, name, &p))
		return 0;
	if (!spread_enter(c->store, dir, name, NULL, &to)) {
		place_leave(&to);
		return 0;
	}
	for (unsigned i = 1; i < gr->nr_own; i++)
		gr->gone[i] |= grouped_top(&gr->g, p.path) == gr->own[i];
	return 0;
}

static void find_own(struct grouping *gr)
{
	const struct spread_settings *ss = gr->g.c->store->spread;
	char top[PLACE_PATH_LEN];

	gr->own[gr->nr_own++] = 0;
	for (unsigned i = 0; i < ss->nr; i++)
		gr->own[gr->nr_own++] = parity_top(gr->g.c, &ss->others[i], top) ?
						0 : grouped_top(&gr->g, top);
	container_list(gr->g.c, find_gone, gr);
}

/* The backend of the mapping with the least parity that has none of these logs; -1: none is there. */
static int pick_holder(const struct grouping *gr, struct grouped_log *const *logs, unsigned nr)
{
	int best = -1;

	for (unsigned i = 0; i < gr->nr_own; i++) {
		bool used = gr->gone[i] || (i && !gr->own[i]);

		for (unsigned k = 0; k < nr && !used; k++)
			used = logs[k]->top == gr->own[i];
		if (!used && (best < 0 || gr->load[i] < gr->load[best]))
			best = (int)i;
	}
	return best;
}

/* ---- making ---- */

static void not_made(struct grouping *gr, const char *log, int err)
{
	char why[100];

	snprintf(why, sizeof(why), "no parity: %s",
		 err == -ENXIO ? "another backend is not there" : strerror(-err));
	drain_trouble(gr->d, gr->g.c->dir, log, why);
}

static void leave(struct grouping *gr, struct grouped_log *const *logs, unsigned nr, int err)
{
	gr->d->nr_left += nr;
	for (unsigned i = 0; i < nr; i++) {
		logs[i]->ret = err; /* not once more */
		if (err != -ETIME)
			not_made(gr, logs[i]->path, err);
	}
}

static int make_in(struct grouping *gr, unsigned holder, struct parity_group *group, unsigned *bad)
{
	const struct container *c = gr->g.c;
	struct carry carry = { .copied = pace_copied, .arg = gr->d, .piece = pace_piece(gr->d) };
	const struct place_settings *ps = holder ? &c->store->spread->others[holder - 1] : NULL;
	int token = token_take(c->store, c->store->spares->places[0].writers, gr->d), ret;

	ret = token == -ETIME || pace_is_over(gr->d) ? -ETIME :
						       parities_make(c, gr->record, ps, group, &carry, bad);
	token_give(c->store, token);
	gr->d->nr_parity += carry.nr_logs;
	return ret;
}

/* Whether another backend may do. */
static bool is_of_holder(int ret)
{
	return ret == -ENXIO || ret == -ENOSPC || ret == -EDQUOT || ret == -EROFS || ret == -EACCES ||
	       ret == -EPERM;
}

/* A parity file of these logs. 0; -EAGAIN: logs are to be looked at again; -ETIME, -ENOMEM: the end. */
static int make(struct grouping *gr, struct grouped_log *const *logs, unsigned nr)
{
	struct parity_group *group = mem_zalloc(sizeof(*group));
	unsigned bad = 0;
	bool tried = false;
	int holder, ret = group ? -ENXIO : -ENOMEM;

	for (unsigned i = 0; i < nr && group; i++) {
		group->logs[group->nr].len = logs[i]->len;
		snprintf(group->logs[group->nr++].path, sizeof(group->logs->path), "%s", logs[i]->path);
	}
	while (is_of_holder(ret) && (holder = pick_holder(gr, logs, nr)) >= 0) {
		ret = make_in(gr, (unsigned)holder, group, &bad);
		gr->gone[holder] = is_of_holder(ret);
		tried = true;
		gr->load[holder] += ret ? 0 : group->len;
	}
	if (!ret)
		ret = grouped_add(&gr->g, group);
	else if ((ret == -EIO || ret == -EBADMSG || ret == -ENOENT) && bad < nr) {
		gr->d->nr_lost += ret != -ENOENT;
		logs[bad]->ret = ret;
		if (ret != -ENOENT)
			not_made(gr, logs[bad]->path, ret);
		ret = -EAGAIN;
	} else if (is_of_holder(ret) && tried && nr > 1) {
		ret = -EAGAIN; /* with a log less, one of their backends may have the parity */
	} else {
		leave(gr, logs, nr, ret);
	}
	mem_free(group);
	return !ret || ret == -ETIME || ret == -ENOMEM ? ret : -EAGAIN;
}

/* Of a full group: one backend has its parity. */
static unsigned nr_members(const struct grouping *gr)
{
	unsigned nr = 0;

	for (unsigned i = 0; i < gr->nr_own; i++)
		nr += !gr->gone[i];
	return nr > 1 ? (unsigned)min_size(nr - 1, PARITY_LOGS_MAX) : 1;
}

/* One group of those that are left. 0; -ENOENT: none is left; -EAGAIN: as make(). */
static int make_one(struct grouping *gr, bool full)
{
	unsigned max = nr_members(gr), nr = 0;
	struct bucket *from[PARITY_LOGS_MAX], *b;
	struct grouped_log *logs[PARITY_LOGS_MAX];

	while (nr < max && (b = largest(gr, from, nr))) {
		from[nr] = b;
		logs[nr] = b->v[b->next];
		nr++;
	}
	if (!nr || (full && nr < max))
		return -ENOENT;
	for (unsigned i = 0; i < nr; i++)
		from[i]->next++;
	return make(gr, logs, nr);
}

/* What is left waits while others may be closed. */
static void count_waiting(struct grouping *gr)
{
	for (unsigned i = 0; i < gr->g.nr_tops; i++)
		gr->d->nr_waiting += gr->buckets[i].nr - gr->buckets[i].next;
}

static int make_all(struct grouping *gr)
{
	int ret;

	do {
		ret = fill_buckets(gr);
		while (!ret)
			ret = make_one(gr, gr->d->patient);
	} while (ret == -EAGAIN);
	if (ret == -ENOENT && gr->d->patient)
		count_waiting(gr);
	return ret == -ENOENT || ret == -ETIME ? 0 : ret;
}

/* From the last to the first: a group is of no use once later ones have all of it. */
static void drop_spare(struct grouping *gr)
{
	for (size_t i = gr->g.groups.nr; i-- > 0;) {
		if (!grouped_is_spare(&gr->g, i))
			continue;
		parities_drop(gr->g.c, gr->record, &gr->g.groups.v[i]);
		gr->g.states[i] = GROUPED_DEAD;
	}
}

/* What covers, but has lost something that is not there, and is not made good by others. */
static void count_away(struct grouping *gr)
{
	for (size_t i = 0; i < gr->g.groups.nr; i++) {
		const struct parity_group *group = &gr->g.groups.v[i];
		bool again = true;

		if (gr->g.states[i] != GROUPED_AWAY && gr->g.states[i] != GROUPED_NEEDED)
			continue;
		for (unsigned k = 0; k < group->nr; k++)
			again &= grouped_is_again(&gr->g, i, &group->logs[k]);
		if (again)
			continue;
		gr->d->nr_left++;
		drain_trouble(gr->d, gr->g.c->dir, group->file,
			      "this parity, or a log of it, is not there: plfs check says more");
	}
}

/* What nothing covers, in a backend that is not there. */
static void count_bare(struct grouping *gr)
{
	for (size_t i = 0; i < gr->g.listed.nr; i++) {
		const struct grouped_log *log = &gr->g.logs[i];

		if (log->ret != -EREMOTE || log->covered)
			continue;
		gr->d->nr_left++;
		drain_trouble(gr->d, gr->g.c->dir, log->path, "its backend is not there, and it has no parity");
	}
}

/* ---- a user who is not the owner ---- */

/* The file would seem to have what its owner cannot read, nor go on with. */
static bool is_of_another(const struct container *c)
{
	uid_t uid = as_owner_uid();

	return uid && c->uid != CONTAINER_ANYBODY && uid != c->uid;
}

/* By what the groups say: who is not the owner reads no parity file. */
static bool seems_covered(const struct container *c, const struct parity_groups *gs, const char *log)
{
	char full[CONTAINER_PATH_LEN];
	struct stat st;
	int ret;

	container_path(c, log, full);
	ret = c->store->ops->stat(c->store, full, &st);
	for (size_t i = 0; i < gs->nr && !ret; i++)
		if (parity_has(&gs->v[i], log) >= (uint64_t)st.st_size)
			return true;
	return ret == -ENOENT;
}

static int count_uncovered(const struct container *c, struct plfs_drain *d)
{
	struct parity_groups gs;
	struct listed logs;
	int ret = listed_take_there(&logs, c), one = parity_read(c, &gs);
	uint64_t left = d->nr_left;

	for (size_t i = 0; i < logs.nr && !ret && !one; i++)
		d->nr_left += !listed_has_live(c, logs.v[i]) && !seems_covered(c, &gs, logs.v[i]);
	if (d->nr_left != left)
		drain_trouble(d, c->dir, PARITY_NAME, "not all has parity: only the file's owner and root make it");
	parity_release(&gs);
	listed_release(&logs);
	return ret ? ret : one;
}

static int make_groups(const struct container *c, uint64_t void_ns, struct plfs_drain *d)
{
	struct grouping *gr = mem_zalloc(sizeof(*gr));
	int ret;

	if (!gr)
		return -ENOMEM;
	gr->d = d;
	gr->record = parity_lock(c);
	if (gr->record < 0) {
		ret = gr->record;
		d->nr_left += ret == -EBUSY; /* another process does it, and may have seen less */
		mem_free(gr);
		return ret == -EBUSY ? 0 : ret;
	}
	ret = grouped_take(&gr->g, c);
	if (!ret) {
		find_own(gr);
		grouped_judge(&gr->g, void_ns, d->closed_only);
		ret = gr->g.states ? make_all(gr) : -ENOMEM;
	}
	if (!ret) {
		drop_spare(gr);
		count_away(gr);
		count_bare(gr);
	}
	grouped_release(&gr->g);
	store_close(c->store, &gr->record);
	mem_free(gr->logs);
	mem_free(gr);
	return ret;
}

int grouping_container(const struct container *c, uint64_t void_ns, struct plfs_drain *d)
{
	int ret = is_of_another(c) ? count_uncovered(c, d) : make_groups(c, void_ns, d);

	return ret == -ENOENT ? 0 : ret;
}
