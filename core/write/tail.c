/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bytes of a log: staged or written directly, always at its end, and checksummed chunk by chunk.
 */
#include "core/write/tail.h"

#include "index/record/chunks.h"
#include "core/dropping/carry.h"
#include "core/dropping/datalog.h"
#include "core/base/alloc.h"
#include "core/base/bytes.h"
#include "core/base/crc32c.h"
#include "core/base/msg.h"
#include "core/base/newer.h"
#include "core/base/stamp.h"
#include "core/backend/container_dirs.h"
#include "core/backend/names.h"
#include "core/backend/spare.h"
#include "core/backend/spread.h"
#include "core/dropping/sums.h"
#include "core/base/event.h"

#include <stdio.h>

/*
 * Large writes end at a multiple of this in the log file, as pages and their folios do; the rest is staged.
 */
#define ALIGN_LEN 4096

/*
 * From AHEAD_MIN bytes on a log is given space for as much again, at most AHEAD_MAX, if that makes writes
 * faster.
 */
#define AHEAD_MIN ((uint64_t)2 << 20)
#define AHEAD_MAX ((uint64_t)64 << 20)

static void remove_log(struct tail *t)
{
	char path[CONTAINER_PATH_LEN];

	container_path(t->c, t->log_path, path);
	store_close(t->c->store, &t->log);
	t->c->store->ops->unlink(t->c->store, path);
}

/*
 * A log near has space for what is written next, and behind that for so much: a stage and the pieces that
 * close the log. So where space ends the log can be closed, and the next begins at home.
 */
#define NEAR_SLACK ((uint64_t)LIVE_CAP + 8 * INDEX_CHUNK_LEN)
#define NEAR_CLOSE ((uint64_t)3 * INDEX_CHUNK_LEN)
#define NEAR_AHEAD_MAX ((uint64_t)16 << 20)

/* The log near is about to grow to @end. @staged: by what was taken already, which has its space. */
static int reserve_near(struct tail *t, uint64_t end, bool staged)
{
	uint64_t to = end + NEAR_SLACK, more = min_u64(t->live.flushed_len, NEAR_AHEAD_MAX);
	struct store *s = t->c->store;
	int ret;

	if (to <= t->allocated_end)
		return 0;
	ret = datalog_reserve_near(s, t->log, t->allocated_end, to + more - t->allocated_end);
	if (!ret) {
		t->allocated_end = to + more;
		return 0;
	}
	msg_debug(MSG_WRITE, "%s: its place is full: %s", t->log_name, strerror(-ret));
	t->near_full = true;
	return staged && end + NEAR_CLOSE <= t->allocated_end ? 0 : -ENOSPC;
}

static int create_in(struct tail *t, const struct container *c)
{
	int ret;

	t->log = datalog_create(c, stamp_next(), t->log_name);
	if (t->log < 0)
		return t->log;
	store_keep(c->store, &t->log);
	name_here(c, t->log_name, t->log_path);
	t->near = c->near;
	t->near_full = false;
	t->live.flushed_len = t->released_len = 0;
	ret = t->near ? reserve_near(t, 0, false) : 0;
	if (!ret)
		ret = live_create(&t->live, c, t->log_name, NULL);
	if (ret)
		remove_log(t);
	return ret;
}

/* In the backend that the rule picks; where that cannot be, in the next. */
static int create_spread(struct tail *t, const struct container *c)
{
	unsigned nr = c->store->spread->nr + 1, first = spread_pick(c);
	struct container in = *c;
	struct place_dir hold;
	int ret = -ENOSPC, one;

	for (unsigned i = 0; i < nr && ret; i++) {
		t->backend = (first + i) % nr;
		if (c->full & 1u << t->backend)
			continue;
		in.hold = t->backend ? &hold : NULL;
		one = t->backend ? spread_hold(c, t->backend, &hold) : 0;
		if (!one) {
			one = create_in(t, &in);
			if (t->backend)
				placed_release(&hold);
		}
		if (one == -EIDRM || one == -EMFILE || one == -ENFILE)
			return one;
		ret = !one || !t->backend || ret == -ENOSPC ? one : ret;
	}
	return ret;
}

