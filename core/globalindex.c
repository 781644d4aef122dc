/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gathering all records of a container into one map, and the cache of that map. A log that is closed while we
 * look moves from its live file to its node index, in this order, so live files are read first.
 */
#include "globalindex.h"

#include "../index/merge.h"
#include "bytes.h"
#include "crc32c.h"
#include "dropping.h"
#include "hash.h"
#include "log.h"
#include "stage.h"
#include "sys.h"

#include <stdio.h>
#include <stdlib.h>

#define GLOBAL_MAGIC "PLFSGLB1"
#define GLOBAL_VERSION 1
#define GLOBAL_HEADER_LEN 128
#define GLOBAL_NAME "index.global"

/* Fewer records than this are merged faster than their cache is opened. */
#define GLOBAL_WORTH_RECORDS 4096

/* ---- merging ---- */

struct log_name {
	UT_hash_handle hh;
	uint32_t log_no;
	char path[];
};

/* A block of a node index, and whose it is. */
struct merged_block {
	struct index_block block;
	const struct log_name *log;
};

struct merging {
	struct gathered *g;
	const struct container *c;
	uint64_t generation_ns;
	struct index_merge merge;
	struct log_name *names;
	struct node_index *indexes; /* what the blocks point into */
	struct merged_block *blocks;
	size_t nr_blocks, cap_blocks;
};

/* The log at @path, relative to the container; NULL without memory. */
static struct log_name *add_name(struct merging *m, const char *path)
{
	struct log_name *n;
	size_t len = strlen(path);

	HASH_FIND(hh, m->names, path, len, n);
	if (n)
		return n;
	n = mem_alloc(sizeof(*n) + len + 1);
	if (!n)
		return NULL;
	memcpy(n->path, path, len + 1);
	HASH_ADD(hh, m->names, path, len, n);
	if (n->hh.tbl)
		return n;
	mem_free(n);
	return NULL;
}

static int by_path(struct log_name *a, struct log_name *b)
{
	return strcmp(a->path, b->path);
}

/* Number the logs in the order of their names, so that every reader breaks ties alike. */
static int number_logs(struct merging *m)
{
	struct gathered *g = m->g;
	uint32_t nr = HASH_COUNT(m->names);

	g->logs = mem_zalloc((nr + 1) * sizeof(*g->logs));
	if (!g->logs)
		return -ENOMEM;
	HASH_SORT(m->names, by_path);
	for (struct log_name *n = m->names; n; n = n->hh.next) {
		n->log_no = g->nr_logs;
		g->logs[g->nr_logs] = mem_strdup(n->path);
		if (!g->logs[g->nr_logs])
			return -ENOMEM;
		g->nr_logs++;
	}
	return 0;
}

static int add_record(struct merging *m, uint32_t log_no, const struct index_record *rec)
{
	if (rec->stamp_ns <= m->generation_ns || (rec->type != INDEX_WRITE && rec->type != INDEX_TRUNCATE))
		return 0;
	m->g->nr_records++;
	return index_merge_add(&m->merge, log_no, rec);
}

static int add_block(struct merging *m, const char *index, const struct index_block *block)
{
	struct merged_block *blocks;
	const struct log_name *log;
	char path[CONTAINER_PATH_LEN];
	size_t cap = m->cap_blocks;

	if (m->nr_blocks == cap) {
		cap = cap ? 2 * cap : 64;
		blocks = mem_realloc(m->blocks, cap * sizeof(*blocks));
		if (!blocks)
			return -ENOMEM;
		m->blocks = blocks;
		m->cap_blocks = cap;
	}
	dropping_log_path(index, block, path);
	log = add_name(m, path);
	if (!log)
		return -ENOMEM;
	m->blocks[m->nr_blocks++] = (struct merged_block){ *block, log };
	return 0;
}

