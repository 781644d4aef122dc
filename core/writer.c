/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What becomes of a write: its bytes are appended (append.h), then it gets its record. In this order, so that a record never
 * points at nothing.
 */
#include "writer.h"

#include "../index/run.h"
#include "alloc.h"
#include "append.h"
#include "bytes.h"
#include "globalcache.h"
#include "leased.h"
#include "log.h"
#include "resume.h"
#include "stamp.h"
#include "sys.h"
#include "watch.h"

#include <stdio.h>

/* One call's worth: its chunks must fit into an empty table of checksums. */
#define PART_LEN ((size_t)(STAGE_CHUNKS_CAP / 2) * INDEX_CHUNK_LEN)

static void remove_log(struct writer *w)
{
	char path[CONTAINER_PATH_LEN];

	container_path(w->c, w->log_path, path);
	store_close(w->c->store, &w->log);
	w->c->store->ops->unlink(w->c->store, path);
}

static int make_log(struct writer *w)
{
	int ret;

	w->log = dropping_create_log(w->c, stamp_next(), w->log_name);
	if (w->log < 0)
		return w->log;
	snprintf(w->log_path, sizeof(w->log_path), "hostdir.%u/%s", dropping_hostdir(w->c), w->log_name);
	ret = stage_create(&w->stage, w->c, w->log_name, NULL);
	if (ret)
		remove_log(w);
	return ret;
}

/* Tell readers of a new log. What processes tell each other of leases is in the same file. */
static int raise_and_lease(struct writer *w)
{
	int h = watch_raise_in(w->c), ret;

	if (h < 0)
		return h;
	ret = lease_open(&w->lease, w->c->store, h);
	store_close(w->c->store, &h);
	return ret;
}

