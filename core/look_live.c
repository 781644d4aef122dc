/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looking at the live files of a container, and whether their owners are alive.
 */
#include "look.h"

#include "bytes.h"
#include "mend.h"
#include "stage_layout.h"
#include "sys.h"

#include <stdio.h>

static enum look_owner owner_of(const struct look *l, const struct look_live *live)
{
	const char *name = strchr(live->path, '/') + 1;
	char proc[32];
	struct stat st;
	uint32_t pid, seq;

	if (l->alone)
		return OWNER_DEAD;
	if (!dropping_live_is_ours(name))
		return OWNER_UNKNOWN;
	dropping_log_numbers(name, &pid, &seq);
	snprintf(proc, sizeof(proc), "/proc/%u", pid);
	return sys.fstatat(AT_FDCWD, proc, &st, 0) && errno == ENOENT ? OWNER_SEEMS_DEAD : OWNER_LIVES;
}

static void tell_owner(struct look *l, const struct look_live *live)
{
	static const char *const what[] = {
		[OWNER_UNKNOWN] = "its process, of another host, may be writing; all that it has released can be read",
		[OWNER_SEEMS_DEAD] = "its process has ended without closing it, it seems, and others have the file open; all that it wrote can be read",
		[OWNER_DEAD] = "its process was killed before it could close it; all that it wrote can be read, and a repair finishes it",
	};

	if (live->state.stranded)
		findings_add(l->found, PLFS_NOTED, "killed", live->path, 0,
			     "its host was started anew before its process had closed it; what had been synced can be read");
	else if (live->owner != OWNER_LIVES)
		findings_add(l->found, PLFS_NOTED, live->owner == OWNER_UNKNOWN ? "open" : "killed", live->path, 0,
			     "%s", what[live->owner]);
}

/* The log that it belongs to, by its own name: what it says of that is compared. */
static int name_log(struct look *l, struct look_live *live, uint32_t no)
{
	const char *slash = strchr(live->path, '/') + 1, *said = live->state.log_name;
	char path[CONTAINER_PATH_LEN];
	struct look_log *log;

	snprintf(path, sizeof(path), "%.*sdata.%s", (int)(slash - live->path), live->path, slash + sizeof("live.") - 1);
	if (!live->ret && *said && strcmp(said, path + (slash - live->path))) {
		findings_add(l->found, PLFS_DAMAGED, "live-misplaced", live->path, 0,
			     "it is the live file of %s, by what it says", said);
		live->ret = -EBADMSG;
	}
	log = look_log(l, path);
	if (!log)
		return -ENOMEM;
	log->live = no;
	log->complete = true;
	live->log = log->no;
	return 0;
}

/* The record at @p, at @off of a live file: is it right, or can it be made so? */
static bool mend_record(struct look *l, const struct look_live *live, uint64_t off, const uint8_t *p)
{
	uint8_t mended[INDEX_RECORD_LEN];
	struct index_record rec;
	size_t at;

	if (index_record_decode(&rec, p, INDEX_RECORD_LEN) > 0)
		return true;
	memcpy(mended, p, sizeof(mended));
	return mend_find(mended, sizeof(mended), REC_CRC, &at) && index_record_decode(&rec, mended, sizeof(mended)) > 0 &&
	       !look_add_mend(l, live->path, off + at, p[at], mended[at]);
}

/* Of what is damaged in a live file, what one bit each makes right: its header, or records that have their checksum. */
static void mend_live(struct look *l, const struct look_live *live)
{
	uint8_t header[HEADER_LEN], mended[STATIC_LEN], rec[INDEX_RECORD_LEN];
	char full[CONTAINER_PATH_LEN];
	struct store *s = l->c->store;
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
	if (mend_find(mended, sizeof(mended), 12, &at)) {
		if (!memcmp(mended, STAGE_MAGIC, 8) && get_le32(mended + 8) == STAGE_VERSION &&
		    !memcmp(mended + 16, l->c->id, STUB_ID_LEN))
			look_add_mend(l, live->path, at, header[at], mended[at]);
		goto out;
	}
	off = get_le64(header + 32);
	nr = min_u64(stage_number(get_le64(header + OFF_NR_RECORDS)), get_le64(header + 40));
	for (uint64_t i = 0; i + 1 < nr && i < 1 << 20; i++)
		if (s->ops->pread(s, h, rec, sizeof(rec), off + i * INDEX_RECORD_LEN) != sizeof(rec) ||
		    !mend_record(l, live, off + i * INDEX_RECORD_LEN, rec))
			break;
out:
	store_close(s, &h);
}

static int look_at_live(struct look *l, uint32_t no)
{
	struct look_live *live = &l->lives[no];

	live->owner = owner_of(l, live);
	live->ret = stage_load(l->c, live->path, &live->state, &live->records);
	if (live->ret == -ENOENT) { /* closed meanwhile: the node index has it */
		live->owner = OWNER_LIVES;
		return 0;
	}
	if (live->ret == -ENOMEM || live->ret == -EMFILE || live->ret == -ENFILE || live->ret == -EACCES)
		return live->ret;
	if (live->ret == -EPROTONOSUPPORT) {
		l->unknown = true;
		findings_add(l->found, PLFS_FAILED, "version", live->path, 0,
			     "a live file of another version than this library's");
	} else if (live->ret) {
		findings_add(l->found, PLFS_DAMAGED, "live-damaged", live->path, 0,
			     "damaged: the file cannot be read while it is there, and its last records may be lost (%s)", strerror(-live->ret));
		mend_live(l, live);
	} else {
		tell_owner(l, live);
	}
	if (!live->ret && !*live->state.log_name) /* it has just been made, or is about to be removed */
		return 0;
	if (name_log(l, live, no))
		return -ENOMEM;
	for (uint64_t i = 0; !live->ret && i < live->state.nr_records; i++)
		look_take_record(l, l->logs[live->log], &live->records[i]);
	return 0;
}

int look_at_lives(struct look *l)
{
	uint32_t nr_open = 0;
	int ret = 0;

	for (uint32_t i = 0; i < l->nr_lives && !ret; i++) {
		ret = look_at_live(l, i);
		nr_open += l->lives[i].owner == OWNER_LIVES;
	}
	if (nr_open)
		findings_add(l->found, PLFS_NOTED, "open", "", 0, "%u logs are being written", nr_open);
	return ret;
}