/* All blocks of all node indexes, their records still encoded. */
static int load_indexes(struct merging *m, const struct index_inputs *in)
{
	int ret = 0;

	m->indexes = mem_zalloc((in->nr_indexes + 1) * sizeof(*m->indexes));
	if (!m->indexes)
		return -ENOMEM;
	for (uint32_t i = 0; i < in->nr_indexes && !ret; i++) {
		struct index_block block;

		ret = node_index_open(&m->indexes[i], m->c, in->indexes[i]);
		if (ret)
			return ret == -ENOENT ? -EAGAIN : ret;
		while ((ret = node_index_next(&m->indexes[i], &block)) > 0) {
			ret = add_block(m, in->indexes[i], &block);
			if (ret)
				break;
		}
		m->g->damaged += m->indexes[i].damaged;
	}
	return ret;
}

static int add_blocks(struct merging *m)
{
	size_t nr = 0;
	int ret;

	for (size_t i = 0; i < m->nr_blocks; i++)
		nr += m->blocks[i].block.nr_records;
	ret = index_merge_reserve(&m->merge, nr);
	for (size_t i = 0; i < m->nr_blocks && !ret; i++) {
		const struct merged_block *b = &m->blocks[i];
		struct index_cursor cur = { 0 };
		struct index_record rec;

		while ((ret = index_block_record(&b->block, &cur, &rec)) > 0) {
			ret = add_record(m, b->log->log_no, &rec);
			if (ret)
				break;
		}
		if (ret == -EBADMSG)
			log_error("%s: damaged index record of %s", m->c->dir, b->log->path);
	}
	return ret == -EBADMSG ? -EIO : ret;
}

static void release_indexes(struct merging *m, const struct index_inputs *in)
{
	for (uint32_t i = 0; m->indexes && i < in->nr_indexes; i++)
		node_index_close(&m->indexes[i]);
	mem_free(m->indexes);
	mem_free(m->blocks);
	m->indexes = NULL;
	m->blocks = NULL;
}

struct live {
	struct stage_state state;
	struct index_record *records;
	const struct log_name *log; /* NULL: just made, it says nothing */
};

static int load_live(struct merging *m, struct live *live, const char *input)
{
	const char *name = live->state.log_name;
	char path[CONTAINER_PATH_LEN];
	int ret = stage_load(m->c, input, &live->state, &live->records);

	if (ret || !*name)
		return ret == -ENOENT ? -EAGAIN : ret == -EBADMSG ? -EIO : ret;
	if (strncmp(name, "data.", 5) || strchr(name, '/'))
		return -EIO; /* no plain name */
	snprintf(path, sizeof(path), "%.*s%s", (int)strcspn(input, "/") + 1, input, name);
	live->log = add_name(m, path);
	return live->log ? 0 : -ENOMEM;
}

static int add_live(struct merging *m, const struct live *live)
{
	int ret = 0;

	for (uint64_t i = 0; live->log && i < live->state.nr_records && !ret; i++)
		ret = add_record(m, live->log->log_no, &live->records[i]);
	return ret;
}

static void remember(struct live_seen *seen, const struct live *live)
{
	uint64_t nr = live->state.nr_records;

	*seen = (struct live_seen){ .nr_records = nr, .log_no = live->log ? live->log->log_no : UINT32_MAX };
	if (nr)
		seen->last = live->records[nr - 1];
}

