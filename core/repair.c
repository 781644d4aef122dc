/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Repairing a file: what a look has found is set right step by step, each under the locks that it needs, and then
 * looked at again. Each step leaves the file as readable as before, whenever it is interrupted.
 */
#include "check.h"

#include "finish.h"
#include "globalcache.h"
#include "left_index.h"
#include "own.h"
#include "rebuild.h"
#include "sys.h"
#include "watch.h"
#include "writers.h"

#include <stdio.h>

#define TRIES 5

struct repair {
	struct checked *k;
	struct look *l;
	int fd;       /* of the stub, writable */
	bool alone;   /* nobody else has the file open, and nobody can open it */
	bool changed;
	bool set_aside; /* something that was lost with --partial */
	bool has_tables; /* tables are damaged: to be compared with the data */
	int mended;   /* times that bits were set right */
};

static bool dry(const struct repair *r) { return r->k->check->dry_run; }

/* What has been done, or would be; or has failed, with @ret. Returns @ret. */
static int tell(struct repair *r, int ret, const char *code, const char *path, const char *text)
{
	if (ret == -EAGAIN)
		return ret;
	if (ret)
		check_tell(r->k, PLFS_FAILED, code, path, "%s: could not be done: %s", text, strerror(-ret));
	else
		check_tell(r->k, PLFS_REPAIRED, code, path, "%s", text);
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
		 * A map that was made from less than this must not be believed any more. One that knows of what is
		 * lost else stays.
		 */
		if (!dry(r) && !r->l->nr_extras)
			ret = global_revoke(&r->k->c);
		if (!ret && !dry(r))
			ret = rebuild_index(r->l, &rb, partial, kept);
		if (!ret && !dry(r) && !r->l->nr_extras)
			ret = global_revoke(&r->k->c);
		if (!dry(r))
			watch_raise(&r->k->c);
		snprintf(text, sizeof(text), "made anew with %u blocks, %u of them from the logs%s%s", rb.nr_blocks,
			 rb.nr_new, *kept ? "; what it was is kept as " : "", kept);
		ret = tell(r, ret, "index", rb.path, text);
	}
	return ret;
}

/* One byte, if it still is what it was: logs are never written where they have been, and nobody has a live file. */
static int mend_byte(struct repair *r, const struct look_mend *m)
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
		const struct look_mend *m = &r->l->mends[i];

		if (m->live && !r->alone)
			continue;
		ret = dry(r) ? 0 : mend_byte(r, m);
		snprintf(text, sizeof(text), "byte %llu of the file, 0x%02x, is 0x%02x again, as its checksum says",
			 (unsigned long long)m->off, m->is, m->was);
		tell(r, ret, "bit", m->path, text);
	}
	/* Behind it there may be more to see. */
	return !ret && r->l->nr_mends && !dry(r) && r->mended++ < 3 ? -EAGAIN : ret;
}

/*
 * What keeps the file from being read, and cannot be used: it gets a name that readers ignore. @what: it may stand
 * for these bytes.
 */
static int set_aside(struct repair *r, const char *path, const char *what)
{
	char from[CONTAINER_PATH_LEN], to[CONTAINER_PATH_LEN], kept[CONTAINER_PATH_LEN], text[CONTAINER_PATH_LEN + 200];
	int ret = left_kept_name(r->l->c, path, kept);

	container_path(r->l->c, path, from);
	container_path(r->l->c, kept, to);
	if (!ret && !dry(r))
		ret = r->l->c->store->ops->rename(r->l->c->store, from, to);
	snprintf(text, sizeof(text), "%s kept as %s: where they belong the file reads as before they were written",
		 what, kept);
	r->set_aside |= !ret;
	return tell(r, ret, "set-aside", path, text);
}

/* Live files that cannot be read, and logs of which nothing is known. */
static int set_all_aside(struct repair *r)
{
	struct look *l = r->l;
	char what[100];
	int ret = 0;

	if (!r->alone || !r->k->check->partial)
		return 0;
	for (uint32_t i = 0; i < l->nr_lives && !ret; i++)
		if (l->lives[i].ret == -EBADMSG)
			ret = set_aside(r, l->lives[i].path, "the last writes of a process, unreadable, are");
	for (uint32_t i = 0; i < l->nr_logs && !ret; i++) {
		const struct look_log *log = l->logs[i];

		if (!log->listed || log->state || log->complete || log->nr_blocks || log->placed || !log->len)
			continue;
		snprintf(what, sizeof(what), "%llu bytes, of which nobody knows where they belong, are",
			 (unsigned long long)log->len);
		ret = set_aside(r, log->path, what);
	}
	return ret;
}

