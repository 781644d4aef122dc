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
#include "core/dropping/parities_make.h"

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

static bool is_wanted(const struct grouping *gr, const struct grouped_log *log)
{
	return !log->ret && log->covered < gr->g.wanted;
}

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
		if (is_wanted(gr, &gr->g.logs[i]))
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

/* The backend of the mapping, not number @but, with the least parity, that has none of these logs; -1. */
static int pick_holder(const struct grouping *gr, struct grouped_log *const *logs, unsigned nr, int but)
{
	int best = -1;

	for (int i = 0; i < (int)gr->nr_own; i++) {
		bool used = i == but || gr->gone[i] || (i && !gr->own[i]);

		for (unsigned k = 0; k < nr && !used; k++)
			used = logs[k]->top == gr->own[i];
		if (!used && (best < 0 || gr->load[i] < gr->load[best]))
			best = i;
	}
	return best;
}

/* Those of as many parity files as are wanted: how many there are. */
static unsigned pick_holders(const struct grouping *gr, struct grouped_log *const *logs, unsigned nr,
			     int *holders)
{
	unsigned nr_rows = 0;
	int but = -1;

	while (nr_rows < gr->g.wanted && (but = pick_holder(gr, logs, nr, but)) >= 0)
		holders[nr_rows++] = but;
	return nr_rows;
}

/* ---- making ---- */

static void not_made(struct grouping *gr, const struct grouped_log *log, int err)
{
	char why[100];

	snprintf(why, sizeof(why), "%s: %s", log->covered ? "one parity file and not two" : "no parity",
		 err == -ENXIO ? "another backend is not there" : strerror(-err));
	drain_trouble(gr->d, gr->g.c->dir, log->path, why);
}

static void leave(struct grouping *gr, struct grouped_log *const *logs, unsigned nr, int err)
{
	gr->d->nr_left += nr;
	for (unsigned i = 0; i < nr; i++) {
		logs[i]->ret = err; /* not once more */
		if (err != -ETIME)
			not_made(gr, logs[i], err);
	}
}

/* The parity files of a group that is made, and where. */
struct group_files {
	struct parity_group rows[PARITY_ROWS_MAX];
	int holders[PARITY_ROWS_MAX];
	unsigned nr;
	struct parities_failure f;
};

static void set_logs(struct group_files *files, struct grouped_log *const *logs, unsigned nr)
{
	for (unsigned k = 0; k < PARITY_ROWS_MAX; k++) {
		struct parity_group *g = &files->rows[k];

		*g = (struct parity_group){ .row = k, .nr = nr };
		for (unsigned i = 0; i < nr; i++) {
			g->logs[i].len = logs[i]->len;
			snprintf(g->logs[i].path, sizeof(g->logs->path), "%s", logs[i]->path);
		}
	}
	files->f = (struct parities_failure){ UINT_MAX, UINT_MAX };
}

static int make_in(struct grouping *gr, struct group_files *files)
{
	const struct container *c = gr->g.c;
	struct carry carry = { .copied = pace_copied, .arg = gr->d, .piece = pace_piece(gr->d) };
	struct parities_row rows[PARITY_ROWS_MAX];
	int token, ret = -ETIME;

	for (unsigned k = 0; k < files->nr; k++) {
		int holder = files->holders[k];

		rows[k] = (struct parities_row){ &files->rows[k],
						 holder ? &c->store->spread->others[holder - 1] : NULL };
	}
	token = token_take(c->store, c->store->spares->places[0].writers, gr->d);
	if (token != -ETIME && !pace_is_over(gr->d))
		ret = parities_make(c, gr->record, rows, files->nr, &carry, &files->f);
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

static bool has_as_much(struct grouped_log *const *logs, unsigned nr, unsigned nr_rows)
{
	for (unsigned i = 0; i < nr; i++)
		if (logs[i]->covered < nr_rows)
			return false;
	return true;
}

/* 0; -ENXIO: no backend is left for what the logs lack; -errno. *@tried: one was, and is not there now. */
static int make_somewhere(struct grouping *gr, struct grouped_log *const *logs, unsigned nr,
			  struct group_files *files, bool *tried)
{
	unsigned failed;
	int ret;

	set_logs(files, logs, nr);
	do {
		files->nr = pick_holders(gr, logs, nr, files->holders);
		if (has_as_much(logs, nr, files->nr))
			return -ENXIO;
		if (*tried && files->nr < gr->g.wanted && nr > 1)
			return -ENXIO; /* a smaller group may have all */
		ret = make_in(gr, files);
		failed = is_of_holder(ret) ? files->f.row : UINT_MAX;
		*tried |= failed < files->nr;
		if (failed < files->nr)
			gr->gone[files->holders[failed]] = true;
	} while (failed < files->nr);
	for (unsigned k = 0; k < files->nr && !ret; k++) {
		gr->load[files->holders[k]] += files->rows[k].len;
		ret = grouped_add(&gr->g, &files->rows[k]);
	}
	return ret;
}

/* Parity of these logs. 0; -EAGAIN: logs are to be looked at again; -ETIME, -ENOMEM: the end. */
static int make(struct grouping *gr, struct grouped_log *const *logs, unsigned nr)
{
	struct group_files *files = mem_zalloc(sizeof(*files));
	bool tried = false;
	int ret = files ? make_somewhere(gr, logs, nr, files, &tried) : -ENOMEM;
	unsigned bad = files ? files->f.log : nr;

	if ((ret == -EIO || ret == -EBADMSG || ret == -ENOENT) && bad < nr) {
		gr->d->nr_lost += ret != -ENOENT;
		logs[bad]->ret = ret;
		if (ret != -ENOENT)
			not_made(gr, logs[bad], ret);
		ret = -EAGAIN;
	} else if (is_of_holder(ret) && tried && nr > 1) {
		ret = -EAGAIN; /* with a log less, one of their backends may have the parity */
	} else if (ret || files->nr < gr->g.wanted) {
		leave(gr, logs, nr, ret ? ret : -ENXIO);
	}
	mem_free(files);
	return !ret || ret == -ETIME || ret == -ENOMEM ? ret : -EAGAIN;
}

/* Of a full group: the other backends have its parity. */
static unsigned nr_members(const struct grouping *gr)
{
	unsigned nr = 0;

	for (unsigned i = 0; i < gr->nr_own; i++)
		nr += !gr->gone[i];
	return nr > gr->g.wanted ? (unsigned)min_size(nr - gr->g.wanted, PARITY_LOGS_MAX) : 1;
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

/* It may have seen less. */
static void leave_to_another(const struct container *c, struct plfs_drain *d)
{
	d->nr_left++;
	drain_trouble(d, c->dir, PARITY_NAME,
		      "another process makes it at the moment; plfs drain --wait waits for that");
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
		if (ret == -EBUSY)
			leave_to_another(c, d);
		mem_free(gr);
		return ret == -EBUSY ? 0 : ret;
	}
	ret = grouped_take(&gr->g, c, c->store->spares->parity);
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
