/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bytes of a log: staged or written directly, always behind what is there, and summed up chunk by chunk.
 */
#include "append.h"

#include "../index/chunks.h"
#include "alloc.h"
#include "bytes.h"
#include "crc32c.h"
#include "log.h"
#include "sums.h"

/* Large writes end at a multiple of this in the log file, where pages and their folios do; what is left is staged. */
#define ALIGN_LEN 4096

/* A log of so many bytes is given space for as much again, up to so many, where that makes writing faster. */
#define AHEAD_MIN ((uint64_t)2 << 20)
#define AHEAD_MAX ((uint64_t)64 << 20)

/* Take @len bytes behind those that are summed up into the checksums, and if @to is not NULL copy them there. */
static void sum_up(struct writer *w, uint8_t *to, const void *buf, size_t len)
{
	uint64_t log_off = w->stage.flushed_len + w->summed.len;
	const uint8_t *p = buf;

	w->summed.len += len;
	while (len) {
		size_t part = min_size(len, INDEX_CHUNK_LEN - log_off % INDEX_CHUNK_LEN);

		w->summed.crc = to ? crc32c_copy(w->summed.crc, to, p, part) : crc32c(w->summed.crc, p, part);
		to = to ? to + part : NULL;
		p += part;
		log_off += part;
		len -= part;
		if (log_off % INDEX_CHUNK_LEN == 0) {
			w->chunk_crc[w->summed.nr++] = w->summed.crc;
			w->summed.crc = 0;
		}
	}
}

static void sum_up_stage(struct writer *w)
{
	sum_up(w, NULL, stage_bytes(&w->stage) + w->summed.len, w->stage.staged_len - w->summed.len);
}

void append_fused(struct writer *w, const void *buf, size_t len)
{
	sum_up_stage(w);
	sum_up(w, stage_bytes(&w->stage) + w->stage.staged_len, buf, len);
}

/* Before the log file grows to @end, give a large one space for as much as it has, but no more than AHEAD_MAX. */
static void allocate_ahead(struct writer *w, uint64_t end)
{
	struct store *s = w->c->store;
	uint64_t from = max_u64(w->allocated_end, DROPPING_DATA_OFF + w->stage.flushed_len);
	uint64_t to = end + min_u64(w->stage.flushed_len, AHEAD_MAX);

	if (end <= w->allocated_end || w->stage.flushed_len < AHEAD_MIN)
		return;
	w->allocated_end = s->ops->allocate_ahead(s, w->log, from, to - from) ? UINT64_MAX : to;
}

void append_give_back(struct writer *w)
{
	struct store *s = w->c->store;
	struct stat st;

	if (w->allocated_end && w->allocated_end != UINT64_MAX && !s->ops->fstat(s, w->log, &st) &&
	    (uint64_t)st.st_size < w->allocated_end)
		s->ops->truncate(s, w->log, (uint64_t)st.st_size);
}

/* All that is staged and summed up, and @len bytes that were not staged, are in the log file. */
static void log_has_grown(struct writer *w, size_t len)
{
	struct stage *s = &w->stage;

	for (unsigned i = 0; i < w->summed.nr; i++)
		stage_put_chunk(s, w->chunk_crc[i]);
	stage_set_chunk_crc(s, w->summed.crc, s->flushed_len + s->staged_len + len);
	w->summed.nr = 0;
	w->summed.len = 0;
	stage_flushed(s, len);
}

/*
 * The program's other threads may have changed the bytes between their being summed up, beginning at @before, and
 * their being written. Where that would be an error to the reader they are summed up once more, and if that differs,
 * as they are in the log file.
 */
static void sum_up_again(struct writer *w, const struct writer_sums *before, const void *buf, size_t len)
{
	struct writer_sums sums = w->summed;
	uint32_t crcs[WRITER_CHUNKS_MAX];
	uint64_t off = DROPPING_DATA_OFF + w->stage.flushed_len + before->len;
	struct store *s = w->c->store;
	uint8_t *scratch;

	memcpy(crcs, w->chunk_crc, sizeof(crcs));
	w->summed = *before;
	sum_up(w, NULL, buf, len);
	if (likely(w->summed.crc == sums.crc && !memcmp(crcs, w->chunk_crc, sums.nr * sizeof(*crcs))))
		return;
	scratch = mem_alloc(INDEX_CHUNK_LEN);
	w->summed = *before;
	for (size_t done = 0; scratch && done < len;) {
		size_t part = min_size(len - done, INDEX_CHUNK_LEN);

		if (s->ops->pread(s, w->log, scratch, part, off + done) != (ssize_t)part)
			memset(scratch, 0, part); /* as wrong as any */
		sum_up(w, NULL, scratch, part);
		done += part;
	}
	if (!scratch)
		sum_up(w, NULL, buf, len);
	mem_free(scratch);
}

