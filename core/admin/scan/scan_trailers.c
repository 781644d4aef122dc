/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scans the copy of its index in a log, and whether the node index has the same.
 */
#include "core/admin/scan/scan_trailers.h"

#include "core/admin/scan/digests.h"
#include "core/dropping/datalog.h"
#include "core/backend/names.h"
#include "core/admin/scan/mend.h"
#include "core/base/sys.h"
#include "core/dropping/trailers.h"

/* A log whose trailers are being scanned. */
struct trailers_scan {
	struct scan *l;
	struct scan_log *log;
	struct trailer_walk walk;
	unsigned nr_missing; /* blocks that no node index has */
	uint64_t missing_at; /* the first of them; at a second look another, if the log is being written */
	uint32_t *known;     /* the blocks that node indexes have, in their order */
	uint32_t nr_known, at; /* at: the one that was found last */
	/* of all known blocks and their records; made at the first block that is not the expected one */
	struct digests digests;
};

static int list_known(struct trailers_scan *ll)
{
	const struct scan *l = ll->l;

	ll->known = mem_alloc((ll->log->nr_blocks + (size_t)1) * sizeof(*ll->known));
	if (!ll->known)
		return -ENOMEM;
	for (uint32_t i = ll->log->first_block; i != SCAN_NONE; i = l->blocks[i].next)
		ll->known[ll->nr_known++] = i;
	ll->at = ll->nr_known; /* as if behind the last */
	return 0;
}

static bool is_block(const struct scan *l, uint32_t i, const void *buf, size_t len)
{
	return l->blocks[i].len == len && !memcmp(l->blocks[i].p, buf, len);
}

static uint64_t record_digest(const struct index_record *r)
{
	const uint64_t all[] = {
		r->type,  r->stamp_ns, r->logical_off, r->log_off,	r->length,
		r->count, (uint64_t)r->stride, r->outer_count, (uint64_t)r->outer_stride,
	};

	return digest_of(all, sizeof(all));
}

static int digest_block(struct trailers_scan *ll, const struct scan_block *b)
{
	struct index_cursor cur = { 0 };
	struct index_record rec;
	int ret = digests_add(&ll->digests, digest_of(b->p, b->len));

	while (!ret && index_block_record(&b->block, &cur, &rec) > 0)
		ret = digests_add(&ll->digests, record_digest(&rec));
	return ret;
}

static int digest_known(struct trailers_scan *ll)
{
	const struct scan *l = ll->l;
	const struct scan_live *live = ll->log->live == SCAN_NONE ? NULL : &l->lives[ll->log->live];
	int ret = 0;

	for (uint32_t i = ll->log->first_block; i != SCAN_NONE && !ret; i = l->blocks[i].next)
		ret = digest_block(ll, &l->blocks[i]);
	for (uint64_t i = 0; live && !live->ret && i < live->state.nr_records && !ret; i++)
		ret = digests_add(&ll->digests, record_digest(&live->records[i]));
	return ret;
}

/* The log has its blocks in the order of the node index, and they are taken from the last to the first. */
static bool is_next_block(struct trailers_scan *ll, const void *buf, size_t len)
{
	if (!ll->at || !is_block(ll->l, ll->known[ll->at - 1], buf, len))
		return false;
	ll->at--;
	return true;
}

static bool has_block(struct trailers_scan *ll, const void *buf, size_t len)
{
	const struct scan *l = ll->l;

	if (!digests_have(&ll->digests, digest_of(buf, len)))
		return false;
	for (uint32_t i = ll->log->first_block, nr = 0; i != SCAN_NONE; i = l->blocks[i].next, nr++)
		if (is_block(l, i, buf, len)) {
			ll->at = min_u64(nr, ll->nr_known);
			return true;
		}
	return false;
}

