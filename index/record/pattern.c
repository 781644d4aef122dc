/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The arithmetic of patterns. Two that repeat are compared by their remainders modulo what both repeat by.
 */
#include "index/record/pattern.h"

struct index_pattern index_pattern_range(uint64_t off, uint64_t length)
{
	return (struct index_pattern){
		.off = off, .length = min_u64(length, INDEX_PATTERN_END - off), .count = 1, .outer_count = 1
	};
}

/* How often something of @length repeats by @stride from @off on. */
static uint64_t endless(uint64_t off, uint64_t length, uint64_t stride)
{
	return (INDEX_PATTERN_END - off - length) / stride + 1;
}

struct index_pattern index_pattern_run(uint64_t off, uint64_t length, uint64_t stride, uint64_t count)
{
	struct index_pattern p = index_pattern_range(off, length);
	uint64_t most = endless(off, p.length, stride);

	p.stride = stride;
	p.count = count && count < most ? count : most;
	return p;
}

static uint64_t row_length(const struct index_pattern *p)
{
	return (p->count - 1) * p->stride + p->length;
}

struct index_pattern index_pattern_rows(const struct index_pattern *row, uint64_t outer_stride)
{
	struct index_pattern p = *row;

	p.outer_stride = outer_stride;
	p.outer_count = endless(p.off, row_length(row), outer_stride);
	return p;
}

static uint64_t row_of(const struct index_pattern *p, uint64_t off)
{
	return p->outer_count > 1 ? min_u64((off - p->off) / p->outer_stride, p->outer_count - 1) : 0;
}

uint64_t index_pattern_room(const struct index_pattern *p, uint64_t off)
{
	uint64_t at;

	if (off < p->off)
		return 0;
	at = off - p->off - row_of(p, off) * p->outer_stride;
	if (p->count > 1)
		at -= min_u64(at / p->stride, p->count - 1) * p->stride;
	return at < p->length ? p->length - at : 0;
}

uint64_t index_pattern_row_end(const struct index_pattern *p, uint64_t off)
{
	return off < p->off ? 0 : p->off + row_of(p, off) * p->outer_stride + row_length(p);
}

static uint64_t end_of(const struct index_pattern *p)
{
	return p->off + (p->outer_count - 1) * p->outer_stride + row_length(p);
}

bool index_pattern_is_sound(const struct index_pattern *p)
{
	if (!p->length || !p->count || !p->outer_count || p->off > INDEX_PATTERN_END ||
	    p->length > INDEX_PATTERN_END - p->off)
		return false;
	if (p->count > 1 && (p->stride < p->length || p->count > endless(p->off, p->length, p->stride)))
		return false;
	return p->outer_count == 1 || (p->outer_stride >= row_length(p) &&
				       p->outer_count <= endless(p->off, row_length(p), p->outer_stride));
}

/* ---- do they meet? ---- */

static bool hulls_meet(const struct index_pattern *a, const struct index_pattern *b)
{
	return a->off < end_of(b) && b->off < end_of(a);
}

/* Whether an element of @run, which is one row, reaches into [lo, hi). */
static bool run_meets_range(const struct index_pattern *run, uint64_t lo, uint64_t hi)
{
	uint64_t first_end = run->off + run->length, i = 0;

	if (lo >= first_end && run->count > 1)
		i = (lo - first_end) / run->stride + 1;
	else if (lo >= first_end)
		return false;
	return i < run->count && run->off + i * run->stride < hi;
}

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* Both are one row. */
static bool runs_meet(const struct index_pattern *a, const struct index_pattern *b)
{
	uint64_t by, apart;

	if (!hulls_meet(a, b))
		return false;
	if (a->count == 1)
		return run_meets_range(b, a->off, a->off + a->length);
	if (b->count == 1)
		return run_meets_range(a, b->off, b->off + b->length);
	by = greatest_common_divisor(a->stride, b->stride);
	apart = b->off >= a->off ? (b->off - a->off) % by : (by - (a->off - b->off) % by) % by;
	return apart < a->length || by - apart < b->length;
}

/* One row of it, moved. */
static struct index_pattern row_at(const struct index_pattern *p, uint64_t off)
{
	struct index_pattern row = *p;

	row.off = off;
	row.outer_count = 1;
	row.outer_stride = 0;
	return row;
}

/* Both have rows that repeat by @by: what they are modulo that. */
static bool rows_meet(const struct index_pattern *a, const struct index_pattern *b, uint64_t by)
{
	struct index_pattern row = row_at(a, a->off % by + by);

	for (uint64_t turn = 0; turn < 3; turn++) {
		struct index_pattern other = row_at(b, b->off % by + turn * by);

		if (runs_meet(&row, &other))
			return true;
	}
	return false;
}

static bool rows_meet_range(const struct index_pattern *rows, const struct index_pattern *range)
{
	uint64_t end = range->off + range->length, i = row_of(rows, max_u64(range->off, rows->off));

	for (int tries = 0; tries < 4 && i < rows->outer_count; tries++, i++) {
		struct index_pattern row = row_at(rows, rows->off + i * rows->outer_stride);

		if (row.off >= end)
			return false;
		if (run_meets_range(&row, range->off, end))
			return true;
	}
	return i < rows->outer_count;
}

/* A run as rows of one element each. */
static struct index_pattern as_rows(const struct index_pattern *run)
{
	struct index_pattern rows = index_pattern_range(run->off, run->length);

	rows.outer_stride = run->stride;
	rows.outer_count = run->count;
	return rows;
}

bool index_patterns_meet(const struct index_pattern *a, const struct index_pattern *b)
{
	struct index_pattern rows;

	if (!a->length || !b->length || !hulls_meet(a, b))
		return false;
	if (a->outer_count == 1 && b->outer_count == 1)
		return runs_meet(a, b);
	if (a->outer_count == 1)
		return index_patterns_meet(b, a);
	if (b->outer_count == 1 && b->count == 1)
		return rows_meet_range(a, b);
	rows = b->outer_count == 1 ? as_rows(b) : *b;
	/* four of them are added up */
	if (rows.outer_stride != a->outer_stride || a->outer_stride > INDEX_PATTERN_END / 4)
		return true;
	return rows_meet(a, &rows, a->outer_stride);
}
