/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finishing the log of a killed process. Until its live file goes readers go by that, and it is not changed: what is
 * put into the log lies behind all that it says is there, or is the very bytes that it says are staged.
 */
#include "finish.h"

#include "alloc.h"
#include "bytes.h"
#include "crc32c.h"
#include "dropping.h"
#include "left_index.h"
#include "stage.h"
#include "sys.h"
#include "trailers.h"

#include <stdio.h>

struct finish {
	const struct container *c;
	const char *live;
	char log[CONTAINER_PATH_LEN]; /* relative to the container */
	int h;                        /* of it */
	struct stage_state state;
	struct index_record *records;
	uint8_t *staged;
	uint64_t first_chunk;         /* of the table to be made */
	uint32_t *crcs;               /* the table: nr of them */
	uint32_t nr;
	bool unsummed;
};

static uint64_t log_len(const struct finish *f) { return f->state.flushed_len + f->state.staged_len; }

/* Of the host's power failing: only what is certain is there, and nothing that the live file says of the log else. */
static int keep_sure(struct finish *f, uint64_t sure_len)
{
	f->state.flushed_len = sure_len;
	f->state.staged_len = f->state.last_trailer = f->state.last_table = 0;
	for (uint64_t i = 0; i < f->state.nr_records; i++)
		if (f->records[i].type == INDEX_WRITE && index_record_log_end(&f->records[i]) > sure_len)
			return -ENODATA;
	return 0;
}

static int load(struct finish *f, uint64_t sure_len)
{
	const char *name = strchr(f->live, '/') + 1;
	ssize_t n;
	int ret = stage_load(f->c, f->live, &f->state, &f->records);

	if (ret)
		return ret;
	snprintf(f->log, sizeof(f->log), "%.*sdata.%s", (int)(name - f->live), f->live, name + sizeof("live.") - 1);
	if (*f->state.log_name && strcmp(f->state.log_name, f->log + (name - f->live)))
		return -EBADMSG;
	if (f->state.stranded && (ret = keep_sure(f, sure_len)))
		return ret;
	if (f->state.staged_len > STAGE_CAP || log_len(f) > INT64_MAX / 2)
		return -EBADMSG;
	f->staged = mem_alloc(f->state.staged_len + 1);
	if (!f->staged)
		return -ENOMEM;
	if (!f->state.staged_len)
		return 0;
	n = stage_load_bytes(f->c, f->live, f->state.flushed_len, f->staged, f->state.staged_len);
	return n == (ssize_t)f->state.staged_len ? 0 : n < 0 ? (int)n : -EBADMSG;
}

static int open_log(struct finish *f)
{
	char full[CONTAINER_PATH_LEN];
	struct store *s = f->c->store;
	struct stat st;
	int ret, h = dropping_open_log(f->c, f->log, false); /* its header is right */

	if (h < 0)
		return h;
	store_close(s, &h);
	container_path(f->c, f->log, full);
	f->h = store_open(s, full, O_RDWR, 0);
	if (f->h < 0)
		return f->h;
	ret = s->ops->fstat(s, f->h, &st);
	if (!ret && !store_may_write(&st))
		return -EMLINK;
	/* What is gone from its end must not be made up: that it is gone has been found. */
	return !ret && f->state.flushed_len && (uint64_t)st.st_size < DROPPING_DATA_OFF + f->state.flushed_len ? -ENODATA : ret;
}

/* ---- trailers, where the live file cannot tell of them ---- */

static int take_trailer(void *arg, const struct index_trailer *t)
{
	struct finish *f = arg;
	struct index_block block;
	uint32_t pid, seq;
	void *buf;
	ssize_t n;

	if (t->self + INDEX_TRAILER_LEN > f->state.flushed_len)
		return 0;
	n = trailer_block(f->c->store, f->h, t, &buf);
	if (n < 0)
		return n == -ENOMEM ? (int)n : 0;
	dropping_log_numbers(f->log, &pid, &seq);
	if (index_block_parse(&block, buf, (size_t)n) == n && block.pid == pid && block.seq == seq) {
		f->state.last_trailer = t->self;
		f->state.last_table = block.chunks_off ? t->self : f->state.last_table;
	}
	mem_free(buf);
	return 0;
}

static int find_trailers(struct finish *f)
{
	return f->state.stranded && f->state.flushed_len ? trailer_scan(f->c->store, f->h, f->c->id, 0, take_trailer, f) : 0;
}

/* ---- checksums ---- */

/* Of [off, end) of the log, which is in the file. */
static int sum_log(struct finish *f, uint64_t off, uint64_t end, uint32_t *crc)
{
	struct store *s = f->c->store;
	uint8_t *buf = mem_alloc(INDEX_CHUNK_LEN);
	int ret = buf ? 0 : -ENOMEM;

	*crc = 0;
	while (off < end && !ret) {
		size_t want = (size_t)min_u64(INDEX_CHUNK_LEN, end - off);
		ssize_t n = s->ops->pread(s, f->h, buf, want, DROPPING_DATA_OFF + off);

		if (n != (ssize_t)want)
			ret = n < 0 ? (int)n : -EIO;
		else
			*crc = crc32c(*crc, buf, want);
		off += want;
	}
	mem_free(buf);
	return ret;
}

