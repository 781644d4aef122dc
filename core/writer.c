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

/* From here on a write goes to the log in one call instead of through the stage. */
#define DIRECT_LEN (64 * 1024)

/* A large write is checksummed and written in pieces that stay in the cache between the two. */
#define PIECE_LEN (16 * INDEX_CHUNK_LEN)

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
	w->log = dropping_create_log(c, stamp_next(), w->log_name);
	if (w->log < 0)
		return w->log;
	snprintf(w->log_path, sizeof(w->log_path), "hostdir.%u/%s", dropping_hostdir(), w->log_name);
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

/* Take @len bytes that are about to be appended to the log file into the chunk checksums. */
static void checksum(struct writer *w, const void *buf, size_t len)
{
	uint64_t log_off = w->stage.flushed_len;
	const uint8_t *p = buf;

	while (len) {
		size_t part = min_size(len, INDEX_CHUNK_LEN - log_off % INDEX_CHUNK_LEN);

		w->chunk_crc = crc32c(w->chunk_crc, p, part);
		p += part;
		log_off += part;
		len -= part;
		if (log_off % INDEX_CHUNK_LEN == 0) {
			stage_put_chunk(&w->stage, w->chunk_crc);
			w->chunk_crc = 0;
		}
	}
	stage_set_chunk_crc(&w->stage, w->chunk_crc);
}

void writer_record(const struct writer *w, uint64_t i, struct index_record *rec)
{
	if (i + 1 == w->stage.nr_records && w->last_open) {
		*rec = w->last;
		return;
	}
	index_record_decode(rec, stage_record(&w->stage, i), INDEX_RECORD_LEN);
}

void writer_break(struct writer *w)
{
	if (w->last_open)
		stage_seal_record(&w->stage, w->stage.nr_records - 1, &w->last);
	w->last_open = false;
	w->prev_open = false;
}

/*
 * Checksum @len bytes and append them to the log file. Returns how many got there, or -errno if none; the checksums
 * are those of what got there.
 */
static ssize_t append_log(struct writer *w, const void *buf, size_t len)
{
	struct stage *s = &w->stage;
	uint64_t nr_chunks = s->nr_chunks;
	uint32_t crc = w->chunk_crc;
	ssize_t n;

	checksum(w, buf, len);
	n = s->store->ops->pwrite(s->store, w->log, buf, len, DROPPING_DATA_OFF + s->flushed_len);
	if (n != (ssize_t)len) {
		s->nr_chunks = nr_chunks;
		w->chunk_crc = crc;
		checksum(w, buf, n > 0 ? (size_t)n : 0);
	}
	return n == 0 ? -ENOSPC : n;
}

/*
 * Append the staged bytes and @more that stand behind them in the stage. All or nothing: the stage begins where the log
 * ended.
 */
static int append_stage(struct writer *w, size_t more)
{
	struct stage *s = &w->stage;
	size_t len = s->staged_len + more;
	ssize_t n = s->store->ops->pwrite(s->store, w->log, stage_bytes(s), len, DROPPING_DATA_OFF + s->flushed_len);

	if (n == (ssize_t)len) {
		stage_flushed(s, 0);
		return 0;
	}
	log_debug(LOG_WRITE, "%s: flush: %s", w->log_name, strerror(n < 0 ? (int)-n : ENOSPC));
	return n < 0 ? (int)n : -ENOSPC;
}

static void reset_checksums(struct writer *w, uint64_t nr_chunks, uint32_t crc)
{
	w->stage.nr_chunks = nr_chunks;
	w->chunk_crc = crc;
	stage_set_chunk_crc(&w->stage, crc);
}

int writer_flush(struct writer *w)
{
	struct stage *s = &w->stage;
	uint64_t nr_chunks = s->nr_chunks;
	uint32_t crc = w->chunk_crc;
	int ret;

	if (!s->staged_len)
		return 0;
	checksum(w, stage_bytes(s), s->staged_len);
	ret = append_stage(w, 0);
	if (ret)
		reset_checksums(w, nr_chunks, crc);
	return ret;
}

