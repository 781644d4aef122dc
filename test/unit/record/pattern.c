/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Patterns and shapes, compared with lists of all their bytes.
 */
#include "index/record/shapes.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(pattern, .timeout = 120);
TestSuite(shapes, .timeout = 60);

#define SPACE 700

static unsigned seed = 1;

static uint64_t below(uint64_t n) { return (uint64_t)rand_r(&seed) % n; }

/* Which bytes below SPACE are in @p. */
static void fill(const struct index_pattern *p, bool *bytes)
{
	memset(bytes, 0, SPACE);
	for (uint64_t row = 0; row < p->outer_count && row < SPACE; row++)
		for (uint64_t i = 0; i < p->count && i < SPACE; i++) {
			uint64_t at = p->off + row * p->outer_stride + i * p->stride;

			for (uint64_t b = at; b < at + p->length && b < SPACE; b++)
				bytes[b] = true;
		}
}

static struct index_pattern any(void)
{
	uint64_t len = 1 + below(12), stride = len + below(20), count = 2 + below(5), off = below(200);
	struct index_pattern p;

	switch (below(4)) {
	case 0: return index_pattern_range(off, 1 + below(100));
	case 1: return index_pattern_run(off, len, stride, count);
	case 2: return index_pattern_run(off, len, stride, 0);
	default:
		p = index_pattern_run(off, len, stride, count);
		return index_pattern_rows(&p, (count - 1) * stride + len + below(60));
	}
}

Test(pattern, that_meet_another_are_never_said_not_to)
{
	static bool in_a[SPACE], in_b[SPACE];
	long apart = 0;

	for (int n = 0; n < 200000; n++) {
		struct index_pattern a = any(), b = any();
		bool meet = false, said = index_patterns_meet(&a, &b);

		fill(&a, in_a);
		fill(&b, in_b);
		for (int i = 0; i < SPACE && !meet; i++)
			meet = in_a[i] && in_b[i];
		cr_assert(said || !meet, "[%lu +%lu /%lu x%lu / %lu] and [%lu +%lu /%lu x%lu / %lu]", a.off,
			  a.length, a.stride, a.count, a.outer_stride, b.off, b.length, b.stride, b.count,
			  b.outer_stride);
		cr_assert_eq(said, index_patterns_meet(&b, &a));
		cr_assert(index_pattern_is_sound(&a));
		apart += !said;
	}
	cr_assert_gt(apart, 20000, "else the comparison says too little");
}

Test(pattern, room_is_what_is_left_of_the_element)
{
	static bool in[SPACE];

	for (int n = 0; n < 20000; n++) {
		struct index_pattern p = any();
		uint64_t off = below(SPACE - 200), room = index_pattern_room(&p, off);

		fill(&p, in);
		cr_assert_eq(room > 0, in[off]);
		for (uint64_t i = 0; i < room; i++)
			cr_assert(off + i >= SPACE || in[off + i]);
		cr_assert_leq(room, p.length);
	}
}

Test(pattern, that_reach_to_the_end_of_all_files_do_not_overflow)
{
	struct index_pattern all = index_pattern_range(0, INDEX_PATTERN_END),
			     run = index_pattern_run(5, 10, 1ULL << 40, 0),
			     big = index_pattern_run(INDEX_PATTERN_END - 100, 1000, 5000, 0),
			     rows = index_pattern_rows(&run, 1ULL << 62);

	cr_assert(index_patterns_meet(&all, &run));
	cr_assert(index_patterns_meet(&all, &big));
	cr_assert_eq(big.length, 100);
	cr_assert_eq(rows.outer_count, 1);
	cr_assert_eq(index_pattern_room(&all, INDEX_PATTERN_END - 1), 1);
	cr_assert_eq(index_pattern_room(&all, INDEX_PATTERN_END), 0);
	run = index_pattern_run(0, 8, 16, 0);
	big = index_pattern_run(8, 8, 16, 0);
	cr_assert(!index_patterns_meet(&run, &big));
}

/* Blocks of an array of nz planes of ny rows of nx bytes, as two ranks write them. */
Test(pattern, blocks_of_an_array_do_not_meet)
{
	const uint64_t pitch = 4096, plane = pitch * 64;
	struct index_pattern row[4], rows[4];

	for (int i = 0; i < 4; i++) { /* two by two: halves of a row, halves of the rows */
		row[i] = index_pattern_run((uint64_t)(i % 2) * 2048 + (uint64_t)(i / 2) * 32 * pitch, 2048,
					   pitch, 32);
		rows[i] = index_pattern_rows(&row[i], plane);
	}
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < 4; k++)
			cr_assert_eq(index_patterns_meet(&rows[i], &rows[k]), i == k, "%d and %d", i, k);
	cr_assert(index_patterns_meet(&rows[0], &row[0]));
}

/* ---- what is expected ---- */

static struct index_shapes sh;

static bool expected(uint64_t off, uint64_t len, struct index_pattern *p)
{
	bool any = index_shapes_expect(&sh, off, len, p);

	if (any)
		cr_assert_geq(index_pattern_room(p, off), len, "what comes is not in it");
	index_shapes_add(&sh, off, len);
	return any;
}

Test(shapes, of_strided_writes_the_third_is_expected_to_go_on_for_ever)
{
	struct index_pattern p;

	cr_assert(!expected(100, 8, &p));
	cr_assert(!expected(164, 8, &p));
	cr_assert(expected(228, 8, &p));
	cr_assert_eq(index_pattern_room(&p, 228 + 64000), 8);
	cr_assert_eq(index_pattern_room(&p, 228 + 64000 + 8), 0);
}

Test(shapes, of_elements_in_pieces_the_third_is_expected)
{
	struct index_pattern p;

	for (uint64_t i = 0; i < 2; i++) {
		expected(i * 1000, 30, &p);
		cr_assert(expected(i * 1000 + 30, 70, &p));
		if (i)
			cr_assert_eq(p.length, 70, "not beyond the end of one like the one before");
	}
	cr_assert(expected(2000, 30, &p));
	cr_assert_eq(index_pattern_room(&p, 5020), 80);
	cr_assert_eq(index_pattern_room(&p, 5100), 0);
}

Test(shapes, of_rows_the_second_is_as_long_and_the_third_repeats)
{
	struct index_pattern p;

	for (uint64_t y = 0; y < 10; y++)
		for (uint64_t x = 0; x < 8; x++) {
			bool any = expected(y * 10000 + x * 100, 10, &p);

			if (y == 1 && x == 0) {
				cr_assert(any);
				cr_assert_eq(p.count, 8);
				cr_assert_eq(p.outer_count, 1);
			}
			if (y >= 2 && x == 0) {
				cr_assert_eq(index_pattern_room(&p, (y + 5) * 10000 + 700), 10);
				cr_assert_eq(index_pattern_room(&p, (y + 5) * 10000 + 800), 0);
			}
		}
}

Test(shapes, of_writes_in_no_order_none_is_expected)
{
	struct index_pattern p;
	int any = 0;

	for (int i = 0; i < 10000; i++)
		any += expected(below(1 << 30) * 512, 512, &p);
	cr_assert_lt(any, 10);
}
