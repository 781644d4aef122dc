/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looking at a container: what is in its directories, and in which order its parts are read. Live files come before
 * node indexes, as for every reader (globalindex.h): a log that is closed meanwhile is then in one of the two.
 */
#include "look.h"

#include "sys.h"

#include <stdio.h>

bool look_room(void **array, uint32_t nr, uint32_t *cap, size_t size)
{
	uint32_t more = *cap ? 2 * *cap : 16;
	void *p;

	if (nr < *cap)
		return true;
	p = mem_realloc(*array, more * size);
	if (!p)
		return false;
	*array = p;
	*cap = more;
	return true;
}

struct look_log *look_log(struct look *l, const char *path)
{
	size_t len = strlen(path);
	struct look_log *log;

	HASH_FIND(hh, l->by_path, path, len, log);
	if (log || !LOOK_ROOM(l, logs))
		return log;
	log = mem_zalloc(sizeof(*log) + len + 1);
	if (!log)
		return NULL;
	memcpy(log->path, path, len);
	log->no = l->nr_logs;
	log->live = log->first_block = log->last_block = LOOK_NONE;
	HASH_ADD(hh, l->by_path, path, len, log);
	if (!log->hh.tbl) {
		mem_free(log);
		return NULL;
	}
	l->logs[l->nr_logs++] = log;
	return log;
}

void look_take_record(struct look *l, struct look_log *log, const struct index_record *rec)
{
	if (rec->stamp_ns > l->stub.generation_ns && rec->type == INDEX_TRUNCATE)
		l->cut_ns = max_u64(l->cut_ns, rec->stamp_ns);
	if (rec->stamp_ns <= l->stub.generation_ns || rec->type != INDEX_WRITE)
		return;
	log->needed = true;
	log->records_end = max_u64(log->records_end, index_record_log_end(rec));
	l->write_end = max_u64(l->write_end, index_record_end(rec));
}

int look_add_block(struct look *l, uint32_t index, struct look_log *log, const uint8_t *p, size_t len,
		   const struct index_block *block)
{
	struct index_cursor cur = { 0 };
	struct index_record rec;

	if (!LOOK_ROOM(l, blocks))
		return -ENOMEM;
	if (log->nr_blocks)
		l->blocks[log->last_block].next = l->nr_blocks;
	else
		log->first_block = l->nr_blocks;
	log->last_block = l->nr_blocks;
	log->nr_blocks++;
	log->indexed |= index != LOOK_NONE;
	log->indexed_len = max_u64(log->indexed_len, block->log_len);
	l->blocks[l->nr_blocks++] = (struct look_block){ index, log->no, LOOK_NONE, p, len, *block };
	while (index_block_record(block, &cur, &rec) > 0)
		look_take_record(l, log, &rec);
	return 0;
}

int look_add_bad(struct look *l, const struct look_log *log, uint64_t log_off, uint64_t len, const struct finding *finding)
{
	if (!finding || !LOOK_ROOM(l, bad))
		return -ENOMEM;
	l->bad[l->nr_bad++] = (struct look_bad){ log->no, log_off, len, finding };
	return 0;
}

int look_add_mend(struct look *l, const char *path, uint64_t off, uint8_t is, uint8_t was)
{
	if (!LOOK_ROOM(l, mends))
		return -ENOMEM;
	l->mends[l->nr_mends] = (struct look_mend){ mem_strdup(path), off, is, was, strstr(path, "/live.") != NULL };
	return l->mends[l->nr_mends++].path ? 0 : -ENOMEM;
}

int look_keep(struct look *l, void *buf)
{
	if (!LOOK_ROOM(l, bufs)) {
		mem_free(buf);
		return -ENOMEM;
	}
	l->bufs[l->nr_bufs++] = buf;
	return 0;
}

/* ---- directories ---- */

static int add_leftover(struct look *l, const char *path, bool doomed)
{
	if (!LOOK_ROOM(l, leftovers))
		return -ENOMEM;
	l->leftovers[l->nr_leftovers] = (struct look_leftover){ mem_strdup(path), doomed };
	return l->leftovers[l->nr_leftovers++].path ? 0 : -ENOMEM;
}

