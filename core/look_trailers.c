/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looking at what a log says itself of what is in it, and whether the node index has that.
 */
#include "look_log.h"

#include "mend.h"
#include "sys.h"
#include "trailers.h"

static const struct look_block *find_block(const struct look *l, const struct look_log *log, const void *buf, size_t len)
{
	for (uint32_t i = log->first_block; i != LOOK_NONE; i = l->blocks[i].next)
		if (l->blocks[i].len == len && !memcmp(l->blocks[i].p, buf, len))
			return &l->blocks[i];
	return NULL;
}

static bool is_same(const struct index_record *a, const struct index_record *b)
{
	return a->type == b->type && a->stamp_ns == b->stamp_ns && a->logical_off == b->logical_off &&
	       a->log_off == b->log_off &&
	       a->length == b->length && a->count == b->count && a->stride == b->stride &&
	       a->outer_count == b->outer_count && a->outer_stride == b->outer_stride;
}

static bool has_record(const struct look *l, const struct look_log *log, const struct index_record *want)
{
	const struct look_live *live = log->live == LOOK_NONE ? NULL : &l->lives[log->live];

	for (uint32_t i = log->first_block; i != LOOK_NONE; i = l->blocks[i].next) {
		struct index_cursor cur = { 0 };
		struct index_record rec;

		if (l->blocks[i].block.max_stamp_ns < want->stamp_ns)
			continue;
		while (index_block_record(&l->blocks[i].block, &cur, &rec) > 0)
			if (is_same(&rec, want))
				return true;
	}
	for (uint64_t i = 0; live && !live->ret && i < live->state.nr_records; i++)
		if (is_same(&live->records[i], want))
			return true;
	return false;
}

/* A block whose append to the node index failed is in the log all the same; its records are in a later one then. */
static bool has_records(const struct look *l, const struct look_log *log, const struct index_block *block)
{
	struct index_cursor cur = { 0 };
	struct index_record rec;

	while (index_block_record(block, &cur, &rec) > 0)
		if (rec.stamp_ns > l->stub.generation_ns && !has_record(l, log, &rec))
			return false;
	return true;
}

static void tell_trailer(struct log_look *ll, uint64_t at)
{
	findings_add(ll->l->found, PLFS_DAMAGED, "trailer", ll->log->path, at,
		     "its own copy of its index, at %llu of its data, is damaged: nothing is lost as long as the node index is whole",
		     (unsigned long long)at);
}

/* The trailer at @at is damaged: is it by one bit? */
static void mend_trailer(struct log_look *ll, uint64_t at)
{
	struct store *s = ll->l->c->store;
	uint8_t buf[INDEX_TRAILER_LEN], mended[INDEX_TRAILER_LEN];
	struct index_trailer t;
	size_t byte;

	if (s->ops->pread(s, ll->h, buf, sizeof(buf), DROPPING_DATA_OFF + at) != sizeof(buf))
		return;
	memcpy(mended, buf, sizeof(buf));
	if (mend_find(mended, sizeof(mended), 8, &byte) && !index_trailer_parse(&t, ll->l->c->id, at, mended))
		look_add_mend(ll->l, ll->log->path, DROPPING_DATA_OFF + at + byte, buf[byte], mended[byte]);
}

/* The block in front of @t is damaged: is it one of the node index, but for one bit? */
static void mend_block(struct log_look *ll, const struct index_trailer *t, const uint8_t *buf)
{
	struct look *l = ll->l;
	size_t byte;

	for (uint32_t i = ll->log->first_block; i != LOOK_NONE; i = l->blocks[i].next)
		if (l->blocks[i].len == t->block_len && mend_differ_by_one(buf, l->blocks[i].p, t->block_len, &byte)) {
			look_add_mend(l, ll->log->path, DROPPING_DATA_OFF + t->self - t->block_len + byte, buf[byte],
				      l->blocks[i].p[byte]);
			return;
		}
}

/* Between a table and the block behind it there is nothing; further on, where checksums cover it, that is found by these. */
static void check_gap(struct log_look *ll, const struct index_trailer *t, const struct index_block *block)
{
	struct store *s = ll->l->c->store;
	uint64_t end = t->self - t->block_len, from;
	uint8_t head[INDEX_CHUNKS_HEADER_LEN], gap[8];

	if (!block->chunks_off ||
	    s->ops->pread(s, ll->h, head, sizeof(head), DROPPING_DATA_OFF + block->chunks_off) != sizeof(head))
		return;
	from = block->chunks_off + index_chunks_len(get_le32(head + 12));
	if (from >= end || end - from >= sizeof(gap) ||
	    s->ops->pread(s, ll->h, gap, (size_t)(end - from), DROPPING_DATA_OFF + from) != (ssize_t)(end - from))
		return;
	for (uint64_t i = 0; i < end - from; i++)
		if (gap[i]) {
			tell_trailer(ll, from + i);
			look_add_mend(ll->l, ll->log->path, DROPPING_DATA_OFF + from + i, gap[i], 0);
		}
}

