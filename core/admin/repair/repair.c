/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Repairs a file in steps, by a scan, then scans it again. Each step takes the locks that it needs, and
 * leaves the file as readable as before whenever it is interrupted.
 */
#include "core/admin/repair/repair.h"

#include "core/backend/stub_lock.h"
#include "core/base/as_owner.h"
#include "core/backend/names.h"

#include "core/admin/repair/finish.h"
#include "core/admin/repair/forget.h"
#include "core/admin/repair/heal.h"
#include "core/admin/repair/notes.h"
#include "core/gather/kept_map.h"
#include "core/gather/void_logs.h"
#include "core/base/io.h"
#include "core/admin/repair/rebuild.h"
#include "core/base/sys.h"
#include "core/dropping/datalog.h"
#include "core/dropping/live_layout.h"
#include "core/dropping/no_room.h"
#include "core/dropping/notice.h"
#include "core/backend/writer_table.h"

#include <stdio.h>

#define TRIES 5

struct repair {
	struct examined *k;
	struct scan *l;
	int fd;       /* of the stub, writable */
	bool alone;   /* no other process has the file open, and none can open it */
	bool changed;
	struct findings steps; /* what was done, or is to be done, or failed */
	bool set_aside; /* --partial has set something aside */
	bool has_tables; /* a table is damaged, so the data has to be read */
	int mended;   /* rounds in which bits were restored */
};

static bool dry(const struct repair *r) { return r->k->check->dry_run; }

/* Report a step: done (or, in a dry run, to be done) if @ret is 0, else failed. Returns @ret. */
static int report(struct repair *r, int ret, const char *code, const char *path, const char *text)
{
	if (ret == -EAGAIN)
		return ret;
	if (ret)
		findings_add(&r->steps, PLFS_FAILED, code, path, 0, "%s: could not be done: %s", text,
			     strerror(-ret));
	else
		findings_add(&r->steps, PLFS_REPAIRED, code, path, 0, "%s", text);
	r->changed |= !ret;
	return ret;
}

/* ---- steps ---- */

static int rebuild_indexes(struct repair *r)
{
	bool partial = r->k->check->partial;
	struct rebuild rb = { .path = "" };
	char kept[CONTAINER_PATH_LEN], text[CONTAINER_PATH_LEN + 200];
	int ret = 0;

	while (!ret && rebuild_next(r->l, &rb, partial)) {
		*kept = '\0';
		/*
		 * Readers must not use a kept map that was built from fewer blocks. But one that has the only
		 * record of something lost stays.
		 */
		if (!dry(r) && !r->l->nr_extras)
			ret = kept_map_revoke(&r->k->c);
		if (!ret && !dry(r))
			ret = rebuild_index(r->l, &rb, partial, kept);
		if (!ret && !dry(r) && !r->l->nr_extras)
			ret = kept_map_revoke(&r->k->c);
		if (!dry(r))
			notice_raise(&r->k->c);
		snprintf(text, sizeof(text), "rebuilt with %u blocks, %u of them from the logs%s%s",
			 rb.nr_blocks, rb.nr_new, *kept ? "; the old one is kept as " : "", kept);
		ret = report(r, ret, "index", rb.path, text);
	}
	return ret;
}

/*
 * Whether the header of the file @h, with the byte @m restored if that is in it, is that of the log or live
 * file that @m->path names.
 */
static bool is_headed(struct repair *r, int h, const struct scan_mend *m)
{
	const struct container *c = r->l->c;
	uint8_t head[DATALOG_HEADER_LEN];
	struct live_header lh;

	static_assert(sizeof(head) == LIVE_FIXED_LEN, "one buffer is for either");
	if (c->store->ops->pread(c->store, h, head, sizeof(head), 0) != sizeof(head))
		return false;
	if (m->off < sizeof(head) && head[m->off] == m->is)
		head[m->off] = m->was;
	if (!name_is_live(name_of(m->path)))
		return !datalog_check_header(c, m->path, head);
	return !live_header_decode(&lh, head, c->id) && name_is_live_of(name_of(m->path), lh.log_name);
}

/*
 * Restore one byte, if it is still the same. No writer changes written parts of a log, and no live file has
 * an owner.
 */