static bool is_same(const struct index_record *a, const struct index_record *b)
{
	return a->type == b->type && a->stamp_ns == b->stamp_ns && a->logical_off == b->logical_off &&
	       a->log_off == b->log_off &&
	       a->length == b->length && a->count == b->count && a->stride == b->stride &&
	       a->outer_count == b->outer_count && a->outer_stride == b->outer_stride;
}

static bool has_record(const struct trailers_scan *ll, const struct index_record *want)
{
	const struct scan *l = ll->l;
	const struct scan_log *log = ll->log;
	const struct scan_live *live = log->live == SCAN_NONE ? NULL : &l->lives[log->live];

	if (!digests_have(&ll->digests, record_digest(want)))
		return false;
	for (uint32_t i = log->first_block; i != SCAN_NONE; i = l->blocks[i].next) {
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

/*
 * Whether all records are known. If appending a block to the node index failed, a later block has its
 * records.
 */
static bool has_records(const struct trailers_scan *ll, const struct index_block *block)
{
	struct index_cursor cur = { 0 };
	struct index_record rec;

	while (index_block_record(block, &cur, &rec) > 0)
		if (rec.stamp_ns > ll->l->stub.generation_ns && !has_record(ll, &rec))
			return false;
	return true;
}

static void report_trailer(struct trailers_scan *ll, uint64_t at)
{
	findings_add(ll->l->found, PLFS_DAMAGED, "trailer", ll->log->path, at,
		     "the log's copy of its index, at byte %llu of its data, is damaged: nothing is lost "
		     "while the node index is whole",
		     (unsigned long long)at);
}

/* The trailer at @at is damaged: find one flipped bit. */
static void mend_trailer(struct trailers_scan *ll, uint64_t at)
{
	struct store *s = ll->l->c->store;
	uint8_t buf[INDEX_TRAILER_LEN], mended[INDEX_TRAILER_LEN];
	struct index_trailer t;
	size_t byte;

	if (datalog_pread(s, ll->walk.h, buf, sizeof(buf), at) != sizeof(buf))
		return;
	memcpy(mended, buf, sizeof(buf));
	if (mend_find(mended, sizeof(mended), 8, &byte) && !index_trailer_parse(&t, ll->l->c->id, at, mended))
		scan_add_log_mend(ll->l, ll->log->path, at + byte, buf[byte], mended[byte]);
}

/* The block in front of @t is damaged: find a block of the node index that differs by one bit. */
static void mend_block(struct trailers_scan *ll, const struct index_trailer *t, const uint8_t *buf)
{
	struct scan *l = ll->l;
	size_t byte;

	for (uint32_t i = ll->log->first_block; i != SCAN_NONE; i = l->blocks[i].next)
		if (l->blocks[i].len == t->block_len &&
		    mend_differ_by_one(buf, l->blocks[i].p, t->block_len, &byte)) {
			scan_add_log_mend(l, ll->log->path, t->self - t->block_len + byte, buf[byte],
				      l->blocks[i].p[byte]);
			return;
		}
}

/* The few bytes between a table and the block behind it are zeros, and no checksum covers them. */
static void check_gap(struct trailers_scan *ll, const struct index_trailer *t,
		      const struct index_block *block)
{
	struct store *s = ll->l->c->store;
	uint64_t end = t->self - t->block_len, from;
	uint8_t head[INDEX_CHUNKS_HEADER_LEN], gap[8];

	if (!block->chunks_off ||
	    datalog_pread(s, ll->walk.h, head, sizeof(head), block->chunks_off) != sizeof(head))
		return;
	from = block->chunks_off + index_chunks_len(get_le32(head + 12));
	if (from >= end || end - from >= sizeof(gap) ||
	    datalog_pread(s, ll->walk.h, gap, (size_t)(end - from), from) != (ssize_t)(end - from))
		return;
	for (uint64_t i = 0; i < end - from; i++)
		if (gap[i]) {
			report_trailer(ll, from + i);
			scan_add_log_mend(ll->l, ll->log->path, from + i, gap[i], 0);
		}
}

bool scan_ends_synced(const struct scan *l, const struct scan_log *log)
{
	const struct scan_live *live = log->live == SCAN_NONE ? NULL : &l->lives[log->live];
	uint64_t synced_len = 0;
	bool says = false; /* perhaps that it is nothing: of the copy of a reclaim (writer_settle()) */

	if (live)
		return live->state.stranded && log->records_end <= live->sure_len;
	for (uint32_t i = log->first_block; i != SCAN_NONE; i = l->blocks[i].next) {
		if (!l->blocks[i].block.synced)
			continue;
		synced_len = max_u64(synced_len, l->blocks[i].block.log_len);
		says = true;
	}
	return says && synced_len >= log->records_end && !l->c->store->remote &&
	       !name_is_ours(name_of(log->path));
}

/*
 * Take a trailer of the log: add its block unless the node index has it. Where that index is lost, a block
 * whose records another repeats, or that are void, still leads to the checksums of a part of the log.
 */
static int take_trailer(struct trailers_scan *ll, const struct index_trailer *t)
{
	struct scan *l = ll->l;
	struct index_block block;
	uint32_t pid, seq;
	void *buf;
	bool told;
	ssize_t n = trailer_walk_block(&ll->walk, t, &buf);

	if (n == -ENOMEM)
		return -ENOMEM;
	name_log_numbers(ll->log->path, &pid, &seq);
	if (n < 0 || index_block_parse(&block, buf, (size_t)n) != n || block.pid != pid || block.seq != seq) {
		report_trailer(ll, t->self - t->block_len);
		if (n == (ssize_t)t->block_len)
			mend_block(ll, t, buf);
		mem_free(buf);
		return 0;
	}
	if (ll->log->live != SCAN_NONE && l->lives[ll->log->live].state.stranded &&
	    block.log_len > l->lives[ll->log->live].sure_len) {
		mem_free(buf); /* its bytes are not certain */
		return 0;
	}
	check_gap(ll, t, &block);
	told = is_next_block(ll, buf, (size_t)n);
	if (!told && !ll->digests.cap && digest_known(ll)) {
		mem_free(buf);
		return -ENOMEM;
	}
	if (told || has_block(ll, buf, (size_t)n) ||
	    ((told = has_records(ll, &block)) && !block.chunks_off)) {
		mem_free(buf);
		return 0;
	}
	if (!told) {
		ll->missing_at = ll->nr_missing ? min_u64(ll->missing_at, t->self) : t->self;
		ll->nr_missing++;
	}
	if (scan_keep(l, buf))
		return -ENOMEM;
	n = scan_add_block(l, SCAN_NONE, ll->log, buf, (size_t)n, &block);
	if (!n) {
		l->blocks[l->nr_blocks - 1].told = told;
		ll->log->nr_told += told;
		n = digest_block(ll, &l->blocks[l->nr_blocks - 1]);
	}
	return (int)n;
}

static int take_found(void *arg, const struct index_trailer *t)
{
	return take_trailer(arg, t);
}

static void report_missing(struct trailers_scan *ll, uint32_t known)
{
	unsigned missing = ll->nr_missing;

	if (missing && !known)
		findings_add(ll->l->found, PLFS_DAMAGED, "no-index", ll->log->path, ll->missing_at,
			     "no index has it: the file cannot be read; plfs repair restores the index from "
			     "the log");
	else if (missing)
		findings_add(ll->l->found, PLFS_DAMAGED, "index-missing", ll->log->path, ll->missing_at,
			     "the node index lacks %u blocks that the log has: parts of the file read as "
			     "never written; plfs repair restores them", missing);
}

/*
 * Find the last trailer. The one that a live file names may still be staged. -ENODATA: none; -EBADMSG:
 * search.
 */
static int find_last(struct trailers_scan *ll, struct index_trailer *t)
{
	struct scan *l = ll->l;
	const struct scan_live *live = ll->log->live == SCAN_NONE ? NULL : &l->lives[ll->log->live];
	int ret;

	if (!live)
		return trailer_last(l->c->store, ll->walk.h, l->c->id, t);
	if (live->ret || live->state.stranded)
		return -EBADMSG;
	if (!live->state.last_trailer)
		return -ENODATA;
	if (live->state.last_trailer >= live->state.flushed_len) /* a search finds those before it */
		return l->check->quick && ll->log->nr_blocks ? -ENODATA : -EBADMSG;
	ret = trailer_at(l->c->store, ll->walk.h, l->c->id, live->state.last_trailer, t);
	if (ret == -EBADMSG)
		report_trailer(ll, live->state.last_trailer);
	return ret;
}

/* From the last trailer to the first; where that does not lead on, all of the log is searched. */
static int take_all(struct trailers_scan *ll, struct index_trailer *t, int ret)
{
	struct scan *l = ll->l;

	while (!ret) {
		uint64_t prev = t->prev;

		ret = take_trailer(ll, t);
		if (!ret)
			ret = trailer_prev(&ll->walk, t);
		if (ret == -EBADMSG) {
			report_trailer(ll, prev);
			mend_trailer(ll, prev);
		}
	}
	trailer_walk_end(&ll->walk);
	if (ret == -EBADMSG || (ret == -EIO && !l->check->quick))
		ret = trailer_scan(l->c->store, ll->walk.h, l->c->id, 0, take_found, ll);
	if (ret == -EPROTONOSUPPORT) {
		l->unknown = true;
		findings_add(l->found, PLFS_FAILED, "version", ll->log->path, 0,
			     "a trailer in it has features that this library does not know");
		return 0;
	}
	return ret == -ENODATA || ret == -EIO ? 0 : ret;
}

/* The log does not end as a closed one does. */
static void report_end(struct trailers_scan *ll, uint32_t known)
{
	struct scan *l = ll->l;

	mend_trailer(ll, (ll->log->len - min_u64(ll->log->len, INDEX_TRAILER_LEN)) / 8 * 8);
	if (scan_ends_synced(l, ll->log))
		findings_add(l->found, PLFS_NOTED, "no-end", ll->log->path, 0,
			     "its host restarted before its end was on disk: all synced data, %llu bytes, is "
			     "there",
			     (unsigned long long)ll->log->records_end);
	else if (known || ll->nr_missing)
		findings_add(l->found, PLFS_DAMAGED, "no-end", ll->log->path, 0,
			     "the log was not closed and its live file is missing: its data behind byte %llu "
			     "is lost, or has no known place in the file",
			     (unsigned long long)ll->log->indexed_len);
	else if (ll->log->len)
		findings_add(
			l->found, PLFS_DAMAGED, "unplaced", ll->log->path, 0,
			"no index has it, its live file is missing, and it has no copy of its index: the "
			"place of its %llu "
			"bytes in the file is not known",
			(unsigned long long)ll->log->len);
}

int scan_trailers(struct scan *l, struct scan_log *log, int h)
{
	struct trailers_scan ll = { .l = l, .log = log };
	uint32_t known = log->nr_blocks;
	struct index_trailer t;
	int ret, n;

	ll.walk = (struct trailer_walk){ .s = l->c->store, .h = h, .id = l->c->id };
	ret = find_last(&ll, &t);
	if (ret == -ENODATA) { /* nothing was written, or no block yet */
		log->complete = true;
		return 0;
	}
	log->complete = !ret || log->live != SCAN_NONE || log->elsewhere;
	n = list_known(&ll);
	ret = n ? n : take_all(&ll, &t, ret);
	mem_free(ll.known);
	digests_free(&ll.digests);
	if (ret)
		return ret;
	report_missing(&ll, known);
	if (!log->complete)
		report_end(&ll, known);
	return 0;
}