/* A log that is closed while we look moves from its live file to its node index: so live files come first. */
static int merge_inputs(struct merging *m, const struct index_inputs *in, const char *own_live)
{
	uint32_t nr = in->nr_lives + (own_live != NULL);
	struct live *lives = mem_zalloc((nr + 1) * sizeof(*lives));
	int ret = lives ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < nr && !ret; i++)
		ret = load_live(m, &lives[i], i < in->nr_lives ? in->lives[i] : own_live);
	if (!ret)
		ret = load_indexes(m, in);
	if (!ret)
		ret = number_logs(m);
	if (!ret)
		ret = add_blocks(m);
	release_indexes(m, in);
	for (uint32_t i = 0; i < nr && !ret; i++)
		ret = add_live(m, &lives[i]);
	if (!ret && m->g->damaged)
		ret = -EIO;
	if (!ret)
		ret = index_merge_build(&m->merge, &m->g->image, &m->g->image_len);
	if (!ret)
		ret = index_map_open(&m->g->map, m->g->image, m->g->image_len, false);
	if (!ret)
		m->g->seen = mem_alloc((in->nr_lives + (size_t)1) * sizeof(*m->g->seen));
	for (uint32_t i = 0; m->g->seen && i < in->nr_lives; i++)
		remember(&m->g->seen[i], &lives[i]);
	for (uint32_t i = 0; lives && i < nr; i++)
		mem_free(lives[i].records);
	mem_free(lives);
	return ret;
}

/* ---- the cache ---- */

/* The list of inputs as text, mem_alloc()ed. */
static char *inputs_text(const struct index_inputs *in, size_t *len)
{
	size_t cap = 1;
	char *text;

	for (uint32_t i = 0; i < in->nr_indexes; i++)
		cap += strlen(in->indexes[i]) + 24;
	text = mem_alloc(cap);
	*len = 0;
	for (uint32_t i = 0; text && i < in->nr_indexes; i++)
		*len += (size_t)snprintf(text + *len, cap - *len, "%s %llu\n", in->indexes[i],
					 (unsigned long long)in->sizes[i]);
	return text;
}

/* Write the map for the next reader. */
static int save_global(const struct gathered *g, const struct container *c, const char *inputs, size_t inputs_len,
		       uint64_t generation_ns)
{
	char path[CONTAINER_PATH_LEN];
	size_t names_len = 0, map_off;
	uint8_t *buf;
	char *p;
	int ret;

	for (uint32_t i = 0; i < g->nr_logs; i++)
		names_len += strlen(g->logs[i]) + 1;
	map_off = (GLOBAL_HEADER_LEN + inputs_len + names_len + 7) / 8 * 8;
	buf = mem_zalloc(map_off);
	if (!buf)
		return -ENOMEM;
	memcpy(buf, GLOBAL_MAGIC, 8);
	put_le32(buf + 8, GLOBAL_VERSION);
	memcpy(buf + 16, c->id, STUB_ID_LEN);
	put_le64(buf + 32, generation_ns);
	put_le64(buf + 40, inputs_len);
	put_le64(buf + 48, names_len);
	put_le64(buf + 56, map_off);
	put_le64(buf + 64, g->image_len);
	put_le32(buf + 72, g->nr_logs);
	p = (char *)buf + GLOBAL_HEADER_LEN;
	memcpy(p, inputs, inputs_len);
	p += inputs_len;
	for (uint32_t i = 0; i < g->nr_logs; i++)
		p = stpcpy(p, g->logs[i]) + 1;
	put_le32(buf + 76, crc32c(0, buf + GLOBAL_HEADER_LEN, inputs_len + names_len));
	put_le32(buf + 12, crc32c(0, buf, GLOBAL_HEADER_LEN));
	container_path(c, GLOBAL_NAME, path);
	ret = store_write_file(c->store, path, container_file_mode(c, true), buf, map_off, g->image, g->image_len);
	mem_free(buf);
	return ret;
}

