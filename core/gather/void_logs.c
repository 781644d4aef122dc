/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two passes over the node indexes, each with one index locked at a time: logs, then blocks.
 */
#include "core/gather/void_logs.h"

#include "core/backend/container_dirs.h"
#include "core/backend/names.h"
#include "core/backend/spare.h"
#include "core/base/bytes.h"
#include "core/base/hash.h"
#include "core/base/msg.h"
#include "core/base/vec.h"
#include "core/dropping/datalog.h"
#include "core/dropping/node_index.h"
#include "core/dropping/trailers.h"

#define PATIENCE_MS 1000 /* for processes that append */

/*
 * So many logs go while the index is locked, which keeps writers from closing theirs. They are open then:
 * their space is given back, which may take long, when they are closed behind that.
 */
#define AT_ONCE 16

struct void_log {
	UT_hash_handle hh;
	bool valid; /* it has a record that counts */
	bool gone;
	uint64_t indexed_len; /* the largest log_len of its blocks */
	char path[];
};

/* A node index, locked. */
struct void_index {
	const struct container *c;
	uint64_t generation_ns;
	const char *path; /* relative to the container */
	struct node_index idx;
	struct void_log *logs;
	int gone[AT_ONCE]; /* handles of logs that have lost their names */
	unsigned nr_gone;
	struct void_logs *out;
};

static struct void_log *log_of(struct void_index *vi, const struct index_block *block)
{
	char path[CONTAINER_PATH_LEN];
	struct void_log *log;
	size_t len;

	name_log_of_block(vi->path, block, path);
	len = strlen(path);
	HASH_FIND(hh, vi->logs, path, len, log);
	if (log)
		return log;
	log = mem_zalloc(sizeof(*log) + len + 1);
	if (!log)
		return NULL;
	memcpy(log->path, path, len + 1);
	HASH_ADD(hh, vi->logs, path, len, log);
	if (log->hh.tbl)
		return log;
	mem_free(log);
	return NULL;
}

/* 0; -EBADMSG: a part of it cannot be read, and it stays as it is; -errno. */
static int find_logs(struct void_index *vi)
{
	struct index_block block;
	int ret;

	while ((ret = node_index_next(&vi->idx, &block)) > 0) {
		struct void_log *log = log_of(vi, &block);

		if (!log)
			return -ENOMEM;
		log->valid |= block.max_stamp_ns > vi->generation_ns;
		log->indexed_len = max_u64(log->indexed_len, block.log_len);
	}
	return !ret && vi->idx.damaged ? -EBADMSG : ret;
}

static bool is_missing(const struct void_index *vi, const char *path)
{
	struct store *s = vi->c->store;
	char full[CONTAINER_PATH_LEN];
	struct stat st;

	container_path(vi->c, path, full);
	return s->ops->stat(s, full, &st) == -ENOENT;
}

/* ---- logs ---- */

struct within_arg {
	struct store *s;
	int h;
	uint64_t indexed_len;
};

/*
 * Whether the index, which reaches to @indexed_len, has all of @block, of the same log: that itself, or an
 * earlier one that has its bytes. A sync by another process leaves such ones (write/durable.c).
 */
static bool is_known(const struct index_block *block, uint64_t indexed_len)
{
	struct index_cursor cur = { 0 };
	struct index_record rec;
	bool known = true;

	if (block->log_len <= indexed_len)
		return true;
	while (known && index_block_record(block, &cur, &rec) > 0)
		known = rec.type == INDEX_WRITE && index_record_log_end(&rec) <= indexed_len;
	return known;
}

/* Whether the index has the block of @t: 0; -ENODATA: it has not, or that cannot be read. */
static int look_within(void *arg, const struct index_trailer *t)
{
	const struct within_arg *wa = arg;
	struct index_block block;
	void *buf;
	ssize_t n = trailer_block(wa->s, wa->h, t, &buf);
	bool is = n > 0 && index_block_parse(&block, buf, (size_t)n) == n &&
		  is_known(&block, wa->indexed_len);

	if (n >= 0)
		mem_free(buf);
	return is ? 0 : -ENODATA;
}

