/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Live files, the writing side: it stores through the mapping, in an order that makes every intermediate state true. Reading
 * them is stage_read.h's.
 */
#include "stage_layout.h"

#include "alloc.h"
#include "bytes.h"
#include "crc32c.h"
#include "dropping.h"
#include "sys.h"

#include <stdio.h>

#define FIRST_LEN (64 * 1024) /* of the stage that get space first; then twice as many, and so on */

static_assert(STAGE_CAP % FIRST_LEN == 0, "the stage has all its space after some doublings");

static uint8_t *record_at(const struct stage *s, uint64_t i)
{
	return s->map + RECORDS_OFF + i * INDEX_RECORD_LEN;
}

const uint8_t *stage_record(const struct stage *s, uint64_t i)
{
	return record_at(s, i);
}

static void set(struct stage *s, int off, uint64_t v)
{
	store_le64(s->map + off, stage_word(v));
}

static uint64_t get(const struct stage *s, int off)
{
	return stage_number(load_le64(s->map + off));
}

/* Around a change that a reader must not see half of. */
static void begin_change(struct stage *s)
{
	set(s, OFF_SEQ, get(s, OFF_SEQ) + 1);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void end_change(struct stage *s)
{
	set(s, OFF_SEQ, get(s, OFF_SEQ) + 1);
}

/* The magic last: who reads the file meanwhile sees one that is not born yet. */
static void write_header(struct stage *s, const struct container *c, const char *log_name)
{
	uint8_t p[STATIC_LEN] = STAGE_MAGIC;
	uint64_t magic;

	put_le32(p + 8, STAGE_VERSION);
	memcpy(p + 16, c->id, STUB_ID_LEN);
	put_le64(p + 32, RECORDS_OFF);
	put_le64(p + 40, STAGE_RECORDS_CAP);
	put_le64(p + 48, CHUNKS_OFF);
	put_le64(p + 56, STAGE_CHUNKS_CAP);
	put_le64(p + 64, STAGE_OFF);
	put_le64(p + 72, STAGE_CAP);
	snprintf((char *)p + 80, INDEX_LOG_NAME_LEN, "%s", log_name);
	put_le32(p + 208, !s->shared);
	put_le32(p + 212, dropping_boot());
	put_le32(p + 12, crc32c(0, p, STATIC_LEN));
	memcpy(&magic, p, sizeof(magic));
	memcpy(s->map + sizeof(magic), p + sizeof(magic), sizeof(p) - sizeof(magic));
	__atomic_store_n((uint64_t *)s->map, magic, __ATOMIC_RELEASE);
}

static void begin_as(struct stage *s, const struct stage_start *start)
{
	s->flushed_len = start->flushed_len;
	s->first_chunk = start->first_chunk;
	set(s, OFF_FLUSHED, s->flushed_len);
	set(s, OFF_FIRST_CHUNK, s->first_chunk);
	for (unsigned i = 0; i < start->nr_whole; i++)
		stage_put_chunk(s, start->whole[i]);
	stage_set_chunk_crc(s, start->chunk_crc, start->flushed_len);
	stage_set_trailers(s, start->last_trailer, start->last_table);
}

/* Where nothing is mapped: the first byte of the magic last, should the process be killed in the middle of a write. */
static int save_first(struct stage *s)
{
	size_t len = STAGE_OFF - 1;
	ssize_t n = s->store->ops->pwrite(s->store, s->h, s->map + 1, len, 1);

	if (n == (ssize_t)len) {
		len = 1;
		n = s->store->ops->pwrite(s->store, s->h, s->map, len, 0);
	}
	return n == (ssize_t)len ? 0 : n < 0 ? (int)n : -ENOSPC;
}

int stage_create(struct stage *s, const struct container *c, const char *log_name, const struct stage_start *start)
{
	struct store *store = c->store;
	int ret;

	memset(s, 0, sizeof(*s));
	s->store = store;
	snprintf(s->path, sizeof(s->path), "%s/hostdir.%u/live.%s", c->dir, dropping_hostdir(c), log_name + 5);
	s->h = container_open(c, s->path, O_RDWR | O_CREAT | O_EXCL, container_file_mode(c, true));
	if (s->h < 0)
		return s->h;
	ret = store->ops->reserve(store, s->h, 0, STAGE_OFF);
	if (!ret && store->remote) { /* as long as we live */
		ret = store->ops->lock(store, s->h);
		if (ret == -EOPNOTSUPP)
			ret = 0;
	}
	if (ret)
		goto fail;
	s->map = store->ops->map(store, s->h, FILE_LEN, true);
	s->shared = s->map != NULL;
	if (!s->map)
		s->map = mem_zalloc(FILE_LEN);
	ret = -ENOMEM;
	if (!s->map)
		goto fail;
	for (size_t i = 0; i < ARRAY_SIZE(STAGE_WORDS); i++)
		set(s, STAGE_WORDS[i], 0);
	if (start)
		begin_as(s, start);
	write_header(s, c, log_name);
	ret = s->shared ? 0 : save_first(s); /* other hosts need not see it before there is something in it */
	if (!ret)
		return 0;
fail:
	stage_close(s, true);
	return ret;
}

void stage_close(struct stage *s, bool unlink)
{
	if (s->map && unlink)
		__atomic_store_n((uint64_t *)s->map, 0, __ATOMIC_RELEASE);
	if (s->map && s->shared)
		s->store->ops->unmap(s->store, s->map, FILE_LEN);
	else
		mem_free(s->map);
	s->map = NULL;
	if (s->h >= 0)
		store_close(s->store, &s->h);
	if (unlink)
		s->store->ops->unlink(s->store, s->path);
}

int stage_save(struct stage *s)
{
	ssize_t n;
	size_t len = STAGE_OFF + s->staged_len;

	if (s->shared)
		return s->store->ops->expose(s->store, s->h, STAGE_OFF);
	/* What the header speaks of before the header: the process may be killed between the two. */
	n = s->store->ops->pwrite(s->store, s->h, s->map + RECORDS_OFF, len - RECORDS_OFF, RECORDS_OFF);
	if (n != (ssize_t)(len - RECORDS_OFF))
		return n < 0 ? (int)n : -ENOSPC;
	n = s->store->ops->pwrite(s->store, s->h, s->map, OFF_NOTIFY, 0);
	return n == OFF_NOTIFY ? 0 : n < 0 ? (int)n : -ENOSPC;
}

/*
 * A byte at the beginning of the page is written as it is: only we change it, in a page of the header nobody does.
 * Where that can be done though the store could not, it is asked for more; a page that is there and that can be
 * written now had no space then (btrfs at a quota: the store itself made it throw reservations away, or calls have
 * space set aside that a mapping does not get).
 */
int stage_why_broken(struct stage *s)
{
	size_t at = 0;
	uint8_t byte;
	ssize_t n;
	bool there;

	mapping_find_broken(s->map, &at);
	n = s->store->ops->pread(s->store, s->h, &byte, 1, at - at % HEADER_LEN);
	there = n == 1; /* else the file was cut */
	if (there)
		n = s->store->ops->pwrite(s->store, s->h, &byte, 1, at - at % HEADER_LEN);
	if (n == 1)
		n = s->store->ops->reserve(s->store, s->h, FILE_LEN, FIRST_LEN);
	return n < 0 ? (int)n : there ? -ENOSPC : -EIO;
}

/* How many bytes may be staged for the log to end, once they are flushed, at a multiple of STAGE_CAP in its file. */
static uint64_t aligned_len(const struct stage *s)
{
	return STAGE_CAP - (DROPPING_DATA_OFF + s->flushed_len) % STAGE_CAP;
}

int stage_prepare(struct stage *s, bool *full)
{
	uint64_t more = s->reserved_len ? s->reserved_len : FIRST_LEN, all = aligned_len(s);
	int ret;

	*full = s->staged_len == all;
	if (s->staged_len < s->limit || *full)
		return 0;
	ret = s->store->ops->reserve(s->store, s->h, STAGE_OFF + s->reserved_len, more);
	if (ret)
		return ret;
	s->reserved_len += more;
	s->limit = min_u64(s->reserved_len, all);
	return 0;
}

void stage_flushed(struct stage *s, uint64_t direct_len)
{
	s->flushed_len += s->staged_len + direct_len;
	s->staged_len = 0;
	set(s, OFF_STAGED, 0);
	set(s, OFF_FLUSHED, s->flushed_len);
	s->limit = min_u64(s->reserved_len, aligned_len(s));
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* before the stage's bytes are overwritten */
}

/* Last of all, when the log ends with what the last record says. */
static void recorded(struct stage *s)
{
	set(s, OFF_RECORDED, s->flushed_len + s->staged_len);
}

void stage_add_record(struct stage *s, const struct index_record *rec)
{
	uint8_t *p = record_at(s, s->nr_records);
	struct index_record open = *rec;
	uint8_t buf[INDEX_RECORD_LEN];

	open.length = 0;
	index_record_encode(&open, buf);
	copy_to_pages(p, buf, sizeof(buf));
	if (rec->type == INDEX_WRITE)
		store_le64(p + REC_LENGTH, rec->length);
	memcpy(s->map + OFF_LAST_CRC, p + REC_CRC, 4);
	s->nr_records++;
	set(s, OFF_NR_RECORDS, s->nr_records);
	if (rec->type == INDEX_WRITE)
		recorded(s);
}

/* One becomes two. */
static void begin_run(struct stage *s, uint8_t *p, const struct index_record *rec)
{
	struct index_record open = *rec;
	uint8_t buf[INDEX_RECORD_LEN];

	open.count = 0;
	index_record_encode(&open, buf);
	begin_change(s);
	store_le64(p + REC_STRIDE, rec->stride);
	store_le64(p + REC_COUNT, rec->count);
	memcpy(p + REC_CRC, buf + REC_CRC, 4);
	memcpy(s->map + OFF_LAST_CRC, buf + REC_CRC, 4);
	end_change(s);
}

void stage_grow_record(struct stage *s, uint64_t i, const struct index_record *rec)
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

void stage_fold_record(struct stage *s, const struct index_record *rec)
{
	uint8_t *p = record_at(s, s->nr_records - 2);
	uint8_t buf[INDEX_RECORD_LEN];

	/* In this order each moment is true, should it be the last: but for the checksum, and load_once() knows that. */
	index_record_encode(rec, buf);
	begin_change(s);
	store_le64(p + REC_LENGTH, rec->length);
	store_le64(p + REC_STRIDE, rec->stride);
	store_le64(p + REC_COUNT, rec->count);
	store_le64(p + REC_OUTER_STRIDE, rec->outer_stride);
	store_le64(p + REC_OUTER_COUNT, rec->outer_count);
	memcpy(p + REC_CRC, buf + REC_CRC, 4);
	s->nr_records--;
	set(s, OFF_NR_RECORDS, s->nr_records);
	end_change(s);
}

void stage_seal_record(struct stage *s, uint64_t i, const struct index_record *rec)
{
	uint8_t buf[INDEX_RECORD_LEN];

	index_record_encode(rec, buf);
	memcpy(record_at(s, i) + REC_CRC, buf + REC_CRC, 4);
}

const uint8_t *stage_chunks(const struct stage *s)
{
	return s->map + CHUNKS_OFF;
}

void stage_put_chunk(struct stage *s, uint32_t crc)
{
	put_le32(s->map + CHUNKS_OFF + 4 * s->nr_chunks, crc);
	s->nr_chunks++;
	set(s, OFF_NR_CHUNKS, s->nr_chunks);
}

void stage_note_chunk(struct stage *s, uint64_t i, uint32_t crc)
{
	put_le32(s->map + CHUNKS_OFF + 4 * i, crc);
}

void stage_set_trailers(struct stage *s, uint64_t last, uint64_t last_table)
{
	set(s, OFF_LAST_TRAILER, last);
	set(s, OFF_LAST_TABLE, last_table);
}

void stage_set_chunk_crc(struct stage *s, uint32_t crc, uint64_t len)
{
	store_le64(s->map + OFF_CHUNK_CRC, crc | len % INDEX_CHUNK_LEN << 32 | len / INDEX_CHUNK_LEN << 48);
}

void stage_reset_records(struct stage *s, uint64_t nr_chunks)
{
	uint8_t *chunks = s->map + CHUNKS_OFF;

	begin_change(s);
	s->nr_records = 0;
	set(s, OFF_NR_RECORDS, 0);
	s->first_chunk += nr_chunks;
	s->nr_chunks -= nr_chunks;
	copy_to_pages(chunks, chunks + 4 * nr_chunks, 4 * s->nr_chunks);
	set(s, OFF_NR_CHUNKS, s->nr_chunks);
	set(s, OFF_FIRST_CHUNK, s->first_chunk);
	end_change(s);
}