/*
 * Write the staged bytes and @len at @buf to the end of the log file: how many, or -errno. A stage that was cut holds
 * other bytes than those, and a reader would believe what the log has. Where the kernel meets the cut there is no
 * signal but an EFAULT, or an end: so the stage is looked at then.
 */
static ssize_t append_staged_and(struct writer *w, const void *buf, size_t len)
{
	struct stage *s = &w->stage;
	const volatile uint8_t *staged = stage_bytes(s);
	ssize_t n;

	if (unlikely(stage_is_broken(s)))
		return -EIO;
	n = s->store->ops->pwrite2(s->store, w->log, stage_bytes(s), s->staged_len, buf, len,
				   DROPPING_DATA_OFF + s->flushed_len);
	for (uint64_t i = 0; n < (ssize_t)s->staged_len && i < s->staged_len; i += 4096)
		(void)staged[i];
	return n < (ssize_t)s->staged_len && stage_is_broken(s) ? -EIO : n;
}

/*
 * Append the staged bytes and, behind them, @len at @buf to the log file, in one call. Returns how many of the latter
 * got there, or -errno if not even what was staged did: then it still is.
 */
static ssize_t append_log(struct writer *w, const void *buf, size_t len)
{
	struct stage *s = &w->stage;
	size_t staged_len = s->staged_len;
	struct writer_sums before;
	ssize_t n;

	sum_up_stage(w);
	before = w->summed;
	sum_up(w, NULL, buf, len);
	allocate_ahead(w, DROPPING_DATA_OFF + s->flushed_len + staged_len + len);
	n = append_staged_and(w, buf, len);
	if (n != (ssize_t)(staged_len + len)) {
		w->summed = before;
		if (n < (ssize_t)staged_len)
			return n < 0 ? n : -ENOSPC;
		len = (size_t)n - staged_len;
		sum_up(w, NULL, buf, len);
	}
	if (unlikely(sums_verify) && len)
		sum_up_again(w, &before, buf, len);
	log_has_grown(w, len);
	return (ssize_t)len;
}

int writer_flush(struct writer *w)
{
	ssize_t n = w->stage.staged_len ? append_log(w, NULL, 0) : 0;

	if (n < 0)
		log_debug(LOG_WRITE, "%s: flush: %s", w->log_name, strerror((int)-n));
	return (int)n;
}

/* The piece is in the log, or at its end in the stage. */
static void remember_trailer(struct writer *w, const struct trailer_piece *p)
{
	w->last_trailer = p->trailer_at;
	w->last_table = p->prev_table;
	stage_set_trailers(&w->stage, w->last_trailer, w->last_table);
}

/* What is common to the three. @p has its table, @block its records. */
static int make_piece(struct writer *w, struct trailer_piece *p, struct index_block *block)
{
	p->id = w->c->id;
	p->at = append_log_len(w);
	p->block = block;
	p->prev = w->last_trailer;
	p->prev_table = w->last_table;
	block->log_len = p->at;
	return trailer_piece_make(p);
}

/*
 * The piece in between takes up as many bytes as a chunk, so that what is written later is as well aligned as before, and is
 * checksummed with them.
 */
static int append_with_table(struct writer *w, struct index_block *block, struct trailer_piece *p)
{
	struct stage *s = &w->stage;
	struct index_chunks table = { .first_chunk = s->first_chunk, .nr_chunks = (uint32_t)s->nr_chunks,
		.chunk_crc = stage_chunks(s) };
	ssize_t n;
	int ret;

	p->table = &table;
	p->len = INDEX_CHUNK_LEN;
	ret = make_piece(w, p, block);
	if (ret)
		return ret;
	n = append_log(w, p->buf, p->len);
	return n == (ssize_t)p->len ? 0 : n < 0 ? (int)n : -ENOSPC;
}

static ssize_t append_staged(struct writer *w, const char *buf, size_t len);

