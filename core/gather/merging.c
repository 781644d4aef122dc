/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All node indexes and live files of a container, and where needed the blocks in the logs, are read and
 * merged into one map. A log that is closed meanwhile moves from its live file to its node index: the block
 * is appended before the live file is removed. So live files are read first.
 */
#include "core/gather/merging.h"

#include "core/backend/container_dirs.h"
#include "index/map/merge.h"
#include "core/backend/names.h"
#include "core/dropping/node_index.h"
#include "core/dropping/datalog.h"
#include "core/base/hash.h"
#include "core/base/msg.h"
#include "core/base/vec.h"
#include "core/gather/salvage.h"
#include "core/dropping/live.h"
#include "core/dropping/live_stranded.h"

#include <stdio.h>

struct log_name {
	UT_hash_handle hh;
	uint32_t log_no;
	uint64_t known_len; /* so much of it has been synced, as the node index says */
	uint64_t len;       /* bytes that it has, once it was looked at */
	bool has_len, gone;
	/* Its live file is stranded (live_stranded.h): so much is there, and what stands for the rest. */
	uint64_t sure_len;
	const struct log_name *lost;
	char path[];
};

/* A block of a node index, and its log. */
struct merged_block {
	struct index_block block;
	struct log_name *log;
};

struct merging {
	struct gathered *g;
	const struct container *c;
	const struct gather_span *span;
	struct index_merge merge;
	struct log_name *names;
	struct node_index *indexes; /* what the blocks point into */
	struct node_index *salvaged; /* that too */
	size_t nr_salvaged, cap_salvaged;
	bool salvage; /* ask the logs */
	const struct index_inputs *in;
	const char *own_live;
	struct merged_block *blocks;
	size_t nr_blocks, cap_blocks;
	const char *last_index; /* of the last block in @blocks, or NULL */
};

/* The log at @path, relative to the container; NULL without memory. */
static struct log_name *add_name(struct merging *m, const char *path)
{
	struct log_name *n;
	size_t len = strlen(path);

	HASH_FIND(hh, m->names, path, len, n);
	if (n)
		return n;
	n = mem_zalloc(sizeof(*n) + len + 1);
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
	if (rec->stamp_ns <= m->span->after_ns || rec->stamp_ns > m->span->until_ns ||
	    (rec->type != INDEX_WRITE && rec->type != INDEX_TRUNCATE))
		return 0;
	m->g->nr_records++;
	if (rec->type == INDEX_TRUNCATE)
		m->g->cut_ns = max_u64(m->g->cut_ns, rec->stamp_ns);
	return index_merge_add(&m->merge, log_no, rec);
}

static int add_record_of(struct merging *m, const struct log_name *log, const struct index_record *rec)
{
	struct index_record sure, lost;
	bool has_sure, has_lost;
	int ret = 0;

	if (likely(!log->lost))
		return add_record(m, log->log_no, rec);
	stranded_parts(rec, max_u64(log->sure_len, log->known_len), &sure, &has_sure, &lost, &has_lost);
	if (has_sure)
		ret = add_record(m, log->log_no, &sure);
	if (has_lost && !ret)
		ret = add_record(m, log->lost->log_no, &lost);
	return ret;
}

/*
 * The log of a block of @index; NULL without memory. A process that opens, writes and closes a file again and
 * again leaves block after block of one log, and making its name takes longer than the rest of the work.
 */
static struct log_name *log_of_block(struct merging *m, const char *index, const struct index_block *block)
{
	const struct merged_block *last = m->nr_blocks ? &m->blocks[m->nr_blocks - 1] : NULL;
	char path[CONTAINER_PATH_LEN];

	if (last && m->last_index == index && last->block.pid == block->pid && last->block.seq == block->seq)
		return last->log;
	name_log_of_block(index, block, path);
	return add_name(m, path);
}

static int add_block(struct merging *m, const char *index, const struct index_block *block)
{
	struct merged_block *blocks = vec_room(m->blocks, &m->cap_blocks, m->nr_blocks + 1, sizeof(*blocks));
	struct log_name *log;

	if (!blocks)
		return -ENOMEM;
	m->blocks = blocks;
	log = log_of_block(m, index, block);
	if (!log)
		return -ENOMEM;
	m->last_index = index;
	if (block->synced)
		log->known_len = max_u64(log->known_len, block->log_len);
	blocks[m->nr_blocks++] = (struct merged_block){ *block, log };
	return 0;
}

