/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The records of a live file, of a consistent moment, from any process: it reads the file, or where the owner is too
 * busy a mapping of it, and checks the sequence number.
 */
#include "stage_read.h"

#include "alloc.h"
#include "crc32c.h"
#include "dropping.h"
#include "log.h"
#include "own.h"

#include <stdio.h>

int stage_decode(struct index_record *rec, const uint8_t *p, bool sealed)
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
 * What changes, as it is now, behind what has been checked: not even who writes over the file can make more records
 * than there is room for.
 */
static int read_dynamic(struct store *s, int h, const uint8_t *header, uint8_t *dyn)
{
	ssize_t n = s->ops->pread(s, h, dyn + STATIC_LEN, DYNAMIC_END - STATIC_LEN, STATIC_LEN);

	memcpy(dyn, header, STATIC_LEN);
	return n == DYNAMIC_END - STATIC_LEN ? stage_take_words(dyn) : n < 0 ? (int)n : -EBADMSG;
}

/*
 * The last record, which may be growing: @recorded_len tells how far it has got. 0: it is none, for its write had not
 * returned; -EBADMSG
 */
static int decode_last(struct index_record *rec, const uint8_t *p, uint64_t recorded_len)
{
	bool run = get_le64(p + REC_COUNT) != 1;
	int grows = run ? REC_COUNT : REC_LENGTH;
	uint64_t log_off, length;
	uint8_t copy[INDEX_RECORD_LEN];
	uint32_t crc = get_le32(p + REC_CRC);

	if (!stage_decode(rec, p, true))
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
	return stage_decode(rec, copy, false) ? -EBADMSG : 1;
}

static void take_lengths(struct stage_state *state, const uint8_t *header)
{
	state->flushed_len = get_le64(header + OFF_FLUSHED);
	state->staged_len = get_le64(header + OFF_STAGED);
	state->last_trailer = get_le64(header + OFF_LAST_TRAILER);
	state->last_table = get_le64(header + OFF_LAST_TABLE);
}

/* One attempt. -EAGAIN: the owner was changing records. */
static int load_once(const struct container *c, int h, const uint8_t *header, struct stage_state *state,
		     struct index_record *records, uint8_t *raw, bool insist)
{
	struct store *s = c->store;
	uint8_t dyn[DYNAMIC_END], again[8];
	uint64_t seq, nr, cap, off;
	int ret = read_dynamic(s, h, header, dyn);
	ssize_t n;

	if (ret)
		return ret;
	seq = get_le64(dyn + OFF_SEQ);
	nr = get_le64(dyn + OFF_NR_RECORDS);
	off = get_le64(dyn + 32);
	cap = get_le64(dyn + 40);
	if (nr > cap)
		return -EBADMSG;
	n = s->ops->pread(s, h, raw, nr * INDEX_RECORD_LEN, off);
	if (n != (ssize_t)(nr * INDEX_RECORD_LEN))
		return n < 0 ? (int)n : -EBADMSG;
	n = s->ops->pread(s, h, again, sizeof(again), OFF_SEQ);
	if (n != sizeof(again))
		return n < 0 ? (int)n : -EBADMSG;
	if (stage_number(get_le64(again)) != seq || (!insist && seq % 2))
		return -EAGAIN;
	/* In the middle of a change the last but one may be taking the last in. */
	for (uint64_t i = 0; i < nr && !ret; i++)
		if (i + 1 < nr || seq % 2)
			ret = stage_decode(&records[i], raw + i * INDEX_RECORD_LEN, i + 1 + seq % 2 < nr);
	if (!ret && nr && seq % 2 == 0) {
		ret = decode_last(&records[nr - 1], raw + (nr - 1) * INDEX_RECORD_LEN, get_le64(dyn + OFF_RECORDED));
		nr -= ret == 0;
		ret = ret < 0 ? ret : 0;
	}
	state->seq = seq;
	state->nr_records = nr;
	take_lengths(state, dyn);
	return ret;
}

/* Load from an owner that lives on another host: see the end of the table in stage.h. What it has released is there. */
static int load_foreign(const struct container *c, const char *path, int h, const uint8_t *header, struct stage_state *state,
			struct index_record *records, uint8_t *raw)
{
	char log[CONTAINER_PATH_LEN];
	struct store *s = c->store;
	uint8_t dyn[DYNAMIC_END];
	uint64_t nr, log_end;
	struct stat st;
	ssize_t n;
	int ret = read_dynamic(s, h, header, dyn);