/* Put a table of the checksums so far, and of the chunk under way with @partial, behind the staged bytes. Returns its length. */
static size_t put_table(struct writer *w, bool partial)
{
	struct stage *s = &w->stage;
	uint8_t *p = stage_tail(s), *crcs = p + INDEX_CHUNKS_HEADER_LEN;
	struct index_chunks table = { s->first_chunk, (uint32_t)s->nr_chunks, crcs };

	memcpy(crcs, stage_chunks(s), s->nr_chunks * 4);
	if (partial)
		put_le32(crcs + 4 * table.nr_chunks++, w->chunk_crc);
	index_chunks_encode(&table, p);
	return index_chunks_len(table.nr_chunks);
}

/*
 * Flush, and move the chunk checksums to the log to make room for others. The table takes up as many bytes as a chunk,
 * so that what is written later is as well aligned as before, and is checksummed with them.
 */
static int append_table(struct writer *w, struct index_block *block)
{
	struct stage *s = &w->stage;
	int ret = writer_flush(w);
	size_t len;

	if (ret)
		return ret;
	block->chunks_off = log_len(w);
	len = put_table(w, false);
	memset(stage_tail(s) + len, 0, INDEX_CHUNK_LEN - len);
	stage_put(s, stage_tail(s), INDEX_CHUNK_LEN);
	return writer_flush(w);
}

/* The same at the end, in one call with what is staged: the chunk under way is cut off, and the table is in none. */
static int append_last_table(struct writer *w, struct index_block *block)
{
	struct stage *s = &w->stage;
	uint64_t nr_chunks;
	uint32_t crc;
	int ret = 0;

	if (stage_room(s) < index_chunks_len(STAGE_CHUNKS_CAP))
		ret = writer_flush(w);
	if (ret || !log_len(w))
		return ret;
	nr_chunks = s->nr_chunks;
	crc = w->chunk_crc;
	checksum(w, stage_bytes(s), s->staged_len);
	block->chunks_off = log_len(w);
	ret = append_stage(w, put_table(w, log_len(w) % INDEX_CHUNK_LEN));
	if (ret)
		reset_checksums(w, nr_chunks, crc);
	return ret;
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
	/* The node index must not speak of bytes that are in our memory alone. */
	if (table || !s->shared)
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

/* See to it that a record and the checksums of @len bytes, and of a table, find room. */
static int make_room(struct writer *w, size_t len)
{
	bool chunks = w->stage.nr_chunks + (w->stage.staged_len + len) / INDEX_CHUNK_LEN + 4 > STAGE_CHUNKS_CAP;

	if (w->stage.nr_records < STAGE_RECORDS_CAP && !chunks)
		return 0;
	return spill(w, chunks);
}

static ssize_t append_direct(struct writer *w, const void *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		size_t part = min_size(len - done, PIECE_LEN);
		ssize_t n = append_log(w, (const char *)buf + done, part);

		if (n > 0) {
			stage_flushed(&w->stage, (uint64_t)n);
			done += (size_t)n;
		}
		if (n != (ssize_t)part)
			return done ? (ssize_t)done : n;
	}
	return (ssize_t)done;
}

static ssize_t append_bytes(struct writer *w, const void *buf, size_t len)
{
	bool direct = len >= DIRECT_LEN;
	int ret;

	if (direct || stage_room(&w->stage) < len) {
		ret = writer_flush(w);
		if (ret)
			return ret;
	}
	if (direct)
		return append_direct(w, buf, len);
	stage_put(&w->stage, buf, len);
	return (ssize_t)len;
}

static void add_record(struct writer *w, const struct index_record *rec)
{
	struct stage *s = &w->stage;

	if (w->last_open) {
		stage_seal_record(s, s->nr_records - 1, &w->last);
		if (w->prev_open && s->nr_records - 2 >= w->nr_pinned && index_run_fold(&w->prev, &w->last)) {
			stage_fold_record(s, &w->prev);
			w->last = w->prev;
		}
		w->prev = w->last;
		w->prev_open = true;
	}
	stage_add_record(s, rec);
	w->last = *rec;
	w->last_open = true;
}

static void index_write(struct writer *w, uint64_t logical_off, uint64_t len, uint64_t log_off)
{
	struct index_record rec = {
		.type = INDEX_WRITE, .logical_off = logical_off, .length = len, .count = 1, .log_off = log_off,
	};

	if (w->last_open && index_run_grow(&w->last, logical_off, len)) {
		stage_grow_record(&w->stage, w->stage.nr_records - 1, &w->last);
		return;
	}
	rec.stamp_ns = stamp_next();
	add_record(w, &rec);
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
		h = store_open(s, path, O_RDONLY | O_DIRECTORY, 0);
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