static bool has_live(const struct merging *m, const char *log_path)
{
	char live[CONTAINER_PATH_LEN];

	name_live_of_log(log_path, live);
	return path_is_among(live, m->in->lives, m->in->nr_lives) ||
	       (m->own_live && !strcmp(live, m->own_live));
}

/*
 * Add the blocks in a log. The indexes have most of them too, and twice does no harm. The end of a log may
 * have no block. If its host has been restarted since, nothing there was ever synced. Else it was in a live
 * file, which is lost.
 */
static int salvage(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	struct merging *m = arg;
	char index[CONTAINER_PATH_LEN];
	struct node_index *idx;
	struct index_block block;
	bool whole, restarted = !m->c->store->remote && !name_is_ours(name);
	int ret;

	if (kind != DROPPING_DATA)
		return 0;
	idx = vec_room(m->salvaged, &m->cap_salvaged, m->nr_salvaged + 1, sizeof(*idx));
	if (!idx)
		return -ENOMEM;
	m->salvaged = idx;
	idx += m->nr_salvaged;
	ret = salvage_log(idx, m->c, path, &whole);
	if (ret)
		return ret;
	m->nr_salvaged++;
	if (!whole && !restarted && !has_live(m, path))
		return gathered_lacks_log(m->g, path);
	name_index_of(path, index);
	m->last_index = NULL; /* what is at the same address now */
	while (!ret && (ret = node_index_next(idx, &block)) > 0)
		ret = add_block(m, index, &block);
	if (!ret && !idx->len && restarted)
		ret = add_name(m, path) ? 0 : -ENOMEM;
	return ret;
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
			return ret == -ENOENT ? gathered_is_outdated(m->g) : ret;
		while ((ret = node_index_next(&m->indexes[i], &block)) > 0) {
			ret = add_block(m, in->indexes[i], &block);
			if (ret)
				break;
		}
		m->salvage |= m->indexes[i].damaged > 0;
	}
	if (!ret && m->salvage)
		ret = container_list(m->c, salvage, m);
	return ret;
}

static uint64_t len_of(const struct merging *m, struct log_name *log)
{
	char full[CONTAINER_PATH_LEN];
	struct stat st;

	if (!log->has_len) {
		int ret;

		container_path(m->c, log->path, full);
		ret = m->c->store->ops->stat(m->c->store, full, &st);
		log->gone = ret == -ENOENT || ret == -EREMOTE;
		log->len = ret ? 0 : datalog_len(&st);
		log->has_len = true;
	}
	return log->len;
}

/* Records beyond the bytes of their logs. */
struct beyond {
	uint64_t nr, nr_gone; /* of logs that are there, and that have gone */
};

/* @nr records of writes are in one block of @log. -EIO: so many of all cannot be (one line). */
static int count_writes(struct merging *m, struct log_name *log, uint64_t nr, struct beyond *beyond)
{
	uint64_t len = len_of(m, log);

	*(log->gone ? &beyond->nr_gone : &beyond->nr) += nr > len ? nr - len : 0;
	if (beyond->nr <= NODE_INDEX_SPARE_RECORDS && beyond->nr_gone <= NODE_INDEX_LOST_RECORDS)
		return 0;
	msg_error("%s: damaged node indexes: they have more records than the logs have bytes", m->c->dir);
	return -EIO;
}

static int add_blocks(struct merging *m)
{
	struct beyond beyond = { 0 };
	size_t nr = 0;
	int ret;

	for (size_t i = 0; i < m->nr_blocks; i++)
		nr += m->blocks[i].block.nr_records;
	ret = index_merge_reserve(&m->merge, nr);
	for (size_t i = 0; i < m->nr_blocks && !ret; i++) {
		const struct merged_block *b = &m->blocks[i];
		struct index_cursor cur = { 0 };
		struct index_record rec;
		uint64_t nr_writes = 0;

		while ((ret = index_block_record(&b->block, &cur, &rec)) > 0) {
			/* the log of a void one may be gone */
			nr_writes += rec.type == INDEX_WRITE && rec.stamp_ns > m->span->after_ns;
			ret = add_record_of(m, b->log, &rec);
			if (ret)
				break;
		}
		if (!ret && nr > NODE_INDEX_SPARE_RECORDS)
			ret = count_writes(m, b->log, nr_writes, &beyond);
		if (ret == -EBADMSG)
			msg_error("%s: damaged index record of %s", m->c->dir, b->log->path);
	}
	return ret == -EBADMSG ? -EIO : ret;
}

