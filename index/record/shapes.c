/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shapes: how they grow, and what follows on them.
 */
#include "index/record/shapes.h"

/*
 * A stretch that goes on is expected to get as much again and half of that, but at least and at most so many
 * bytes.
 */
#define AHEAD_MIN ((uint64_t)64 << 10)
#define AHEAD_MAX ((uint64_t)1 << 30)

#define ROW_MIN 3 /* two writes of one length, wherever they are, are a run of two */

static bool grow(struct index_pattern *p, uint64_t off, uint64_t len)
{
	if (p->count == 1 && off == p->off + p->length) {
		p->length += len;
		return true;
	}
	if (len != p->length || off < p->off + p->length ||
	    (p->count > 1 && off != p->off + p->count * p->stride))
		return false;
	if (p->count == 1)
		p->stride = off - p->off;
	p->count++;
	return true;
}

void index_shapes_add(struct index_shapes *sh, uint64_t off, uint64_t len)
{
	if (sh->nr && grow(&sh->s[0], off, len))
		return;
	for (unsigned i = INDEX_SHAPES - 1; i > 0; i--)
		sh->s[i] = sh->s[i - 1];
	sh->s[0] = index_pattern_range(off, len);
	sh->nr = sh->nr < INDEX_SHAPES ? sh->nr + 1 : INDEX_SHAPES;
}

void index_shapes_grow(struct index_shapes *sh, uint64_t count, uint64_t length)
{
	struct index_pattern *p = &sh->s[0];

	if (!sh->nr)
		return;
	if (p->count > 1)
		p->count += count;
	else
		p->length += length;
}

static bool is_like(const struct index_pattern *a, const struct index_pattern *b)
{
	return a->length == b->length && a->count == b->count && (a->count == 1 || a->stride == b->stride);
}

/* The run @last goes on at @off. In an array its rows are as long as the one before. */
static struct index_pattern rest_of_row(const struct index_shapes *sh, uint64_t off)
{
	const struct index_pattern *last = &sh->s[0], *row = &sh->s[1];
	uint64_t left = 0;

	if (sh->nr > 1 && row->count >= ROW_MIN && row->length == last->length && row->stride == last->stride)
		left = row->count > last->count ? row->count - last->count : last->count;
	return index_pattern_run(off, last->length, last->stride, left);
}

/* Another one like @last begins at @off: at the same distance as that from the one before it, or anywhere. */
static struct index_pattern next_row(const struct index_shapes *sh, uint64_t off)
{
	const struct index_pattern *last = &sh->s[0], *before = &sh->s[1];
	struct index_pattern row = index_pattern_run(off, last->length, last->stride, last->count);
	uint64_t reach = (last->count - 1) * last->stride + last->length;

	if (sh->nr > 1 && is_like(last, before) && off - last->off == last->off - before->off &&
	    off - last->off >= reach)
		row = index_pattern_rows(&row, off - last->off);
	return row;
}

bool index_shapes_expect(const struct index_shapes *sh, uint64_t off, uint64_t len, struct index_pattern *p)
{
	const struct index_pattern *last = &sh->s[0], *before = &sh->s[1];

	if (!sh->nr)
		return false;
	if (last->count > 1) {
		if (len == last->length && off == last->off + last->count * last->stride)
			*p = rest_of_row(sh, off);
		else if (last->count >= ROW_MIN && len == last->length && off > last->off)
			*p = next_row(sh, off);
		else
			return false;
		return true;
	}
	if (off == last->off + last->length) {
		if (sh->nr > 1 && before->count == 1 && before->length >= last->length + len)
			*p = index_pattern_range(off, before->length - last->length);
		else
			*p = index_pattern_range(
				off,
				max_u64(len, min_u64(max_u64(AHEAD_MIN, last->length / 2 * 3), AHEAD_MAX)));
		return true;
	}
	if (sh->nr < 2 || !is_like(last, before) || off < last->off + last->length ||
	    off - last->off != last->off - before->off)
		return false;
	*p = index_pattern_run(off, last->length, off - last->off, 0);
	return true;
}