/*
 * Where the tables that are in the log already end: a process may be killed when the last is, and its checksums still
 * in the live file.
 */
static int end_of_tables(struct finish *f, uint64_t *chunk)
{
	struct store *s = f->c->store;
	struct index_trailer t;
	struct index_block block;
	uint8_t head[INDEX_CHUNKS_HEADER_LEN];
	void *buf;
	ssize_t n;

	*chunk = 0;
	if (!f->state.last_table || trailer_at(s, f->h, f->c->id, f->state.last_table, &t))
		return 0;
	n = trailer_block(s, f->h, &t, &buf);
	if (n < 0)
		return (int)n;
	/* A part of a chunk is said again. */
	if (index_block_parse(&block, buf, (size_t)n) > 0 && block.chunks_off &&
	    s->ops->pread(s, f->h, head, sizeof(head), DROPPING_DATA_OFF + block.chunks_off) == sizeof(head) &&
	    !memcmp(head, INDEX_CHUNKS_MAGIC, 8))
		*chunk = min_u64(get_le64(head + 16) + get_le32(head + 12), block.log_len / INDEX_CHUNK_LEN);
	mem_free(buf);
	return 0;
}

/*
 * The checksum of the part of chunk @no that is in the log. The owner says what it is, and of how many bytes, before
 * it says that these are in the log, where they are. If the log has other bytes than he says, they have changed: then
 * this will not match either.
 */
static int begun_chunk(struct finish *f, uint64_t no, const struct stage_sums *sums, uint32_t *crc)
{
	uint64_t off = no * INDEX_CHUNK_LEN;
	uint32_t said = 0;
	int ret = sum_log(f, off, f->state.flushed_len, crc);

	if (ret || !sums->chunk_len)
		return ret;
	ret = sum_log(f, off, off + sums->chunk_len, &said);
	if (!ret && said != sums->chunk_crc)
		*crc = ~*crc;
	return ret == -EIO ? 0 : ret; /* there are fewer: they were not said to be there */
}

static int make_sums(struct finish *f)
{
	struct stage_sums sums = { 0 };
	uint64_t end = (log_len(f) + INDEX_CHUNK_LEN - 1) / INDEX_CHUNK_LEN,
		whole = f->state.flushed_len / INDEX_CHUNK_LEN, tables;
	/* Where the power failed the checksums need not be those of one moment, but all bytes have been looked at. */
	int ret = f->state.stranded ? -EAGAIN : stage_load_sums(f->c, f->live, &sums);
	bool trusted = !ret;

	if (ret == -EAGAIN) {
		sums.chunk_len = 0;
		ret = 0;
	}
	if (!ret)
		ret = end_of_tables(f, &tables);
	if (ret)
		goto out;
	f->first_chunk = max_u64(trusted ? sums.first_chunk : 0, min_u64(tables, end));
	trusted = trusted && sums.first_chunk <= f->first_chunk && sums.first_chunk + sums.nr_chunks >= whole;
	f->unsummed = !trusted && f->first_chunk * INDEX_CHUNK_LEN < f->state.flushed_len;
	f->nr = (uint32_t)(end - f->first_chunk);
	f->crcs = mem_alloc((f->nr + (size_t)1) * sizeof(*f->crcs));
	ret = f->crcs ? 0 : -ENOMEM;
	for (uint64_t i = f->first_chunk; i < end && !ret; i++) {
		uint64_t from = max_u64(i * INDEX_CHUNK_LEN, f->state.flushed_len),
			to = min_u64((i + 1) * INDEX_CHUNK_LEN, log_len(f));
		uint32_t crc = 0;

		if (i < whole && trusted)
			crc = get_le32(sums.crcs + 4 * (i - sums.first_chunk));
		else if (i < whole)
			ret = sum_log(f, i * INDEX_CHUNK_LEN, (i + 1) * INDEX_CHUNK_LEN, &crc);
		else if (i * INDEX_CHUNK_LEN < f->state.flushed_len)
			ret = begun_chunk(f, i, &sums, &crc);
		if (i >= whole)
			crc = crc32c(crc, f->staged + (from - f->state.flushed_len), (size_t)(to - from));
		put_le32(&f->crcs[i - f->first_chunk], crc);
	}
out:
	mem_free(sums.crcs);
	return ret;
}

/* ---- writing ---- */

