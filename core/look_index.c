/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looking at the indexes of a container: live files, and node indexes block by block, record by record.
 */
#include "look.h"

#include "sys.h"

#include <stdio.h>

/* ---- live files ---- */

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

	if (live->owner != OWNER_LIVES)
		findings_add(l->found, PLFS_NOTED, live->owner == OWNER_UNKNOWN ? "open" : "killed", live->path, 0, "%s", what[live->owner]);
}

/* The log that it belongs to, by its own name: what it says of that is compared. */
static int name_log(struct look *l, struct look_live *live, uint32_t no)
{
	const char *slash = strchr(live->path, '/') + 1, *said = live->state.log_name;
	char path[CONTAINER_PATH_LEN];
	struct look_log *log;

	snprintf(path, sizeof(path), "%.*sdata.%s", (int)(slash - live->path), live->path, slash + sizeof("live.") - 1);
	if (!live->ret && *said && strcmp(said, path + (slash - live->path))) {
		findings_add(l->found, PLFS_DAMAGED, "live-misplaced", live->path, 0, "it is the live file of %s, by what it says", said);
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
		findings_add(l->found, PLFS_FAILED, "version", live->path, 0, "a live file of another version than this library's");
	} else if (live->ret) {
		findings_add(l->found, PLFS_DAMAGED, "live-damaged", live->path, 0,
			     "damaged: the file cannot be read while it is there, and its last records may be lost (%s)", strerror(-live->ret));
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

/* ---- node indexes ---- */

static int take_block(struct look *l, uint32_t index, const uint8_t *p, size_t len, const struct index_block *block)
{
	const char *path = l->indexes[index].path;
	char log_path[CONTAINER_PATH_LEN];
	struct index_cursor cur = { 0 };
	struct index_record rec;
	struct look_log *log;
	int ret;

	while ((ret = index_block_record(block, &cur, &rec)) > 0)
		;
	if (ret) {
		findings_add(l->found, PLFS_DAMAGED, "index-record", path, (uint64_t)(p - l->indexes[index].buf),
			     "the block at byte %llu has a record that cannot be", (unsigned long long)(p - l->indexes[index].buf));
		l->indexes[index].nr_damaged++;
		return 0;
	}
	dropping_log_path(path, block, log_path);
	log = look_log(l, log_path);
	return log ? look_add_block(l, index, log, p, len, block) : -ENOMEM;
}

static int look_at_index(struct look *l, uint32_t no)
{
	struct look_index *idx = &l->indexes[no];
	char full[CONTAINER_PATH_LEN];
	struct index_block block;
	void *buf;
	int ret;

	container_path(l->c, idx->path, full);
	ret = store_read_file(l->c->store, full, SIZE_MAX / 2, &buf, &idx->len);
	if (ret == -ENOENT) /* collected by a truncation to nothing */
		return 0;
	if (ret == -EIO) {
		findings_add(l->found, PLFS_DAMAGED, "index-unreadable", idx->path, 0, "it cannot be read: %s", strerror(EIO));
		idx->nr_damaged++;
		return 0;
	}
	if (ret)
		return ret;
	idx->buf = buf;
	for (size_t pos = 0; pos < idx->len && !ret;) {
		const uint8_t *p = idx->buf + pos;
		size_t left = idx->len - pos, skip = index_block_skip(p, left);
		ssize_t n = index_block_parse(&block, p, left);

		if (n > 0) {
			ret = take_block(l, no, p, (size_t)n, &block);
			skip = (size_t)n;
		} else if (n == -EPROTONOSUPPORT) {
			l->unknown = idx->unknown = true;
			findings_add(l->found, PLFS_FAILED, "version", idx->path, pos, "the block at byte %zu is of another version than this library's", pos);
			break;
		} else if (n != -ENODATA && !index_block_is_torn(p, left)) {
			findings_add(l->found, PLFS_DAMAGED, "index-block", idx->path, pos,
				     "the block at byte %zu is damaged: the file cannot be read by this index", pos);
			idx->nr_damaged++;
		}
		pos += skip;
	}
	return ret;
}

int look_at_indexes(struct look *l)
{
	int ret = 0;

	for (uint32_t i = 0; i < l->nr_indexes && !ret; i++)
		ret = look_at_index(l, i);
	return ret;
}
