/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The writer appends the bytes of a write (tail.h), then it adds the record. In this order no record points
 * at bytes that are not there.
 */
#include "core/write/writer.h"

#include "index/record/run.h"
#include "core/dropping/node_index.h"
#include "core/backend/names.h"
#include "core/base/alloc.h"
#include "core/base/bytes.h"
#include "core/gather/kept_map.h"
#include "core/write/begin.h"
#include "core/write/ended.h"
#include "core/write/leased.h"
#include "core/base/msg.h"
#include "core/write/resume.h"
#include "core/base/stamp.h"
#include "core/base/sys.h"
#include "core/dropping/notice.h"
#include "core/base/event.h"

#include <stdio.h>

/* A longer write is cut into parts of this length: the checksums of a part fit into an empty table. */
#define PART_LEN ((size_t)(LIVE_CHUNKS_CAP / 2) * INDEX_CHUNK_LEN)

/*
 * The order is that of kept_map.h: the live file is made, the kept map is revoked, readers are notified, and
 * only then the first write returns. The notice has the table of leases as well.
 */
static int open_noticed(struct writer *w, struct begin *b)
{
	const struct container *c = b->c;
	bool resumed = !resume_open(&w->tail, c);
	int ret = 0;

	if (!resumed) {
		begin_near(b);
		ret = tail_create(&w->tail, c, b->held ? &b->near : NULL);
	}
	if (ret)
		return ret;
	ret = kept_map_revoke(c);
	if (!ret) {
		notice_change(c, b->notice);
		ret = lease_open(&w->leased.lease, c->store, b->notice);
	}
	if (ret) {
		if (resumed)
			tail_close(&w->tail, true);
		else
			tail_remove(&w->tail);
		return ret;
	}
	w->begun_len = tail_len(&w->tail);
	event(EVENT_LOG_MADE, .container = c->dir, .name = w->tail.log_path);
	return 0;
}

/*
 * The notice comes first: without it the log could be the first dropping in a container that was purged. The
 * first of a host to write near makes it while the others wait for the place (struct place_first).
 */
int writer_open(struct writer *w, const struct container *c)
{
	struct begin b = { .c = c, .notice = -ENOENT };
	int ret;

	if (!resume_may(c)) /* that log may be at home, and need no place */
		begin_near(&b);
	ret = begin_notice(&b);
	if (!ret) {
		memset(w, 0, sizeof(*w));
		w->next_off = UINT64_MAX;
		ret = open_noticed(w, &b);
	}
	begin_end(&b);
	return ret;
}

void writer_record(const struct writer *w, uint64_t i, struct index_record *rec)
{
	if (i + 1 == w->tail.live.nr_records && w->last_open) {
		*rec = w->last;
		return;
	}
	index_record_decode(rec, live_record(&w->tail.live, i), INDEX_RECORD_LEN);
}

/* Fold the last record, which is sealed, into the one before it, if it goes on there. */
static void fold(struct writer *w)
{
	struct live *s = &w->tail.live;

	if (!w->prev_open || s->nr_records - 2 < w->nr_pinned || !index_run_fold(&w->prev, &w->last))
		return;
	live_fold_record(s, &w->prev);
	w->last = w->prev;
	w->prev = w->before;
	w->prev_open = w->before_open;
	w->before_open = false;
}

void writer_break(struct writer *w)
{
	if (w->last_open) {
		live_seal_record(&w->tail.live, w->tail.live.nr_records - 1, &w->last);
		fold(w); /* an element into a run */
		fold(w); /* a run into the block whose row it is */
	}
	w->last_open = w->prev_open = w->before_open = false;
	w->next_off = UINT64_MAX;
}

/* @block becomes the live index; its records are mem_alloc()ed. */
static int make_block(struct writer *w, struct index_block *block)
{
	struct live *s = &w->tail.live;
	struct index_record *records = mem_alloc((s->nr_records + 1) * sizeof(*records));

	*block = (struct index_block){ .nr_records = (uint32_t)s->nr_records, .records = records };
	if (!records)
		return -ENOMEM;
	for (uint64_t i = 0; i < s->nr_records; i++)
		writer_record(w, i, &records[i]);
	name_log_numbers(w->tail.log_name, &block->pid, &block->seq);
	return live_is_broken(s) ? -EIO : 0;
}

