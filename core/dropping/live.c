/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Live files, the writing side: it stores through the mapping, in an order that makes every intermediate
 * state true.
 */
#include "core/dropping/live.h"

#include "core/base/alloc.h"
#include "core/base/bytes.h"
#include "core/base/msg.h"
#include "core/backend/host.h"
#include "core/backend/names.h"
#include "core/backend/placed.h"
#include "core/dropping/datalog.h"
#include "core/base/sys.h"

#include <stdio.h>

#define FIRST_LEN (64 * 1024) /* of the stage that get space first; then twice as many, and so on */

static_assert(LIVE_CAP % FIRST_LEN == 0, "the stage has all its space after some doublings");

static uint8_t *record_at(const struct live *s, uint64_t i)
{
	return s->map + LIVE_RECORDS_OFF + i * INDEX_RECORD_LEN;
}

const uint8_t *live_record(const struct live *s, uint64_t i)
{
	return record_at(s, i);
}

static void set(struct live *s, int off, uint64_t v)
{
	store_le64(s->map + off, live_word(v));
}

static uint64_t get(const struct live *s, int off)
{
	return live_number(load_le64(s->map + off));
}

/* Around a change that a reader must not see half of. */
static void begin_change(struct live *s)
{
	set(s, LIVE_OFF_SEQ, get(s, LIVE_OFF_SEQ) + 1);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void end_change(struct live *s)
{
	set(s, LIVE_OFF_SEQ, get(s, LIVE_OFF_SEQ) + 1);
}

/* The magic last: a process that reads the file meanwhile sees one that is not born yet. */
static void write_header(struct live *s, const struct container *c, const char *log_name)
{
	struct live_header lh = {
		.records_off = LIVE_RECORDS_OFF,
		.records_cap = LIVE_RECORDS_CAP,
		.chunks_off = LIVE_CHUNKS_OFF,
		.chunks_cap = LIVE_CHUNKS_CAP,
		.stage_off = LIVE_STAGE_OFF,
		.stage_cap = LIVE_CAP,
		.unmapped = !s->shared,
		.boot = host_boot(),
	};
	uint8_t p[LIVE_FIXED_LEN];
	uint64_t magic;

	memcpy(lh.id, c->id, STUB_ID_LEN);
	snprintf(lh.log_name, sizeof(lh.log_name), "%s", log_name);
	live_header_encode(&lh, p);
	memcpy(&magic, p, sizeof(magic));
	memcpy(s->map + sizeof(magic), p + sizeof(magic), sizeof(p) - sizeof(magic));
	__atomic_store_n((uint64_t *)s->map, magic, __ATOMIC_RELEASE);
}

static void begin_as(struct live *s, const struct live_start *start)
{
	s->flushed_len = start->flushed_len;
	s->first_chunk = start->first_chunk;
	set(s, LIVE_OFF_FLUSHED_LEN, s->flushed_len);
	set(s, LIVE_OFF_FIRST_CHUNK, s->first_chunk);
	for (unsigned i = 0; i < start->nr_whole; i++)
		live_put_chunk(s, start->whole[i]);
	live_set_chunk_crc(s, start->chunk_crc, start->flushed_len);
	live_set_trailers(s, start->last_trailer, start->last_table);
}

static void note_saved(struct live *s)
{
	s->saved = (struct live_saved){ s->nr_records, s->flushed_len, s->staged_len, s->nr_chunks, false };
}

static bool is_saved(const struct live *s)
{
	const struct live_saved *was = &s->saved;

	return s->nr_records == was->nr_records && s->flushed_len == was->flushed_len &&
	       s->staged_len == was->staged_len && !was->reset;
}

/* The bytes from @from to @to of the file become those in memory. */
static int save_part(struct live *s, uint64_t from, uint64_t to)
{
	ssize_t n = from < to ? s->store->ops->pwrite(s->store, s->h, s->map + from, to - from, from) : 0;

	return n < 0 ? (int)n : from < to && (uint64_t)n != to - from ? -ENOSPC : 0;
}

static int save_words(struct live *s)
{
	return save_part(s, 0, LIVE_OFF_NOTIFY_NS);
}

/*
 * Places that are used again are not counted while they are written: those of records that are in the node
 * index, and of staged bytes that are in the log.
 */
static int save_less(struct live *s)
{
	const struct live_saved *was = &s->saved;
	int ret;

	if (!was->reset && (!was->staged_len || was->flushed_len == s->flushed_len))
		return 0;
	set(s, LIVE_OFF_NR_RECORDS, was->nr_records);
	set(s, LIVE_OFF_NR_CHUNKS, was->nr_chunks);
	set(s, LIVE_OFF_STAGED_LEN, 0);
	ret = save_words(s);
	set(s, LIVE_OFF_NR_RECORDS, s->nr_records);
	set(s, LIVE_OFF_NR_CHUNKS, s->nr_chunks);
	set(s, LIVE_OFF_STAGED_LEN, s->staged_len);
	return ret;
}

/* Without a mapping. The first byte of the magic comes last, should the process be killed during a write. */
static int save_first(struct live *s)
{
	int ret = save_part(s, 1, LIVE_STAGE_OFF);

	if (!ret)
		ret = save_part(s, 0, 1);
	if (!ret)
		note_saved(s);
	return ret;
}

/* What no file system is the cause of, the user can mend: one line in a process says so. */
static void say_unmapped(const struct live *s, int err)
{
	static bool said;

	if (err != ENODEV && !__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
		msg_error(
			"%s: no shared memory: %s: until a close, fsync or unlock, others do not see what this process writes, and a kill loses it",
			s->path, strerror(err));
}

#define LOCK_TRIES 100

/*
 * Where hosts share the file system, locked as long as we live. Who may read the file can be faster and lock
 * it: then it is made anew.
 */
static int open_locked(const struct container *c, const char *path)
{
	struct store *s = c->store;
	int h = -EBUSY, ret = -EBUSY;

	for (int tries = 0; tries < LOCK_TRIES && ret == -EBUSY; tries++) {
		h = c->near || c->hold ?
			    placed_create(s, path, container_file_mode(c, true), c->gid,
					  container_file_mode(c, false), c->hold) :
			    container_open(c, path, O_RDWR | O_CREAT | O_EXCL, container_file_mode(c, true));
		if (h < 0 || !s->remote)
			return h;
		ret = store_try_lock(s, h);
		if (!ret || ret == -EOPNOTSUPP)
			return h;
		store_close(s, &h);
		s->ops->unlink(s, path);
	}
	return ret;
}

/*
 * How many bytes may be staged for the log to end, once they are flushed, at a multiple of LIVE_CAP in its
 * file.
 */
static uint64_t aligned_len(const struct live *s)
{
	return LIVE_CAP - datalog_place(s->flushed_len) % LIVE_CAP;
}

int live_create(struct live *s, const struct container *c, const char *log_name,
		const struct live_start *start)
{
	struct store *store = c->store;
	char rest[CONTAINER_PATH_LEN];
	int ret;

	memset(s, 0, sizeof(*s));
	s->store = store;
	name_live_here(c, log_name, rest);
	container_path(c, rest, s->path);
	s->h = open_locked(c, s->path);
	if (s->h < 0)
		return s->h;
	store_keep(store, &s->h);
	/* near, all of it: where there is no space any more, the log can still be closed */
	ret = store_reserve(store, s->h, 0, c->near ? LIVE_FILE_LEN : LIVE_STAGE_OFF);
	if (ret)
		goto fail;
	s->map = store_map(store, s->h, LIVE_FILE_LEN, true);
	s->shared = s->map != NULL;
	if (!s->map) {
		say_unmapped(s, errno);
		s->map = mem_zalloc(LIVE_FILE_LEN);
	}
	ret = -ENOMEM;
	if (!s->map)
		goto fail;
	for (size_t i = 0; i < ARRAY_SIZE(LIVE_WORDS); i++)
		set(s, LIVE_WORDS[i], 0);
	if (start)
		begin_as(s, start);
	if (c->near) {
		s->reserved_len = LIVE_CAP;
		s->limit = aligned_len(s);
	}
	write_header(s, c, log_name);
	ret = s->shared ? 0 : save_first(s); /* other hosts need not see it before there is something in it */
	if (!ret)
		return 0;
fail:
	live_close(s, true);
	return ret;
}

void live_close(struct live *s, bool unlink)
{
	if (s->map && unlink)
		__atomic_store_n((uint64_t *)s->map, 0, __ATOMIC_RELEASE);
	if (s->map && s->shared)
		store_unmap(s->store, s->map, LIVE_FILE_LEN);
	else
		mem_free(s->map);
	s->map = NULL;
	if (s->h >= 0)
		store_close(s->store, &s->h);
	if (unlink)
		s->store->ops->unlink(s->store, s->path);
}

int live_save(struct live *s)
{
	const struct live_saved *was = &s->saved;
	int ret;

	if (s->shared)
		return store_expose(s->store, s->h, LIVE_STAGE_OFF);
	if (is_saved(s))
		return 0;
	/* Records and bytes before the header that covers them: the process may be killed between the two. */
	ret = save_less(s);
	if (!ret)
		ret = save_part(s, LIVE_RECORDS_OFF + was->nr_records * INDEX_RECORD_LEN,
				LIVE_RECORDS_OFF + s->nr_records * INDEX_RECORD_LEN);
	if (!ret)
		ret = save_part(s, LIVE_CHUNKS_OFF + 4 * was->nr_chunks, LIVE_CHUNKS_OFF + 4 * s->nr_chunks);
	if (!ret)
		ret = save_part(s, LIVE_STAGE_OFF, LIVE_STAGE_OFF + s->staged_len);
	if (!ret)
		ret = save_words(s);
	if (!ret)
		note_saved(s);
	return ret;
}

/*
 * Rewrite the byte at the beginning of the page as it is: no other process changes it. If that succeeds,
 * though the store through the mapping failed, ask for more space as well. A page that is there and can be
 * written now had no space then (btrfs at a quota: the store itself makes it throw reservations away, or
 * calls use space that a mapping does not get).
 */
int live_why_broken(struct live *s)
{
	size_t at = 0;
	uint8_t byte;
	ssize_t n;
	bool there;

	guard_find_broken(s->map, &at);
	n = s->store->ops->pread(s->store, s->h, &byte, 1, at - at % LIVE_HEADER_LEN);
	there = n == 1; /* else the file was cut */
	if (there)
		n = s->store->ops->pwrite(s->store, s->h, &byte, 1, at - at % LIVE_HEADER_LEN);
	if (n == 1)
		n = store_reserve(s->store, s->h, LIVE_FILE_LEN, FIRST_LEN);
	return n < 0 ? (int)n : there ? -ENOSPC : -EIO;
}

int live_prepare(struct live *s, bool *full)
{
	uint64_t more = s->reserved_len ? s->reserved_len : FIRST_LEN, all = aligned_len(s);
	int ret;

	*full = s->staged_len == all;
	if (s->staged_len < s->limit || *full)
		return 0;
	ret = store_reserve(s->store, s->h, LIVE_STAGE_OFF + s->reserved_len, more);
	if (ret)
		return ret;
	s->reserved_len += more;
	s->limit = min_u64(s->reserved_len, all);
	return 0;
}

void live_flushed(struct live *s, uint64_t direct_len)
{
	s->flushed_len += s->staged_len + direct_len;
	s->staged_len = 0;
	set(s, LIVE_OFF_STAGED_LEN, 0);
	set(s, LIVE_OFF_FLUSHED_LEN, s->flushed_len);
	s->limit = min_u64(s->reserved_len, aligned_len(s));
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* before the stage's bytes are overwritten */
}

/* Last of all, when the log ends with what the last record says. */
static void recorded(struct live *s)
{
	set(s, LIVE_OFF_RECORDED_LEN, s->flushed_len + s->staged_len);
}

void live_add_record(struct live *s, const struct index_record *rec)
{
	uint8_t *p = record_at(s, s->nr_records);
	struct index_record open = *rec;
	uint8_t buf[INDEX_RECORD_LEN];

	open.length = 0;
	index_record_encode(&open, buf);
	copy_to_pages(p, buf, sizeof(buf));
	if (rec->type == INDEX_WRITE)
		store_le64(p + REC_LENGTH, rec->length);
	memcpy(s->map + LIVE_OFF_LAST_CRC, p + REC_CRC, 4);
	s->nr_records++;
	set(s, LIVE_OFF_NR_RECORDS, s->nr_records);
	if (rec->type == INDEX_WRITE)
		recorded(s);
}

/* One becomes two. */
static void begin_run(struct live *s, uint8_t *p, const struct index_record *rec)
{
	struct index_record open = *rec;
	uint8_t buf[INDEX_RECORD_LEN];

	open.count = 0;
	index_record_encode(&open, buf);
	begin_change(s);
	store_le64(p + REC_STRIDE, rec->stride);
	store_le64(p + REC_COUNT, rec->count);
	memcpy(p + REC_CRC, buf + REC_CRC, 4);
	memcpy(s->map + LIVE_OFF_LAST_CRC, buf + REC_CRC, 4);
	end_change(s);
}

void live_grow_record(struct live *s, uint64_t i, const struct index_record *rec)
{
	uint8_t *p = record_at(s, i);

	if (rec->count > 2) /* nothing but the count changes */
		store_le64(p + REC_COUNT, rec->count);
	else if (rec->count == 1) /* and here the length */
		store_le64(p + REC_LENGTH, rec->length);
	else
		begin_run(s, p, rec);
	recorded(s);
}

void live_fold_record(struct live *s, const struct index_record *rec)
{
	uint8_t *p = record_at(s, s->nr_records - 2);
	uint8_t buf[INDEX_RECORD_LEN];

	/*
	 * In this order each moment is true, should it be the last: but for the checksum, and load_once()
	 * knows that.
	 */
	index_record_encode(rec, buf);
	begin_change(s);
	store_le64(p + REC_LENGTH, rec->length);
	store_le64(p + REC_STRIDE, rec->stride);
	store_le64(p + REC_COUNT, rec->count);
	store_le64(p + REC_OUTER_STRIDE, rec->outer_stride);
	store_le64(p + REC_OUTER_COUNT, rec->outer_count);
	memcpy(p + REC_CRC, buf + REC_CRC, 4);
	s->nr_records--;
	set(s, LIVE_OFF_NR_RECORDS, s->nr_records);
	end_change(s);
}

void live_seal_record(struct live *s, uint64_t i, const struct index_record *rec)
{
	uint8_t buf[INDEX_RECORD_LEN];

	index_record_encode(rec, buf);
	memcpy(record_at(s, i) + REC_CRC, buf + REC_CRC, 4);
}

const uint8_t *live_chunks(const struct live *s)
{
	return s->map + LIVE_CHUNKS_OFF;
}

void live_put_chunk(struct live *s, uint32_t crc)
{
	put_le32(s->map + LIVE_CHUNKS_OFF + 4 * s->nr_chunks, crc);
	s->nr_chunks++;
	set(s, LIVE_OFF_NR_CHUNKS, s->nr_chunks);
}

void live_note_chunk(struct live *s, uint64_t i, uint32_t crc)
{
	put_le32(s->map + LIVE_CHUNKS_OFF + 4 * i, crc);
}

void live_set_trailers(struct live *s, uint64_t last, uint64_t last_table)
{
	set(s, LIVE_OFF_LAST_TRAILER, last);
	set(s, LIVE_OFF_LAST_TABLE, last_table);
}

void live_set_chunk_crc(struct live *s, uint32_t crc, uint64_t len)
{
	store_le64(s->map + LIVE_OFF_CHUNK_CRC,
		   crc | len % INDEX_CHUNK_LEN << 32 | len / INDEX_CHUNK_LEN << 48);
}

void live_reset_records(struct live *s, uint64_t nr_chunks)
{
	uint8_t *chunks = s->map + LIVE_CHUNKS_OFF;

	s->saved.reset = true;
	s->saved.nr_records = 0;
	s->saved.nr_chunks = nr_chunks ? 0 : s->saved.nr_chunks;
	begin_change(s);
	s->nr_records = 0;
	set(s, LIVE_OFF_NR_RECORDS, 0);
	s->first_chunk += nr_chunks;
	s->nr_chunks -= nr_chunks;
	copy_to_pages(chunks, chunks + 4 * nr_chunks, 4 * s->nr_chunks);
	set(s, LIVE_OFF_NR_CHUNKS, s->nr_chunks);
	set(s, LIVE_OFF_FIRST_CHUNK, s->first_chunk);
	end_change(s);
}