	if (ret)
		return ret;
	nr = min_u64(get_le64(dyn + OFF_NR_RECORDS), get_le64(dyn + 40));
	n = s->ops->pread(s, h, raw, nr * INDEX_RECORD_LEN, get_le64(dyn + 32));
	if (n != (ssize_t)(nr * INDEX_RECORD_LEN))
		return n < 0 ? (int)n : -EBADMSG;
	snprintf(log, sizeof(log), "%s/%.*s%s", c->dir, (int)(strchr(path, '/') + 1 - path), path, state->log_name);
	ret = s->ops->stat(s, log, &st);
	/* The live file is there still, so nobody has closed the log: it has no bytes. */
	if (ret == -ENOENT && !s->ops->fstat(s, h, &st) && st.st_nlink)
		st.st_size = 0;
	else if (ret)
		return ret;
	log_end = max_u64((uint64_t)st.st_size, DROPPING_DATA_OFF) - DROPPING_DATA_OFF;
	for (uint64_t i = 0; i < nr; i++) {
		struct index_record *rec = &records[state->nr_records];

		if (!stage_decode(rec, raw + i * INDEX_RECORD_LEN, true) &&
		    (rec->type != INDEX_WRITE || index_record_log_end(rec) <= log_end))
			state->nr_records++;
	}
	return 0;
}

/*
 * Load what a killed process, or a power failure, has left on a host that was started anew since. A record with its
 * checksum is true whenever it is from; so is the last, which could still grow, if it is the one that the header
 * means. Of bytes it takes a checksum to tell whether they are there.
 */
static int load_stranded(const struct container *c, int h, uint8_t *header, struct stage_state *state,
			 struct index_record *records, uint8_t *raw)
{
	uint64_t nr, off = get_le64(header + 32);
	ssize_t n = stage_take_words(header);

	if (n)
		return (int)n;
	nr = min_u64(get_le64(header + OFF_NR_RECORDS), get_le64(header + 40));
	state->stranded = true;
	take_lengths(state, header);
	memset(raw, 0, nr * INDEX_RECORD_LEN);
	n = c->store->ops->pread(c->store, h, raw, nr * INDEX_RECORD_LEN, off);
	if (n < 0)
		return (int)n;
	for (uint64_t i = 0; i < nr; i++) {
		struct index_record *rec = &records[state->nr_records];

		if (!stage_decode(rec, raw + i * INDEX_RECORD_LEN, true) ||
		    (i + 1 == nr && get_le32(raw + i * INDEX_RECORD_LEN + REC_CRC) == get_le32(header + OFF_LAST_CRC) &&
		     decode_last(rec, raw + i * INDEX_RECORD_LEN, get_le64(header + OFF_RECORDED)) > 0))
			state->nr_records++;
	}
	return 0;
}

/*
 * The header, and the last two records to @tail, as they were at one moment. Only these two ever change, and through a
 * mapping looking takes less time than the owner needs from one change to the next.
 */
static bool look_at_once(const uint8_t *map, uint64_t off, uint64_t cap, uint8_t *dyn, uint8_t *tail)
{
	for (int tries = 0; tries < 100000; tries++) {
		uint64_t seq = stage_load_number(map, OFF_SEQ);
		uint64_t nr = stage_load_number(map, OFF_NR_RECORDS);
		uint64_t nr_tail = min_u64(nr, 2);

		if (seq % 2 || nr > cap)
			continue;
		memcpy(dyn, map, DYNAMIC_END);
		put_le64(dyn + OFF_NR_RECORDS, nr);
		memcpy(tail, map + off + (nr - nr_tail) * INDEX_RECORD_LEN, nr_tail * INDEX_RECORD_LEN);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (stage_load_number(map, OFF_SEQ) == seq)
			return true;
	}
	return false;
}

/*
 * Load from an owner that is so busy that it changes something in the time of every load_once(). What stands before the
 * last two records is at rest; if it moves to the node index meanwhile, what is found in its place is true as well, and it
 * is in the node index, which is read after this.
 */
