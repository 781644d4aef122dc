/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node index made anew has all blocks of the old one that can be read, and those that only the logs have. It is
 * made beside the old one, under the lock that all who append to that take, and renamed over it: who waits for the
 * lock finds that the old one has lost its name.
 */
#include "rebuild.h"

#include "left_index.h"
#include "sys.h"

#include <stdio.h>
#include <stdlib.h>

/* Whether the block is to be in the new index at @path. */
static bool belongs(const struct look *l, const struct look_block *b, const char *path, bool partial)
{
	const struct look_log *log = l->logs[b->log];
	char index[CONTAINER_PATH_LEN];

	if (b->index != LOOK_NONE)
		return !strcmp(l->indexes[b->index].path, path);
	if (!log->complete && !log->indexed && !partial)
		return false;
	left_index_path(log->path, index);
	return !strcmp(index, path);
}

static const struct look_index *find_index(const struct look *l, const char *path)
{
	for (uint32_t i = 0; i < l->nr_indexes; i++)
		if (!strcmp(l->indexes[i].path, path))
			return &l->indexes[i];
	return NULL;
}

static void count(const struct look *l, struct rebuild *r, bool partial)
{
	r->old = find_index(l, r->path);
	r->nr_blocks = r->nr_new = 0;
	for (uint32_t i = 0; i < l->nr_blocks; i++)
		if (belongs(l, &l->blocks[i], r->path, partial)) {
			r->nr_blocks++;
			r->nr_new += l->blocks[i].index == LOOK_NONE;
		}
}

/* The paths of all node indexes that are there or should be, in the order of bytes: the first behind @after. */
static bool next_path(const struct look *l, const char *after, char *path)
{
	char index[CONTAINER_PATH_LEN];

	*path = '\0';
	for (uint32_t i = 0; i < l->nr_indexes + l->nr_logs; i++) {
		if (i < l->nr_indexes)
			snprintf(index, sizeof(index), "%s", l->indexes[i].path);
		else
			left_index_path(l->logs[i - l->nr_indexes]->path, index);
		if (strcmp(index, after) > 0 && (!*path || strcmp(index, path) < 0))
			strcpy(path, index);
	}
	return *path;
}

bool rebuild_next(struct look *l, struct rebuild *r, bool partial)
{
	char path[CONTAINER_PATH_LEN];

	while (next_path(l, r->path, path)) {
		strcpy(r->path, path);
		count(l, r, partial);
		if (r->nr_new || (r->old && r->old->nr_damaged && !r->old->untouchable))
			return !(r->old && r->old->untouchable) || rebuild_next(l, r, partial);
	}
	return false;
}

/* ---- making it ---- */

struct sorting {
	const struct look_block *b;
	const char *log;
};

/* By log, in the order in which they were made. */
static int by_log(const void *a, const void *b)
{
	const struct sorting *x = a, *y = b;
	int order = strcmp(x->log, y->log);

	if (order)
		return order;
	if (x->b->block.log_len != y->b->block.log_len)
		return x->b->block.log_len < y->b->block.log_len ? -1 : 1;
	return x->b->block.max_stamp_ns < y->b->block.max_stamp_ns ? -1 :
	       x->b->block.max_stamp_ns > y->b->block.max_stamp_ns;
}

static int make(const struct look *l, const struct rebuild *r, bool partial, uint8_t **buf, size_t *len)
{
	struct sorting *sorted = mem_alloc((r->nr_blocks + (size_t)1) * sizeof(*sorted));
	uint32_t nr = 0;

	*buf = NULL;
	*len = 0;
	if (!sorted)
		return -ENOMEM;
	for (uint32_t i = 0; i < l->nr_blocks; i++)
		if (belongs(l, &l->blocks[i], r->path, partial)) {
			sorted[nr++] = (struct sorting){ &l->blocks[i], l->logs[l->blocks[i].log]->path };
			*len += round_up_u64(l->blocks[i].len, 8);
		}
	qsort(sorted, nr, sizeof(*sorted), by_log);
	*buf = mem_zalloc(*len + 1);
	*len = 0;
	for (uint32_t i = 0; *buf && i < nr; i++) {
		memcpy(*buf + *len, sorted[i].b->p, sorted[i].b->len);
		*len += round_up_u64(sorted[i].b->len, 8);
	}
	mem_free(sorted);
	return *buf ? 0 : -ENOMEM;
}

