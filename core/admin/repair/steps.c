/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The steps of a repair, and their order.
 */
#include "core/admin/repair/steps.h"

#include "core/admin/repair/finish.h"
#include "core/admin/repair/forget.h"
#include "core/admin/repair/notes.h"
#include "core/admin/repair/rebuild.h"
#include "core/admin/scan/scan_log.h"
#include "core/backend/names.h"
#include "core/backend/writer_table.h"
#include "core/base/io.h"
#include "core/base/sys.h"
#include "core/dropping/datalog.h"
#include "core/dropping/live_layout.h"
#include "core/dropping/no_room.h"
#include "core/dropping/notice.h"
#include "core/gather/kept_map.h"
#include "core/gather/void_logs.h"

#include <stdio.h>

int repair_report(struct repair *r, int ret, const char *code, const char *path, const char *text)
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
		if (!repair_is_dry(r) && !r->l->nr_extras)
			ret = kept_map_revoke(&r->k->c);
		if (!ret && !repair_is_dry(r))
			ret = rebuild_index(r->l, &rb, partial, kept);
		if (!ret && !repair_is_dry(r) && !r->l->nr_extras)
			ret = kept_map_revoke(&r->k->c);
		if (!repair_is_dry(r))
			notice_raise(&r->k->c);
		snprintf(text, sizeof(text), "rebuilt with %u blocks, %u of them from the logs%s%s",
			 rb.nr_blocks, rb.nr_new, *kept ? "; the old one is kept as " : "", kept);
		ret = repair_report(r, ret, "index", rb.path, text);
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
		ret = repair_is_dry(r) ? 0 : mend_byte(r, m);
		snprintf(text, sizeof(text),
			 "byte %llu of it: 0x%02x back to 0x%02x, which its checksum confirms",
			 (unsigned long long)m->off, m->is, m->was);
		repair_report(r, ret, "bit", m->path, text);
	}
	/* The restored part may reveal more damage. */
	return !ret && r->l->nr_mends && !repair_is_dry(r) && r->mended++ < 3 ? -EAGAIN : ret;
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
	if (!ret && !repair_is_dry(r))
		ret = r->l->c->store->ops->rename(r->l->c->store, from, to);
	snprintf(text, sizeof(text), "%s kept as %s: there the file reads as before they were written",
		 what, kept);
	r->set_aside |= !ret;
	return repair_report(r, ret, "set-aside", path, text);
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
	repair_report(r, ret, how->at_home ? "finished-home" : "finished", live->path, text);
}

/* What its log lost would read as a hole, or as others. All of these are reported already. */
static bool has_lost_bytes(const struct scan *l, const struct scan_live *live)
{
	const struct scan_log *log = live->log == SCAN_NONE ? NULL : l->logs[live->log];

	if (live->sums_cut || scan_live_lacks(live))
		return true;
	return log &&
	       (log->records_end > scan_readable_len(l, log) || (log->needed && log->state == -ENOENT));
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

		if (live->ret || has_lost_bytes(l, live))
			continue;
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
		one = repair_is_dry(r) ? 0 : finish_log(l->c, live->path, live->sure_len, &how);
		if (one == -ENODATA)
			continue;
		if (!one && !repair_is_dry(r) && owners && name_is_our_live(name_of(live->path)) &&
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

	if (!r->alone || !r->l->cut_happened || repair_is_dry(r))
		return 0;
	if (len > size && sys.ftruncate(r->fd, (off_t)(PLFS_BODY_OFF + size)))
		ret = -errno;
	else if (len < size)
		ret = stub_extend(r->fd, size);
	return ret ? repair_report(r, ret, "truncation", "", "shortening the body of the stub") : 0;
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
	return repair_report(r, repair_is_dry(r) ? 0 : stub_set_cut(r->fd, &r->l->stub, 0, 0), "truncation", "", text);
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
	return repair_report(r, repair_is_dry(r) ? 0 : stub_extend(r->fd, r->l->end), "size", "", text);
}

static int drop_global(struct repair *r)
{
	if (!r->l->stale_global || r->l->nr_extras)
		return 0;
	return repair_report(r, repair_is_dry(r) ? 0 : kept_map_revoke(&r->k->c), "global", "index.global",
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
	if (!repair_is_dry(r) && io_fsync(r->fd))
		ret = -errno;
	if (!ret && !repair_is_dry(r))
		ret = kept_map_revoke(&r->k->c);
	if (!ret && !repair_is_dry(r))
		ret = forget_hosts_of_void(r->l, r->fd);
	if (!ret && !repair_is_dry(r))
		ret = void_logs_remove(&r->k->c, r->l->stub.generation_ns, &out);
	if (!repair_is_dry(r))
		kept_map_revoke(&r->k->c);
	snprintf(text, sizeof(text), "%llu logs that held only what was overwritten or cut off are removed",
		 repair_is_dry(r) ? (unsigned long long)r->l->nr_void : (unsigned long long)out.nr_removed);
	return repair_report(r, ret, "void", "", text);
}

/* The logs of killed processes are closed, and nobody can begin one. */
static int drop_notes(struct repair *r)
{
	int ret = !r->alone || !r->l->has_notes || repair_is_dry(r) ? 0 : notes_drop(r->l->c);

	if (!r->alone || !r->l->has_notes || r->l->nr_lives) /* with those nothing need be said */
		return ret == -EBUSY ? 0 : ret;
	return repair_report(r, ret, "notes", "", "notes of live files that are not there are removed");
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
		ret = repair_report(r, repair_is_dry(r) ? 0 : r->l->c->store->ops->unlink(r->l->c->store, full), "temporary",
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

	if (!r->alone || !r->l->hosts.nr || (repair_is_dry(r) && !give_up))
		return 0;
	ret = repair_is_dry(r) ? 0 : forget_hosts_of(r->l, r->fd, give_up);
	if (!give_up)
		return ret;
	snprintf(text, sizeof(text), "what %u hosts wrote is given up: there the file has zeros", nr);
	r->set_aside = true;
	return repair_report(r, ret, "hosts", "", text);
}

/* publish_size() before finish_logs(): then no stat() asks live files any more. */
static int (*const STEPS[])(struct repair *r) = {
	mend_all,    set_all_aside, rebuild_indexes, cut_body,	     publish_size, end_cut,
	finish_logs, drop_notes,    drop_global,     drop_void,	     drop_leftovers, forget_hosts,
};

int repair_take_steps(struct repair *r)
{
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(STEPS) && !ret && !r->k->gone && !r->l->gone; i++)
		ret = STEPS[i](r);
	return ret;
}