int writer_save(struct writer *w)
{
	if (likely(w->tail.live.shared))
		return 0;
	writer_break(w);
	writer_flush(w);
	return live_save(&w->tail.live);
}

static int append_index(struct writer *w, const struct trailer_piece *piece)
{
	int ret = node_index_append(w->tail.c, piece->block_buf, piece->block_len);

	w->indexed_len += ret ? 0 : piece->block_len;
	return ret;
}

/*
 * Move the live index to the node index to make room; @table: the chunk checksums to the log. The block goes
 * into the log first: what the node index has is in there too, and what is only there is in the live file as
 * well.
 */
static int spill(struct writer *w, bool table)
{
	struct live *s = &w->tail.live;
	struct trailer_piece piece = { 0 };
	struct tail_undo undo;
	struct index_block block;
	uint64_t nr_chunks;
	int ret = 0;

	if (w->before_spill)
		w->before_spill(w->arg);
	/*
	 * The node index must not refer to bytes that only this process, or only this host, can see. Nor, of
	 * a log near, to staged bytes: who syncs the file brings home those of which the live file has a
	 * record.
	 */
	if (table || w->tail.near || !live_is_open_to_all(s))
		ret = writer_flush(w);
	if (ret)
		return ret;
	writer_break(w);
	writer_save(w);
	nr_chunks = table ? s->nr_chunks : 0;
	ret = make_block(w, &block);
	if (!ret)
		ret = tail_block(&w->tail, &block, table, &undo, &piece);
	if (!ret) {
		ret = append_index(w, &piece);
		if (ret)
			tail_undo(&w->tail, &undo, &piece);
	}
	if (!ret) {
		live_reset_records(s, nr_chunks);
		w->nr_pinned = 0;
		w->nr_spilled += block.nr_records;
		if (w->after_spill)
			w->after_spill(w->arg, block.records, block.nr_records);
	}
	mem_free((void *)block.records);
	mem_free(piece.buf);
	return ret;
}

/* The block goes to the node index alone, on stable storage. */
static int to_node_index(struct writer *w, struct index_block *block)
{
	char index[CONTAINER_PATH_LEN];
	void *buf = mem_alloc(index_block_max_len(block));
	int ret;

	name_index_here(w->tail.c, index);
	block->log_len = tail_len(&w->tail);
	ret = buf ? node_index_append_to(w->tail.c, index, buf, index_block_encode(block, buf)) : -ENOMEM;
	mem_free(buf);
	return ret;
}

/*
 * The same for good. If the disk of a place fails its live file is lost with the log: then the node index, at
 * home, tells which bytes were in them, which are errors and no holes. *@told: 0: it tells of all; -errno.
 */
static int spill_last(struct writer *w, int *told)
{
	struct trailer_piece piece = { 0 };
	struct index_block block;
	int ret;

	*told = 0;
	writer_break(w);
	writer_save(w);
	if (!w->tail.live.nr_records && !tail_len(&w->tail))
		return 0;
	ret = make_block(w, &block);
	if (!ret) {
		ret = tail_last_block(&w->tail, &block, &piece);
		*told = ret == -EIO && w->tail.near ? to_node_index(w, &block) : ret;
	} else {
		*told = ret;
	}
	if (!ret)
		*told = ret = append_index(w, &piece);
	if (!ret)
		resume_remember(&w->tail, &piece, tail_len(&w->tail) - w->begun_len);
	mem_free((void *)block.records);
	mem_free(piece.buf);
	return ret;
}

/* Make room for a record, and for the checksums of @len bytes, a full stage, a block and a table. */
static int make_room(struct writer *w, size_t len)
{
	bool chunks = w->tail.live.nr_chunks + (LIVE_CAP + len) / INDEX_CHUNK_LEN + 5 > LIVE_CHUNKS_CAP;

	if (w->tail.live.nr_records < LIVE_RECORDS_CAP && !chunks)
		return 0;
	return spill(w, chunks);
}