static int add_foreign(struct look *l, const char *path, mode_t mode)
{
	const char *what = S_ISLNK(mode) ? "a symbolic link" : S_ISDIR(mode) ? "a directory" :
		S_ISREG(mode) ? "a file" : "a special file";

	findings_add(l->found, S_ISLNK(mode) ? PLFS_DAMAGED : PLFS_NOTED, S_ISLNK(mode) ? "symlink" : "foreign", path, 0,
		     S_ISLNK(mode) ? "%s: nothing here follows it, and who made it meant no good: look at it and remove it" :
				     "%s that does not belong here: it is ignored", what);
	return add_leftover(l, path, false);
}

/* Names that are written first and then renamed, and what a killed flatten leaves. */
static bool is_temporary(const char *name)
{
	return strstr(name, ".tmp.") || !strncmp(name, ".plfs-flatten.", 14);
}

static int add_regular(struct look *l, const char *path, const char *name)
{
	struct look_log *log;

	if (is_temporary(name))
		return add_leftover(l, path, true);
	if (!strncmp(name, "damaged.", 8)) {
		findings_add(l->found, PLFS_NOTED, "kept", path, 0, "what a repair has replaced; it can be removed");
		return add_leftover(l, path, false);
	}
	if (!strncmp(name, "data.", 5)) {
		log = look_log(l, path);
		if (log)
			log->listed = true;
		return log ? 0 : -ENOMEM;
	}
	if (!strncmp(name, "live.", 5)) {
		if (!LOOK_ROOM(l, lives))
			return -ENOMEM;
		l->lives[l->nr_lives] = (struct look_live){ .path = mem_strdup(path), .log = LOOK_NONE };
		return l->lives[l->nr_lives++].path ? 0 : -ENOMEM;
	}
	if (!strncmp(name, "index.", 6)) {
		if (!LOOK_ROOM(l, indexes))
			return -ENOMEM;
		l->indexes[l->nr_indexes] = (struct look_index){ .path = mem_strdup(path) };
		return l->indexes[l->nr_indexes++].path ? 0 : -ENOMEM;
	}
	return strncmp(name, "notice.", 7) ? add_foreign(l, path, S_IFREG) : 0;
}

struct list_arg {
	struct look *l;
	const char *dir;
};

/* The mode of @path, relative to the container; 0: it has gone. What has another name as well is told of: nobody writes to it any more. */
static int mode_of(struct look *l, const char *path, mode_t *mode)
{
	char full[CONTAINER_PATH_LEN];
	struct stat st;
	int ret;

	container_path(l->c, path, full);
	ret = l->c->store->ops->stat(l->c->store, full, &st);
	*mode = ret ? 0 : st.st_mode;
	if (!ret && S_ISREG(st.st_mode) && !store_may_write(&st))
		findings_add(l->found, PLFS_NOTED, "linked", path, 0,
			     "it has %lu names (hard links): nothing is written to it until it has one; copy it, and rename the copy over it",
			     (unsigned long)st.st_nlink);
	return ret == -ENOENT ? 0 : ret;
}

static int list_hostdir_entry(void *arg, const char *name)
{
	struct list_arg *la = arg;
	char path[CONTAINER_PATH_LEN];
	mode_t mode;
	int ret;

	/* The container is in front of it. */
	if (snprintf(path, sizeof(path), "%s/%s", la->dir, name) >= (int)sizeof(path) - 64)
		return add_foreign(la->l, la->dir, S_IFREG);
	ret = mode_of(la->l, path, &mode);
	if (ret || !mode)
		return ret;
	return S_ISREG(mode) ? add_regular(la->l, path, name) : add_foreign(la->l, path, mode);
}

static int list_entry(void *arg, const char *name)
{
	struct look *l = arg;
	struct list_arg la = { l, name };
	char full[CONTAINER_PATH_LEN];
	mode_t mode;
	int ret;

	if (strlen(name) > CONTAINER_PATH_LEN / 2)
		return add_foreign(l, "", S_IFREG);
	ret = mode_of(l, name, &mode);
	if (ret || !mode)
		return ret;
	if (!strncmp(name, "hostdir.", 8) && S_ISDIR(mode)) {
		container_path(l->c, name, full);
		l->nr_hostdirs++;
		ret = l->c->store->ops->list(l->c->store, full, list_hostdir_entry, &la);
		return ret == -ENOENT ? 0 : ret;
	}
	if (S_ISREG(mode) && (!strcmp(name, "index.global") || !strcmp(name, "lock") || !strncmp(name, "for.", 4)))
		return 0;
	if (S_ISREG(mode) && is_temporary(name))
		return add_leftover(l, name, true);
	return add_foreign(l, name, mode);
}

/* ---- all of it ---- */

