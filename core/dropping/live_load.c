/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The records of a live file, of a consistent moment, from any process: it reads the file, or where the owner
 * is too busy a mapping of it, and checks the sequence number.
 */
#include "core/dropping/live_read.h"

#include "core/base/alloc.h"
#include "core/base/crc32c.h"
#include "core/backend/names.h"
#include "core/dropping/datalog.h"
#include "core/base/msg.h"
#include "core/base/io.h"

#include <stdio.h>

int live_decode(struct index_record *rec, const uint8_t *p, bool sealed)
{
	uint8_t copy[INDEX_RECORD_LEN];
	int ret;

	if (sealed) {
		ret = index_record_decode(rec, p, INDEX_RECORD_LEN);
		return ret < 0 ? ret : 0;
	}
	memcpy(copy, p, sizeof(copy));
	put_le32(copy + REC_CRC, 0);
	put_le32(copy + REC_CRC, crc32c(0, copy, sizeof(copy)));
	ret = index_record_decode(rec, copy, sizeof(copy));
	return ret < 0 ? ret : 0;
}

/*
 * The last record, which may be growing: its bytes end at @recorded_len. 1: a record; 0: none, for its write
 * had not returned; -EBADMSG.
 */
static int decode_last(struct index_record *rec, const uint8_t *p, uint64_t recorded_len)
{
	bool run = get_le64(p + REC_COUNT) != 1;
	int grows = run ? REC_COUNT : REC_LENGTH;
	uint64_t log_off, length;
	uint8_t copy[INDEX_RECORD_LEN];
	uint32_t crc = get_le32(p + REC_CRC);

	if (!live_decode(rec, p, true))
		return 1;
	memcpy(copy, p, sizeof(copy));
	put_le32(copy + REC_CRC, 0);
	put_le64(copy + grows, 0);
	if (crc32c(0, copy, sizeof(copy)) != crc)
		return -EBADMSG;
	log_off = get_le64(copy + REC_LOG_OFF);
	length = get_le64(copy + REC_LENGTH);
	if (recorded_len == log_off)
		return 0;
	if (recorded_len < log_off || (run && (!length || (recorded_len - log_off) % length)))
		return -EBADMSG;
	put_le64(copy + grows, run ? (recorded_len - log_off) / length : recorded_len - log_off);
	return live_decode(rec, copy, false) ? -EBADMSG : 1;
}

static void take_lengths(struct live_state *state, const struct live_words *lw)
{
	state->flushed_len = lw->flushed_len;
	state->staged_len = lw->staged_len;
	state->last_trailer = lw->last_trailer;
	state->last_table = lw->last_table;
}

/* One attempt. -EAGAIN: the owner was changing records. */
static int load_once(const struct container *c, int h, const struct live_header *lh, struct live_state *state,
		     struct index_record *records, uint8_t *raw, bool insist)
{
	struct store *s = c->store;
	struct live_words lw;
	uint64_t seq, nr;
	uint8_t again[8];
	int ret = live_read_words(s, h, &lw);
	ssize_t n;

	if (ret)
		return ret;
	seq = lw.seq;
	nr = lw.nr_records;
	if (nr > lh->records_cap)
		return -EBADMSG;
	n = s->ops->pread(s, h, raw, nr * INDEX_RECORD_LEN, lh->records_off);
	if (n != (ssize_t)(nr * INDEX_RECORD_LEN))
		return n < 0 ? (int)n : -EBADMSG;
	n = s->ops->pread(s, h, again, sizeof(again), LIVE_OFF_SEQ);
	if (n != sizeof(again))
		return n < 0 ? (int)n : -EBADMSG;
	if (live_number(get_le64(again)) != seq || (!insist && seq % 2))
		return -EAGAIN;
	/* In the middle of a change the last but one may be taking the last in. */
	for (uint64_t i = 0; i < nr && !ret; i++)
		if (i + 1 < nr || seq % 2)
			ret = live_decode(&records[i], raw + i * INDEX_RECORD_LEN, i + 1 + seq % 2 < nr);
	if (!ret && nr && seq % 2 == 0) {
		ret = decode_last(&records[nr - 1], raw + (nr - 1) * INDEX_RECORD_LEN, lw.recorded_len);
		nr -= ret == 0;
		ret = ret < 0 ? ret : 0;
	}
	state->seq = seq;
	state->nr_records = nr;
	take_lengths(state, &lw);
	return ret;
}

