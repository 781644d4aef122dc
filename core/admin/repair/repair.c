/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Repairs a file by a scan, then scans it again.
 */
#include "core/admin/repair/repair.h"

#include "core/admin/repair/heal.h"
#include "core/admin/repair/steps.h"
#include "core/backend/stub_use.h"
#include "core/base/as_owner.h"
#include "core/base/sys.h"
#include "core/dropping/notice.h"

#define TRIES 5

/* ---- copies ---- */

static void heal_groups(struct repair *r, const struct scan *l)
{
	unsigned nr = l->nr_parity_wanted;
	int ret = 0;

	if (nr && !repair_is_dry(r))
		ret = heal_parity(l->c, r->k->check->quick, &nr);
	if (ret == -ENXIO) {
		findings_add(&r->steps, PLFS_NOTED, "parity", "", 0,
			     "not all parity is made anew: its backend is in no mapping here (-m), or is not there");
		ret = 0;
	}
	if (nr || ret)
		repair_report(r, ret, "parity", "", "parity in other backends made anew");
}

/* By the scan that found damage: those that follow may be quick. As the file's owner, as scan_again(). */
static void heal_all(struct repair *r, struct scan *l)
{
	struct as_owner owner = { .is = false };

	r->l = l;
	as_owner_begin(&owner, r->k->st.st_uid, r->k->st.st_gid);
	for (uint32_t i = 0; i < l->nr_logs && !l->gone; i++) {
		const struct scan_log *log = l->logs[i];
		int ret = !log->heals && !log->wants_copy ? 0 : repair_is_dry(r) ? 1 : heal_log(l->c, log);

		if (ret)
			repair_report(r, ret < 0 ? ret : 0, log->heals ? "healed" : "copied", log->path,
			       log->rebuilds ? "made anew from parity" :
			       log->heals ? "made anew from its copy in another backend" :
					    "copied to another backend");
	}
	heal_groups(r, l);
	as_owner_end(&owner);
	if (r->changed && !repair_is_dry(r))
		notice_raise(&r->k->c);
}

/* ---- all ---- */

/* Whether a repair could do anything. */
static bool has_work(struct scan *l, const struct findings *found)
{
	bool work = l->end || l->cut_due || l->has_notes || l->stale_global || l->nr_lives || l->nr_void ||
		    l->nr_copies_wanted || l->nr_parity_wanted ||
		    found->nr_damaged;

	for (uint32_t i = 0; i < l->nr_leftovers; i++)
		work |= l->leftovers[i].doomed;
	return work && !l->missing;
}

/*
 * What the header says now: before others were locked out a process may have truncated the file. One that
 * cannot be read stays as it was found.
 */
static void look_again(struct examined *k)
{
	struct stub now;

	k->gone = sys.fstat(k->fd, &k->st) || !k->st.st_nlink;
	if (k->gone || stub_look(k->fd, &now))
		return;
	k->gone = !now.has_container || memcmp(now.id, k->stub.id, STUB_ID_LEN) != 0;
	k->stub = now;
}

/*
 * As the owner of the file: the steps write what was read here to files that are his. Root's own reading
 * would give him the bytes of whatever he has moved into his container. The steps themselves are root's: they
 * close the logs of other users, too.
 */
static int scan_again(struct repair *r, struct scan *l, struct findings *found)
{
	struct as_owner owner = { .is = false };
	int ret;

	as_owner_begin(&owner, r->k->st.st_uid, r->k->st.st_gid);
	look_again(r->k);
	if (r->k->gone) {
		as_owner_end(&owner);
		return 0;
	}
	ret = examine_container(r->k, l, found);
	as_owner_end(&owner);
	if (ret == -EACCES)
		examine_report(r->k, PLFS_FAILED, "unreadable", "",
			       "something in the container cannot be read with the rights of the file's owner");
	return ret;
}

/* Scan again, now that other processes are locked out if possible, and take all steps. */
static int run(struct repair *r)
{
	struct findings found = { 0 };
	bool quick = r->k->check->quick;
	struct scan l = { .c = &r->k->c };
	int ret;

	r->k->check->quick = quick || !r->has_tables;
	r->l = &l;
	ret = scan_again(r, &l, &found);
	r->k->check->quick = quick;
	if (!ret)
		ret = repair_take_steps(r);
	findings_release(&found);
	scan_release(&l);
	return ret;
}