struct synced_arg {
	uint32_t pid, seq;
	uint64_t records_end, synced_len;
	bool says; /* a block says that so much was synced */
};

static int look_synced(void *arg, const struct index_block *block)
{
	struct synced_arg *sa = arg;
	struct index_cursor cur = { 0 };
	struct index_record rec;

	if (block->pid != sa->pid || block->seq != sa->seq)
		return 0;
	while (index_block_record(block, &cur, &rec) > 0)
		if (rec.type == INDEX_WRITE)
			sa->records_end = max_u64(sa->records_end, index_record_log_end(&rec));
	sa->says |= block->synced;
	sa->synced_len = max_u64(sa->synced_len, block->synced ? block->log_len : 0);
	return 0;
}

/* Whether its host has been restarted since, and all that the index has of it was synced before. */
static bool was_synced(const struct container *c, const char *path)
{
	struct synced_arg sa = { .says = false };
	char index[CONTAINER_PATH_LEN];
	unsigned damaged = 0;

	if (c->store->remote || name_is_ours(name_of(path)))
		return false;
	name_log_numbers(name_of(path), &sa.pid, &sa.seq);
	name_index_of(path, index);
	return !node_index_each(c, index, look_synced, &sa, &damaged) && !damaged && sa.says &&
	       sa.records_end <= sa.synced_len;
}

bool log_is_all_indexed(const struct container *c, const char *path, uint64_t indexed_len)
{
	struct within_arg wa = { c->store, datalog_open(c, path, false), indexed_len };
	struct index_trailer t;
	int ret;

	if (wa.h < 0)
		return false;
	ret = trailer_last(wa.s, wa.h, c->id, &t);
	if (!ret)
		ret = look_within(&wa, &t);
	else if (ret == -EBADMSG && was_synced(c, path))
		ret = trailer_scan(wa.s, wa.h, c->id, 0, look_within, &wa);
	else if (ret == -ENODATA) /* it has no bytes */
		ret = 0;
	store_close(wa.s, &wa.h);
	return !ret;
}

static bool may_go(const struct void_index *vi, const struct void_log *log)
{
	char live[CONTAINER_PATH_LEN];

	name_live_of_log(log->path, live);
	return is_missing(vi, live) && log_is_all_indexed(vi->c, log->path, log->indexed_len);
}

static bool remove_log(struct void_index *vi, const struct void_log *log)
{
	struct store *s = vi->c->store;
	char full[CONTAINER_PATH_LEN];
	int h;

	if (!may_go(vi, log))
		return false;
	container_path(vi->c, log->path, full);
	h = store_open(s, full, O_RDONLY | STORE_BRIEFLY, 0);
	if (spare_may_be(vi->c))
		spare_unlink(vi->c, log->path);
	if (s->ops->unlink(s, full)) {
		store_close(s, &h);
		return false;
	}
	if (h >= 0)
		vi->gone[vi->nr_gone++] = h;
	return true;
}

/* 1: there are more, and some have gone. */
static int remove_logs(struct void_index *vi)
{
	uint64_t nr_left = 0;

	for (struct void_log *log = vi->logs; log; log = log->hh.next) {
		if (log->valid || is_missing(vi, log->path))
			continue;
		if (vi->nr_gone == AT_ONCE)
			return 1;
		if (remove_log(vi, log))
			vi->out->nr_removed++;
		else
			nr_left++;
	}
	vi->out->nr_left += nr_left;
	return 0;
}

/* ---- blocks ---- */

static bool find_gone(struct void_index *vi)
{
	char live[CONTAINER_PATH_LEN];
	bool any = false;

	for (struct void_log *log = vi->logs; log; log = log->hh.next) {
		name_live_of_log(log->path, live);
		log->gone = !log->valid && is_missing(vi, log->path) && is_missing(vi, live);
		any |= log->gone;
	}
	return any;
}