/* Where the log has its last block already, to that: then the owner was killed behind it. */
static int find_piece(struct finish *f, void **block, size_t *len, uint64_t *end)
{
	struct index_trailer t;
	ssize_t n;
	int ret;

	*block = NULL;
	if (!log_len(f) || f->state.stranded || f->state.last_trailer < log_len(f))
		return -ENODATA;
	ret = trailer_at(f->c->store, f->h, f->c->id, f->state.last_trailer, &t);
	if (ret)
		return ret;
	n = trailer_block(f->c->store, f->h, &t, block);
	*len = n < 0 ? 0 : (size_t)n;
	*end = t.self + INDEX_TRAILER_LEN;
	return n < 0 ? (int)n : 0;
}

static int write_piece(struct finish *f, void **block, size_t *len, uint64_t *end)
{
	struct store *s = f->c->store;
	struct index_chunks table = { .first_chunk = f->first_chunk, .nr_chunks = f->nr,
		.chunk_crc = (const uint8_t *)f->crcs };
	struct index_block b = { .nr_records = (uint32_t)f->state.nr_records, .records = f->records, .log_len = log_len(f) };
	struct trailer_piece p = {
		.id = f->c->id, .at = log_len(f), .table = log_len(f) ? &table : NULL, .block = &b,
		.prev = f->state.last_trailer, .prev_table = f->state.last_table, .end_unit = 8,
	};
	ssize_t n;
	int ret;

	dropping_log_numbers(f->log, &b.pid, &b.seq);
	ret = trailer_piece_make(&p);
	if (ret)
		return ret;
	n = s->ops->pwrite2(s, f->h, f->staged, f->state.staged_len, p.buf, p.len, DROPPING_DATA_OFF + f->state.flushed_len);
	ret = n == (ssize_t)(f->state.staged_len + p.len) ? 0 : n < 0 ? (int)n : -ENOSPC;
	*len = p.block_len;
	*end = p.at + p.len;
	*block = ret ? NULL : mem_alloc(p.block_len);
	if (*block)
		memcpy(*block, p.block_buf, p.block_len);
	else if (!ret)
		ret = -ENOMEM;
	mem_free(p.buf);
	return ret;
}

/* Whether the node index has the block: the owner, or who finished it before, was killed behind that. */
static int is_indexed(struct finish *f, const char *index, const void *block, size_t len)
{
	struct node_index idx;
	struct index_block one;
	bool found = false;
	int ret = node_index_open(&idx, f->c, index);

	if (ret)
		return ret == -ENOENT ? 0 : ret;
	while (!found && (ret = node_index_next(&idx, &one)) > 0)
		found = idx.pos >= len && !memcmp((const uint8_t *)idx.buf + idx.pos - len, block, len);
	node_index_close(&idx);
	return found ? 1 : ret;
}

static int close_log(struct finish *f)
{
	struct store *s = f->c->store;
	char index[CONTAINER_PATH_LEN];
	uint64_t end = 0;
	size_t len = 0;
	void *block;
	int ret = find_piece(f, &block, &len, &end);

	if (ret == -ENODATA)
		ret = find_trailers(f);
	if (!ret && !block)
		ret = make_sums(f);
	if (!ret && !block)
		ret = write_piece(f, &block, &len, &end);
	if (!ret) /* what a torn append left there, and space ahead */
		ret = s->ops->truncate(s, f->h, DROPPING_DATA_OFF + end);
	if (!ret)
		ret = s->ops->sync(s, f->h, false);
	left_index_path(f->log, index);
	if (!ret)
		ret = is_indexed(f, index, block, len);
	if (!ret)
		ret = left_index_append(f->c, index, block, len);
	mem_free(block);
	return ret < 0 ? ret : 0;
}

/* Of a log of which nothing was synced, and nothing is known. */
static int remove_log(struct finish *f)
{
	char full[CONTAINER_PATH_LEN];
	int ret;

	container_path(f->c, f->log, full);
	ret = f->c->store->ops->unlink(f->c->store, full);
	return ret == -ENOENT ? 0 : ret;
}

int finish_log(const struct container *c, const char *live, uint64_t sure_len, bool *unsummed)
{
	struct finish f = { .c = c, .live = live, .h = -1 };
	char full[CONTAINER_PATH_LEN];
	int ret = load(&f, sure_len);

	if (!ret && (f.state.nr_records || log_len(&f)))
		ret = open_log(&f);
	else if (!ret && f.state.stranded)
		ret = remove_log(&f);
	if (f.state.stranded && (ret == -ENOENT || ret == -EIO)) /* it has not come to the disk */
		ret = -ENODATA;
	if (!ret && f.h >= 0)
		ret = close_log(&f);
	if (!ret) {
		container_path(c, live, full);
		ret = c->store->ops->unlink(c->store, full);
	}
	*unsummed = f.unsummed;
	if (f.h >= 0)
		store_close(c->store, &f.h);
	mem_free(f.records);
	mem_free(f.staged);
	mem_free(f.crcs);
	return ret;
}
