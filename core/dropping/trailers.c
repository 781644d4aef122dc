/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trailers in the file that they stand in; their bytes are index/record/trailer.c's.
 */
#include "core/dropping/trailers.h"

#include "core/base/alloc.h"
#include "core/dropping/datalog.h"

#define SCAN_LEN ((size_t)1 << 20)
#define WINDOW_LEN ((size_t)64 << 10)
#define NEAR_LEN (WINDOW_LEN / 8) /* of trailers that are farther apart, a window would have too few */
#define NEAR_STEPS 2              /* most walks end before so many, and need no window */

int trailer_at(struct store *s, int h, const uint8_t *id, uint64_t at, struct index_trailer *t)
{
	uint8_t buf[INDEX_TRAILER_LEN];
	ssize_t n;

	if (!datalog_may_have(at, sizeof(buf)))
		return -EBADMSG;
	n = datalog_pread(s, h, buf, sizeof(buf), at);
	if (n < 0)
		return (int)n;
	return n == sizeof(buf) ? index_trailer_parse(t, id, at, buf) : -EBADMSG;
}

int trailer_last(struct store *s, int h, const uint8_t *id, struct index_trailer *t)
{
	struct stat st;
	int ret = s->ops->fstat(s, h, &st);
	uint64_t len;

	if (ret)
		return ret;
	len = datalog_len(&st);
	if (!len)
		return -ENODATA;
	if (len < INDEX_BLOCK_HEADER_LEN + INDEX_TRAILER_LEN)
		return -EBADMSG;
	return trailer_at(s, h, id, len - INDEX_TRAILER_LEN, t);
}

void trailer_walk_end(struct trailer_walk *walk)
{
	mem_free(walk->window);
	*walk = (struct trailer_walk){ .s = walk->s, .h = walk->h, .id = walk->id };
}

/* The @len bytes at @at. NULL: the window has not all of them. */
static const uint8_t *in_window(const struct trailer_walk *walk, uint64_t at, size_t len)
{
	if (len > walk->len || at < walk->from || at - walk->from > walk->len - len)
		return NULL;
	return walk->window + (at - walk->from);
}

/* It ends at @end. */
static void read_window(struct trailer_walk *walk, uint64_t end)
{
	size_t len = (size_t)min_u64(end, WINDOW_LEN);

	if (!walk->window)
		walk->window = mem_alloc(WINDOW_LEN);
	walk->from = end - len;
	walk->len = 0;
	if (walk->window && datalog_pread(walk->s, walk->h, walk->window, len, walk->from) == (ssize_t)len)
		walk->len = len;
	else
		walk->no_window = true;
}

int trailer_walk_at(struct trailer_walk *walk, uint64_t at, struct index_trailer *t)
{
	bool near = at < walk->last && walk->last - at <= NEAR_LEN && datalog_may_have(at, INDEX_TRAILER_LEN);
	const uint8_t *p = in_window(walk, at, INDEX_TRAILER_LEN);

	walk->nr_near = near ? walk->nr_near + 1 : 0;
	if (!p && walk->nr_near >= NEAR_STEPS && !walk->no_window) {
		read_window(walk, at + INDEX_TRAILER_LEN);
		p = in_window(walk, at, INDEX_TRAILER_LEN);
	}
	walk->last = at;
	return p ? index_trailer_parse(t, walk->id, at, p) : trailer_at(walk->s, walk->h, walk->id, at, t);
}

int trailer_prev(struct trailer_walk *walk, struct index_trailer *t)
{
	return t->prev ? trailer_walk_at(walk, t->prev, t) : -ENODATA;
}

int trailer_prev_table(struct trailer_walk *walk, struct index_trailer *t)
{
	return t->prev_table ? trailer_walk_at(walk, t->prev_table, t) : -ENODATA;
}

