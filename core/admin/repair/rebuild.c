/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Builds a node index from all readable blocks of the old one and from those that only the logs have. It is
 * written beside the old one, under the lock that appending writers take, and renamed over it. A writer that
 * was waiting for the lock finds that the old one has lost its name, and opens the new one.
 */
#include "core/admin/repair/rebuild.h"

#include "core/backend/names.h"
#include "core/dropping/node_index.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Whether the block belongs into the new index at @path. */
static bool belongs(const struct scan *l, const struct scan_block *b, const char *path, bool partial)
{
	const struct scan_log *log = l->logs[b->log];
	char index[CONTAINER_PATH_LEN];

	if (b->index != SCAN_NONE)
		return !strcmp(l->indexes[b->index].path, path);
	if (b->told || (!log->complete && !log->indexed && !partial))
		return false;
	name_index_of(log->path, index);
	return !strcmp(index, path);
}

static const struct scan_index *find_index(const struct scan *l, const char *path)
{
	for (uint32_t i = 0; i < l->nr_indexes; i++)
		if (!strcmp(l->indexes[i].path, path))
			return &l->indexes[i];
	return NULL;
}

static void count(const struct scan *l, struct rebuild *r, bool partial)
{
	r->old = find_index(l, r->path);
	r->nr_blocks = r->nr_new = 0;
	for (uint32_t i = 0; i < l->nr_blocks; i++)
		if (belongs(l, &l->blocks[i], r->path, partial)) {
			r->nr_blocks++;
			r->nr_new += l->blocks[i].index == SCAN_NONE;
		}
}

/* Find the node index, existing or missing, whose path is the next after @after in byte order. */
static bool next_path(const struct scan *l, const char *after, char *path)
{
	char index[CONTAINER_PATH_LEN];

	*path = '\0';
	for (uint32_t i = 0; i < l->nr_indexes + l->nr_logs; i++) {
		if (i < l->nr_indexes)
			snprintf(index, sizeof(index), "%s", l->indexes[i].path);
		else
			name_index_of(l->logs[i - l->nr_indexes]->path, index);
		if (strcmp(index, after) > 0 && (!*path || strcmp(index, path) < 0))
			strcpy(path, index);
	}
	return *path;
}

bool rebuild_next(struct scan *l, struct rebuild *r, bool partial)
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
	const struct scan_block *b;
	const char *log;
};

/* By log, then in the order of writing. */
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

static int make(const struct scan *l, const struct rebuild *r, bool partial, uint8_t **buf, size_t *len)
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

/* 0: the index is as it was scanned; -EAGAIN: it has changed; -errno. */
static int is_as_before(const struct scan *l, const struct scan_index *old, int h, const struct stat *st)
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

/* Make or replace the dropping @full (relative to the store) on stable storage. */
static int replace(const struct container *c, const char *full, mode_t mode, uid_t uid, const void *buf,
		   size_t len)
{
	return store_replace_durably(c->store, full, mode, uid, buf, len);
}

/*
 * Keep a copy of the old index, with the attributes @st, under the name *@kept, before the new one is there.
 * It may be a private file that another user has moved here: so only those can read the copy who could read
 * that.
 */
static int keep_copy(struct scan *l, const struct rebuild *r, const struct stat *st, char *kept)
{
	mode_t mode = container_file_mode(l->c, true) & (st->st_mode | S_IRUSR | S_IWUSR);
	char full[CONTAINER_PATH_LEN];
	int ret = name_kept(l->c, r->path, kept);

	container_path(l->c, kept, full);
	if (st->st_gid != l->c->gid)
		mode &= ~S_IRWXG;
	return ret ? ret : replace(l->c, full, mode, geteuid() ? STORE_NOBODY : st->st_uid, r->old->buf,
				   r->old->len);
}

int rebuild_index(struct scan *l, const struct rebuild *r, bool partial, char *kept)
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
	h = node_index_lock_of(l->c, r->path, &st);
	ret = h < 0 ? h : is_as_before(l, r->old, h, &st);
	if (!ret && r->old && r->old->nr_damaged)
		ret = keep_copy(l, r, &st, kept);
	if (!ret)
		ret = replace(l->c, full, container_file_mode(l->c, true),
			      l->c->give ? l->c->uid : STORE_NOBODY, buf, len);
	if (h >= 0)
		node_index_unlock(l->c, h);
	mem_free(buf);
	return ret;
}