/*
 * Load from an owner that lives on another host (the end of live_layout.h's head). All that it has released
 * is there.
 */
static int load_foreign(const struct container *c, const char *path, int h, const struct live_header *lh,
			struct live_state *state, struct index_record *records, uint8_t *raw)
{
	char log[CONTAINER_PATH_LEN], full[CONTAINER_PATH_LEN];
	struct store *s = c->store;
	struct live_words lw;
	uint64_t nr, log_end;
	struct stat st;
	ssize_t n;
	int ret = live_read_words(s, h, &lw);

	if (ret)
		return ret;
	nr = min_u64(lw.nr_records, lh->records_cap);
	n = s->ops->pread(s, h, raw, nr * INDEX_RECORD_LEN, lh->records_off);
	if (n != (ssize_t)(nr * INDEX_RECORD_LEN))
		return n < 0 ? (int)n : -EBADMSG;
	name_beside(path, state->log_name, log);
	container_path(c, log, full);
	ret = s->ops->stat(s, full, &st);
	/* The live file is still there, so the log was not closed: it has no bytes. */
	if (ret == -ENOENT && !s->ops->fstat(s, h, &st) && st.st_nlink)
		st.st_size = 0;
	else if (ret)
		return ret;
	log_end = datalog_len(&st);
	for (uint64_t i = 0; i < nr; i++) {
		struct index_record *rec = &records[state->nr_records];

		if (!live_decode(rec, raw + i * INDEX_RECORD_LEN, true) &&
		    (rec->type != INDEX_WRITE || index_record_log_end(rec) <= log_end))
			state->nr_records++;
	}
	return 0;
}

/*
 * Load a stranded live file. A record with its checksum is true whenever it was written. So is the last one,
 * which could still grow, if last_crc in the header is its checksum. Whether the bytes are there is not known
 * without a checksum.
 */
static int load_stranded(const struct container *c, int h, const struct live_head *head,
			 struct live_state *state, struct index_record *records, uint8_t *raw)
{
	uint64_t nr = min_u64(head->words.nr_records, head->fixed.records_cap);
	ssize_t n;

	if (head->words_damaged)
		return -EBADMSG;
	state->stranded = true;
	take_lengths(state, &head->words);
	memset(raw, 0, nr * INDEX_RECORD_LEN);
	n = c->store->ops->pread(c->store, h, raw, nr * INDEX_RECORD_LEN, head->fixed.records_off);
	if (n < 0)
		return (int)n;
	for (uint64_t i = 0; i < nr; i++) {
		struct index_record *rec = &records[state->nr_records];

		if (!live_decode(rec, raw + i * INDEX_RECORD_LEN, true) ||
		    (i + 1 == nr && get_le32(raw + i * INDEX_RECORD_LEN + REC_CRC) == head->words.last_crc &&
		     decode_last(rec, raw + i * INDEX_RECORD_LEN, head->words.recorded_len) > 0))
			state->nr_records++;
	}
	return 0;
}

/*
 * The sequence number and the number of records, to @state, and the last two records to @tail, as they were
 * at one moment. Only these two ever change, and through a mapping looking takes less time than the owner
 * needs from one change to the next.
 */
static bool look_at_once(const uint8_t *map, const struct live_header *lh, struct live_state *state,
			 uint8_t *tail)
{
	for (int tries = 0; tries < 100000; tries++) {
		uint64_t seq = live_load_number(map, LIVE_OFF_SEQ);
		uint64_t nr = live_load_number(map, LIVE_OFF_NR_RECORDS);
		uint64_t nr_tail = min_u64(nr, 2);

		if (seq % 2 || nr > lh->records_cap)
			continue;
		memcpy(tail, map + lh->records_off + (nr - nr_tail) * INDEX_RECORD_LEN,
		       nr_tail * INDEX_RECORD_LEN);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (live_load_number(map, LIVE_OFF_SEQ) != seq)
			continue;
		state->seq = seq;
		state->nr_records = nr;
		return true;
	}
	state->seq = state->nr_records = 0;
	return false;
}

/*
 * Load from an owner that is so busy that it changes something during every load_once(). All records but the
 * last two are at rest. If they move to the node index meanwhile, the records found in their place are true
 * as well, and the node index is read after this.
 */