static int mend_byte(struct repair *r, const struct scan_mend *m)
{
	struct store *s = r->l->c->store;
	char full[CONTAINER_PATH_LEN];
	struct stat st;
	uint8_t now;
	int ret, h;

	container_path(r->l->c, m->path, full);
	h = store_open(s, full, O_RDWR, 0);
	if (h < 0)
		return h;
	ret = s->ops->fstat(s, h, &st);
	if (!ret && !store_may_write(&st))
		ret = -EMLINK;
	if (!ret && !is_headed(r, h, m))
		ret = -EAGAIN; /* another file has its name by now */
	if (!ret)
		ret = s->ops->pread(s, h, &now, 1, m->off) == 1 && now == m->is ? 0 : -EAGAIN;
	if (!ret)
		ret = s->ops->pwrite(s, h, &m->was, 1, m->off) == 1 ? s->ops->sync(s, h, false) : -EIO;
	store_close(s, &h);
	return ret;
}

static int mend_all(struct repair *r)
{
	char text[120];
	int ret = 0;

	for (uint32_t i = 0; i < r->l->nr_mends && !ret; i++) {
		const struct scan_mend *m = &r->l->mends[i];

		if (m->live && !r->alone)
			continue;
		ret = dry(r) ? 0 : mend_byte(r, m);
		snprintf(text, sizeof(text),
			 "byte %llu of it: 0x%02x back to 0x%02x, which its checksum confirms",
			 (unsigned long long)m->off, m->is, m->was);
		report(r, ret, "bit", m->path, text);
	}
	/* The restored part may reveal more damage. */
	return !ret && r->l->nr_mends && !dry(r) && r->mended++ < 3 ? -EAGAIN : ret;
}

/*
 * Rename a dropping that is useless, and keeps the file from being read, to a name that readers ignore.
 * @what: for the report.
 */
static int set_aside(struct repair *r, const char *path, const char *what)
{
	char from[CONTAINER_PATH_LEN], to[CONTAINER_PATH_LEN], kept[CONTAINER_PATH_LEN],
		text[CONTAINER_PATH_LEN + 200];
	int ret = name_kept(r->l->c, path, kept);

	container_path(r->l->c, path, from);
	container_path(r->l->c, kept, to);
	if (!ret && !dry(r))
		ret = r->l->c->store->ops->rename(r->l->c->store, from, to);
	snprintf(text, sizeof(text), "%s kept as %s: there the file reads as before they were written",
		 what, kept);
	r->set_aside |= !ret;
	return report(r, ret, "set-aside", path, text);
}

/* Set aside unreadable live files, and logs without any index. */
static int set_all_aside(struct repair *r)
{
	struct scan *l = r->l;
	char what[100];
	int ret = 0;

	if (!r->alone || !r->k->check->partial)
		return 0;
	for (uint32_t i = 0; i < l->nr_lives && !ret; i++)
		if (l->lives[i].ret == -EBADMSG)
			ret = set_aside(r, l->lives[i].path, "the last writes of a process, unreadable, are");
	for (uint32_t i = 0; i < l->nr_logs && !ret; i++) {
		const struct scan_log *log = l->logs[i];

		if (!log->listed || log->state || log->complete || log->nr_blocks > log->nr_told ||
		    log->placed || !log->len)
			continue;
		snprintf(what, sizeof(what), "%llu bytes without a known place in the file are",
			 (unsigned long long)log->len);
		ret = set_aside(r, log->path, what);
	}
	return ret;
}

static void report_finished(struct repair *r, int ret, const struct scan_live *live,
			    const struct finished *how)
{
	char text[PLACE_PATH_LEN + 300], lost[100] = "";

	if (ret && no_room_for(r->l->c, live->path, ret, text, sizeof(text))) {
		findings_add(&r->steps, PLFS_FAILED, "finished", live->path, 0, "%s", text);
		return;
	}
	if (live->unplaced)
		snprintf(lost, sizeof(lost), ", without about %llu bytes of unknown place that it had not released",
			 (unsigned long long)live->unplaced);
	snprintf(text, sizeof(text), "the log of a killed process is closed%s%s",
		 how->unsummed ? ", with new checksums of its bytes as they are" :
		 how->at_home ? " and moved home, for its place is full" : "", lost);
	report(r, ret, how->at_home ? "finished-home" : "finished", live->path, text);
}