static int finish_logs(struct repair *r)
{
	struct look *l = r->l;
	int ret = 0;

	for (uint32_t i = 0; r->alone && i < l->nr_lives; i++) {
		const struct look_live *live = &l->lives[i];
		bool unsummed = false;
		char full[CONTAINER_PATH_LEN];
		int h, one;

		if (live->ret || (live->state.stranded && l->logs[live->log]->records_end > live->sure_len))
			continue; /* the bytes that the power failure took would be those of a hole, or of others */
		if (l->c->store->remote) { /* its owner has that lock: nobody else may be asked */
			bool locked;

			container_path(l->c, live->path, full);
			h = store_open(l->c->store, full, O_RDWR | STORE_BRIEFLY, 0);
			if (h < 0)
				continue;
			locked = l->c->store->ops->locked(l->c->store, h);
			store_close(l->c->store, &h);
			if (locked)
				continue;
		}
		one = dry(r) ? 0 : finish_log(l->c, live->path, live->sure_len, &unsummed);
		if (one == -ENODATA)
			continue;
		if (!one && !dry(r) && dropping_live_is_ours(strchr(live->path, '/') + 1) &&
		    !stub_is_copy(&r->k->stub, r->k->st.st_ino))
			writers_gone(r->k->m, r->k->st.st_ino, 1);
		tell(r, one, "finished", live->path,
		     unsummed ? "closed what its process could not close any more; its checksums are new, of the bytes as they are" :
				"closed what its process could not close any more");
		ret = ret ? ret : one;
	}
	return ret;
}

static int extend(int fd, uint64_t end)
{
	off_t last = (off_t)(PLFS_BODY_OFF + end - 1);
	int ret;

	do {
		ret = own_fallocate(fd, 0, last, 1);
	} while (ret < 0 && errno == EINTR);
	return ret < 0 && sys.ftruncate(fd, last + 1) ? -errno : 0;
}

/* The first part: what has happened but for the stub. */
static int cut_body(struct repair *r)
{
	uint64_t size = r->l->stub.cut_size;
	int ret = 0;

	if (!r->alone || !r->l->cut_happened || dry(r))
		return 0;
	if (stub_body_len(r->l->st.st_size) > size && sys.ftruncate(r->fd, (off_t)(PLFS_BODY_OFF + size)))
		ret = -errno;
	if (!ret && size)
		ret = extend(r->fd, size);
	return ret ? tell(r, ret, "truncation", "", "the body of its stub is to be cut") : 0;
}

/* The last, when the stub says the size. */
static int end_cut(struct repair *r)
{
	char text[100];

	if (!r->alone || !r->l->cut_due)
		return 0;
	snprintf(text, sizeof(text), "one to %llu bytes, of a killed process, %s", (unsigned long long)r->l->stub.cut_size,
		 r->l->cut_happened ? "is finished" : "is forgotten: it had not happened");
	return tell(r, dry(r) ? 0 : stub_set_cut(r->fd, &r->l->stub, 0, 0), "truncation", "", text);
}

/* Nobody has the file open, so nobody cuts it meanwhile. */
static int publish_size(struct repair *r)
{
	char text[64];

	if (!r->alone || !r->l->end)
		return 0;
	snprintf(text, sizeof(text), "its stub says %llu bytes now", (unsigned long long)r->l->end);
	return tell(r, dry(r) ? 0 : extend(r->fd, r->l->end), "size", "", text);
}

static int drop_global(struct repair *r)
{
	if (!r->l->stale_global || r->l->nr_extras)
		return 0;
	return tell(r, dry(r) ? 0 : global_revoke(&r->k->c), "global", "index.global",
		    "removed: the next reader makes it anew");
}

static int drop_leftovers(struct repair *r)
{
	char full[CONTAINER_PATH_LEN];
	int ret = 0;

	for (uint32_t i = 0; r->alone && i < r->l->nr_leftovers; i++) {
		const struct look_leftover *one = &r->l->leftovers[i];

		if (!one->doomed)
			continue;
		container_path(r->l->c, one->path, full);
		ret = tell(r, dry(r) ? 0 : r->l->c->store->ops->unlink(r->l->c->store, full), "temporary", one->path,
			   "removed");
	}
	return ret;
}

