/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What parity is worth, beside the logs as they were found.
 */
#include "core/admin/scan/scan_parity.h"

#include "core/admin/scan/scan_copies.h"
#include "core/base/alloc.h"
#include "core/dropping/copies.h"
#include "core/dropping/parities.h"

static struct scan_log *find(const struct scan *l, const char *path)
{
	struct scan_log *log = NULL;

	HASH_FIND_STR(l->by_path, path, log);
	return log;
}

static void look_at_damaged(struct scan *l, struct scan_log *log)
{
	uint64_t least = max_u64(log->records_end, log->indexed_len), len;
	char where[PLACE_PATH_LEN];
	unsigned no = 0;

	for (int h; !log->heals && (h = parities_open(l->c, log->path, &no, where)) >= 0;) {
		log->heals = log->rebuilds = !copies_prove(l->c, log->path, h, &len) && len >= least;
		store_close(l->c->store, &h);
	}
	if (!log->heals) {
		scan_look_at_beginning(l, log);
		return;
	}
	scan_forget_bad(l, log);
	findings_add(l->found, PLFS_NOTED, "parity", log->path, 0,
		     "parity in %s has all of it: nothing of it is lost, and plfs repair makes it anew",
		     where);
}

/* Whether each log of the group is there and whole: else it is they that are to be mended first. */
static bool is_sound(const struct scan *l, const struct parity_group *g, unsigned *nr_gone)
{
	bool sound = true;

	*nr_gone = 0;
	for (unsigned i = 0; i < g->nr; i++) {
		const struct scan_log *log = find(l, g->logs[i].path);

		*nr_gone += !log || (!log->listed && !log->needed);
		sound &= log && !log->state && !log->heals && !scan_is_damaged(l, log);
	}
	return sound;
}

static void look_at_group(struct scan *l, const struct parity_group *g, uint32_t no)
{
	const char *where = *g->top ? g->top : "the first backend";
	unsigned nr_gone;
	bool sound = is_sound(l, g, &nr_gone);
	int ret;

	if (nr_gone) {
		findings_add(l->found, PLFS_NOTED, "parity-old", g->file, no,
			     "%u of its %u logs are no more: plfs drain makes parity of the others", nr_gone,
			     g->nr);
		return;
	}
	ret = parities_look(l->c, g, !l->check->quick);
	if (!ret)
		return;
	l->nr_parity_wanted += sound && (ret == -EIO || ret == -ENOENT);
	if (ret == -EIO)
		findings_add(l->found, PLFS_DAMAGED, "parity-damaged", g->file, no,
			     "the parity in %s is damaged: plfs repair makes it anew", where);
	else if (ret == -EACCES)
		findings_add(l->found, PLFS_NOTED, "parity-private", g->file, no,
			     "the parity in %s is for its owner's eyes alone, and was not looked at", where);
	else
		findings_add(l->found, PLFS_NOTED, "parity-missing", g->file, no,
			     "the parity in %s is not there: %s; a repair or plfs drain with its mapping makes it",
			     where, strerror(-ret));
}

/* The damaged ones first: what of them is whole says whether a group can be made anew. */
int scan_parity(struct scan *l)
{
	struct parity_groups gs;
	int ret;

	if (!l->has_parity)
		return 0;
	ret = parity_read(l->c, &gs);
	for (uint32_t i = 0; i < l->nr_logs && !ret; i++) {
		struct scan_log *log = l->logs[i];

		if (log->live == SCAN_NONE && (log->needed || log->listed) && !log->heals &&
		    scan_is_damaged(l, log))
			look_at_damaged(l, log);
	}
	for (size_t i = 0; i < gs.nr && !ret; i++)
		look_at_group(l, &gs.v[i], (uint32_t)i);
	parity_release(&gs);
	return ret == -EPROTONOSUPPORT ? 0 : ret;
}