static void tell_leftovers(struct look *l)
{
	for (uint32_t i = 0; i < l->nr_leftovers; i++)
		if (l->leftovers[i].doomed)
			findings_add(l->found, PLFS_NOTED, "temporary", l->leftovers[i].path, 0,
				     l->alone ? "a temporary file that a killed process has left" :
						"a temporary file; somebody may be at work");
}

/* After the records were read: a truncation says what it is about before it happens. */
static void check_cut(struct look *l, int fd)
{
	struct stub now;

	if (stub_look(fd, &now) || !now.cut_ns || now.generation_ns != l->stub.generation_ns)
		return; /* it has been emptied since, or what is wrong with the header is told elsewhere */
	l->stub = now;
	l->cut_due = true;
	l->cut_happened = now.cut_size ? l->cut_ns == now.cut_ns : stub_is_emptied(&now);
	if (!l->alone) /* who is at it may live */
		return;
	findings_add(l->found, PLFS_NOTED, "truncation", "", 0,
		     "a truncation to %llu bytes %s when its process was killed: "
		     "a repair, or who has the file open for writing, finishes that",
		     (unsigned long long)now.cut_size, l->cut_happened ? "had happened, but for the stub," : "had been begun");
}

static int check_size(struct look *l)
{
	uint64_t have = l->cut_happened ? l->stub.cut_size : stub_body_len(l->st.st_size);
	int ret;

	if (l->write_end <= have)
		return 0;
	ret = look_find_end(l, &l->end);
	if (ret || l->end <= have) {
		l->end = 0;
		return ret;
	}
	findings_add(l->found, PLFS_NOTED, "size", "", 0,
		     "its stub says %llu bytes, and its indexes %llu: a repair, or who reads or appends with the right to write, sets that right",
		     (unsigned long long)have, (unsigned long long)l->end);
	return 0;
}

int look_at(struct look *l, const struct container *c, int fd, const struct stub *stub, struct plfs_check *check,
	    struct findings *found)
{
	int ret;

	*l = (struct look){ .c = c, .check = check, .found = found, .stub = *stub };
	l->alone = stub_is_alone(fd);
	ret = c->store->ops->list(c->store, c->dir, list_entry, l);
	if (ret == -ENOENT || (!ret && !l->nr_hostdirs)) {
		l->missing = true;
		findings_add(found, PLFS_DAMAGED, "no-container", "", 0,
			     "its container %s is %s: none of what was in logs can be read", c->dir, ret ? "missing" : "empty");
		return 0;
	}
	if (ret == -ELOOP || ret == -ENOTDIR) {
		findings_add(found, PLFS_DAMAGED, "symlink", "", 0,
			     "its container %s is no directory: it is not followed", c->dir);
		l->missing = true;
		return 0;
	}
	if (!ret)
		ret = look_at_lives(l);
	if (!ret)
		ret = look_at_indexes(l);
	if (!ret)
		ret = look_at_logs(l);
	if (!ret)
		ret = look_at_global(l);
	if (!ret)
		check_cut(l, fd);
	if (!ret && sys.fstat(fd, &l->st)) /* last: a size is published after the records */
		ret = -errno;
	if (!ret)
		ret = check_size(l);
	tell_leftovers(l);
	return ret ? ret : found->ret;
}

void look_release(struct look *l)
{
	struct look_log *log, *next;

	HASH_ITER(hh, l->by_path, log, next)
		HASH_DEL(l->by_path, log);
	for (uint32_t i = 0; i < l->nr_logs; i++)
		mem_free(l->logs[i]);
	for (uint32_t i = 0; i < l->nr_indexes; i++) {
		mem_free(l->indexes[i].path);
		mem_free(l->indexes[i].buf);
	}
	for (uint32_t i = 0; i < l->nr_lives; i++) {
		mem_free(l->lives[i].path);
		mem_free(l->lives[i].records);
	}
	for (uint32_t i = 0; i < l->nr_leftovers; i++)
		mem_free(l->leftovers[i].path);
	for (uint32_t i = 0; i < l->nr_bufs; i++)
		mem_free(l->bufs[i]);
	for (uint32_t i = 0; i < l->nr_mends; i++)
		mem_free(l->mends[i].path);
	mem_free(l->mends);
	mem_free(l->logs);
	mem_free(l->indexes);
	mem_free(l->blocks);
	mem_free(l->lives);
	mem_free(l->bad);
	mem_free(l->extras);
	mem_free(l->leftovers);
	mem_free(l->bufs);
	memset(l, 0, sizeof(*l));
}
