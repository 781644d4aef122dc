/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What copies are worth, beside the logs as they were found.
 */
#include "core/admin/scan/scan_copies.h"

#include "core/base/alloc.h"
#include "core/dropping/copies.h"

bool scan_is_damaged(const struct scan *l, const struct scan_log *log)
{
	for (const struct finding *f = l->found->first; f; f = f->next)
		if (f->severity == PLFS_DAMAGED && !strcmp(f->path, log->path))
			return true;
	return false;
}

/* Up to @len all bytes of the log can be read. */
static void trim_bad(struct scan *l, const struct scan_log *log, uint64_t len)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < l->nr_bad; i++) {
		struct scan_bad *b = &l->bad[i];
		uint64_t less = b->log == log->no && len > b->log_off ? min_u64(len - b->log_off, b->len) : 0;

		b->log_off += less;
		b->len -= less;
		if (b->len)
			l->bad[nr++] = *b;
	}
	l->nr_bad = nr;
}

void scan_forget_bad(struct scan *l, const struct scan_log *log) { trim_bad(l, log, UINT64_MAX); }

void scan_look_at_beginning(struct scan *l, const struct scan_log *log)
{
	char where[PLACE_PATH_LEN];
	uint64_t longest = 0, len;
	unsigned no = 0;

	for (int h; (h = copies_open(l->c, log->path, &no, where)) >= 0;) {
		if (!copies_prove(l->c, log->path, h, &len))
			longest = max_u64(longest, len);
		store_close(l->c->store, &h);
	}
	trim_bad(l, log, longest);
}

static void look_at_damaged(struct scan *l, struct scan_log *log)
{
	struct copies_source src;

	if (copies_find(l->c, log->path, max_u64(log->records_end, log->indexed_len), &src)) {
		scan_look_at_beginning(l, log);
		return;
	}
	log->heals = true;
	scan_forget_bad(l, log);
	findings_add(l->found, PLFS_NOTED, "copied", log->path, 0,
		     "its copy in %s %s: nothing of it is lost, and plfs repair heals it", src.where,
		     src.other < 0 ? "is whole" : "has what is damaged here");
	copies_close(l->c, &src);
}

static void look_at_whole(struct scan *l, struct scan_log *log, const struct spare_dirs *dirs)
{
	struct copies_one one;

	for (unsigned i = 0; i < dirs->nr; i++) {
		copies_look(l->c, log->path, dirs->path[i], !l->check->quick, &one);
		if (!one.ret && one.len >= log->len)
			continue;
		log->wants_copy = true;
		l->nr_copies_wanted++;
		if (one.ret == -EIO || one.ret == -EBADMSG)
			findings_add(l->found, PLFS_DAMAGED, "copy-damaged", log->path, i,
				     "its copy in %s is damaged: plfs repair makes it anew", one.where);
		else if (!one.ret)
			findings_add(l->found, PLFS_NOTED, "copy-old", log->path, i,
				     "its copy in %s has %llu of its %llu bytes: plfs drain or a repair makes it anew",
				     one.where, (unsigned long long)one.len, (unsigned long long)log->len);
		else
			findings_add(l->found, PLFS_NOTED, "copy-missing", log->path, i,
				     "it has no copy in %s: %s; plfs drain or a repair makes it", one.where,
				     strerror(-one.ret));
	}
}

int scan_copies(struct scan *l)
{
	struct spare_dirs *dirs;

	if (!l->has_copies)
		return 0;
	dirs = mem_alloc(sizeof(*dirs));
	if (!dirs)
		return -ENOMEM;
	for (uint32_t i = 0; i < l->nr_logs; i++) {
		struct scan_log *log = l->logs[i];

		if (log->live != SCAN_NONE || (!log->needed && !log->listed) ||
		    spare_read(l->c, log->path, dirs))
			continue;
		if (scan_is_damaged(l, log))
			look_at_damaged(l, log);
		else if (!log->state)
			look_at_whole(l, log, dirs);
	}
	mem_free(dirs);
	return 0;
}