ssize_t trailer_block(struct store *s, int h, const struct index_trailer *t, void **buf)
{
	ssize_t n;

	*buf = mem_alloc(t->block_len);
	if (!*buf)
		return -ENOMEM;
	n = datalog_pread(s, h, *buf, t->block_len, t->self - t->block_len);
	if (n != (ssize_t)t->block_len) {
		mem_free(*buf);
		*buf = NULL;
		n = n < 0 ? n : -EIO;
	}
	return n;
}

ssize_t trailer_walk_block(const struct trailer_walk *walk, const struct index_trailer *t, void **buf)
{
	const uint8_t *p = in_window(walk, t->self - t->block_len, t->block_len);

	if (!p)
		return trailer_block(walk->s, walk->h, t, buf);
	*buf = mem_alloc(t->block_len);
	if (!*buf)
		return -ENOMEM;
	memcpy(*buf, p, t->block_len);
	return (ssize_t)t->block_len;
}

int trailer_scan(struct store *s, int h, const uint8_t *id, uint64_t from,
		 int (*fn)(void *arg, const struct index_trailer *t), void *arg)
{
	uint64_t at = round_up_u64(from, 8);
	uint8_t *buf = mem_alloc(SCAN_LEN);
	ssize_t n = 0;
	int ret = buf ? 0 : -ENOMEM;

	while (!ret && datalog_may_have(at, SCAN_LEN)) {
		uint64_t data = datalog_next_data(s, h, at);
		struct index_trailer t;
		size_t i = 0;

		if (!datalog_may_have(data, SCAN_LEN))
			break;
		at = data / 8 * 8; /* trailers begin at multiples of 8, with what is no zero */
		n = datalog_pread(s, h, buf, SCAN_LEN, at);
		if (n < 0)
			ret = (int)n;
		if (n < INDEX_TRAILER_LEN)
			break;
		for (; !ret && i + INDEX_TRAILER_LEN <= (size_t)n; i += 8) {
			if (memcmp(buf + i, INDEX_TRAILER_MAGIC, 8))
				continue;
			ret = index_trailer_parse(&t, id, at + i, buf + i);
			ret = ret == -EBADMSG ? 0 : ret ? ret : fn(arg, &t);
		}
		at += i;
	}
	mem_free(buf);
	return ret;
}

int trailer_piece_make(struct trailer_piece *p)
{
	size_t table_len = p->table ? index_chunks_len(p->table->nr_chunks) : 0;
	size_t cap = table_len + 8 + index_block_max_len(p->block) + INDEX_TRAILER_LEN +
		     (p->len ? p->len : p->end_unit);
	struct index_trailer t = { .prev = p->prev, .prev_table = p->prev_table };
	uint64_t block_at = round_up_u64(p->at + table_len, 8), min_end;
	uint8_t *block;

	p->buf = mem_alloc(cap);
	if (!p->buf)
		return -ENOMEM;
	if (p->table) {
		index_chunks_encode(p->table, p->buf);
		p->block->chunks_off = p->at;
	}
	p->block_len = index_block_encode(p->block, p->buf + table_len + 8);
	min_end = block_at + p->block_len + INDEX_TRAILER_LEN;
	if (!p->len)
		p->len = round_up_u64(min_end, p->end_unit) - p->at;
	if (p->at + p->len < min_end || p->block_len > INDEX_TRAILER_BLOCK_MAX) {
		mem_free(p->buf);
		p->buf = NULL;
		return -E2BIG;
	}
	t.self = p->trailer_at = (p->at + p->len) / 8 * 8 - INDEX_TRAILER_LEN;
	t.block_len = (uint32_t)p->block_len;
	block = p->buf + (t.self - p->block_len - p->at);
	memmove(block, p->buf + table_len + 8, p->block_len);
	p->block_buf = block;
	memset(p->buf + table_len, 0, (size_t)(block - p->buf) - table_len);
	index_trailer_encode(&t, p->id, block + p->block_len);
	memset(block + p->block_len + INDEX_TRAILER_LEN, 0, p->at + p->len - t.self - INDEX_TRAILER_LEN);
	if (p->table)
		p->prev_table = t.self;
	return 0;
}