/* Copy the blocks that stay to @buf. Returns their length. */
static size_t copy_blocks(struct void_index *vi, uint8_t *buf)
{
	const uint8_t *p = vi->idx.buf;
	struct index_block block;
	size_t len = 0, n;

	for (size_t pos = 0; pos < vi->idx.len; pos += n) {
		ssize_t parsed = index_block_parse(&block, p + pos, vi->idx.len - pos);
		const struct void_log *log;

		n = parsed > 0 ? (size_t)parsed : index_block_skip(p + pos, vi->idx.len - pos);
		log = parsed > 0 ? log_of(vi, &block) : NULL;
		if (parsed <= 0 || (log && log->gone))
			continue;
		memcpy(buf + len, p + pos, n);
		len += n;
	}
	return len;
}

static int drop_blocks(struct void_index *vi)
{
	const struct container *c = vi->c;
	struct store *s = c->store;
	char full[CONTAINER_PATH_LEN];
	uint8_t *buf;
	size_t len;
	int ret;

	if (!find_gone(vi))
		return 0;
	buf = mem_alloc(vi->idx.len + 1);
	if (!buf)
		return -ENOMEM;
	len = copy_blocks(vi, buf);
	container_path(c, vi->path, full);
	ret = len ? store_replace_durably(s, full, container_file_mode(c, true),
					  c->give ? c->uid : STORE_NOBODY, buf, len) :
		    s->ops->unlink(s, full);
	mem_free(buf);
	return ret;
}

/* ---- all ---- */

static void release(struct void_index *vi)
{
	struct void_log *log, *next;

	HASH_ITER(hh, vi->logs, log, next) {
		HASH_DEL(vi->logs, log);
		mem_free(log);
	}
	node_index_close(&vi->idx);
}

static int with_index(const struct container *c, uint64_t generation_ns, const char *path,
		      int (*fn)(struct void_index *vi), struct void_logs *out)
{
	struct void_index vi = { .c = c, .generation_ns = generation_ns, .path = path, .out = out };
	struct store *s = c->store;
	char full[CONTAINER_PATH_LEN];
	struct stat st;
	int h, ret;

	container_path(c, path, full);
	h = store_open(s, full, O_RDWR | STORE_BRIEFLY, 0);
	ret = h < 0 ? h : node_index_own(s, h, PATIENCE_MS);
	if (!ret)
		ret = s->ops->fstat(s, h, &st);
	if (!ret && !st.st_nlink) /* replaced meanwhile */
		ret = -EAGAIN;
	if (!ret)
		ret = node_index_open(&vi.idx, c, path);
	if (!ret)
		ret = find_logs(&vi);
	if (!ret)
		ret = fn(&vi);
	if (ret < 0 && ret != -ENOENT) {
		msg_debug(MSG_WRITE, "%s: its void logs stay: %s", full, strerror(-ret));
		out->nr_left++;
	}
	if (h >= 0)
		node_index_unlock(c, h);
	for (unsigned i = 0; i < vi.nr_gone; i++)
		store_close(s, &vi.gone[i]);
	release(&vi);
	return ret;
}

struct paths {
	char **v;
	size_t nr, cap;
};

static int note_index(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	struct paths *paths = arg;
	char **v;

	(void)name;
	if (kind != DROPPING_INDEX)
		return 0;
	v = vec_room(paths->v, &paths->cap, paths->nr + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	paths->v = v;
	v[paths->nr] = mem_strdup(path);
	return v[paths->nr++] ? 0 : -ENOMEM;
}

int void_logs_remove(const struct container *c, uint64_t generation_ns, struct void_logs *out)
{
	struct paths paths = { .v = NULL };
	int ret = container_list_there(c, note_index, &paths);

	*out = (struct void_logs){ 0 };
	for (size_t i = 0; i < paths.nr && !ret; i++)
		while (with_index(c, generation_ns, paths.v[i], remove_logs, out) > 0)
			;
	for (size_t i = 0; i < paths.nr && !ret; i++)
		with_index(c, generation_ns, paths.v[i], drop_blocks, out);
	for (size_t i = 0; i < paths.nr; i++)
		mem_free(paths.v[i]);
	mem_free(paths.v);
	return ret;
}