/* Whether the mapped file is what it should be and was made from these inputs. */
static bool global_valid(const struct global_index *gi, const struct container *c, const char *inputs,
			 size_t inputs_len, uint64_t generation_ns)
{
	const uint8_t *b = gi->base;
	uint8_t head[GLOBAL_HEADER_LEN];
	uint64_t names_len, map_off, map_len;

	if (gi->len < GLOBAL_HEADER_LEN || memcmp(b, GLOBAL_MAGIC, 8) || get_le32(b + 8) != GLOBAL_VERSION)
		return false;
	memcpy(head, b, sizeof(head));
	put_le32(head + 12, 0);
	names_len = get_le64(b + 48);
	map_off = get_le64(b + 56);
	map_len = get_le64(b + 64);
	return crc32c(0, head, sizeof(head)) == get_le32(b + 12) && !memcmp(b + 16, c->id, STUB_ID_LEN) &&
	       get_le64(b + 32) == generation_ns && get_le64(b + 40) == inputs_len && names_len <= gi->len &&
	       GLOBAL_HEADER_LEN + inputs_len + names_len <= map_off && map_off % 8 == 0 && map_off <= gi->len &&
	       map_len <= gi->len - map_off && !memcmp(b + GLOBAL_HEADER_LEN, inputs, inputs_len) &&
	       crc32c(0, b + GLOBAL_HEADER_LEN, inputs_len + names_len) == get_le32(b + 76);
}

static int take_names(struct gathered *g, const char *names, size_t len, uint32_t nr)
{
	const char *end = names + len;

	if (nr > len)
		return -EBADMSG;
	g->logs = mem_zalloc((nr + (size_t)1) * sizeof(*g->logs));
	if (!g->logs)
		return -ENOMEM;
	while (g->nr_logs < nr) {
		const char *nul = memchr(names, 0, (size_t)(end - names));
		const char *slash = nul ? strchr(names, '/') : NULL;

		/* "hostdir.K/data...", and nothing that leads elsewhere */
		if (!slash || nul - names >= CONTAINER_PATH_LEN - 64 || strncmp(names, "hostdir.", 8) ||
		    strncmp(slash, "/data.", 6) || strchr(slash + 1, '/'))
			return -EBADMSG;
		g->logs[g->nr_logs] = mem_strdup(names);
		if (!g->logs[g->nr_logs++])
			return -ENOMEM;
		names = nul + 1;
	}
	return 0;
}

static void drop_logs(struct gathered *g)
{
	for (uint32_t i = 0; g->logs && i < g->nr_logs; i++)
		mem_free(g->logs[i]);
	mem_free(g->logs);
	g->logs = NULL;
	g->nr_logs = 0;
}

void global_index_release(struct global_index *gi)
{
	if (gi->base)
		sys.munmap(gi->base, gi->len);
	gi->base = NULL;
}

static int open_global(struct gathered *g, const struct container *c, const char *inputs, size_t inputs_len,
		       uint64_t generation_ns)
{
	struct global_index *gi = &g->global;
	char path[CONTAINER_PATH_LEN];
	const uint8_t *b;
	struct stat st;
	int h, ret;

	container_path(c, GLOBAL_NAME, path);
	h = store_open(c->store, path, O_RDONLY, 0);
	if (h < 0)
		return h;
	ret = c->store->ops->fstat(c->store, h, &st);
	if (!ret) {
		gi->len = (size_t)st.st_size;
		gi->base = gi->len ? c->store->ops->map(c->store, h, gi->len, false) : NULL;
	}
	store_close(c->store, &h);
	if (!gi->base)
		return -ENOENT;
	ret = -EBADMSG;
	b = gi->base;
	if (global_valid(gi, c, inputs, inputs_len, generation_ns))
		ret = index_map_open(&g->map, b + get_le64(b + 56), get_le64(b + 64), true);
	if (!ret)
		ret = take_names(g, (const char *)b + GLOBAL_HEADER_LEN + inputs_len, get_le64(b + 48), get_le32(b + 72));
	if (ret) {
		drop_logs(g);
		global_index_release(gi);
		return ret;
	}
	g->image = (void *)g->map.image;
	g->image_len = g->map.image_len;
	g->mapped = true;
	g->nr_records = g->map.nr_records;
	return 0;
}

struct check_arg {
	const struct container *c;
	const struct index_inputs *in;
	struct gathered *g;
};

static int compare_path(const void *path, const void *log)
{
	return strcmp(path, *(char *const *)log);
}