static void add_record(struct writer *w, const struct index_record *rec)
{
	struct live *s = &w->tail.live;

	if (w->last_open) {
		live_seal_record(s, s->nr_records - 1, &w->last);
		/*
		 * an element that was written in pieces into a run, or a run into the block whose row it is
		 */
		fold(w);
		if (!index_run_goes_on(&w->last, rec->logical_off))
			fold(w);
		w->before = w->prev;
		w->before_open = w->prev_open;
		w->prev = w->last;
		w->prev_open = true;
	}
	live_add_record(s, rec);
	w->last = *rec;
	w->last_open = true;
}

/* Predict the write that makes the open record grow, for writer_write_next(). */
static void expect_next(struct writer *w, uint64_t logical_off)
{
	const struct index_record *last = &w->last;

	w->next_len = last->count > 1 ? last->length : 0;
	w->next_off = last->logical_off + (last->count > 1 ? last->count * last->stride : last->length);
	w->next_end = leased_growth_end(&w->leased, last, logical_off);
	if (unlikely(w->tail.near_full)) /* the next write ends this log */
		w->next_off = UINT64_MAX;
}

static void index_write(struct writer *w, uint64_t logical_off, uint64_t len, uint64_t log_off)
{
	struct index_record rec = {
		.type = INDEX_WRITE,
		.logical_off = logical_off,
		.length = len,
		.count = 1,
		.log_off = log_off,
	};
	struct index_pattern range = index_pattern_range(logical_off, len);
	bool leased = leased_has(&w->leased, &range);

	if (w->last_open)
		leased_note_growth(&w->leased, &w->last);
	if (!leased)
		writer_break(w);
	if (w->last_open && index_run_grow(&w->last, logical_off, len)) {
		live_grow_record(&w->tail.live, w->tail.live.nr_records - 1, &w->last);
	} else {
		rec.stamp_ns = leased ? lease_stamp(&w->leased.lease) :
					leased_take(&w->leased, &range, tail_len(&w->tail));
		if (!w->last_open)
			w->grows_until_ns = leased_until_ns(&w->leased);
		add_record(w, &rec);
	}
	leased_note_write(&w->leased, logical_off, len, &w->last);
	expect_next(w, logical_off);
}

/*
 * What index_run_grow() would find, but that offsets cannot overflow here: the program's are checked, and a
 * log is never so long.
 */
bool writer_write_next(struct writer *w, const void *buf, size_t len, uint64_t logical_off,
		       uint64_t notified_ns)
{
	struct live *s = &w->tail.live;
	uint64_t now, told_ns = live_notified(s);

	if (logical_off != w->next_off || (w->next_len && len != w->next_len) || len > live_room(s) ||
	    logical_off + len > w->next_end || !lease_is_held(&w->leased.lease) || told_ns > notified_ns ||
	    told_ns >= w->last.stamp_ns)
		return false;
	now = stamp_coarse_ns();
	if (now > w->grows_until_ns)
		return false;
	tail_put(&w->tail, buf, len);
	if (w->next_len) {
		w->last.count++;
		w->next_off += w->last.stride;
	} else {
		w->last.length += len;
		w->next_off += len;
	}
	live_grow_record(s, s->nr_records - 1, &w->last);
	w->last_write_ns = now;
	return live_notified(s) == told_ns;
}