/* ---- all ---- */

/* Whether there is anything that a repair could do. */
static bool has_work(struct look *l, const struct findings *found)
{
	bool work = l->end || l->cut_due || l->stale_global || l->nr_lives || found->nr_damaged;

	for (uint32_t i = 0; i < l->nr_leftovers; i++)
		work |= l->leftovers[i].doomed;
	return work && !l->missing;
}

/* Look again, now that others are locked out if that could be, and do what is to be done. */
static int run(struct repair *r)
{
	struct findings found = { 0 };
	bool quick = r->k->check->quick;
	struct look l;
	int ret;

	r->k->check->quick = quick || !r->has_tables;
	r->l = &l;
	ret = check_look(r->k, &l, &found);
	r->k->check->quick = quick;
	if (!ret && !r->k->gone)
		ret = mend_all(r);
	if (!ret && !r->k->gone)
		ret = set_all_aside(r);
	if (!ret && !r->k->gone)
		ret = rebuild_indexes(r);
	if (!ret && !r->k->gone)
		ret = cut_body(r);
	if (!ret && !r->k->gone)
		ret = publish_size(r); /* before nobody is asked for it any more (writers.h) */
	if (!ret && !r->k->gone)
		ret = end_cut(r);
	if (!ret && !r->k->gone)
		ret = finish_logs(r);
	if (!ret && !r->k->gone)
		ret = drop_global(r);
	if (!ret && !r->k->gone)
		ret = drop_leftovers(r);
	findings_release(&found);
	look_release(&l);
	return ret;
}

static int lock_out(struct repair *r)
{
	int ret = container_check(&r->k->c, CONTAINER_CHANGE);

	if (ret) {
		check_tell(r->k, PLFS_FAILED, "refused", "",
			   "some may write the file who may not write to its container: %s", strerror(-ret));
		return ret;
	}
	r->fd = stub_reopen(r->k->fd, O_RDWR);
	if (r->fd < 0) {
		check_tell(r->k, PLFS_FAILED, "read-only", "", "its stub cannot be written to: %s", strerror(-r->fd));
		return r->fd;
	}
	ret = stub_lock_alone(r->fd);
	r->alone = !ret;
	if (r->k->check->dry_run)
		stub_unmark_in_use(r->fd);
	return 0;
}

static void tell_not_alone(struct repair *r, const struct look *l)
{
	if (r->alone)
		return;
	for (uint32_t i = 0; i < l->nr_lives; i++)
		if (l->lives[i].owner != OWNER_LIVES) {
			check_tell(r->k, PLFS_NOTED, "in-use", "",
				   "others have the file open, or that cannot be told here: what killed processes have left stays as it is");
			return;
		}
}

int check_repair(struct checked *k, struct look *l, struct findings *found)
{
	struct repair r = { .k = k, .fd = -1 };
	bool had_damage = found->nr_damaged;
	int ret = 0;

	if (!has_work(l, found)) {
		check_report(k, l, found, true);
		return check_result(l, found);
	}
	for (const struct finding *f = found->first; f; f = f->next)
		r.has_tables |= !strcmp(f->code, "table");
	ret = lock_out(&r);
	if (!ret) {
		tell_not_alone(&r, l);
		ret = -EAGAIN;
	}
	for (int tries = 0; ret == -EAGAIN && tries < TRIES; tries++)
		ret = run(&r);
	if (r.fd >= 0)
		stub_unmark_in_use(r.fd);
	sys_fd_close(&r.fd);
	if (ret == -EAGAIN)
		check_tell(k, PLFS_FAILED, "busy", "", "it is being changed all the time: try again when it is not");
	k->check->nr_repaired += r.changed;
	if (k->gone || ret)
		return ret;
	if (k->check->dry_run) {
		check_report(k, l, found, true);
		return r.changed || had_damage ? 1 : check_result(l, found);
	}
	if (r.changed) {
		findings_release(found);
		look_release(l);
		ret = check_look(k, l, found);
		if (ret || k->gone)
			return ret;
	}
	check_report(k, l, found, true);
	ret = check_result(l, found);
	return !ret && r.set_aside ? 1 : ret;
}