static int lock_out(struct repair *r)
{
	int ret = container_check(&r->k->c, CONTAINER_CHANGE);

	if (ret) {
		examine_report(r->k, PLFS_FAILED, "refused", "",
			       "the container is less writable than the file: %s; under libplfs, chmod go-w "
			       "the file, then restore its mode", strerror(-ret));
		return ret;
	}
	r->fd = stub_reopen(r->k->fd, O_RDWR);
	if (r->fd < 0) {
		examine_report(r->k, PLFS_FAILED, "read-only", "",
			       "the stub cannot be opened for writing: %s", strerror(-r->fd));
		return r->fd;
	}
	ret = stub_lock_alone(r->fd);
	r->alone = !ret;
	if (r->k->check->dry_run)
		stub_unmark_in_use(r->fd);
	return 0;
}

static void report_not_alone(struct repair *r, const struct scan *l)
{
	if (r->alone)
		return;
	for (uint32_t i = 0; i < l->nr_lives; i++)
		if (l->lives[i].owner != OWNER_LIVES) {
			examine_report(r->k, PLFS_NOTED, "in-use", "",
				       "other processes have the file open, or the file system has no locks "
				       "to find out: logs of killed processes stay as they are; repair the "
				       "file again when it is closed");
			return;
		}
}

/*
 * Of a file that is sound but for what killed processes left, a dry run has nothing to say but that a repair
 * would tidy up.
 */
static void report_steps(struct repair *r, bool needed)
{
	static const struct findings none = { 0 };

	if (needed || !repair_is_dry(r)) {
		examine_report_gone(r->k, &r->steps, &none);
		return;
	}
	for (const struct finding *f = r->steps.first; f; f = f->next)
		examine_report(r->k, f->severity == PLFS_REPAIRED ? PLFS_NOTED : f->severity, f->code,
			       f->path, "nothing needs it, but a repair would tidy up: %s", f->text);
}

/* After a dry run: what was found is what is there. */
static int end_dry(struct repair *r, const struct findings *found)
{
	static const struct findings none = { 0 };
	bool needed = found->nr_damaged;

	examine_report_gone(r->k, found, &none);
	report_steps(r, needed);
	r->k->check->nr_repaired += needed && r->changed;
	return needed ? 1 : examine_result(r->l, found);
}

/* Report what a repair did and what remains; @first was found before. */
static int end_repair(struct repair *r, struct findings *first, struct findings *found)
{
	const struct findings none = { 0 };
	struct examined *k = r->k;
	int ret;

	if (r->changed) {
		*first = *found;
		scan_release(r->l);
		ret = examine_container(k, r->l, found);
		if (ret || k->gone) {
			examine_report_gone(k, first, &none);
			report_steps(r, true);
			return ret;
		}
	}
	examine_report_gone(k, r->changed ? first : found, found);
	report_steps(r, true);
	examine_report_all(k, r->l, found, true);
	ret = examine_result(r->l, found);
	return !ret && r->set_aside ? 1 : ret;
}

static int take_steps(struct repair *r, struct scan *l)
{
	int ret = lock_out(r);

	if (!ret) {
		heal_all(r, l);
		report_not_alone(r, l);
		ret = -EAGAIN;
	}
	for (int tries = 0; ret == -EAGAIN && tries < TRIES; tries++)
		ret = run(r);
	if (r->fd >= 0)
		stub_unmark_in_use(r->fd);
	sys_fd_close(&r->fd);
	r->l = l;
	if (ret == -EAGAIN)
		examine_report(r->k, PLFS_FAILED, "busy", "",
			       "other processes keep changing the file: try again when they have finished");
	return ret;
}

int repair_file(struct examined *k, struct scan *l, struct findings *found)
{
	struct repair r = { .k = k, .l = l, .fd = -1, .has_tables = found->rest };
	struct findings first = { 0 }, none = { 0 };
	int ret;

	if (!has_work(l, found)) {
		examine_report_gone(k, found, found);
		examine_report_all(k, l, found, true);
		return examine_result(l, found);
	}
	for (const struct finding *f = found->first; f; f = f->next)
		r.has_tables |= !strcmp(f->code, "table");
	ret = take_steps(&r, l);
	if (k->gone || ret) {
		examine_report_gone(k, found, &none);
		report_steps(&r, true);
		k->check->nr_repaired += r.changed;
	} else if (k->check->dry_run) {
		ret = end_dry(&r, found);
	} else {
		k->check->nr_repaired += r.changed;
		ret = end_repair(&r, &first, found);
	}
	findings_release(&first);
	findings_release(&r.steps);
	return ret;
}