static void release_indexes(struct merging *m, const struct index_inputs *in)
{
	for (uint32_t i = 0; m->indexes && i < in->nr_indexes; i++)
		node_index_close(&m->indexes[i]);
	for (size_t i = 0; i < m->nr_salvaged; i++)
		node_index_close(&m->salvaged[i]);
	mem_free(m->salvaged);
	mem_free(m->indexes);
	mem_free(m->blocks);
	m->salvaged = NULL;
	m->indexes = NULL;
	m->blocks = NULL;
}

struct live_input {
	struct live_state state;
	struct index_record *records;
	struct log_name *log; /* NULL: just made, it says nothing */
};

static int load_live(struct merging *m, struct live_input *live, const char *input)
{
	const char *name = live->state.log_name;
	char path[CONTAINER_PATH_LEN];
	int ret = live_load(m->c, input, &live->state, &live->records);

	if (ret == -ENOENT)
		return gathered_is_outdated(m->g);
	if (ret || !*name)
		return ret == -EBADMSG ? -EIO : ret;
	if (!name_is_log(name)) {
		msg_error("%s/%s: the live index names no data log", m->c->dir, input);
		return -EIO;
	}
	name_beside(input, name, path);
	live->log = add_name(m, path);
	/* Bytes that may be lost are recorded in a log that does not exist: reading them is an error. */
	if (live->log && live->state.stranded) {
		name_lost_of_log(live->log->path, path);
		live->log->lost = add_name(m, path);
	}
	return live->log && (live->log->lost || !live->state.stranded) ? 0 : -ENOMEM;
}

static int add_live(struct merging *m, const struct live_input *live)
{
	int ret = 0;

	for (uint64_t i = 0; live->log && i < live->state.nr_records && !ret; i++)
		ret = add_record_of(m, live->log, &live->records[i]);
	return ret;
}

static void remember(struct live_seen *seen, const struct live_input *live)
{
	uint64_t nr = live->state.nr_records;

	*seen = (struct live_seen){ .seq = live->state.seq,
				    .nr_records = nr,
				    .log_no = live->log ? live->log->log_no : UINT32_MAX };
	if (nr)
		seen->last = live->records[nr - 1];
}

static int merge_inputs(struct merging *m, const struct index_inputs *in, const char *own_live)
{
	uint32_t nr = in->nr_lives + (own_live != NULL);
	struct live_input *lives = mem_zalloc((nr + 1) * sizeof(*lives));
	int ret = lives ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < nr && !ret; i++)
		ret = load_live(m, &lives[i], i < in->nr_lives ? in->lives[i] : own_live);
	if (!ret)
		ret = load_indexes(m, in);
	if (!ret)
		ret = number_logs(m);
	for (uint32_t i = 0; i < in->nr_lives && !ret; i++)
		if (lives[i].log && lives[i].state.stranded)
			lives[i].log->sure_len = live_sure_len(m->c, in->lives[i], lives[i].log->path,
								lives[i].log->known_len);
	if (!ret)
		ret = add_blocks(m);
	release_indexes(m, in);
	for (uint32_t i = 0; i < nr && !ret; i++)
		ret = add_live(m, &lives[i]);
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

int gather_merged(struct gathered *g, const struct container *c, const struct index_inputs *in,
		  const char *own_live, const struct gather_span *span, bool *ask_logs)
{
	struct merging m = { .g = g, .c = c, .span = span, .salvage = *ask_logs, .in = in,
		.own_live = own_live };
	struct log_name *n, *next;
	int ret;

	index_merge_init(&m.merge);
	ret = merge_inputs(&m, in, own_live);
	index_merge_release(&m.merge);
	HASH_ITER(hh, m.names, n, next) {
		HASH_DEL(m.names, n);
		mem_free(n);
	}
	*ask_logs = m.salvage;
	return ret;
}