static int finish_logs(struct repair *r)
{
	struct scan *l = r->l;
	int ret = 0;

	for (uint32_t i = 0; r->alone && i < l->nr_lives; i++) {
		const struct scan_live *live = &l->lives[i];
		struct finished how = { .unsummed = false };
		bool owners;
		char full[CONTAINER_PATH_LEN];
		int h, one;

		if (live->ret || (live->state.stranded && l->logs[live->log]->records_end > live->sure_len))
			continue; /* the lost bytes would read as a hole, or as others */
		if (l->c->store->remote) { /* its owner may be on another host, and then holds this lock */
			bool locked;

			container_path(l->c, live->path, full);
			h = store_open(l->c->store, full, O_RDWR | STORE_BRIEFLY, 0);
			if (h < 0)
				continue;
			locked = store_locked(l->c->store, h);
			store_close(l->c->store, &h);
			if (locked)
				continue;
		}
		container_path(l->c, live->path, full);
		owners = writer_table_is_owners(l->c, full);
		one = dry(r) ? 0 : finish_log(l->c, live->path, live->sure_len, &how);
		if (one == -ENODATA)
			continue;
		if (!one && !dry(r) && owners && name_is_our_live(name_of(live->path)) &&
		    !stub_is_copy(&r->k->stub, r->k->st.st_ino))
			writer_table_gone(r->k->m, l->c, r->k->st.st_ino, 1);
		report_finished(r, one, live, &how);
		ret = ret ? ret : one;
	}
	return ret;
}

/* Finish a truncation that has taken effect: only the body of the stub is still too long. */
static int cut_body(struct repair *r)
{
	uint64_t size = r->l->stub.cut_size, len = stub_body_len(r->l->st.st_size);
	int ret = 0;

	if (!r->alone || !r->l->cut_happened || dry(r))
		return 0;
	if (len > size && sys.ftruncate(r->fd, (off_t)(PLFS_BODY_OFF + size)))
		ret = -errno;
	else if (len < size)
		ret = stub_extend(r->fd, size);
	return ret ? report(r, ret, "truncation", "", "shortening the body of the stub") : 0;
}

/* Clear the truncation from the header, when the body has its size. */
static int end_cut(struct repair *r)
{
	char text[100];

	if (!r->alone || !r->l->cut_due)
		return 0;
	snprintf(text, sizeof(text), "a truncation to %llu bytes, by a killed process, is %s",
		 (unsigned long long)r->l->stub.cut_size,
		 r->l->cut_happened ? "finished" : "forgotten: it had not taken effect");
	return report(r, dry(r) ? 0 : stub_set_cut(r->fd, &r->l->stub, 0, 0), "truncation", "", text);
}

/*
 * Whether a log of a killed process stays as it is, for its file cannot be written: in a place that is
 * read-only.
 */
static bool cannot_finish(const struct repair *r)
{
	struct store *s = r->l->c->store;
	char full[CONTAINER_PATH_LEN];
	bool cannot = false;
	int h;

	for (uint32_t i = 0; i < r->l->nr_lives && !cannot; i++) {
		container_path(r->l->c, r->l->lives[i].path, full);
		h = store_open(s, full, O_RDWR | STORE_BRIEFLY, 0);
		cannot = h < 0 && h != -ENOENT;
		if (h >= 0)
			store_close(s, &h);
	}
	return cannot;
}

/*
 * No other process has the file open, so none truncates it meanwhile. Without a record at home, what only a
 * place has would read as zeros when that is lost: then a stat() goes on to ask the live files.
 */
static int publish_size(struct repair *r)
{
	char text[64];

	if (!r->alone || !r->l->end || cannot_finish(r))
		return 0;
	snprintf(text, sizeof(text), "the stub's size is %llu bytes", (unsigned long long)r->l->end);
	return report(r, dry(r) ? 0 : stub_extend(r->fd, r->l->end), "size", "", text);
}

static int drop_global(struct repair *r)
{
	if (!r->l->stale_global || r->l->nr_extras)
		return 0;
	return report(r, dry(r) ? 0 : kept_map_revoke(&r->k->c), "global", "index.global",
		      "removed: the next reader builds it anew");
}

/*
 * Left by a killed plfs compact, or by a truncation to 0 while others had them open. The generation that
 * voids them comes to the disk first.
 */
static int drop_void(struct repair *r)
{
	struct void_logs out = { 0 };
	char text[80];
	int ret = 0;

	if (!r->alone || !r->l->nr_void || r->l->found->nr_damaged ||
	    stub_is_copy(&r->l->stub, r->k->st.st_ino))
		return 0;
	if (!dry(r) && io_fsync(r->fd))
		ret = -errno;
	if (!ret && !dry(r))
		ret = kept_map_revoke(&r->k->c);
	if (!ret && !dry(r))
		ret = forget_hosts_of_void(r->l, r->fd);
	if (!ret && !dry(r))
		ret = void_logs_remove(&r->k->c, r->l->stub.generation_ns, &out);
	if (!dry(r))
		kept_map_revoke(&r->k->c);
	snprintf(text, sizeof(text), "%llu logs that held only what was overwritten or cut off are removed",
		 dry(r) ? (unsigned long long)r->l->nr_void : (unsigned long long)out.nr_removed);
	return report(r, ret, "void", "", text);
}