int tail_create(struct tail *t, const struct container *c, struct place_dir *near)
{
	struct container home = *c, there = *c;
	int ret = -EOPNOTSUPP;

	t->c = c;
	if (unlikely(c->spreads))
		return create_spread(t, c);
	home.near = false;
	there.hold = near;
	if (near)
		ret = create_in(t, &there);
	return ret ? create_in(t, &home) : 0;
}

int tail_continue(struct tail *t, const struct live_start *start)
{
	struct container c = *t->c;
	char path[CONTAINER_PATH_LEN];
	struct place_dir hold;
	int ret = 0;

	container_path(&c, t->log_path, path);
	t->near = c.near = placed_is_near(c.store, path);
	if (t->near) {
		t->live.flushed_len = t->allocated_end = start->flushed_len;
		t->released_len = 0;
		ret = reserve_near(t, start->flushed_len, false);
	}
	if (unlikely(c.store->base)) {
		ret = spread_hold_of(c.store, path, &hold);
		c.hold = ret ? NULL : &hold;
		t->backend = c.hold ? hold.slot : 0; /* as a rule */
		ret = ret == -ENOENT ? 0 : ret;
	}
	if (!ret)
		ret = live_create(&t->live, &c, t->log_name, start);
	if (c.hold)
		placed_release(&hold);
	return ret;
}

void tail_remove(struct tail *t)
{
	live_close(&t->live, true);
	remove_log(t);
}

/* The log first: bytes of which no index knows would seem to have lost theirs. */
void tail_discard(struct tail *t)
{
	struct store *s = t->c->store;
	char path[CONTAINER_PATH_LEN];
	int ret;

	container_path(t->c, t->log_path, path);
	if (spare_may_be(t->c))
		spare_unlink(t->c, t->log_path);
	ret = s->ops->unlink(s, path);
	tail_close(t, !ret || ret == -ENOENT);
}

int tail_close(struct tail *t, bool unlink)
{
	live_close(&t->live, unlink);
	return store_close(t->c->store, &t->log);
}

/* Add the next @len bytes to the checksums; @to, unless NULL: copy them there. */
static void sum_up(struct tail *t, uint8_t *to, const void *buf, size_t len)
{
	uint64_t log_off = t->live.flushed_len + t->summed.len;
	const uint8_t *p = buf;

	t->summed.len += len;
	while (len) {
		size_t part = min_size(len, INDEX_CHUNK_LEN - log_off % INDEX_CHUNK_LEN);

		t->summed.crc = to ? crc32c_copy(t->summed.crc, to, p, part) : crc32c(t->summed.crc, p, part);
		to = to ? to + part : NULL;
		p += part;
		log_off += part;
		len -= part;
		if (log_off % INDEX_CHUNK_LEN == 0) {
			t->chunk_crc[t->summed.nr++] = t->summed.crc;
			t->summed.crc = 0;
		}
	}
}

static void sum_up_stage(struct tail *t)
{
	sum_up(t, NULL, live_bytes(&t->live) + t->summed.len, t->live.staged_len - t->summed.len);
}

void tail_fused(struct tail *t, const void *buf, size_t len)
{
	sum_up_stage(t);
	sum_up(t, live_bytes(&t->live) + t->live.staged_len, buf, len);
}

void tail_note_sum(const struct tail *t, struct index_block *block)
{
	block->log_len = max_u64(block->log_len, tail_len(t));
	block->has_sum = !t->live.staged_len && !t->summed.len && block->log_len == tail_len(t);
	block->sum = t->summed.crc;
}

/* The log is about to grow to @end: allocate space ahead. */
static void allocate_ahead(struct tail *t, uint64_t end)
{
	struct store *s = t->c->store;
	uint64_t from = max_u64(t->allocated_end, t->live.flushed_len);
	uint64_t to = end + min_u64(t->live.flushed_len, AHEAD_MAX);

	if (t->near || end <= t->allocated_end || t->live.flushed_len < AHEAD_MIN)
		return;
	t->allocated_end = datalog_allocate_ahead(s, t->log, from, to - from) ? UINT64_MAX : to;
}