static int load_busy(const struct container *c, int h, const uint8_t *header, struct stage_state *state,
		     struct index_record *records)
{
	struct store *s = c->store;
	uint8_t dyn[DYNAMIC_END], tail[2 * INDEX_RECORD_LEN];
	uint64_t off = get_le64(header + 32), cap = get_le64(header + 40), len = off + cap * INDEX_RECORD_LEN;
	struct stat st;
	const uint8_t *map;
	int ret = s->ops->fstat(s, h, &st);

	if (ret || off > (uint64_t)st.st_size || len > (uint64_t)st.st_size)
		return ret ? ret : -EBADMSG;
	map = s->ops->map(s, h, (size_t)len, false);
	if (!map)
		return -EAGAIN;
	ret = look_at_once(map, off, cap, dyn, tail) ? 0 : -EAGAIN;
	state->nr_records = ret ? 0 : get_le64(dyn + OFF_NR_RECORDS);
	state->seq = ret ? 0 : stage_number(get_le64(dyn + OFF_SEQ));
	for (uint64_t i = 0, nr = state->nr_records; i < nr && !ret; i++)
		ret = i + 2 < nr ? stage_decode(&records[i], map + off + i * INDEX_RECORD_LEN, true) :
				   stage_decode(&records[i], tail + (i + min_u64(nr, 2) - nr) * INDEX_RECORD_LEN,
						i + 1 < nr);
	if (mapping_is_broken(map)) /* cut meanwhile */
		ret = -EBADMSG;
	s->ops->unmap(s, (void *)map, (size_t)len);
	return ret;
}

/* Room for no more records than the file, which has room for them from the beginning, is long enough for. */
static int limit_cap(struct store *s, int h, uint8_t *header)
{
	uint64_t off = get_le64(header + 32), cap = get_le64(header + 40), len;
	struct stat st;
	int ret;

	if (cap <= STAGE_RECORDS_CAP)
		return 0;
	ret = s->ops->fstat(s, h, &st);
	len = ret ? 0 : (uint64_t)st.st_size;
	put_le64(header + 40, min_u64(cap, off < len ? (len - off) / INDEX_RECORD_LEN : 0));
	return ret;
}

/* Give back what a file with few records has not needed: there may be thousands of them. */
static void shrink(struct index_record **records, uint64_t nr)
{
	struct index_record *fewer = mem_realloc(*records, (nr + 1) * sizeof(*fewer));

	if (fewer)
		*records = fewer;
}

int stage_load(const struct container *c, const char *path, struct stage_state *state, struct index_record **records)
{
	uint8_t header[HEADER_LEN] = { 0 };
	uint8_t *raw = NULL;
	bool elsewhere;
	uint64_t cap;
	int ret;
	int h = stage_open_header(c, path, O_RDONLY, header, &elsewhere);

	memset(state, 0, sizeof(*state));
	*records = NULL;
	if (h == -ENODATA)
		return 0;
	if (h == -EBADMSG || h == -EIO)
		log_error("%s/%s: damaged live index", c->dir, path);
	if (h < 0)
		return h;
	memcpy(state->log_name, header + 80, sizeof(state->log_name)); /* ends with a NUL: stage_open_header() */
	ret = limit_cap(c->store, h, header);
	cap = get_le64(header + 40);
	raw = ret ? NULL : mem_alloc(cap * INDEX_RECORD_LEN);
	*records = ret ? NULL : mem_alloc((cap + 1) * sizeof(**records));
	ret = ret ? ret : raw && *records ? -EAGAIN : -ENOMEM;
	if (ret == -EAGAIN && elsewhere)
		ret = load_foreign(c, path, h, header, state, *records, raw);
	else if (ret == -EAGAIN && stage_is_stranded(c, header))
		ret = load_stranded(c, h, header, state, *records, raw);
	/* An owner killed in the middle of a change leaves an odd number for ever; what is there then is at rest. */
	for (int tries = 0; !elsewhere && (ret == -EAGAIN || ret == -EBADMSG) && tries < 20; tries++) {
		struct timespec wait = { .tv_nsec = 50000L * tries };

		if (tries)
			own_nanosleep(&wait, NULL);
		ret = load_once(c, h, header, state, *records, raw, tries >= 10);
		if (ret == -EAGAIN && tries >= 10)
			ret = load_busy(c, h, header, state, *records);
	}
	if (ret == -EBADMSG)
		log_error("%s/%s: damaged live index", c->dir, path);
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
