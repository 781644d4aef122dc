/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a write reaches the log: small ones through the stage, large ones directly, each with its record and its part of
 * the chunk checksums. The order is always bytes first, record second, so that a record never points at nothing.
 */
#include "writer.h"

#include "../index/chunks.h"
#include "../index/run.h"
#include "alloc.h"
#include "bytes.h"
#include "crc32c.h"
#include "log.h"
#include "stamp.h"
#include "sys.h"
#include "watch.h"

#include <stdio.h>

/* From here on copying and checksumming are done at once. For less the latency of a checksum that continues the last one shows. */
#define FUSED_LEN 2048

/* Large writes end at a multiple of this in the log file, where pages and their folios do; what is left is staged. */
#define ALIGN_LEN 4096

/* A log of so many bytes is given space for as much again, up to so many, where that makes writing faster. */
#define AHEAD_MIN ((uint64_t)2 << 20)
#define AHEAD_MAX ((uint64_t)64 << 20)

/* One call's worth: its chunks must fit into an empty table of checksums. */
#define PART_LEN ((size_t)(STAGE_CHUNKS_CAP / 2) * INDEX_CHUNK_LEN)

/*
 * A record that was idle for so long does not grow any more: processes that write in phases, without telling us
 * where one ends, then still get a stamp for each.
 */
#define IDLE_NS 100000000

int writer_open(struct writer *w, const struct container *c)
{
	int ret;

	memset(w, 0, sizeof(*w));
	w->c = c;
	w->next_off = UINT64_MAX;
	w->log = dropping_create_log(c, stamp_next(), w->log_name);
	if (w->log < 0)
		return w->log;
	snprintf(w->log_path, sizeof(w->log_path), "hostdir.%u/%s", dropping_hostdir(c), w->log_name);
	ret = stage_create(&w->stage, c, w->log_name);
	if (ret) {
		char path[CONTAINER_PATH_LEN];

		container_path(c, w->log_path, path);
		store_close(c->store, &w->log);
		c->store->ops->unlink(c->store, path);
		return ret;
	}
	watch_raise(c);
	log_debug(LOG_WRITE, "log %s/%s", c->dir, w->log_path);
	return 0;
}

static uint64_t log_len(const struct writer *w)
{
	return w->stage.flushed_len + w->stage.staged_len;
}

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

/* Stage @len bytes, for which there is room. */
static inline void put(struct writer *w, const void *buf, size_t len)
{
	struct stage *s = &w->stage;
	uint8_t *to = stage_bytes(s) + s->staged_len;

	if (len < FUSED_LEN) {
		memcpy(to, buf, len);
	} else {
		sum_up_stage(w);
		sum_up(w, to, buf, len);
	}
	stage_put(s, (ssize_t)len);
}

void writer_record(const struct writer *w, uint64_t i, struct index_record *rec)
{
	if (i + 1 == w->stage.nr_records && w->last_open) {
		*rec = w->last;
		return;
	}
	index_record_decode(rec, stage_record(&w->stage, i), INDEX_RECORD_LEN);
}

/* Fold the last record, which is sealed, into the one before it, if it goes on there. */
static void fold(struct writer *w)
{
	struct stage *s = &w->stage;

	if (!w->prev_open || s->nr_records - 2 < w->nr_pinned || !index_run_fold(&w->prev, &w->last))
		return;
	stage_fold_record(s, &w->prev);
	w->last = w->prev;
	w->prev = w->before;
	w->prev_open = w->before_open;
	w->before_open = false;
}

void writer_break(struct writer *w)
{
	if (w->last_open) {
		stage_seal_record(&w->stage, w->stage.nr_records - 1, &w->last);
		fold(w); /* an element into a run */
		fold(w); /* a run into the block whose row it is */
	}
	w->last_open = w->prev_open = w->before_open = false;
	w->next_off = UINT64_MAX;
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

/* The log is complete: give back what it did not use. */
static void give_back(struct writer *w)
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

/*
 * Flush, and move the chunk checksums to the log to make room for others. The table takes up as many bytes as a chunk,
 * so that what is written later is as well aligned as before, and is checksummed with them.
 */
static int append_table(struct writer *w, struct index_block *block)
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
	block->chunks_off = log_len(w);
	n = append_log(w, buf, len);
	mem_free(buf);
	return n == (ssize_t)len ? 0 : n < 0 ? (int)n : -ENOSPC;
}

