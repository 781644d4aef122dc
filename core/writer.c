/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a write reaches the log: small ones through the stage, large ones directly, each with its record and its part of
 * the chunk checksums. The order is always bytes first, record second, so that a record never points at nothing.
 */
#include "writer.h"

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

/* Move the live index to the node index, for good (@final: with the checksum of the last, cut-off chunk) or to make room. */
static int spill(struct writer *w, bool final)
{
	struct stage *s = &w->stage;
	struct index_block block = { .log_len = log_len(w), .first_chunk = s->first_chunk };
	struct index_record *records;
	uint32_t *crcs;
	int ret = -ENOMEM;

	if (w->before_spill && !final)
		w->before_spill(w->arg);
	if (!s->shared) { /* the node index must not speak of bytes that are in our memory alone */
		ret = writer_flush(w);
		if (ret)
			return ret;
		ret = -ENOMEM;
	}
	writer_break(w);
	memcpy(block.log_name, w->log_name, sizeof(block.log_name));
	block.nr_records = (uint32_t)s->nr_records;
	block.nr_chunks = (uint32_t)s->nr_chunks;
	records = mem_alloc((s->nr_records + 1) * sizeof(*records));
	crcs = mem_alloc((s->nr_chunks + 1) * sizeof(*crcs));
	if (!records || !crcs)
		goto out;
	for (uint64_t i = 0; i < s->nr_records; i++)
		writer_record(w, i, &records[i]);
	for (uint64_t i = 0; i < s->nr_chunks; i++)
		crcs[i] = get_le32(stage_chunks(s) + 4 * i);
	if (final && block.log_len % INDEX_CHUNK_LEN)
		crcs[block.nr_chunks++] = w->chunk_crc;
	block.records = records;
	block.chunk_crc = crcs;
	ret = dropping_append_index(w->c, &block);
	if (!ret && !final) {
		stage_reset_records(s);
		w->nr_pinned = 0;
	}
out:
	mem_free(records);
	mem_free(crcs);
	return ret;
}

/* See to it that a record and the checksums of @len bytes find room. */
static int make_room(struct writer *w, size_t len)
{
	uint64_t nr_chunks = w->stage.nr_chunks + (w->stage.staged_len + len) / INDEX_CHUNK_LEN + 2;

	if (w->stage.nr_records < STAGE_RECORDS_CAP && nr_chunks <= STAGE_CHUNKS_CAP)
		return 0;
	return spill(w, false);
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

int writer_flush(struct writer *w)
{
	struct stage *s = &w->stage;
	uint64_t nr_chunks = s->nr_chunks;
	uint32_t crc = w->chunk_crc;
	ssize_t n;

	if (!s->staged_len)
		return 0;
	n = append_log(w, stage_bytes(s), s->staged_len);
	if (n == (ssize_t)s->staged_len) {
		stage_flushed(s, 0);
		return 0;
	}
	/* All or nothing: the stage begins where the log ended. */
	s->nr_chunks = nr_chunks;
	w->chunk_crc = crc;
	stage_set_chunk_crc(s, crc);
	log_debug(LOG_WRITE, "%s: flush: %s", w->log_name, strerror(n < 0 ? (int)-n : ENOSPC));
	return n < 0 ? (int)n : -ENOSPC;
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
		uint64_t log_off = log_len(w);
		ssize_t n = make_room(w, part);

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
	int ret = writer_flush(w);

	writer_break(w);
	if (!ret && (w->stage.nr_records || w->stage.nr_chunks || log_len(w) % INDEX_CHUNK_LEN))
		ret = spill(w, true);
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
