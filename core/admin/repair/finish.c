/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Closes the log of a killed writer. Readers use the live file until it is removed, and it does not change
 * before: the bytes added to the log lie behind its flushed length, and the first of them are the staged
 * bytes themselves.
 */
#include "core/admin/repair/finish.h"

#include "core/base/alloc.h"
#include "core/base/bytes.h"
#include "core/base/crc32c.h"
#include "core/backend/names.h"
#include "core/backend/placed.h"
#include "core/backend/spare.h"
#include "core/dropping/carry.h"
#include "core/dropping/node_index.h"
#include "core/dropping/datalog.h"
#include "core/dropping/live.h"
#include "core/base/sys.h"
#include "core/dropping/trailers.h"
#include "core/gather/salvage.h"

#include <stdio.h>

struct finish {
	const struct container *c;
	const char *live;
	char log[CONTAINER_PATH_LEN]; /* relative to the container */
	int h;                        /* of it */
	struct live_state state;
	struct index_record *records;
	uint8_t *staged;
	uint64_t first_chunk;         /* of the table to be made */
	uint32_t *crcs;               /* the table: nr of them */
	uint32_t nr;
	struct finished how;
};

static uint64_t log_len(const struct finish *f) { return f->state.flushed_len + f->state.staged_len; }

/* After a power failure: keep only the certain bytes of the log. -ENODATA: a record reaches further. */
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
	ssize_t n;
	int ret = live_load(f->c, f->live, &f->state, &f->records);

	if (ret)
		return ret;
	name_log_of_live(f->live, f->log);
	if (*f->state.log_name && strcmp(f->state.log_name, name_of(f->log)))
		return -EBADMSG;
	if (f->state.stranded && (ret = keep_sure(f, sure_len)))
		return ret;
	if (f->state.staged_len > LIVE_CAP || log_len(f) > INT64_MAX / 2)
		return -EBADMSG;
	f->staged = mem_alloc(f->state.staged_len + 1);
	if (!f->staged)
		return -ENOMEM;
	if (!f->state.staged_len)
		return 0;
	n = live_load_bytes(f->c, f->live, f->state.flushed_len, f->staged, f->state.staged_len);
	return n == (ssize_t)f->state.staged_len ? 0 : n < 0 ? (int)n : -ENODATA;
}

static int open_log(struct finish *f)
{
	struct stat st;

	f->h = datalog_open_to_write(f->c, f->log, 0, &st);
	if (f->h < 0)
		return f->h;
	/* A missing end must not be filled up: the scan has reported it. */
	return f->state.flushed_len && datalog_len(&st) < f->state.flushed_len ? -ENODATA : 0;
}

/* ---- trailers that the live file does not name ---- */

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
	name_log_numbers(f->log, &pid, &seq);
	if (index_block_parse(&block, buf, (size_t)n) == n && block.pid == pid && block.seq == seq) {
		f->state.last_trailer = t->self;
		f->state.last_table = block.chunks_off ? t->self : f->state.last_table;
	}
	mem_free(buf);
	return 0;
}

static int find_trailers(struct finish *f)
{
	return f->state.stranded && f->state.flushed_len ?
	       trailer_scan(f->c->store, f->h, f->c->id, 0, take_trailer, f) : 0;
}

/* ---- checksums ---- */