/* ---- putting it in place ---- */

static int sync_dir_of(const struct look *l, const char *full)
{
	struct store *s = l->c->store;
	char dir[CONTAINER_PATH_LEN];
	int ret, h;

	snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(full, '/') - full), full);
	h = store_open(s, dir, O_RDONLY | O_DIRECTORY | STORE_BRIEFLY, 0);
	if (h < 0)
		return h;
	ret = s->ops->sync(s, h, true);
	store_close(s, &h);
	return ret;
}

/* What is in the file now; -EAGAIN: it is not what was looked at. */
static int is_as_before(const struct look *l, const struct look_index *old, int h, const struct stat *st)
{
	size_t had = old ? old->len : 0, len = (size_t)st->st_size;
	uint8_t *now;
	ssize_t n;
	int ret;

	if (len != had)
		return -EAGAIN;
	if (!len)
		return 0;
	now = mem_alloc(len);
	if (!now)
		return -ENOMEM;
	n = l->c->store->ops->pread(l->c->store, h, now, len, 0);
	ret = n < 0 ? (int)n : n == (ssize_t)len && !memcmp(now, old->buf, len) ? 0 : -EAGAIN;
	mem_free(now);
	return ret;
}

/* Make the file, or put it in the place of another, on stable storage; @full relative to the store. */
static int replace(struct look *l, const char *full, const void *buf, size_t len)
{
	struct store *s = l->c->store;
	char temp[CONTAINER_PATH_LEN + 16];
	uint32_t salt = 0;
	ssize_t n;
	int ret, h;

	if (sys.getrandom(&salt, sizeof(salt), 0) != sizeof(salt))
		return -EIO;
	snprintf(temp, sizeof(temp), "%s.tmp.%08x", full, salt);
	h = container_open(l->c, temp, O_RDWR | O_CREAT | O_EXCL | STORE_BRIEFLY, container_file_mode(l->c, true));
	if (h < 0)
		return h;
	n = s->ops->pwrite(s, h, buf, len, 0);
	ret = n == (ssize_t)len ? s->ops->sync(s, h, false) : n < 0 ? (int)n : -ENOSPC;
	store_close(s, &h);
	if (!ret)
		ret = s->ops->rename(s, temp, full);
	if (ret)
		s->ops->unlink(s, temp);
	return ret ? ret : sync_dir_of(l, full);
}

/* The old one under the name *@kept, before the new one takes its place. */
static int keep_copy(struct look *l, const struct rebuild *r, char *kept)
{
	char full[CONTAINER_PATH_LEN];
	int ret = left_kept_name(l->c, r->path, kept);

	container_path(l->c, kept, full);
	return ret ? ret : replace(l, full, r->old->buf, r->old->len);
}

int rebuild_index(struct look *l, const struct rebuild *r, bool partial, char *kept)
{
	char full[CONTAINER_PATH_LEN];
	struct stat st;
	uint8_t *buf;
	size_t len;
	int ret, h;

	*kept = '\0';
	container_path(l->c, r->path, full);
	ret = make(l, r, partial, &buf, &len);
	if (ret)
		return ret;
	h = left_index_lock(l->c, r->path, &st);
	ret = h < 0 ? h : is_as_before(l, r->old, h, &st);
	if (!ret && r->old && r->old->nr_damaged)
		ret = keep_copy(l, r, kept);
	if (!ret)
		ret = replace(l, full, buf, len);
	if (h >= 0)
		left_index_unlock(l->c, h);
	mem_free(buf);
	return ret;
}