static_assert(INDEX_CHUNKS_HEADER_LEN + STAGE_CHUNKS_CAP * 4 + STAGE_RECORDS_CAP * 68 + 256 < INDEX_CHUNK_LEN,
	      "a piece fits into a chunk");

int append_block(struct writer *w, struct index_block *block, bool table, struct append_undo *undo, struct trailer_piece *p)
{
	int ret;

	*p = (struct trailer_piece){ .end_unit = append_log_len(w) % ALIGN_LEN ? 8 : ALIGN_LEN };
	undo->flushed_len = w->stage.flushed_len;
	undo->summed = w->summed;
	undo->last_trailer = w->last_trailer;
	undo->last_table = w->last_table;
	if (table) {
		ret = append_with_table(w, block, p);
	} else {
		ret = make_piece(w, p, block);
		if (!ret) {
			ssize_t n = append_staged(w, (const char *)p->buf, p->len);

			ret = n < 0 ? (int)n : 0;
		}
	}
	if (!ret)
		remember_trailer(w, p);
	return ret;
}

void append_undo(struct writer *w, const struct append_undo *undo, const struct trailer_piece *p)
{
	if (w->stage.flushed_len != undo->flushed_len)
		return;
	stage_put(&w->stage, -(ssize_t)p->len);
	w->summed = undo->summed;
	w->last_trailer = undo->last_trailer;
	w->last_table = undo->last_table;
	stage_set_trailers(&w->stage, w->last_trailer, w->last_table);
}

int append_last_block(struct writer *w, struct index_block *block, struct trailer_piece *p)
{
	struct stage *s = &w->stage;
	struct index_chunks table = { .first_chunk = s->first_chunk, .chunk_crc = stage_chunks(s) };
	ssize_t n;
	int ret;

	sum_up_stage(w);
	table.nr_chunks = (uint32_t)s->nr_chunks;
	for (unsigned i = 0; i < w->summed.nr; i++)
		stage_note_chunk(s, table.nr_chunks++, w->chunk_crc[i]);
	if (append_log_len(w) % INDEX_CHUNK_LEN)
		stage_note_chunk(s, table.nr_chunks++, w->summed.crc);
	*p = (struct trailer_piece){ .table = append_log_len(w) ? &table : NULL, .end_unit = 8 };
	ret = make_piece(w, p, block);
	if (ret)
		return ret;
	n = append_staged_and(w, p->buf, p->len);
	if (n != (ssize_t)(s->staged_len + p->len))
		return n < 0 ? (int)n : -ENOSPC;
	log_has_grown(w, 0);
	remember_trailer(w, p);
	return 0;
}

static_assert(WRITER_DIRECT_LEN <= STAGE_CAP, "a small write fits into an empty stage");

/* All @len bytes, or none and -errno. */
static ssize_t append_staged(struct writer *w, const char *buf, size_t len)
{
	struct stage *s = &w->stage;
	struct writer_sums before = w->summed;
	size_t done = 0;

	while (done < len) {
		size_t part = min_size(len - done, stage_room(s));
		bool full;
		int ret;

		append_put(w, buf + done, part);
		done += part;
		if (done == len)
			break;
		ret = stage_prepare(s, &full);
		if (!ret && full)
			ret = writer_flush(w);
		if (ret) { /* before the first flush, for behind it the stage takes all the rest */
			stage_put(s, -(ssize_t)done);
			w->summed = before;
			return ret;
		}
	}
	return (ssize_t)len;
}

static ssize_t append_direct(struct writer *w, const char *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		uint64_t off = DROPPING_DATA_OFF + append_log_len(w),
			end = off + (len - done) - (off + (len - done)) % ALIGN_LEN;
		uint64_t piece_end = off - off % WRITER_PIECE_LEN + WRITER_PIECE_LEN;
		size_t part = (size_t)((end <= piece_end + WRITER_PIECE_LEN / 4 ? end : piece_end) - off);
		ssize_t n;

		if (part)
			n = append_log(w, buf + done, part);
		else
			n = append_staged(w, buf + done, part = len - done);
		done += n > 0 ? (size_t)n : 0;
		if (n != (ssize_t)part)
			return done ? (ssize_t)done : n ? n : -ENOSPC;
	}
	return (ssize_t)done;
}

ssize_t append_bytes(struct writer *w, const void *buf, size_t len)
{
	return len < WRITER_DIRECT_LEN ? append_staged(w, buf, len) : append_direct(w, buf, len);
}