/* A log that no index knows, has bytes, and whose process is not at work on it: its index is lost. */
static int check_log(const struct check_arg *ca, const char *path, const char *name)
{
	char full[CONTAINER_PATH_LEN];
	struct stat st;

	if (bsearch(path, ca->g->logs, ca->g->nr_logs, sizeof(*ca->g->logs), compare_path))
		return 0;
	container_path(ca->c, path, full);
	if (ca->c->store->ops->stat(ca->c->store, full, &st) || st.st_size <= DROPPING_DATA_OFF)
		return 0;
	snprintf(full, sizeof(full), "%s/%.*slive.%s", ca->c->dir, (int)(name - path), path, name + sizeof("data.") - 1);
	if (ca->c->store->ops->stat(ca->c->store, full, &st) != -ENOENT)
		return -EAGAIN;
	snprintf(ca->g->lost, sizeof(ca->g->lost), "%s", path);
	return -ENOMSG;
}

static int check_dropping(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	const struct check_arg *ca = arg;

	if (kind == DROPPING_DATA)
		return check_log(ca, path, name);
	if (kind != DROPPING_INDEX)
		return 0;
	return bsearch(path, ca->in->indexes, ca->in->nr_indexes, sizeof(*ca->in->indexes), compare_path) ? 0 : -EAGAIN;
}

/*
 * A node index that came into being after the inputs were listed may hold records that had left their live file by the
 * time we read that. One that was listed has been read after all live files, and so held them.
 */
static int check_complete(struct gathered *g, const struct container *c, const struct index_inputs *in)
{
	struct check_arg ca = { .c = c, .in = in, .g = g };
	int ret = container_list(c, check_dropping, &ca);

	return ret == -ENOENT ? -EAGAIN : ret;
}

/* Save the map, and use it as it is in the file from now on: its memory is shared by all readers then. Best effort. */
static void share_map(struct gathered *g, const struct container *c, const char *inputs, size_t inputs_len,
		      uint64_t generation_ns)
{
	struct gathered saved = { 0 };

	if (save_global(g, c, inputs, inputs_len, generation_ns) ||
	    open_global(&saved, c, inputs, inputs_len, generation_ns))
		return;
	if (saved.nr_logs == g->nr_logs && saved.image_len == g->image_len) {
		mem_free(g->image);
		g->image = saved.image;
		g->map = saved.map;
		g->mapped = true;
		g->global = saved.global;
	} else {
		global_index_release(&saved.global);
	}
	drop_logs(&saved);
}

int gather(struct gathered *g, const struct container *c, const struct index_inputs *in, const char *own_live,
	   uint64_t generation_ns)
{
	struct merging m = { .g = g, .c = c, .generation_ns = generation_ns };
	bool closed = !in->nr_lives && !own_live;
	struct log_name *n, *next;
	char *inputs = NULL;
	size_t inputs_len = 0;
	int ret;

	memset(g, 0, sizeof(*g));
	if (closed) {
		inputs = inputs_text(in, &inputs_len);
		if (inputs && !open_global(g, c, inputs, inputs_len, generation_ns)) {
			ret = check_complete(g, c, in);
			goto out;
		}
	}
	index_merge_init(&m.merge);
	ret = merge_inputs(&m, in, own_live);
	if (!ret)
		ret = check_complete(g, c, in);
	index_merge_release(&m.merge);
	if (!ret && inputs && g->nr_records >= GLOBAL_WORTH_RECORDS)
		share_map(g, c, inputs, inputs_len, generation_ns);
	HASH_ITER(hh, m.names, n, next) {
		HASH_DEL(m.names, n);
		mem_free(n);
	}
out:
	if (ret) {
		drop_logs(g);
		mem_free(g->seen);
		if (!g->mapped)
			mem_free(g->image);
		global_index_release(&g->global);
	}
	mem_free(inputs);
	return ret;
}