static int load_busy(const struct container *c, int h, const struct live_header *lh, struct live_state *state,
		     struct index_record *records)
{
	struct store *s = c->store;
	uint64_t off = lh->records_off, len = off + lh->records_cap * INDEX_RECORD_LEN;
	uint8_t tail[2 * INDEX_RECORD_LEN];
	struct stat st;
	const uint8_t *map;
	int ret = s->ops->fstat(s, h, &st);

	if (ret || off > (uint64_t)st.st_size || len > (uint64_t)st.st_size)
		return ret ? ret : -EBADMSG;
	map = store_map(s, h, (size_t)len, false);
	if (!map)
		return -EAGAIN;
	ret = look_at_once(map, lh, state, tail) ? 0 : -EAGAIN;
	for (uint64_t i = 0, nr = state->nr_records; i < nr && !ret; i++)
		ret = i + 2 < nr ?
			      live_decode(&records[i], map + off + i * INDEX_RECORD_LEN, true) :
			      live_decode(&records[i], tail + (i + min_u64(nr, 2) - nr) * INDEX_RECORD_LEN,
					  i + 1 < nr);
	if (guard_is_broken(map)) /* cut meanwhile */
		ret = -EBADMSG;
	store_unmap(s, (void *)map, (size_t)len);
	return ret;
}

/* Room for no more records than the file, which has room for them from the beginning, is long enough for. */
static int limit_cap(struct store *s, int h, struct live_header *lh)
{
	uint64_t len;
	struct stat st;
	int ret;

	if (lh->records_cap <= LIVE_RECORDS_CAP)
		return 0;
	ret = s->ops->fstat(s, h, &st);
	len = ret ? 0 : (uint64_t)st.st_size;
	lh->records_cap = min_u64(lh->records_cap,
				  lh->records_off < len ? (len - lh->records_off) / INDEX_RECORD_LEN : 0);
	return ret;
}

/* Give back what a file with few records has not needed: there may be thousands of them. */
static void shrink(struct index_record **records, uint64_t nr)
{
	struct index_record *fewer = mem_realloc(*records, (nr + 1) * sizeof(*fewer));

	if (fewer)
		*records = fewer;
}

int live_load(const struct container *c, const char *path, struct live_state *state,
	      struct index_record **records)
{
	struct live_head head;
	uint8_t *raw = NULL;
	bool elsewhere;
	uint64_t cap;
	int ret;
	int h = live_open_header(c, path, O_RDONLY, &head, &elsewhere);

	memset(state, 0, sizeof(*state));
	*records = NULL;
	if (h == -ENODATA)
		return 0;
	if (h == -EBADMSG || h == -EIO)
		msg_error("%s/%s: damaged live index", c->dir, path);
	if (h < 0)
		return h;
	memcpy(state->log_name, head.fixed.log_name, sizeof(state->log_name));
	ret = limit_cap(c->store, h, &head.fixed);
	cap = head.fixed.records_cap;
	raw = ret ? NULL : mem_alloc(cap * INDEX_RECORD_LEN);
	*records = ret ? NULL : mem_alloc((cap + 1) * sizeof(**records));
	ret = ret ? ret : raw && *records ? -EAGAIN : -ENOMEM;
	if (ret == -EAGAIN && elsewhere)
		ret = load_foreign(c, path, h, &head.fixed, state, *records, raw);
	else if (ret == -EAGAIN && live_is_stranded(c, &head.fixed))
		ret = load_stranded(c, h, &head, state, *records, raw);
	/*
	 * An owner killed in the middle of a change leaves an odd number for ever; what is there then is at
	 * rest.
	 */
	for (int tries = 0; !elsewhere && (ret == -EAGAIN || ret == -EBADMSG) && tries < 20; tries++) {
		struct timespec wait = { .tv_nsec = 50000L * tries };

		if (tries)
			io_nanosleep(&wait, NULL);
		ret = load_once(c, h, &head.fixed, state, *records, raw, tries >= 10);
		if (ret == -EAGAIN && tries >= 10)
			ret = load_busy(c, h, &head.fixed, state, *records);
	}
	if (ret == -EBADMSG)
		msg_error("%s/%s: damaged live index", c->dir, path);
	mem_free(raw);
	if (ret) {
		mem_free(*records);
		*records = NULL;
	} else {
		shrink(records, state->nr_records);
	}
	store_close(c->store, &h);
	return ret;
}