/* The logs of killed processes are closed, and nobody can begin one. */
static int drop_notes(struct repair *r)
{
	int ret = !r->alone || !r->l->has_notes || dry(r) ? 0 : notes_drop(r->l->c);

	if (!r->alone || !r->l->has_notes || r->l->nr_lives) /* with those nothing need be said */
		return ret == -EBUSY ? 0 : ret;
	return report(r, ret, "notes", "", "notes of live files that are not there are removed");
}

static int drop_leftovers(struct repair *r)
{
	char full[CONTAINER_PATH_LEN];
	int ret = 0;

	for (uint32_t i = 0; r->alone && i < r->l->nr_leftovers; i++) {
		const struct scan_leftover *one = &r->l->leftovers[i];

		if (!one->doomed)
			continue;
		container_path(r->l->c, one->path, full);
		ret = report(r, dry(r) ? 0 : r->l->c->store->ops->unlink(r->l->c->store, full), "temporary",
			     one->path,
			     "removed");
	}
	return ret;
}

/* Hosts that have nothing any more because of this repair, or that are to be given up. */
static int forget_hosts(struct repair *r)
{
	unsigned nr = stub_hosts_missing(&r->l->hosts);
	bool give_up = nr && r->k->check->partial;
	char text[80];
	int ret;

	if (!r->alone || !r->l->hosts.nr || (dry(r) && !give_up))
		return 0;
	ret = dry(r) ? 0 : forget_hosts_of(r->l, r->fd, give_up);
	if (!give_up)
		return ret;
	snprintf(text, sizeof(text), "what %u hosts wrote is given up: there the file has zeros", nr);
	r->set_aside = true;
	return report(r, ret, "hosts", "", text);
}

/* ---- copies ---- */

static void heal_groups(struct repair *r, const struct scan *l)
{
	unsigned nr = l->nr_parity_wanted;
	int ret = 0;

	if (nr && !dry(r))
		ret = heal_parity(l->c, r->k->check->quick, &nr);
	if (nr || ret)
		report(r, ret, "parity", "", "parity in other backends made anew");
}

/* By the scan that found damage: those that follow may be quick. As the file's owner, as scan_again(). */
static void heal_all(struct repair *r, struct scan *l)
{
	struct as_owner owner = { .is = false };

	r->l = l;
	as_owner_begin(&owner, r->k->st.st_uid, r->k->st.st_gid);
	for (uint32_t i = 0; i < l->nr_logs && !l->gone; i++) {
		const struct scan_log *log = l->logs[i];
		int ret = !log->heals && !log->wants_copy ? 0 : dry(r) ? 1 : heal_log(l->c, log);

		if (ret)
			report(r, ret < 0 ? ret : 0, log->heals ? "healed" : "copied", log->path,
			       log->rebuilds ? "made anew from parity" :
			       log->heals ? "made anew from its copy in another backend" :
					    "copied to another backend");
	}
	heal_groups(r, l);
	as_owner_end(&owner);
	if (r->changed && !dry(r))
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
 * As the owner of the file: the steps write what was read here to files that are his. Root's own reading
 * would give him the bytes of whatever he has moved into his container. The steps themselves are root's: they
 * close the logs of other users, too.
 */
static int scan_again(struct repair *r, struct scan *l, struct findings *found)
{
	struct as_owner owner = { .is = false };
	int ret;

	as_owner_begin(&owner, r->k->st.st_uid, r->k->st.st_gid);
	ret = examine_container(r->k, l, found);
	as_owner_end(&owner);
	if (ret == -EACCES)
		examine_report(r->k, PLFS_FAILED, "unreadable", "",
			       "something in the container cannot be read with the rights of the file's owner");
	return ret;
}

/* publish_size() before finish_logs(): then no stat() asks live files any more. */
static int (*const STEPS[])(struct repair *r) = {
	mend_all,    set_all_aside, rebuild_indexes, cut_body,	     publish_size, end_cut,
	finish_logs, drop_notes,    drop_global,     drop_void,	     drop_leftovers, forget_hosts,
};

/* Scan again, now that other processes are locked out if possible, and take all steps. */
static int run(struct repair *r)
{
	struct findings found = { 0 };
	bool quick = r->k->check->quick;
	struct scan l;
	int ret;

	r->k->check->quick = quick || !r->has_tables;
	r->l = &l;
	ret = scan_again(r, &l, &found);
	r->k->check->quick = quick;
	for (size_t i = 0; i < ARRAY_SIZE(STEPS) && !ret && !r->k->gone && !l.gone; i++)
		ret = STEPS[i](r);
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

	if (needed || !dry(r)) {
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
