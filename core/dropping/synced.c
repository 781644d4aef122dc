/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How far a log was synced, by the blocks of its node index that say so.
 */
#include "core/dropping/synced.h"

#include "core/backend/names.h"
#include "core/base/alloc.h"
#include "core/base/crc32c.h"
#include "core/dropping/datalog.h"
#include "core/dropping/node_index.h"
#include "index/record/chunks.h"

struct synced_arg {
	uint32_t pid, seq;
	struct index_block last; /* the one that reaches furthest */
};

static int note_block(void *arg, const struct index_block *block)
{
	struct synced_arg *sa = arg;

	if (block->synced && block->pid == sa->pid && block->seq == sa->seq &&
	    (block->log_len > sa->last.log_len || (block->log_len == sa->last.log_len && block->has_sum)))
		sa->last = *block;
	return 0;
}

static bool is_as_summed(const struct container *c, int h, uint64_t from, size_t len, uint32_t sum)
{
	uint8_t *buf = mem_alloc(len);
	bool is = buf && datalog_pread(c->store, h, buf, len, from) == (ssize_t)len &&
		  crc32c(0, buf, len) == sum;

	mem_free(buf);
	return is;
}

bool synced_in_part(const struct container *c, const char *path, int h, uint64_t no, size_t covered,
		    bool from_live, size_t *len)
{
	char index[CONTAINER_PATH_LEN];
	struct synced_arg sa = { .pid = 0 };
	uint64_t from = no * INDEX_CHUNK_LEN;
	unsigned damaged = 0;

	if (name_is_ours(name_of(path)))
		return false;
	if (from_live)
		return true;
	name_log_numbers(name_of(path), &sa.pid, &sa.seq);
	name_index_of(path, index);
	if (node_index_each(c, index, note_block, &sa, &damaged) || sa.last.log_len <= from ||
	    sa.last.log_len >= from + covered)
		return false;
	if (sa.last.has_sum && !is_as_summed(c, h, from, (size_t)(sa.last.log_len - from), sa.last.sum))
		return false;
	if (len)
		*len = (size_t)(sa.last.log_len - from);
	return true;
}