/* A trailer of the log, and whether the node index has its block. @missing counts those that it has not. */
static int take_trailer(struct log_look *ll, const struct index_trailer *t, unsigned *missing)
{
	struct look *l = ll->l;
	struct index_block block;
	uint32_t pid, seq;
	void *buf;
	ssize_t n = trailer_block(l->c->store, ll->h, t, &buf);

	if (n == -ENOMEM)
		return -ENOMEM;
	dropping_log_numbers(ll->log->path, &pid, &seq);
	if (n < 0 || index_block_parse(&block, buf, (size_t)n) != n || block.pid != pid || block.seq != seq) {
		tell_trailer(ll, t->self - t->block_len);
		if (n == (ssize_t)t->block_len)
			mend_block(ll, t, buf);
		mem_free(buf);
		return 0;
	}
	if (ll->log->live != LOOK_NONE && l->lives[ll->log->live].state.stranded &&
	    block.log_len > l->lives[ll->log->live].sure_len) {
		mem_free(buf); /* what it speaks of is not certain */
		return 0;
	}
	check_gap(ll, t, &block);
	if (find_block(l, ll->log, buf, (size_t)n) || has_records(l, ll->log, &block)) {
		mem_free(buf);
		return 0;
	}
	++*missing;
	if (look_keep(l, buf))
		return -ENOMEM;
	return look_add_block(l, LOOK_NONE, ll->log, buf, (size_t)n, &block);
}

struct scan_arg {
	struct log_look *ll;
	unsigned *missing;
};

static int scan_trailer(void *arg, const struct index_trailer *t)
{
	struct scan_arg *sa = arg;

	return take_trailer(sa->ll, t, sa->missing);
}

static void tell_missing(struct log_look *ll, unsigned missing, uint32_t known)
{
	if (missing && !known)
		findings_add(ll->l->found, PLFS_DAMAGED, "no-index", ll->log->path, 0,
			     "no index knows it: the file cannot be read; it says itself what is in it");
	else if (missing)
		findings_add(ll->l->found, PLFS_DAMAGED, "index-missing", ll->log->path, 0,
			     "its node index lacks %u of the blocks that it has itself: parts of the file are taken for unwritten", missing);
}

/* The latest trailer. The one that a live file tells of may be staged still: then its block's records may be, too. */
static int find_last(struct log_look *ll, struct index_trailer *t)
{
	struct look *l = ll->l;
	const struct look_live *live = ll->log->live == LOOK_NONE ? NULL : &l->lives[ll->log->live];
	int ret;

	if (!live)
		return trailer_last(l->c->store, ll->h, l->c->id, t);
	if (live->ret || live->state.stranded)
		return -EBADMSG;
	if (!live->state.last_trailer)
		return -ENODATA;
	if (live->state.last_trailer >= live->state.flushed_len) /* those before it are found by a search */
		return l->check->quick && ll->log->nr_blocks ? -ENODATA : -EBADMSG;
	ret = trailer_at(l->c->store, ll->h, l->c->id, live->state.last_trailer, t);
	if (ret == -EBADMSG)
		tell_trailer(ll, live->state.last_trailer);
	return ret;
}

bool look_ends_synced(const struct log_look *ll)
{
	const struct look *l = ll->l;
	const struct look_live *live = ll->log->live == LOOK_NONE ? NULL : &l->lives[ll->log->live];
	uint64_t synced_len = 0;

	if (live)
		return live->state.stranded && ll->log->records_end <= live->sure_len;
	for (uint32_t i = ll->log->first_block; i != LOOK_NONE; i = l->blocks[i].next)
		if (l->blocks[i].block.synced)
			synced_len = max_u64(synced_len, l->blocks[i].block.log_len);
	return synced_len && synced_len >= ll->log->records_end && !l->c->store->remote && !dropping_is_ours(strchr(ll->log->path, '/') + 1);
}

/* Walk from the end to the beginning; where that does not lead on, look everywhere. */
int look_at_trailers(struct log_look *ll)
{
	struct look *l = ll->l;
	struct store *s = l->c->store;
	struct scan_arg sa = { ll, &(unsigned){ 0 } };
	uint32_t known = ll->log->nr_blocks;
	struct index_trailer t;
	int ret = find_last(ll, &t);

	if (ret == -ENODATA) { /* nothing was written, or no block yet */
		ll->log->complete = true;
		return 0;
	}
	ll->log->complete = !ret || ll->log->live != LOOK_NONE;
	while (!ret) {
		uint64_t prev = t.prev;

		ret = take_trailer(ll, &t, sa.missing);
		if (!ret)
			ret = trailer_prev(s, ll->h, l->c->id, &t);
		if (ret == -EBADMSG) {
			tell_trailer(ll, prev);
			mend_trailer(ll, prev);
		}
	}
	if (ret == -EBADMSG || (ret == -EIO && !l->check->quick))
		ret = trailer_scan(s, ll->h, l->c->id, 0, scan_trailer, &sa);
	if (ret && ret != -ENODATA && ret != -EIO)
		return ret;
	tell_missing(ll, *sa.missing, known);
	if (!ll->log->complete)
		mend_trailer(ll, (ll->log->len - min_u64(ll->log->len, INDEX_TRAILER_LEN)) / 8 * 8);
	if (ll->log->complete)
		return 0;
	if (look_ends_synced(ll))
		findings_add(l->found, PLFS_NOTED, "no-end", ll->log->path, 0,
			     "its host was started anew before its end was on the disk: all that had been synced, %llu bytes, is there",
			     (unsigned long long)ll->log->records_end);
	else if (known || *sa.missing)
		findings_add(l->found, PLFS_DAMAGED, "no-end", ll->log->path, 0,
			     "it does not end as a closed log does, and has no live file: what came behind byte %llu of its data is lost, or cannot be placed",
			     (unsigned long long)ll->log->indexed_len);
	else if (ll->log->len)
		findings_add(l->found, PLFS_DAMAGED, "unplaced", ll->log->path, 0,
			     "no index knows it, its live file is lost, and it does not say itself what is in it: "
			     "%llu bytes, of which nobody knows where in the file they belong", (unsigned long long)ll->log->len);
	return 0;
}