void tail_give_back(struct tail *t)
{
	struct store *s = t->c->store;
	struct stat st;

	if (t->allocated_end && t->allocated_end != UINT64_MAX && !s->ops->fstat(s, t->log, &st) &&
	    datalog_len(&st) < t->allocated_end)
		s->ops->truncate(s, t->log, (uint64_t)st.st_size);
}

/* All staged bytes, checksummed, and @len bytes that were not staged are in the log file. */
static void log_has_grown(struct tail *t, size_t len)
{
	struct live *s = &t->live;

	for (unsigned i = 0; i < t->summed.nr; i++)
		live_put_chunk(s, t->chunk_crc[i]);
	live_set_chunk_crc(s, t->summed.crc, s->flushed_len + s->staged_len + len);
	t->summed.nr = 0;
	t->summed.len = 0;
	live_flushed(s, len);
}

/*
 * Other threads of the program may have changed the bytes after they were checksummed, from @before on, and
 * before they were written. A reader that verifies would report an error. So the bytes are checksummed once
 * more, and if the checksums differ, as they are in the log file.
 */
static void sum_up_again(struct tail *t, const struct tail_sums *before, const void *buf, size_t len)
{
	struct tail_sums sums = t->summed;
	uint32_t crcs[TAIL_CHUNKS_MAX];
	uint64_t off = t->live.flushed_len + before->len;
	struct store *s = t->c->store;
	uint8_t *scratch;

	memcpy(crcs, t->chunk_crc, sizeof(crcs));
	t->summed = *before;
	sum_up(t, NULL, buf, len);
	if (likely(t->summed.crc == sums.crc && !memcmp(crcs, t->chunk_crc, sums.nr * sizeof(*crcs))))
		return;
	scratch = mem_alloc(INDEX_CHUNK_LEN);
	t->summed = *before;
	for (size_t done = 0; scratch && done < len;) {
		size_t part = min_size(len - done, INDEX_CHUNK_LEN);

		if (datalog_pread(s, t->log, scratch, part, off + done) != (ssize_t)part)
			memset(scratch, 0, part); /* as wrong as any */
		sum_up(t, NULL, scratch, part);
		done += part;
	}
	if (!scratch)
		sum_up(t, NULL, buf, len);
	mem_free(scratch);
}

/*
 * Write the staged bytes and @len at @buf to the end of the log file. Returns the number of bytes written, or
 * -errno. A stage that was cut has other bytes, and a reader would believe the log. The kernel reports a cut
 * by EFAULT or a short write, not by a signal: so the stage is touched then, which makes live_is_broken()
 * true.
 */
static ssize_t append_staged_and(struct tail *t, const void *buf, size_t len)
{
	struct live *s = &t->live;
	const volatile uint8_t *staged = live_bytes(s);
	ssize_t n;

	if (unlikely(live_is_broken(s)))
		return -EIO;
	n = datalog_pwrite2(s->store, t->log, live_bytes(s), s->staged_len, buf, len, s->flushed_len);
	for (uint64_t i = 0; n < (ssize_t)s->staged_len && i < s->staged_len; i += 4096)
		(void)staged[i];
	return n < (ssize_t)s->staged_len && live_is_broken(s) ? -EIO : n;
}

/*
 * Append the staged bytes and, behind them, @len at @buf to the log file, in one call. Returns how many of
 * the @len bytes were written; -errno: not all staged bytes were, and they stay staged.
 */
static ssize_t append_log(struct tail *t, const void *buf, size_t len)
{
	struct live *s = &t->live;
	size_t staged_len = s->staged_len;
	struct tail_sums before;
	ssize_t n;

	n = unlikely(t->near) ? reserve_near(t, s->flushed_len + staged_len + len, !len) : 0;
	if (n)
		return n;
	sum_up_stage(t);
	before = t->summed;
	sum_up(t, NULL, buf, len);
	allocate_ahead(t, s->flushed_len + staged_len + len);
	n = append_staged_and(t, buf, len);
	if (n != (ssize_t)(staged_len + len)) {
		t->summed = before;
		if (n < (ssize_t)staged_len)
			return n < 0 ? n : -ENOSPC;
		len = (size_t)n - staged_len;
		sum_up(t, NULL, buf, len);
	}
	/* with one thread nobody changes them meanwhile */
	if (len && (sums_verify == SUMS_ALWAYS || (sums_verify && !__libc_single_threaded)))
		sum_up_again(t, &before, buf, len);
	log_has_grown(t, len);
	event(EVENT_LOG_APPENDED, .container = t->c->dir, .name = t->log_path, .len = staged_len + len);
	return (ssize_t)len;
}