ssize_t writer_write(struct writer *w, const void *buf, size_t len, uint64_t logical_off)
{
	uint64_t now = stamp_coarse_ns();
	size_t done = 0;

	if (w->last_open && (now > w->grows_until_ns || live_notified(&w->tail.live) >= w->last.stamp_ns))
		writer_break(w);
	while (done < len) {
		size_t part = min_size(len - done, PART_LEN);
		ssize_t n = make_room(w, part); /* may append a table */
		uint64_t log_off = tail_len(&w->tail);

		if (!n)
			n = tail_bytes(&w->tail, (const char *)buf + done, part);
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

ssize_t writer_put(struct writer *w, const void *buf, size_t len, uint64_t *log_off)
{
	int ret = make_room(w, len); /* may append a table */

	*log_off = tail_len(&w->tail);
	return ret ? ret : tail_bytes(&w->tail, buf, len);
}

/*
 * A live file and its checksums may be of different moments then. So a block of the node index says how much
 * of the log has been synced.
 */
int writer_settle(struct writer *w)
{
	struct tail *t = &w->tail;
	struct index_block block = { .synced = true };
	char index[CONTAINER_PATH_LEN], hostdir[CONTAINER_PATH_LEN];
	void *buf;
	int ret = writer_flush(w);

	if (!ret)
		ret = tail_sync(t, SYNC_HOME); /* it stands for logs that are at home */
	if (ret)
		return ret;
	name_log_numbers(t->log_name, &block.pid, &block.seq);
	tail_note_sum(t, &block);
	name_index_here(t->c, index);
	buf = mem_alloc(index_block_max_len(&block));
	ret = buf ? node_index_append_to(t->c, index, buf, index_block_encode(&block, buf)) : -ENOMEM;
	mem_free(buf);
	snprintf(hostdir, sizeof(hostdir), "%s/hostdir.%u", t->c->dir, name_hostdir(t->c));
	return ret ? ret : store_sync_path(t->c->store, hostdir, true);
}

/* The block goes to the node index, on stable storage, and then to the log: here that one may lack it. */
static int index_block(struct writer *w, struct index_block *block)
{
	struct trailer_piece piece = { 0 };
	struct tail_undo undo;
	int ret = to_node_index(w, block);

	if (!ret)
		ret = tail_block(&w->tail, block, false, &undo, &piece);
	mem_free(piece.buf);
	return ret;
}

int writer_index(struct writer *w, const struct index_record *records, size_t nr)
{
	int ret = writer_flush(w);

	for (size_t done = 0; done < nr && !ret;) {
		struct index_block block = { .nr_records = (uint32_t)min_size(nr - done, LIVE_RECORDS_CAP),
					     .records = records + done };

		name_log_numbers(w->tail.log_name, &block.pid, &block.seq);
		done += block.nr_records;
		ret = make_room(w, INDEX_CHUNK_LEN);
		if (!ret)
			ret = index_block(w, &block);
	}
	return ret;
}

void writer_discard(struct writer *w)
{
	lease_close(&w->leased.lease);
	tail_discard(&w->tail);
}

/* The record alone, which refers to no bytes of the log. */
static int tell_record(struct writer *w, const struct index_record *rec)
{
	struct index_block block = { .nr_records = 1, .records = rec };
	void *buf = mem_alloc(index_block_max_len(&block));
	int ret;

	name_log_numbers(w->tail.log_name, &block.pid, &block.seq);
	ret = buf ? node_index_append(w->tail.c, buf, index_block_encode(&block, buf)) : -ENOMEM;
	mem_free(buf);
	return ret;
}

/*
 * The record of a log near is at home first: else what is cut off might come back. Where it cannot be,
 * nothing is cut off.
 */
int writer_truncate(struct writer *w, uint64_t size, uint64_t stamp_ns)
{
	struct index_record rec = { .type = INDEX_TRUNCATE, .logical_off = size, .stamp_ns = stamp_ns };
	int ret = make_room(w, 0);

	if (!ret && unlikely(w->tail.near))
		ret = tell_record(w, &rec);
	if (ret)
		return ret;
	writer_break(w);
	add_record(w, &rec);
	writer_break(w);
	w->last_write_ns = stamp_coarse_ns();
	return 0;
}

int writer_tell(struct writer *w)
{
	if (likely(!w->tail.near) || w->is_ended || !w->tail.live.nr_records)
		return 0;
	return spill(w, false);
}

int writer_tell_last(struct writer *w)
{
	int told;

	if (likely(!w->tail.near) || w->is_ended)
		return 0;
	w->end_error = spill_last(w, &told);
	w->is_ended = true;
	return told;
}

/* Bytes first: what the node index has can be read. */
static int release_home(struct writer *w)
{
	int ret = writer_flush(w), ret2;

	ret2 = live_save(&w->tail.live);
	ret = ret ? ret : ret2;
	if (!ret)
		ret = tail_release(&w->tail);
	if (!ret && w->tail.live.nr_records)
		ret = spill(w, false);
	return ret;
}

int writer_commit(struct writer *w)
{
	int ret, ret2;

	writer_break(w);
	if (unlikely(w->tail.near) && place_releases_home(w->tail.c->store))
		return release_home(w);
	ret = writer_tell(w);
	if (unlikely(ret))
		return ret;
	ret = writer_flush(w);
	ret2 = live_save(&w->tail.live);
	return ret ? ret : ret2;
}

/* Whether log and live file are there, and the latter is whole. 0; -EIO, and with @tells one line; -errno. */
static int check_files(const struct writer *w, bool tells)
{
	const struct tail *t = &w->tail;
	struct store *s = t->c->store;
	struct stat log, live;
	int ret = s->ops->fstat(s, t->log, &log);

	if (!ret)
		ret = s->ops->fstat(s, t->live.h, &live);
	if (ret || (log.st_nlink && live.st_size >= LIVE_INDEX_LEN))
		return ret;
	if (tells && !log.st_nlink)
		msg_error(
			"%s/%s: removed while a process writes to it: its data is lost when the file is closed",
			t->c->dir, t->log_path);
	else if (tells)
		msg_error("%s/%s: its live file was truncated: the records in it are lost", t->c->dir,
			  t->log_path);
	return -EIO;
}

void writer_tell_lost(const struct writer *w) { check_files(w, true); }

/*
 * The live file is not synced: it changes all the time, and a power failure may leave parts of it from
 * different moments. So its records go to the node index first.
 */
int writer_sync(struct writer *w)
{
	struct tail *t = &w->tail;
	int ret = check_files(w, false);

	if (ret)
		return ret;
	writer_break(w);
	if (t->live.nr_records)
		ret = spill(w, false);
	if (!ret)
		ret = writer_flush(w);
	if (!ret)
		ret = live_save(&t->live);
	return ret ? ret : tail_sync(t, place_syncs_near(t->c->store) ? SYNC_NEAR : SYNC_HOME);
}

/* The records could not be moved to the node index. Whether the live file does not have them either. */
static bool is_lost(struct writer *w)
{
	struct live *live = &w->tail.live;
	struct store *s = live->store;
	struct stat st;

	if (live_is_broken(live))
		return live_why_broken(live) == -EIO;
	return live_save(live) || s->ops->fstat(s, live->h, &st) || !st.st_nlink;
}

int writer_close(struct writer *w)
{
	uint64_t written;
	int told, ret = w->is_ended ? w->end_error : spill_last(w, &told);

	if (ret) {
		msg_debug(MSG_WRITE, "%s: the live index stays: %s", w->tail.log_name, strerror(-ret));
		w->lost = is_lost(w);
	}
	written = tail_len(&w->tail) - w->begun_len;
	tail_give_back(&w->tail); /* before another writer may continue the log */
	w->close_error = tail_close(&w->tail, !ret);
	/* who is the last finds no live file */
	w->host = lease_close_log(&w->leased.lease, written, !w->tail.resumed);
	w->release_error = 0;
	if (unlikely(w->tail.near) && place_releases_home(w->tail.c->store))
		w->release_error = ret;
	if (unlikely(w->tail.near) && !ret)
		w->release_error = ended_near(w->tail.c, w->tail.log_path);
	if (unlikely(w->tail.c->store->spares) && !ret)
		ended_copied(w->tail.c, w->tail.log_path);
	return ret;
}

int writer_give_up(struct writer *w, int *sync_error)
{
	struct tail *t = &w->tail;
	struct store *s = t->c->store;
	int why = live_why_broken(&t->live);

	msg_debug(MSG_WRITE, "%s: given up: %s", t->log_name, strerror(-why));
	*sync_error = tail_sync(t, SYNC_HOME);
	if (!*sync_error)
		*sync_error = s->ops->sync(s, t->live.h, false);
	tail_give_back(t);
	writer_abandon(w);
	return why;
}

void writer_forget(struct writer *w)
{
	lease_abandon(&w->leased.lease);
	tail_close(&w->tail, false);
}

void writer_abandon(struct writer *w)
{
	lease_close(&w->leased.lease);
	writer_forget(w);
}
