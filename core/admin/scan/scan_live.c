/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scans the live files of a container, and finds out whether their owners are alive.
 */
#include "core/admin/scan/scan_live.h"

#include "core/backend/names.h"
#include "core/base/bytes.h"
#include "core/admin/scan/mend.h"
#include "core/dropping/live_layout.h"
#include "core/base/sys.h"

#include <stdio.h>

static enum scan_owner owner_of(const struct scan *l, const struct scan_live *live)
{
	const char *name = name_of(live->path);
	char proc[32];
	struct stat st;
	uint32_t pid, seq;

	if (l->alone)
		return OWNER_DEAD;
	if (!name_is_our_live(name))
		return OWNER_UNKNOWN;
	name_log_numbers(name, &pid, &seq);
	snprintf(proc, sizeof(proc), "/proc/%u", pid);
	return sys.fstatat(AT_FDCWD, proc, &st, 0) && errno == ENOENT ? OWNER_SEEMS_DEAD : OWNER_LIVES;
}

static int stat_log(const struct scan *l, const struct scan_live *live, struct stat *st)
{
	char log[CONTAINER_PATH_LEN], full[CONTAINER_PATH_LEN];

	name_log_of_live(live->path, log);
	container_path(l->c, log, full);
	return l->c->store->ops->stat(l->c->store, full, st);
}

/*
 * Bytes in the log that its live file does not know, and so nobody: their process could not map files. The
 * first of them are written over a trailer of the last release, which is counted as known.
 */
static uint64_t unplaced(const struct scan *l, const struct scan_live *live)
{
	uint64_t known = live->state.flushed_len + live->state.staged_len, len;
	struct stat st;

	len = stat_log(l, live, &st) ? 0 : datalog_len(&st);
	return len - min_u64(len, known);
}

static void report_owner(struct scan *l, const struct scan_live *live)
{
	static const char *const what[] = {
		[OWNER_UNKNOWN] = "a process of another host may be writing it",
		[OWNER_SEEMS_DEAD] =
			"its process seems to have ended without closing it, and others have the file open",
		[OWNER_DEAD] = "its process was killed before closing it, or could not close it, as on a full disk",
	};
	const char *repair = live->owner == OWNER_DEAD ? "; a repair closes it" : "";
	const char *code = live->owner == OWNER_UNKNOWN ? "open" : "killed";
	struct stat st;

	if (live->state.stranded)
		findings_add(l->found, PLFS_NOTED, "killed", live->path, 0,
			     "its host restarted before its process had closed it; everything synced can be "
			     "read");
	else if (live->unplaced)
		findings_add(l->found, PLFS_NOTED, code, live->path, 0,
			     "%s; it could not map files: everything that it had released can be read, and what it "
			     "wrote later is lost, of which about %llu bytes are in the log%s",
			     what[live->owner], (unsigned long long)live->unplaced, repair);
	else if (scan_live_lacks(live))
		findings_add(l->found, PLFS_DAMAGED, "live-cut", live->path, 0,
			     "cut short: the last %llu bytes that its process wrote are not there",
			     (unsigned long long)scan_live_lacks(live));
	else if (live->owner != OWNER_LIVES && stat_log(l, live, &st) == -ENOENT)
		findings_add(l->found, PLFS_NOTED, code, live->path, 0, "%s", what[live->owner]);
	else if (live->owner != OWNER_LIVES)
		findings_add(l->found, PLFS_NOTED, code, live->path, 0, "%s; %s can be read%s",
			     what[live->owner], live->owner == OWNER_UNKNOWN ? "everything released" :
			     live->unmapped ? "it could not map files: everything that it had released" :
					      "everything written",
			     repair);
}

/* Find the log of a live file by their names, and compare with the name in its header. */
static int name_log(struct scan *l, struct scan_live *live, uint32_t no)
{
	const char *said = live->state.log_name;
	char path[CONTAINER_PATH_LEN];
	struct scan_log *log;

	name_log_of_live(live->path, path);
	if (!live->ret && *said && strcmp(said, name_of(path))) {
		findings_add(l->found, PLFS_DAMAGED, "live-misplaced", live->path, 0,
			     "its contents are of the live file of another log, %s", said);
		live->ret = -EBADMSG;
	}
	log = scan_log(l, path);
	if (!log)
		return -ENOMEM;
	log->live = no;
	log->complete = true;
	live->log = log->no;
	return 0;
}