/* The same at the end, in one call with what is staged: the chunk under way is cut off, and the table is in none. */
static int append_last_table(struct writer *w, struct index_block *block)
{
	struct stage *s = &w->stage;
	ssize_t n = -ENOMEM;
	unsigned nr;
	size_t len;
	void *buf;

	if (!log_len(w))
		return 0;
	sum_up_stage(w);
	nr = w->summed.nr;
	if (log_len(w) % INDEX_CHUNK_LEN)
		w->chunk_crc[nr++] = w->summed.crc;
	buf = make_table(w, w->chunk_crc, nr, 0, &len);
	if (buf)
		n = s->store->ops->pwrite2(s->store, w->log, stage_bytes(s), s->staged_len, buf, len,
					   DROPPING_DATA_OFF + s->flushed_len);
	mem_free(buf);
	if (n != (ssize_t)(s->staged_len + len))
		return n < 0 ? (int)n : -ENOSPC;
	block->chunks_off = log_len(w);
	log_has_grown(w, 0);
	return 0;
}

/* The live index as a block at the end of the node index; @block says the rest. */
static int append_index(struct writer *w, struct index_block *block)
{
	struct stage *s = &w->stage;
	struct index_record *records = mem_alloc((s->nr_records + 1) * sizeof(*records));
	int ret;

	if (!records)
		return -ENOMEM;
	for (uint64_t i = 0; i < s->nr_records; i++)
		writer_record(w, i, &records[i]);
	dropping_log_numbers(w->log_name, &block->pid, &block->seq);
	block->nr_records = (uint32_t)s->nr_records;
	block->records = records;
	ret = dropping_append_index(w->c, block);
	mem_free(records);
	return ret;
}

/* Move the live index to the node index to make room; @table: the chunk checksums too. */
static int spill(struct writer *w, bool table)
{
	struct stage *s = &w->stage;
	struct index_block block = { 0 };
	uint64_t nr_chunks = 0;
	int ret = 0;

	if (w->before_spill)
		w->before_spill(w->arg);
	/* The node index must not speak of bytes that only we, or only this host, can see. */
	if (table || !stage_is_open_to_all(s))
		ret = writer_flush(w);
	if (!ret && table) {
		nr_chunks = s->nr_chunks;
		ret = append_table(w, &block);
	}
	writer_break(w);
	block.log_len = log_len(w);
	if (!ret)
		ret = append_index(w, &block);
	if (!ret) {
		stage_reset_records(s, nr_chunks);
		w->nr_pinned = 0;
	}
	return ret;
}

/* The same for good. */
static int spill_last(struct writer *w)
{
	struct index_block block = { .log_len = log_len(w) };
	int ret = append_last_table(w, &block);

	writer_break(w);
	if (!ret && (w->stage.nr_records || block.chunks_off))
		ret = append_index(w, &block);
	return ret;
}

