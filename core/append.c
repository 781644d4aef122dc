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
	stage_set_chunk_crc(s, w->summed.crc);
	w->summed.nr = 0;
	w->summed.len = 0;
	stage_flushed(s, len);
}

/*
 * Append the staged bytes and, behind them, @len at @buf to the log file, in one call. Returns how many of the latter got there, or
 * -errno if not even what was staged did: then it still is.
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
	if (unlikely(stage_is_broken(s))) { /* that are not the bytes: and a reader would believe what the log has */
		w->summed = before;
		return -EIO;
	}
	n = s->store->ops->pwrite2(s->store, w->log, stage_bytes(s), staged_len, buf, len, DROPPING_DATA_OFF + s->flushed_len);
	if (n != (ssize_t)(staged_len + len)) {
		w->summed = before;
		if (n < (ssize_t)staged_len)
			return n < 0 ? n : -ENOSPC;
		len = (size_t)n - staged_len;
		sum_up(w, NULL, buf, len);
	}
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

/* The checksums so far as a table, with those of @nr more chunks at @more; mem_alloc()ed, @room bytes, 0: just as long. */
static void *make_table(const struct writer *w, const uint32_t *more, unsigned nr, size_t room, size_t *len)
{
	const struct stage *s = &w->stage;
	struct index_chunks table = { .first_chunk = s->first_chunk, .nr_chunks = (uint32_t)s->nr_chunks + nr };
	uint8_t *buf, *crcs;

	*len = room ? room : index_chunks_len(table.nr_chunks);
	buf = mem_zalloc(*len);
	if (!buf)
		return NULL;
	crcs = buf + INDEX_CHUNKS_HEADER_LEN;
	memcpy(crcs, stage_chunks(s), s->nr_chunks * 4);
	for (unsigned i = 0; i < nr; i++)
		put_le32(crcs + 4 * (s->nr_chunks + i), more[i]);
	table.chunk_crc = crcs;
	index_chunks_encode(&table, buf);
	return buf;
}

int append_table(struct writer *w, struct index_block *block)
{
	int ret = writer_flush(w);
	ssize_t n;
	size_t len;
	void *buf;

	if (ret)
		return ret;
	buf = make_table(w, NULL, 0, INDEX_CHUNK_LEN, &len);
	if (!buf)
		return -ENOMEM;
	block->chunks_off = append_log_len(w);
	n = append_log(w, buf, len);
	mem_free(buf);
	return n == (ssize_t)len ? 0 : n < 0 ? (int)n : -ENOSPC;
}

int append_last_table(struct writer *w, struct index_block *block)
{
	struct stage *s = &w->stage;
	ssize_t n = -ENOMEM;
	unsigned nr;
	size_t len;
	void *buf;

	if (!append_log_len(w))
		return 0;
	sum_up_stage(w);
	nr = w->summed.nr;
	if (append_log_len(w) % INDEX_CHUNK_LEN)
		w->chunk_crc[nr++] = w->summed.crc;
	buf = make_table(w, w->chunk_crc, nr, 0, &len);
	if (buf && unlikely(stage_is_broken(s)))
		n = -EIO;
	else if (buf)
		n = s->store->ops->pwrite2(s->store, w->log, stage_bytes(s), s->staged_len, buf, len,
					   DROPPING_DATA_OFF + s->flushed_len);
	mem_free(buf);
	if (n != (ssize_t)(s->staged_len + len))
		return n < 0 ? (int)n : -ENOSPC;
	block->chunks_off = append_log_len(w);
	log_has_grown(w, 0);
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
		uint64_t off = DROPPING_DATA_OFF + append_log_len(w), end = off + (len - done) - (off + (len - done)) % ALIGN_LEN;
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