/* Whether the record @p, at @off of a live file, is right, or becomes right by restoring one bit. */
static bool mend_record(struct scan *l, const struct scan_live *live, uint64_t off, const uint8_t *p)
{
	uint8_t mended[INDEX_RECORD_LEN];
	struct index_record rec;
	size_t at;

	if (index_record_decode(&rec, p, INDEX_RECORD_LEN) > 0)
		return true;
	memcpy(mended, p, sizeof(mended));
	return mend_find(mended, sizeof(mended), REC_CRC, &at) &&
	       index_record_decode(&rec, mended, sizeof(mended)) > 0 &&
	       !scan_add_mend(l, live->path, off + at, p[at], mended[at]);
}

/* Find flipped bits in a damaged live file: in its header, or in records that have their checksum. */
static void mend_live(struct scan *l, const struct scan_live *live)
{
	uint8_t header[LIVE_HEADER_LEN], mended[LIVE_FIXED_LEN], rec[INDEX_RECORD_LEN];
	char full[CONTAINER_PATH_LEN];
	struct store *s = l->c->store;
	struct live_header lh;
	uint64_t nr, off;
	size_t at;
	int h;

	container_path(l->c, live->path, full);
	h = store_open(s, full, O_RDONLY | STORE_BRIEFLY, 0);
	if (h < 0)
		return;
	if (s->ops->pread(s, h, header, sizeof(header), 0) != sizeof(header))
		goto out;
	memcpy(mended, header, sizeof(mended));
	if (mend_find(mended, sizeof(mended), LIVE_OFF_CRC, &at)) {
		if (!live_header_decode(&lh, mended, l->c->id))
			scan_add_mend(l, live->path, at, header[at], mended[at]);
		goto out;
	}
	if (live_header_decode(&lh, header, l->c->id))
		goto out;
	off = lh.records_off;
	nr = min_u64(live_number(get_le64(header + LIVE_OFF_NR_RECORDS)), lh.records_cap);
	for (uint64_t i = 0; i + 1 < nr && i < 1 << 20; i++)
		if (s->ops->pread(s, h, rec, sizeof(rec), off + i * INDEX_RECORD_LEN) != sizeof(rec) ||
		    !mend_record(l, live, off + i * INDEX_RECORD_LEN, rec))
			break;
out:
	store_close(s, &h);
}

/* A live file that was cut short lacks staged bytes. */
static uint64_t staged_end(const struct scan *l, const struct scan_live *live)
{
	uint64_t staged = live->state.staged_len, have;
	char full[CONTAINER_PATH_LEN];
	struct stat st;

	container_path(l->c, live->path, full);
	if (!l->c->store->ops->stat(l->c->store, full, &st)) {
		have = (uint64_t)st.st_size;
		staged = min_u64(staged, have - min_u64(have, LIVE_STAGE_OFF));
	}
	return live->state.flushed_len + staged;
}

static int scan_live_file(struct scan *l, uint32_t no)
{
	struct scan_live *live = &l->lives[no];

	live->owner = owner_of(l, live);
	live->ret = live_load(l->c, live->path, &live->state, &live->records);
	if (live->ret == -ENOENT) { /* closed meanwhile: the node index has its records */
		live->owner = OWNER_LIVES;
		return 0;
	}
	if (live->ret == -ENOMEM || live->ret == -EMFILE || live->ret == -ENFILE || live->ret == -EACCES)
		return live->ret;
	if (live->ret == -EPROTONOSUPPORT) {
		l->unknown = true;
		findings_add(l->found, PLFS_FAILED, "version", live->path, 0,
			     "another version of libplfs wrote the live file");
	} else if (live->ret) {
		findings_add(l->found, PLFS_DAMAGED, "live-damaged", live->path, 0,
			     "damaged (%s): the file cannot be read while it is there; plfs repair --partial "
			     "sets it aside, and the last writes of a process with it", strerror(-live->ret));
		mend_live(l, live);
	} else {
		live->staged_end = staged_end(l, live);
		live->unmapped = live_is_unmapped(l->c, live->path);
		live->unplaced = live->unmapped && live->owner >= OWNER_SEEMS_DEAD ? unplaced(l, live) : 0;
		report_owner(l, live);
	}
	if (!live->ret && !*live->state.log_name) /* it is being made, or removed */
		return 0;
	if (name_log(l, live, no))
		return -ENOMEM;
	for (uint64_t i = 0; !live->ret && i < live->state.nr_records; i++)
		scan_take_record(l, l->logs[live->log], &live->records[i]);
	return 0;
}

int scan_lives(struct scan *l)
{
	uint32_t nr_open = 0;
	int ret = 0;

	for (uint32_t i = 0; i < l->nr_lives && !ret; i++) {
		ret = scan_live_file(l, i);
		nr_open += l->lives[i].owner == OWNER_LIVES;
	}
	if (nr_open)
		findings_add(l->found, PLFS_NOTED, "open", "", 0, "%u logs are being written", nr_open);
	return ret;
}