/* *@crc: of the bytes [off, end) of the log, all of which are in the file. */
static int sum_log(struct finish *f, uint64_t off, uint64_t end, uint32_t *crc)
{
	struct store *s = f->c->store;
	uint8_t *buf = mem_alloc(INDEX_CHUNK_LEN);
	int ret = buf ? 0 : -ENOMEM;

	*crc = 0;
	while (off < end && !ret) {
		size_t want = (size_t)min_u64(INDEX_CHUNK_LEN, end - off);
		ssize_t n = datalog_pread(s, f->h, buf, want, off);

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
 * *@chunk: the end of the tables that are in the log. The writer may have been killed after writing the last
 * one, with its checksums still in the live file.
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
	if (!f->state.last_table)
		return 0;
	n = trailer_at(s, f->h, f->c->id, f->state.last_table, &t);
	if (n)
		return n == -EPROTONOSUPPORT ? (int)n : 0;
	n = trailer_block(s, f->h, &t, &buf);
	if (n < 0)
		return (int)n;
	/* The next table repeats a chunk that is not whole. */
	if (index_block_parse(&block, buf, (size_t)n) > 0 && block.chunks_off &&
	    datalog_pread(s, f->h, head, sizeof(head), block.chunks_off) == sizeof(head) &&
	    !memcmp(head, INDEX_CHUNKS_MAGIC, 8))
		*chunk = min_u64(get_le64(head + 16) + get_le32(head + 12), block.log_len / INDEX_CHUNK_LEN);
	mem_free(buf);
	return 0;
}

/*
 * *@crc: the checksum of the part of chunk @no that is in the log. The writer publishes it, with its number
 * of bytes, before the flushed length. If the bytes of the log do not match it, they have changed, and *@crc
 * must not match them either.
 */
static int begun_chunk(struct finish *f, uint64_t no, const struct live_sums *sums, uint32_t *crc)
{
	uint64_t off = no * INDEX_CHUNK_LEN;
	uint32_t said = 0;
	int ret = sum_log(f, off, f->state.flushed_len, crc);

	if (ret || !sums->chunk_len)
		return ret;
	ret = sum_log(f, off, off + sums->chunk_len, &said);
	if (!ret && said != sums->chunk_crc)
		*crc = ~*crc;
	return ret == -EIO ? 0 : ret; /* there are fewer: they were never published */
}

static int make_sums(struct finish *f)
{
	struct live_sums sums = { 0 };
	uint64_t end = (log_len(f) + INDEX_CHUNK_LEN - 1) / INDEX_CHUNK_LEN,
		whole = f->state.flushed_len / INDEX_CHUNK_LEN, tables;
	/* After a power failure the checksums may be of several moments; but the scan has read all bytes. */
	int ret = f->state.stranded ? -EAGAIN : live_load_sums(f->c, f->live, &sums);
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
	f->how.unsummed = !trusted && f->first_chunk * INDEX_CHUNK_LEN < f->state.flushed_len;
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

/* Find the last block in the log: the writer may have been killed after writing it. -ENODATA: not written. */
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
	struct index_block b = { .nr_records = (uint32_t)f->state.nr_records, .records = f->records,
		.log_len = log_len(f) };
	struct trailer_piece p = {
		.id = f->c->id, .at = log_len(f), .table = log_len(f) ? &table : NULL, .block = &b,
		.prev = f->state.last_trailer, .prev_table = f->state.last_table, .end_unit = 8,
	};
	ssize_t n;
	int ret;

	name_log_numbers(f->log, &b.pid, &b.seq);
	ret = trailer_piece_make(&p);
	if (ret)
		return ret;
	n = datalog_pwrite2(s, f->h, f->staged, f->state.staged_len, p.buf, p.len, f->state.flushed_len);
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

static int write_end(struct finish *f, void **block, size_t *len, uint64_t *end)
{
	struct store *s = f->c->store;
	int ret = 0;

	if (!*block) {
		mem_free(f->crcs);
		f->crcs = NULL;
		ret = make_sums(f);
		ret = ret ? ret : write_piece(f, block, len, end);
	}
	if (!ret) /* the rest of a torn append, and space allocated ahead */
		ret = datalog_truncate(s, f->h, *end);
	return ret ? ret : s->ops->sync(s, f->h, false);
}

/*
 * A place that is full, or whose quota is used up, takes no end of a log, and none of its logs would ever
 * move: have the first @len bytes of this one at home, and go on with it there.
 */
static int go_home(struct finish *f, uint64_t len)
{
	struct store home = placed_home(f->c->store);
	char full[CONTAINER_PATH_LEN];
	struct stat st;
	int ret = carry_part(f->c, f->log, len, false);

	if (ret)
		return ret;
	container_path(f->c, f->log, full);
	store_close(f->c->store, &f->h);
	f->h = store_open(&home, full, O_RDWR | STORE_BRIEFLY, 0);
	ret = f->h < 0 ? f->h : home.ops->fstat(&home, f->h, &st);
	f->how.at_home = !ret;
	return ret ? ret : datalog_len(&st) < len ? -ENODATA : 0;
}

/*
 * 1: the node index has the block: the writer, or an earlier repair, was killed after that. 0: no; -errno.
 * *@end: of its last whole block, unless something is damaged.
 */
static int is_indexed(struct finish *f, const char *index, const void *block, size_t len, uint64_t *end)
{
	struct node_index idx;
	struct index_block one;
	bool found = false;
	int ret = node_index_open(&idx, f->c, index);

	*end = 0;
	if (ret)
		return ret == -ENOENT ? 0 : ret;
	while (!found && (ret = node_index_next(&idx, &one)) > 0) {
		found = idx.pos >= len && !memcmp((const uint8_t *)idx.buf + idx.pos - len, block, len);
		*end = idx.pos;
	}
	*end = idx.damaged ? UINT64_MAX : *end;
	node_index_close(&idx);
	return found ? 1 : ret;
}

/*
 * A power failure may leave zeros, or a part of a block, where the last append was. They say nothing at the
 * end; in front of a block zeros are damage. One that a reader keeps locked is left as it is.
 */
static int cut_index(struct finish *f, const char *index, uint64_t end)
{
	struct store *s = f->c->store;
	struct node_index rest = { 0 };
	struct index_block block;
	struct stat st;
	int h, ret;

	container_path(f->c, index, rest.path);
	if (s->ops->stat(s, rest.path, &st) || (uint64_t)st.st_size <= end)
		return 0;
	h = node_index_lock_of(f->c, index, &st);
	if (h < 0)
		return h == -EBUSY ? 0 : h;
	ret = node_index_read(&rest, s, h, end, (uint64_t)st.st_size);
	if (!ret)
		ret = node_index_next(&rest, &block);
	if (!ret && !rest.damaged && (uint64_t)st.st_size > end)
		ret = s->ops->truncate(s, h, end);
	node_index_close(&rest);
	node_index_unlock(f->c, h);
	return ret > 0 ? 0 : ret;
}

static int close_log(struct finish *f)
{
	char index[CONTAINER_PATH_LEN];
	uint64_t end = 0, index_end;
	size_t len = 0;
	void *block;
	int ret = find_piece(f, &block, &len, &end);
	bool found = block;

	if (ret == -ENODATA)
		ret = find_trailers(f);
	if (!ret)
		ret = write_end(f, &block, &len, &end);
	if ((ret == -ENOSPC || ret == -EDQUOT) && !go_home(f, found ? end : f->state.flushed_len)) {
		if (!found) { /* what was written just now may be gone */
			mem_free(block);
			block = NULL;
		}
		ret = write_end(f, &block, &len, &end);
	}
	name_index_of(f->log, index);
	if (!ret)
		ret = is_indexed(f, index, block, len, &index_end);
	if (!ret && index_end != UINT64_MAX)
		ret = cut_index(f, index, index_end);
	if (!ret)
		ret = node_index_append_to(f->c, index, block, len);
	if (ret >= 0 && f->how.at_home)
		ret = carry_leave(f->c, f->log);
	mem_free(block);
	return ret < 0 ? ret : 0;
}

/*
 * No record names the log, and nothing of it was synced. Bytes may be in it, of a write in which the process
 * was killed: without the live file they would seem to have lost their index.
 */
static int remove_log(struct finish *f)
{
	char full[CONTAINER_PATH_LEN];
	int ret;

	container_path(f->c, f->log, full);
	if (spare_may_be(f->c))
		spare_unlink(f->c, f->log);
	ret = f->c->store->ops->unlink(f->c->store, full);
	return ret == -ENOENT ? 0 : ret;
}

/* Whether the node index has a block of the log, or is damaged. -errno. */
static int is_in_index(struct finish *f)
{
	char path[CONTAINER_PATH_LEN];
	struct index_block block;
	struct node_index idx;
	uint32_t pid, seq;
	bool has = false;
	int ret;

	name_index_of(f->log, path);
	ret = node_index_open(&idx, f->c, path);
	if (ret)
		return ret == -ENOENT ? 0 : ret == -EIO ? 1 : ret;
	name_log_numbers(f->log, &pid, &seq);
	while (!has && (ret = node_index_next(&idx, &block)) > 0)
		has = block.pid == pid && block.seq == seq;
	has |= idx.damaged;
	node_index_close(&idx);
	return has ? 1 : ret;
}

/*
 * The live file says nothing. Its log may have been closed before, if it is one that was continued, or just
 * now: then it has blocks, or after a power failure the node index has some of it. 1: it has bytes, and no
 * block; 0: else; -errno.
 */
static int has_no_block(struct finish *f)
{
	struct node_index idx;
	bool whole, none;
	int h = datalog_open(f->c, f->log, false), ret;

	if (h < 0)
		return h == -ENOENT || h == -EIO ? 0 : h;
	store_close(f->c->store, &h);
	ret = salvage_log(&idx, f->c, f->log, &whole);
	if (ret)
		return ret;
	none = !whole && !idx.len;
	node_index_close(&idx);
	ret = none ? is_in_index(f) : 1;
	return ret < 0 ? ret : !ret;
}

/*
 * Whether the log has bytes, or may have, though its live file has not even a name in it: then that has lost
 * its contents, for a process names the log before it writes to it.
 */
static bool has_lost_live(struct finish *f)
{
	struct store *s = f->c->store;
	struct stat st;
	int h, ret;

	if (*f->state.log_name || f->state.stranded)
		return false;
	h = datalog_open(f->c, f->log, false);
	if (h < 0)
		return h != -ENOENT;
	ret = s->ops->fstat(s, h, &st);
	store_close(s, &h);
	return ret || datalog_len(&st) > 0;
}

int finish_log(const struct container *c, const char *live, uint64_t sure_len, struct finished *how)
{
	struct finish f = { .c = c, .live = live, .h = -1 };
	char full[CONTAINER_PATH_LEN];
	int ret = load(&f, sure_len);

	if (!ret && (f.state.nr_records || log_len(&f)))
		ret = open_log(&f);
	else if (!ret)
		ret = f.state.stranded ? 1 : has_no_block(&f);
	if (ret > 0)
		ret = has_lost_live(&f) ? -ENODATA : remove_log(&f);
	if (f.state.stranded && (ret == -ENOENT || ret == -EIO)) /* the log never reached the disk */
		ret = -ENODATA;
	if (!ret && f.h >= 0)
		ret = close_log(&f);
	if (!ret) {
		container_path(c, live, full);
		ret = c->store->ops->unlink(c->store, full);
	}
	*how = f.how;
	if (f.h >= 0)
		store_close(c->store, &f.h);
	mem_free(f.records);
	mem_free(f.staged);
	mem_free(f.crcs);
	return ret;
}