/* See to it that a record and the checksums of @len bytes, of a full stage and of a table, find room. */
static int make_room(struct writer *w, size_t len)
{
	bool chunks = w->stage.nr_chunks + (STAGE_CAP + len) / INDEX_CHUNK_LEN + 4 > STAGE_CHUNKS_CAP;

	if (w->stage.nr_records < STAGE_RECORDS_CAP && !chunks)
		return 0;
	return spill(w, chunks);
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

		put(w, buf + done, part);
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
		uint64_t off = DROPPING_DATA_OFF + log_len(w), end = off + (len - done);
		size_t part = (size_t)(min_u64(end - end % ALIGN_LEN, off - off % WRITER_PIECE_LEN + WRITER_PIECE_LEN) - off);
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

static ssize_t append_bytes(struct writer *w, const void *buf, size_t len)
{
	return len < WRITER_DIRECT_LEN ? append_staged(w, buf, len) : append_direct(w, buf, len);
}

static void add_record(struct writer *w, const struct index_record *rec)
{
	struct stage *s = &w->stage;

	if (w->last_open) {
		stage_seal_record(s, s->nr_records - 1, &w->last);
		fold(w); /* an element that was written in pieces into a run, or a run into the block whose row it is */
		if (!index_run_goes_on(&w->last, rec->logical_off))
			fold(w);
		w->before = w->prev;
		w->before_open = w->prev_open;
		w->prev = w->last;
		w->prev_open = true;
	}
	stage_add_record(s, rec);
	w->last = *rec;
	w->last_open = true;
}

/* See which write would make the open record grow without another look. */
static void expect_next(struct writer *w)
{
	const struct index_record *last = &w->last;

	w->next_len = last->count > 1 ? last->length : 0;
	w->next_off = last->logical_off + (last->count > 1 ? last->count * last->stride : last->length);
}

static void index_write(struct writer *w, uint64_t logical_off, uint64_t len, uint64_t log_off)
{
	struct index_record rec = {
		.type = INDEX_WRITE, .logical_off = logical_off, .length = len, .count = 1, .log_off = log_off,
	};

	if (w->last_open && index_run_grow(&w->last, logical_off, len)) {
		stage_grow_record(&w->stage, w->stage.nr_records - 1, &w->last);
	} else {
		rec.stamp_ns = stamp_next();
		add_record(w, &rec);
	}
	expect_next(w);
}

/* What index_run_grow() would find, but that offsets cannot overflow here: the program's are checked, and a log is never so long. */
bool writer_write_next(struct writer *w, const void *buf, size_t len, uint64_t logical_off, uint64_t notified_ns)
{
	struct stage *s = &w->stage;
	uint64_t now, told_ns = stage_notified(s);

	if (logical_off != w->next_off || (w->next_len && len != w->next_len) || len > stage_room(s) ||
	    told_ns > notified_ns || told_ns >= w->last.stamp_ns)
		return false;
	now = stamp_coarse_ns();
	if (now - w->last_write_ns > IDLE_NS)
		return false;
	put(w, buf, len);
	if (w->next_len) {
		w->last.count++;
		w->next_off += w->last.stride;
	} else {
		w->last.length += len;
		w->next_off += len;
	}
	stage_grow_record(s, s->nr_records - 1, &w->last);
	w->last_write_ns = now;
	return stage_notified(s) == told_ns;
}

ssize_t writer_write(struct writer *w, const void *buf, size_t len, uint64_t logical_off)
{
	uint64_t now = stamp_coarse_ns();
	size_t done = 0;

	if (w->last_open && (now - w->last_write_ns > IDLE_NS || stage_notified(&w->stage) >= w->last.stamp_ns))
		writer_break(w);
	while (done < len) {
		size_t part = min_size(len - done, PART_LEN);
		ssize_t n = make_room(w, part); /* may append a table */
		uint64_t log_off = log_len(w);

		if (!n)
			n = append_bytes(w, (const char *)buf + done, part);
		if (n > 0) {
			index_write(w, logical_off + done, (uint64_t)n, log_off);
			done += (size_t)n;
		}
		if (n != (ssize_t)part) {
			if (!done)
				return n;
			break;
		}
	}
	w->last_write_ns = now;
	return (ssize_t)done;
}

int writer_truncate(struct writer *w, uint64_t size)
{
	struct index_record rec = { .type = INDEX_TRUNCATE, .logical_off = size };
	int ret = make_room(w, 0);

	if (ret)
		return ret;
	writer_break(w);
	rec.stamp_ns = stamp_next();
	add_record(w, &rec);
	writer_break(w);
	return 0;
}

int writer_commit(struct writer *w)
{
	int ret;

	writer_break(w);
	ret = writer_flush(w);
	return ret ? ret : stage_save(&w->stage);
}

/* The directories on the way, once, so that the log can be found after a power failure. */
static int sync_dirs(struct writer *w)
{
	struct store *s = w->c->store;
	char path[CONTAINER_PATH_LEN];
	int ret = 0;

	if (w->dirs_synced)
		return 0;
	container_path(w->c, w->log_path, path);
	for (char *slash = strrchr(path, '/'); slash && !ret; slash = strrchr(path, '/')) {
		int h;

		*slash = '\0';
		h = store_open(s, path, O_RDONLY | O_DIRECTORY | STORE_BRIEFLY, 0);
		if (h < 0)
			return h;
		ret = s->ops->sync(s, h, true);
		store_close(s, &h);
	}
	w->dirs_synced = !ret;
	return ret;
}

int writer_sync(struct writer *w)
{
	struct store *s = w->c->store;
	int ret;

	/* Bytes that cannot be appended now are synced where they are, in the stage. */
	writer_break(w);
	writer_flush(w);
	ret = s->ops->sync(s, w->log, false);
	if (!ret)
		ret = stage_sync(&w->stage);
	return ret ? ret : sync_dirs(w);
}

void writer_close(struct writer *w)
{
	struct store *s = w->c->store;
	int ret = spill_last(w);

	if (ret) {
		log_debug(LOG_WRITE, "%s: the live index stays: %s", w->log_name, strerror(-ret));
		stage_save(&w->stage);
	}
	stage_close(&w->stage, !ret);
	give_back(w);
	store_close(s, &w->log);
}

void writer_abandon(struct writer *w)
{
	stage_close(&w->stage, false);
	store_close(w->c->store, &w->log);
}

void writer_read_stage(const struct writer *w, void *buf, size_t len, uint64_t log_off)
{
	memcpy(buf, stage_bytes(&w->stage) + (log_off - w->stage.flushed_len), len);
}