int writer_open(struct writer *w, const struct container *c)
{
	bool resumed;
	int ret;

	memset(w, 0, sizeof(*w));
	w->c = c;
	w->next_off = UINT64_MAX;
	resumed = !resume_open(w);
	ret = resumed ? 0 : make_log(w);
	if (ret)
		return ret;
	/*
	 * The live file before the map goes, and that before readers are told and the first write returns
	 * (globalcache.h).
	 */
	ret = global_revoke(c);
	if (!ret)
		ret = raise_and_lease(w);
	if (ret) {
		stage_close(&w->stage, true);
		if (resumed)
			store_close(c->store, &w->log);
		else
			remove_log(w);
		return ret;
	}
	log_debug(LOG_WRITE, "log %s/%s", c->dir, w->log_path);
	return 0;
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

/* @block becomes the live index; its records are mem_alloc()ed. */
static int make_block(struct writer *w, struct index_block *block)
{
	struct stage *s = &w->stage;
	struct index_record *records = mem_alloc((s->nr_records + 1) * sizeof(*records));

	*block = (struct index_block){ .nr_records = (uint32_t)s->nr_records, .records = records };
	if (!records)
		return -ENOMEM;
	for (uint64_t i = 0; i < s->nr_records; i++)
		writer_record(w, i, &records[i]);
	dropping_log_numbers(w->log_name, &block->pid, &block->seq);
	return stage_is_broken(s) ? -EIO : 0;
}

/*
 * Move the live index to the node index to make room; @table: the chunk checksums to the log. The block goes into the
 * log first: what the node index has is in there too, and what is only there is in the live file as well.
 */
static int spill(struct writer *w, bool table)
{
	struct stage *s = &w->stage;
	struct trailer_piece piece = { 0 };
	struct append_undo undo;
	struct index_block block;
	uint64_t nr_chunks;
	int ret = 0;

	if (w->before_spill)
		w->before_spill(w->arg);
	/* The node index must not speak of bytes that only we, or only this host, can see. */
	if (table || !stage_is_open_to_all(s))
		ret = writer_flush(w);
	if (ret)
		return ret;
	writer_break(w);
	nr_chunks = table ? s->nr_chunks : 0;
	ret = make_block(w, &block);
	if (!ret)
		ret = append_block(w, &block, table, &undo, &piece);
	if (!ret) {
		ret = dropping_append_index(w->c, piece.block_buf, piece.block_len);
		if (ret)
			append_undo(w, &undo, &piece);
	}
	if (!ret) {
		stage_reset_records(s, nr_chunks);
		w->nr_pinned = 0;
	}
	mem_free((void *)block.records);
	mem_free(piece.buf);
	return ret;
}

/* The same for good. */
static int spill_last(struct writer *w)
{
	struct trailer_piece piece = { 0 };
	struct index_block block;
	int ret;

	writer_break(w);
	if (!w->stage.nr_records && !append_log_len(w))
		return 0;
	ret = make_block(w, &block);
	if (!ret)
		ret = append_last_block(w, &block, &piece);
	if (!ret)
		ret = dropping_append_index(w->c, piece.block_buf, piece.block_len);
	if (!ret)
		resume_remember(w, &piece);
	mem_free((void *)block.records);
	mem_free(piece.buf);
	return ret;
}

/* See to it that a record and the checksums of @len bytes, of a full stage, of a block and of a table, find room. */
static int make_room(struct writer *w, size_t len)
{
	bool chunks = w->stage.nr_chunks + (STAGE_CAP + len) / INDEX_CHUNK_LEN + 5 > STAGE_CHUNKS_CAP;

	if (w->stage.nr_records < STAGE_RECORDS_CAP && !chunks)
		return 0;
	return spill(w, chunks);
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
static void expect_next(struct writer *w, uint64_t logical_off)
{
	const struct index_record *last = &w->last;

	w->habits.seen_count = last->count;
	w->habits.seen_len = last->length;
	w->next_len = last->count > 1 ? last->length : 0;
	w->next_off = last->logical_off + (last->count > 1 ? last->count * last->stride : last->length);
	w->next_end = leased_growth_end(w, logical_off);
}

static void index_write(struct writer *w, uint64_t logical_off, uint64_t len, uint64_t log_off)
{
	struct index_record rec = {
		.type = INDEX_WRITE, .logical_off = logical_off, .length = len, .count = 1, .log_off = log_off,
	};
	struct index_pattern range = index_pattern_range(logical_off, len);
	bool leased = leased_has(w, &range);

	leased_take_in_growth(w);
	if (leased && w->last_open && index_run_grow(&w->last, logical_off, len)) {
		stage_grow_record(&w->stage, w->stage.nr_records - 1, &w->last);
	} else {
		rec.stamp_ns = leased ? lease_stamp(&w->lease) : leased_take(w, &range);
		if (!w->last_open)
			w->grows_until_ns = leased_until_ns(w);
		add_record(w, &rec);
	}
	index_shapes_add(&w->habits.shapes, logical_off, len);
	expect_next(w, logical_off);
}

/*
 * What index_run_grow() would find, but that offsets cannot overflow here: the program's are checked, and a log is
 * never so long.
 */
bool writer_write_next(struct writer *w, const void *buf, size_t len, uint64_t logical_off, uint64_t notified_ns)
{
	struct stage *s = &w->stage;
	uint64_t now, told_ns = stage_notified(s);

	if (logical_off != w->next_off || (w->next_len && len != w->next_len) || len > stage_room(s) ||
	    logical_off + len > w->next_end || !lease_is_held(&w->lease) || told_ns > notified_ns || told_ns >= w->last.stamp_ns)
		return false;
	now = stamp_coarse_ns();
	if (now > w->grows_until_ns)
		return false;
	append_put(w, buf, len);
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

	if (w->last_open && (now > w->grows_until_ns || stage_notified(&w->stage) >= w->last.stamp_ns))
		writer_break(w);
	while (done < len) {
		size_t part = min_size(len - done, PART_LEN);
		ssize_t n = make_room(w, part); /* may append a table */
		uint64_t log_off = append_log_len(w);

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

int writer_truncate(struct writer *w, uint64_t size, uint64_t stamp_ns)
{
	struct index_record rec = { .type = INDEX_TRUNCATE, .logical_off = size, .stamp_ns = stamp_ns };
	int ret = make_room(w, 0);

	if (ret)
		return ret;
	writer_break(w);
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

/*
 * The live file is not synced: it goes on changing, and what a power failure leaves of that need not belong together.
 * So what it says goes to the node index first.
 */
int writer_sync(struct writer *w)
{
	struct store *s = w->c->store;
	struct stat st;
	int ret;

	ret = s->ops->fstat(s, w->log, &st);
	if (ret)
		return ret;
	if (!st.st_nlink) {
		log_error("%s/%s: removed under its writer: what is written to it is lost when the file is closed",
			  w->c->dir, w->log_path);
		return -EIO;
	}
	ret = s->ops->fstat(s, w->stage.h, &st);
	if (ret)
		return ret;
	if (st.st_size < STAGE_INDEX_LEN) {
		log_error("%s/%s: its live file was cut: what it said of the log is lost", w->c->dir, w->log_path);
		return -EIO;
	}
	writer_break(w);
	if (w->stage.nr_records)
		ret = spill(w, false);
	if (!ret)
		ret = writer_flush(w);
	if (!ret)
		ret = stage_save(&w->stage);
	return ret ? ret : s->ops->sync(s, w->log, false);
}

/* Its records could not be moved to the node index: has the live file not got them either? */
static bool is_lost(struct writer *w)
{
	struct store *s = w->c->store;
	struct stat st;

	if (stage_is_broken(&w->stage))
		return stage_why_broken(&w->stage) == -EIO;
	return stage_save(&w->stage) || s->ops->fstat(s, w->stage.h, &st) || !st.st_nlink;
}

int writer_close(struct writer *w)
{
	struct store *s = w->c->store;
	int ret = spill_last(w);

	if (ret) {
		log_debug(LOG_WRITE, "%s: the live index stays: %s", w->log_name, strerror(-ret));
		w->lost = is_lost(w);
	}
	lease_close(&w->lease);
	append_give_back(w); /* before somebody else may go on with the log */
	stage_close(&w->stage, !ret);
	w->close_error = store_close(s, &w->log);
	return ret;
}

int writer_give_up(struct writer *w, int *sync_error)
{
	struct store *s = w->c->store;
	int why = stage_why_broken(&w->stage);

	log_debug(LOG_WRITE, "%s: given up: %s", w->log_name, strerror(-why));
	*sync_error = s->ops->sync(s, w->log, false);
	if (!*sync_error)
		*sync_error = s->ops->sync(s, w->stage.h, false);
	append_give_back(w);
	writer_abandon(w);
	return why;
}

void writer_forget(struct writer *w)
{
	lease_abandon(&w->lease);
	stage_close(&w->stage, false);
	store_close(w->c->store, &w->log);
}

void writer_abandon(struct writer *w)
{
	lease_close(&w->lease);
	writer_forget(w);
}

int writer_read_stage(const struct writer *w, void *buf, size_t len, uint64_t log_off)
{
	uint64_t staged_end = w->stage.flushed_len + w->stage.staged_len;

	if (unlikely(log_off < w->stage.flushed_len || log_off > staged_end || len > staged_end - log_off)) {
		log_error("%s/%s: byte %llu, which an index says is there, was never written: the index is damaged",
			  w->c->dir, w->log_path, (unsigned long long)log_off);
		return -EIO;
	}
	memcpy(buf, stage_bytes(&w->stage) + (log_off - w->stage.flushed_len), len);
	return 0;
}