int tail_flush(struct tail *t)
{
	ssize_t n = t->live.staged_len ? append_log(t, NULL, 0) : 0;

	if (n < 0)
		msg_debug(MSG_WRITE, "%s: flush: %s", t->log_name, strerror((int)-n));
	return (int)n;
}

int tail_sync(struct tail *t, enum place_sync where)
{
	bool carries = unlikely(t->near) && where == SYNC_HOME;
	int ret = carries ? carry_part(t->c, t->log_path, t->live.flushed_len, true) : -ENOENT;

	return ret == -ENOENT ? t->c->store->ops->sync(t->c->store, t->log, false) : ret;
}

int tail_release(struct tail *t)
{
	int ret;

	if (!t->near || t->released_len == t->live.flushed_len)
		return 0;
	ret = carry_part(t->c, t->log_path, t->live.flushed_len, false);
	if (!ret)
		t->released_len = t->live.flushed_len;
	return ret == -ENOENT ? -EIO : ret;
}

/* The piece is in the log or in the stage. */
static void remember_trailer(struct tail *t, const struct trailer_piece *p)
{
	t->last_trailer = p->trailer_at;
	t->last_table = p->prev_table;
	live_set_trailers(&t->live, t->last_trailer, t->last_table);
}

/* Encode the piece; @p has its table, @block its records. */
static int make_piece(struct tail *t, struct trailer_piece *p, struct index_block *block)
{
	p->id = t->c->id;
	p->at = tail_len(t);
	p->block = block;
	p->prev = t->last_trailer;
	p->prev_table = t->last_table;
	block->log_len = p->at;
	return trailer_piece_make(p);
}

/*
 * A piece in the middle of the log is as long as a chunk, so that later writes are aligned as before. It
 * counts as data for the checksums.
 */
static int append_with_table(struct tail *t, struct index_block *block, struct trailer_piece *p)
{
	struct live *s = &t->live;
	struct index_chunks table = { .first_chunk = s->first_chunk, .nr_chunks = (uint32_t)s->nr_chunks,
		.chunk_crc = live_chunks(s) };
	ssize_t n;
	int ret;

	p->table = &table;
	p->len = INDEX_CHUNK_LEN;
	ret = make_piece(t, p, block);
	if (ret)
		return ret;
	n = append_log(t, p->buf, p->len);
	return n == (ssize_t)p->len ? 0 : n < 0 ? (int)n : -ENOSPC;
}

static ssize_t append_staged(struct tail *t, const char *buf, size_t len);

static_assert(INDEX_CHUNKS_HEADER_LEN + LIVE_CHUNKS_CAP * 4 + LIVE_RECORDS_CAP * 68 + 256 < INDEX_CHUNK_LEN,
	      "a piece fits into a chunk");

int tail_block(struct tail *t, struct index_block *block, bool table, struct tail_undo *undo,
	       struct trailer_piece *p)
{
	int ret;

	*p = (struct trailer_piece){ .end_unit = tail_len(t) % ALIGN_LEN ? 8 : ALIGN_LEN };
	undo->flushed_len = t->live.flushed_len;
	undo->summed = t->summed;
	undo->last_trailer = t->last_trailer;
	undo->last_table = t->last_table;
	if (table) {
		ret = append_with_table(t, block, p);
	} else {
		ret = make_piece(t, p, block);
		if (!ret) {
			ssize_t n = append_staged(t, (const char *)p->buf, p->len);

			ret = n < 0 ? (int)n : 0;
		}
	}
	if (!ret)
		remember_trailer(t, p);
	return ret;
}

void tail_undo(struct tail *t, const struct tail_undo *undo, const struct trailer_piece *p)
{
	if (t->live.flushed_len != undo->flushed_len)
		return;
	live_put(&t->live, -(ssize_t)p->len);
	t->summed = undo->summed;
	t->last_trailer = undo->last_trailer;
	t->last_table = undo->last_table;
	live_set_trailers(&t->live, t->last_trailer, t->last_table);
}

int tail_last_block(struct tail *t, struct index_block *block, struct trailer_piece *p)
{
	struct live *s = &t->live;
	struct index_chunks table = { .first_chunk = s->first_chunk, .chunk_crc = live_chunks(s) };
	ssize_t n;
	int ret;

	sum_up_stage(t);
	table.nr_chunks = (uint32_t)s->nr_chunks;
	for (unsigned i = 0; i < t->summed.nr; i++)
		live_note_chunk(s, table.nr_chunks++, t->chunk_crc[i]);
	if (tail_len(t) % INDEX_CHUNK_LEN)
		live_note_chunk(s, table.nr_chunks++, t->summed.crc);
	*p = (struct trailer_piece){ .table = tail_len(t) ? &table : NULL, .end_unit = 8 };
	ret = make_piece(t, p, block);
	if (ret)
		return ret;
	n = append_staged_and(t, p->buf, p->len);
	if (n != (ssize_t)(s->staged_len + p->len))
		return n < 0 ? (int)n : -ENOSPC;
	log_has_grown(t, 0);
	remember_trailer(t, p);
	return 0;
}

static_assert(TAIL_DIRECT_LEN <= LIVE_CAP, "a small write fits into an empty stage");

/* All @len bytes, or none and -errno. */
static ssize_t append_staged(struct tail *t, const char *buf, size_t len)
{
	struct live *s = &t->live;
	struct tail_sums before = t->summed;
	size_t done = 0;

	while (done < len) {
		size_t part = min_size(len - done, live_room(s));
		bool full;
		int ret;

		tail_put(t, buf + done, part);
		done += part;
		if (done == len)
			break;
		ret = live_prepare(s, &full);
		if (!ret && full)
			ret = tail_flush(t);
		if (ret) { /* before the first flush, for behind it the stage takes all the rest */
			live_put(s, -(ssize_t)done);
			t->summed = before;
			return ret;
		}
	}
	return (ssize_t)len;
}

static ssize_t append_direct(struct tail *t, const char *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		uint64_t off = datalog_place(tail_len(t)),
			end = off + (len - done) - (off + (len - done)) % ALIGN_LEN;
		uint64_t piece_end = off - off % TAIL_PIECE_LEN + TAIL_PIECE_LEN;
		size_t part = (size_t)((end <= piece_end + TAIL_PIECE_LEN / 4 ? end : piece_end) - off);
		ssize_t n;

		if (part)
			n = append_log(t, buf + done, part);
		else
			n = append_staged(t, buf + done, part = len - done);
		done += n > 0 ? (size_t)n : 0;
		if (n != (ssize_t)part)
			return done ? (ssize_t)done : n ? n : -ENOSPC;
	}
	return (ssize_t)done;
}

ssize_t tail_bytes(struct tail *t, const void *buf, size_t len)
{
	if (unlikely(t->near_full))
		return -ENOSPC;
	return len < TAIL_DIRECT_LEN ? append_staged(t, buf, len) : append_direct(t, buf, len);
}

int tail_read_staged(const struct tail *t, void *buf, size_t len, uint64_t log_off)
{
	uint64_t staged_end = t->live.flushed_len + t->live.staged_len;

	if (unlikely(log_off < t->live.flushed_len || log_off > staged_end || len > staged_end - log_off)) {
		msg_error(
			"%s/%s: byte %llu, which an index says is there, was never written: the index is damaged",
			t->c->dir, t->log_path, (unsigned long long)log_off);
		return -EIO;
	}
	memcpy(buf, live_bytes(&t->live) + (log_off - t->live.flushed_len), len);
	return 0;
}
