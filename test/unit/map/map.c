/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What maps promise, one thing at a time, and how much memory they take. map_model.c compares whole
 * maps with a model.
 */
#include "core/base/alloc.h"
#include "core/base/bytes.h"
#include "core/base/crc32c.h"
#include "index/map/image.h"
#include "index/map/merge.h"

#include <criterion/criterion.h>

#include <fenv.h>

#define HOLE INDEX_LOG_HOLE
#define CUT INDEX_LOG_CUT

static struct index_merge merge;
static struct index_map map;
static void *image;

static void setup(void)
{
	index_merge_init(&merge);
	image = NULL;
}

static void teardown(void)
{
	index_merge_release(&merge);
	mem_free(image);
}

TestSuite(index_merge, .init = setup, .fini = teardown);
TestSuite(index_map, .init = setup, .fini = teardown);

static void add_run(uint32_t log_no, uint64_t lo, uint64_t length, uint64_t stride, uint64_t count,
		    uint64_t log_off,
		    uint64_t stamp)
{
	struct index_record rec = { INDEX_WRITE, lo, length, stride, count, log_off, stamp, 0, 0 };

	cr_assert_eq(index_merge_add(&merge, log_no, &rec), 0);
}

static void add(uint32_t log_no, uint64_t lo, uint64_t length, uint64_t log_off, uint64_t stamp)
{
	add_run(log_no, lo, length, 0, 1, log_off, stamp);
}

static void add_nested(uint32_t log_no, uint64_t lo, uint64_t length, uint64_t stride, uint64_t count,
		       uint64_t outer_stride, uint64_t outer_count, uint64_t log_off, uint64_t stamp)
{
	struct index_record rec = { INDEX_WRITE, lo,	length,	      stride,	  count,
				    log_off,	 stamp, outer_stride, outer_count };

	cr_assert_eq(index_merge_add(&merge, log_no, &rec), 0);
}

static void truncate_to(uint32_t log_no, uint64_t size, uint64_t stamp)
{
	struct index_record rec = { .type = INDEX_TRUNCATE, .logical_off = size, .stamp_ns = stamp };

	cr_assert_eq(index_merge_add(&merge, log_no, &rec), 0);
}

static size_t build(void)
{
	size_t len;

	mem_free(image);
	cr_assert_eq(index_merge_build(&merge, &image, &len), 0);
	index_merge_release(&merge);
	cr_assert_eq(index_map_open(&map, image, len, true), 0);
	return len;
}

/* [lo, lo + len) is one thing, in however many pieces. */
static void expect(uint64_t lo, uint64_t len, uint32_t log_no, uint64_t log_off)
{
	struct index_piece p;

	for (uint64_t x = lo; x < lo + len; x += p.len) {
		index_map_lookup(&map, x, lo + len - x, &p);
		cr_assert(p.logical_off == x && p.len > 0 && p.len <= lo + len - x);
		cr_assert_eq(p.log_no, log_no, "at %lu: log %u, should be %u", x, p.log_no, log_no);
		if (log_no < CUT)
			cr_assert_eq(p.log_off, log_off + x - lo, "at %lu: %lu in the log", x, p.log_off);
	}
}

Test(index_merge, nothing_makes_an_empty_map)
{
	build();
	cr_assert_eq(map.end, 0);
	cr_assert_eq(map.cut, UINT64_MAX);
	cr_assert_eq(map.max_stamp_ns, 0);
	expect(0, 1000, HOLE, 0);
	expect(INT64_MAX, 1000, HOLE, 0);
}

Test(index_merge, later_write_wins_inside_earlier)
{
	add(1, 100, 100, 0, 5);
	add(2, 140, 20, 7000, 6);
	build();
	expect(0, 100, HOLE, 0);
	expect(100, 40, 1, 0);
	expect(140, 20, 2, 7000);
	expect(160, 40, 1, 60);
	expect(200, 50, HOLE, 0);
	cr_assert_eq(map.end, 200);
	cr_assert_eq(map.nr_records, 2);
	cr_assert_eq(map.max_stamp_ns, 6);
}

Test(index_merge, earlier_write_added_later_still_loses)
{
	add(2, 140, 20, 7000, 6);
	add(1, 100, 100, 0, 5);
	build();
	expect(140, 20, 2, 7000);
}

Test(index_merge, ties_go_to_the_higher_log_then_to_the_later_added)
{
	add(3, 0, 10, 100, 5);
	add(2, 0, 20, 200, 5);
	add(2, 10, 20, 300, 5);
	build();
	expect(0, 10, 3, 100);
	expect(10, 20, 2, 300);
}

Test(index_merge, is_empty_after_it_was_released)
{
	add(1, 0, 10, 0, 5);
	truncate_to(1, 8, 9);
	build();
	expect(0, 8, 1, 0);
	add(2, 5, 10, 0, 6);
	build();
	expect(0, 5, HOLE, 0);
	expect(5, 10, 2, 0);
	cr_assert_eq(map.nr_records, 1);
	cr_assert_eq(map.max_stamp_ns, 6);
	cr_assert_eq(map.cut, UINT64_MAX);
}

Test(index_merge, takes_more_than_was_reserved)
{
	for (size_t nr = 0; nr < 5; nr++) {
		cr_assert_eq(index_merge_reserve(&merge, nr), 0);
		for (uint64_t i = 0; i < 200; i++)
			add_run(1, i * 1000, 10, 20, 7, i * 70, 5);
	}
	build();
	cr_assert_eq(map.nr_records, 1000);
	expect(199 * 1000 + 20, 10, 1, 199 * 70 + 10);
}

Test(index_merge, impossible_records_and_logs_are_refused)
{
	struct index_record rec = { INDEX_WRITE, 0, 10, 9, 2, 0, 0, 0, 0 };

	cr_assert_eq(index_merge_add(&merge, 1, &rec), -EBADMSG);
	rec.stride = 10;
	cr_assert_eq(index_merge_add(&merge, CUT, &rec), -EBADMSG);
	build();
	cr_assert_eq(map.nr_records, 0);
}

Test(index_merge, truncation_cuts_what_is_older_and_keeps_what_is_newer)
{
	add(1, 0, 1000, 0, 5);
	truncate_to(1, 300, 6);
	add(2, 400, 100, 0, 7);
	build();
	expect(0, 300, 1, 0);
	expect(300, 100, CUT, 0);
	expect(400, 100, 2, 0);
	expect(500, 1000, CUT, 0);
	cr_assert_eq(map.end, 500);
	cr_assert_eq(map.cut, 300);
	cr_assert_eq(map.max_stamp_ns, 7);
}

Test(index_merge, each_record_is_cut_by_the_lowest_newer_truncation)
{
	add(1, 0, 1000, 0, 1);
	truncate_to(1, 100, 2);
	add(2, 0, 1000, 0, 3);
	truncate_to(1, 500, 4);
	truncate_to(1, 800, 5);
	add(3, 700, 10, 0, 3);
	build();
	expect(0, 500, 2, 0);
	expect(500, 500, CUT, 0);
	cr_assert_eq(map.end, 500);
	cr_assert_eq(map.cut, 100);
}

Test(index_merge, truncation_that_extends_cuts_nothing_but_older_maps)
{
	add(1, 0, 100, 0, 1);
	truncate_to(1, 5000, 2);
	build();
	expect(0, 100, 1, 0);
	expect(100, 4900, HOLE, 0);
	expect(5000, 100, CUT, 0);
	cr_assert_eq(map.end, 100);
}

Test(index_merge, truncation_cuts_a_run_in_the_middle_of_an_element)
{
	add_run(1, 0, 10, 100, 1000, 0, 1);
	truncate_to(2, 5005, 2);
	build();
	expect(4900, 10, 1, 490);
	expect(5000, 5, 1, 500);
	expect(5005, 5, CUT, 0);
	cr_assert_eq(map.end, 5005);
}

Test(index_merge, end_is_that_of_the_last_visible_byte)
{
	for (int cuts = 0; cuts < 3; cuts++) {
		add_run(1, 10, 10, 100, 1000000000, 0, 1);
		if (cuts > 0)
			truncate_to(2, 950, 2);
		if (cuts > 1)
			truncate_to(2, 0, 3);
		build();
		cr_assert_eq(map.end, cuts == 0 ? 10 + 999999999ull * 100 + 10 : cuts == 1 ? 920 : 0);
	}
	expect(0, 2000, CUT, 0);
}

Test(index_merge, contiguous_runs_are_one_extent)
{
	add_run(1, 0, 4096, 4096, 100000, 50, 1);
	cr_assert_leq(build(), IMAGE_HEADER_LEN + IMAGE_PANEL_LEN + IMAGE_ENTRY_LEN);
	expect(0, 4096 * 100000, 1, 50);
}

Test(index_merge, writes_that_follow_in_file_and_log_are_one_entry)
{
	for (uint64_t i = 0; i < 1000; i++)
		add(1, i * 10, 10, 77 + i * 10, i);
	build();
	cr_assert_eq(map.nr_entries, 1);
	expect(0, 10000, 1, 77);
}

Test(index_merge, random_extents_take_24_bytes_each)
{
	uint64_t state = 1, nr = 100000;

	for (uint64_t i = 0; i < nr; i++) {
		state = state * 6364136223846793005 + 1442695040888963407;
		add((uint32_t)(i % 64), state >> 24, 4096, i * 4096, i);
	}
	cr_assert_leq(build(), IMAGE_HEADER_LEN + 10 * IMAGE_PANEL_LEN + nr * (IMAGE_ENTRY_LEN + 1));
}

Test(index_merge, pairs_that_random_writes_form_by_chance_are_two_extents)
{
	uint64_t state = 1, nr = 10000;

	for (uint64_t i = 0; i < nr; i++) {
		state = state * 6364136223846793005 + 1442695040888963407;
		add_run((uint32_t)(i % 64), state >> 24, 4096, (state << 32 >> 24) + 5000, 2, i * 8192, i);
	}
	build();
	cr_assert_eq(map.nr_panels, 1);
	cr_assert_eq(map.nr_layers, 0);
}

Test(index_merge, interleaved_runs_take_memory_for_ranks_not_for_elements)
{
	const uint64_t ranks = 1000, rows = 1000000, block = 47008; /* 1 billion writes, unaligned */

	for (uint64_t r = 0; r < ranks; r++)
		add_run((uint32_t)r, r * block, block, ranks * block, rows, 0, r);
	cr_assert_leq(build(), 100 * ranks);
	cr_assert_leq(map.nr_panels, 3);
	cr_assert_eq(map.end, ranks * block * rows);
	for (uint64_t x = 12345, i = 0; x < map.end; x += map.end / 997, i++) {
		uint64_t elem = x / block;

		expect(x, 1, (uint32_t)(elem % ranks), elem / ranks * block + x % block);
	}
}

Test(index_merge, small_overwrites_share_the_table_of_the_runs_around_them)
{
	const uint64_t ranks = 1000, rows = 100000, nr = 2000;

	for (uint64_t r = 0; r < ranks; r++)
		add_run((uint32_t)r, r * 4096, 4096, ranks * 4096, rows, 0, r);
	for (uint64_t i = 0; i < nr; i++)
		add(5000, i * 50 * ranks * 4096 + 1234567, 5000, i * 5000, 10000 + i);
	cr_assert_leq(build(), 150 * (ranks + nr));
	cr_assert_eq(map.nr_tables, 1);
	expect(50 * ranks * 4096 + 1234567, 5000, 5000, 5000);
	expect(50 * ranks * 4096 + 1234567 + 5000, 1, 1239567 / 4096, 50 * 4096 + 1239567 % 4096);
}

Test(index_merge, a_second_checkpoint_hides_the_first_whatever_its_ranks)
{
	for (uint64_t r = 0; r < 48; r++)
		add_run((uint32_t)r, r * 4096, 4096, 48 * 4096, 100000, 0, r);
	for (uint64_t r = 0; r < 64; r++)
		add_run((uint32_t)(100 + r), r * 3072, 3072, 64 * 3072, 100000, 0, 1000 + r);
	build();
	cr_assert_eq(map.nr_layers, 0);
	expect(64 * 3072 * 77 + 5 * 3072, 3072, 105, 77 * 3072);
}

/* A cube of NX * NY * NZ ranks with blocks of 64 rows in each of 100 planes, @var of several. */
enum { NX = 8, NY = 8, NZ = 8, LEN = 512, ROWS = 64, PLANES = 100 };
#define ROW ((uint64_t)NX * LEN)
#define PLANE (NY * ROWS * ROW)
#define CUBE (NZ * PLANES * PLANE)

static void add_cube(uint64_t header, uint64_t var, uint64_t stamp, bool by_column)
{
	for (uint64_t r = 0; r < NX * NY * NZ; r++) {
		uint64_t at = header + var * CUBE + r / NX / NY * PLANES * PLANE + r / NX % NY * ROWS * ROW +
			      r % NX * LEN;
		uint64_t log_off = var * LEN * ROWS * PLANES;

		if (by_column)
			add_nested((uint32_t)r, at, LEN, PLANE, PLANES, ROW, ROWS, log_off, stamp + r);
		else
			add_nested((uint32_t)r, at, LEN, ROW, ROWS, PLANE, PLANES, log_off, stamp + r);
	}
}

static void expect_cube(uint64_t header, uint64_t var, bool by_column)
{
	for (uint64_t i = 345, n = 0; n < 1000; n++, i += CUBE / LEN / 1001) {
		uint64_t x = i % NX, y = i / NX % (NY * ROWS), z = i / NX / (NY * ROWS);
		uint64_t row = y % ROWS, plane = z % PLANES,
			 nr = by_column ? row * PLANES + plane : plane * ROWS + row;

		expect(header + var * CUBE + i * LEN, LEN,
		       (uint32_t)(x + NX * (y / ROWS + NY * (z / PLANES))), (var * ROWS * PLANES + nr) * LEN);
	}
}

Test(index_merge, blocks_of_an_array_take_memory_for_ranks)
{
	const uint64_t ranks = NX * NY * NZ, vars = 3;

	for (uint64_t var = 0; var < vars; var++)
		add_cube(1000, var, 1, var == 1);
	cr_assert_leq(build(), 100 * ranks * vars);
	cr_assert_eq(map.nr_layers, 0);
	cr_assert_eq(map.nr_panels, NZ * vars);
	cr_assert_eq(map.end, 1000 + vars * CUBE);
	for (uint64_t var = 0; var < vars; var++)
		expect_cube(1000, var, var == 1);
}

Test(index_merge, a_second_array_in_the_same_place_hides_the_first)
{
	add_cube(0, 0, 1, false);
	for (uint64_t r = 0; r < NX * NY * NZ; r++)
		add_nested((uint32_t)(1000 + r),
			   r / NX / NY * PLANES * PLANE + r / NX % NY * ROWS * ROW + r % NX * LEN, LEN, ROW,
			   ROWS, PLANE, PLANES, 0, 5000 + r);
	cr_assert_leq(build(), 100 * 2 * NX * NY * NZ);
	cr_assert_eq(map.nr_layers, 0);
	for (uint64_t i = 77; i < CUBE / LEN; i += CUBE / LEN / 991)
		expect(i * LEN, LEN,
		       (uint32_t)(1000 + i % NX +
				  NX * (i / NX / ROWS % NY + NY * (i / NX / ROWS / NY / PLANES))),
		       (i / NX / ROWS / NY % PLANES * ROWS + i / NX % ROWS) * LEN);
}

Test(index_merge, small_overwrites_of_an_array_leave_the_rest_as_it_is)
{
	add_cube(0, 0, 1, false);
	for (uint64_t i = 0; i < 100; i++)
		add(7777, i * 7 * PLANE + 99, 1000, i * 1000, 10000 + i);
	cr_assert_leq(build(), 100 * NX * NY * NZ + 100 * 100);
	cr_assert_eq(map.nr_layers, 0);
	expect(7 * PLANE + 99, 1000, 7777, 1000);
	expect(7 * PLANE + 1099, LEN - 1099 % LEN, 2, 7 * ROWS * LEN + 1099 % LEN);
}

/* What overlaps in disorder is searched, in linear memory. */
Test(index_merge, nested_runs_without_an_order_take_linear_memory)
{
	const uint64_t nr = 2000;

	for (uint64_t r = 0; r < nr; r++)
		add_nested((uint32_t)r, r * 1000, 100, 5000 + r * 7, 100, 50000000 + r * 11, 1000, 0, r);
	cr_assert_leq(build(), 300 * nr);
	expect((nr - 1) * 1000 + 5 * (5000 + (nr - 1) * 7) + 9 * (50000000 + (nr - 1) * 11), 100,
	       (uint32_t)(nr - 1), 905 * 100);
}

Test(index_merge, truncation_cuts_nested_runs)
{
	add_nested(1, 0, 10, 100, 5, 1000, 7, 0, 1);
	add_nested(2, 20, 10, 100, 5, 1000, 7, 0, 3);
	truncate_to(3, 2205, 2);
	build();
	expect(2200, 5, 1, 2 * 50 + 20);
	expect(2205, 15, CUT, 0);
	expect(2220, 10, 2, 2 * 50 + 20);
	expect(6420, 10, 2, 6 * 50 + 40);
	cr_assert_eq(map.end, 6430);
	cr_assert_eq(map.cut, 2205);
}

/* Sets of active runs: R of up to R each; of them all tables would take R * R. */
Test(index_merge, runs_that_begin_one_after_the_other_take_linear_memory)
{
	const uint64_t nr = 4000;

	for (uint64_t r = 0; r < nr; r++)
		add_run((uint32_t)r, (10 * r * nr + r) * 512, 512, nr * 512, 100000, 0, r);
	cr_assert_leq(build(), 2000 * nr);
	for (uint64_t r = 0; r < nr; r += 97) {
		expect((10 * r * nr + r) * 512, 512, (uint32_t)r, 0);
		expect((10 * r * nr + r) * 512 + 99999 * nr * 512, 512, (uint32_t)r, 99999 * 512);
	}
}

Test(index_merge, runs_of_all_different_strides_take_linear_memory)
{
	const uint64_t nr = 4000;

	for (uint64_t r = 0; r < nr; r++)
		add_run((uint32_t)r, r * 1000, 100 + r, 5000 + r * 7, 10000, 0, r);
	cr_assert_leq(build(), 200 * nr);
	expect((nr - 1) * 1000 + 500 * (5000 + (nr - 1) * 7), 100 + nr - 1, (uint32_t)(nr - 1),
	       500 * (100 + nr - 1));
}

/*
 * Writes of 10 bytes at multiples of a number modulo another: three in a row have one distance, and these
 * threes another.
 */
Test(index_merge, random_writes_that_look_like_nested_runs_are_not_searched_through)
{
	enum { NR = 3000, STEP = 301 };
	uint64_t at = 0;

	for (uint64_t i = 0, n; i < NR; i += n) {
		for (n = 1; n < 12 && i + n < NR && at + n * STEP * 10 < NR * 10; n++)
			;
		if (n % 3 || n == 3)
			add_run(1, at, 10, n > 1 ? STEP * 10 : 0, n, i * 10, 5);
		else
			add_nested(1, at, 10, STEP * 10, n / 3, STEP * 10 * (n / 3), 3, i * 10, 5);
		at = (at + n * STEP * 10) % (NR * 10);
	}
	for (int k = 0; k < 200; k++) /* over others, in all ways */
		add_nested(2, (uint64_t)k * 7, 3, 1009, 4, 7001, 4, (uint64_t)k * 48, 4);
	truncate_to(3, 20005, 6);
	build();
	cr_assert_eq(map.nr_layers, 0);
	at = 0;
	for (uint64_t i = 0; i < NR; i++, at = (at + STEP * 10) % (NR * 10)) {
		if (at < 20000)
			expect(at, 10, 1, i * 10);
		else if (at == 20000)
			expect(at, 5, 1, i * 10);
	}
	expect(20005, 1000, CUT, 0);
	cr_assert_eq(map.end, 20005);
}

Test(index_merge, giants_cost_no_more_than_others)
{
	add(1, 5, 1ull << 61, 9, 1);
	add_run(2, 1ull << 62, 1, 1ull << 40, 1 << 20, 0, 2);
	add(3, 1ull << 60, 1ull << 33, 0, 3);
	cr_assert_leq(build(), 4096);
	expect(5, 1000, 1, 9);
	expect(1ull << 60, 1ull << 33, 3, 0);
	expect((1ull << 60) + (1ull << 33), 1000, 1, (1ull << 60) + (1ull << 33) + 4);
	expect((1ull << 62) + (77ull << 40), 1, 2, 77);
	cr_assert_eq(map.end, (1ull << 62) + (((1ull << 20) - 1) << 40) + 1);
}

Test(index_map, no_lookup_overflows_at_the_end_of_everything)
{
	struct index_piece p;

	add(1, 0, 10, 0, 1);
	truncate_to(1, 10, 2);
	build();
	index_map_lookup(&map, UINT64_MAX, 1, &p);
	cr_assert(p.log_no == CUT && p.len == 1);
	index_map_lookup(&map, 1ull << 63, UINT64_MAX, &p);
	cr_assert(p.log_no == CUT && p.len > 0);
}

static int collect(void *arg, const struct index_piece *piece)
{
	uint64_t *sum = arg;

	sum[0]++;
	sum[1] += piece->len;
	return piece->logical_off == 300 ? 42 : 0;
}

Test(index_map, each_passes_holes_over_and_stops_when_told)
{
	uint64_t sum[2] = { 0 };

	add(1, 100, 10, 0, 1);
	add(1, 200, 10, 500, 1);
	build();
	cr_assert_eq(index_map_each(&map, collect, sum), 0);
	cr_assert(sum[0] == 2 && sum[1] == 20);
	add(1, 200, 10, 500, 1);
	add(1, 300, 10, 900, 1);
	add(1, 400, 10, 1300, 1);
	build();
	cr_assert_eq(index_map_each(&map, collect, sum), 42);
	cr_assert(sum[0] == 4 && sum[1] == 40);
}

Test(index_map, damage_is_found_in_the_header_always_and_elsewhere_on_request)
{
	size_t len;
	uint8_t *p;

	for (uint64_t r = 0; r < 10; r++)
		add_run((uint32_t)r, r * 10, 10, 100, 1000, 0, r);
	len = build();
	p = image;
	for (size_t bit = 0; bit < len * 8; bit++) {
		p[bit / 8] ^= (uint8_t)(1 << bit % 8);
		cr_assert_eq(index_map_open(&map, p, len, true), -EBADMSG, "bit %zu", bit);
		if (bit < IMAGE_HEADER_LEN * 8)
			cr_assert_eq(index_map_open(&map, p, len, false), -EBADMSG, "bit %zu", bit);
		p[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	for (size_t cut = 0; cut < len; cut++)
		cr_assert_eq(index_map_open(&map, p, cut, false), -EBADMSG, "cut at %zu", cut);
	cr_assert_eq(index_map_open(&map, p, len, true), 0);
}

Test(index_map, a_later_version_is_told_from_damage)
{
	size_t len = build();
	uint8_t *p = image;

	put_le32(p + 8, IMAGE_VERSION + 1);
	put_le32(p + 16, 0);
	put_le32(p + 16, crc32c(0, p, IMAGE_HEADER_LEN));
	cr_assert_eq(index_map_open(&map, p, len, true), -EPROTONOSUPPORT);
}

/*
 * A truncation cuts the last element of a long run in two. What is left of it lies among short runs, which
 * are taken singly; the long run is not.
 */
Test(index_merge, a_long_run_that_ends_among_short_ones_remains_a_run)
{
	const uint64_t nr = 1000000, end = nr * 20000;

	add_run(1, 0, 10000, 20000, nr + 10, 0, 5);
	truncate_to(1, end + 9000, 6);
	for (uint64_t i = 0; i < 200; i++)
		add_run(2, end - 200 + i * 7919 % 9300, 3, 11 + i * 31 % 97, 60, i * 180, 7 + i);
	cr_assert_leq(build(), 1000000);
	expect(end - 20000, 10000, 1, (nr - 1) * 10000);
	expect(nr / 2 * 20000, 10000, 1, nr / 2 * 10000);
}

/*
 * Runs of a million million elements over each other, of which a truncation has left a few, are taken singly:
 * these few.
 */
Test(index_merge, what_a_truncation_has_cut_off_costs_nothing, .timeout = 60)
{
	for (uint64_t i = 0; i < 200; i++)
		add_run((uint32_t)i % 4, i % 7, 3, 10 + i % 13, 1ULL << 40, 0, 1 + i);
	add(9, 0, 1ULL << 33, 0, 1); /* no run, though it is too long for an extent */
	truncate_to(0, 500, 1000);
	build();
	cr_assert_eq(map.end, 500);
	cr_assert_lt(map.nr_entries, 20000);
}

/* A program may have floating-point exceptions trapped, and no division of ours is to end it. */
Test(index_merge, raises_no_floating_point_exception)
{
	for (uint32_t log = 0; log < 4; log++)
		add_run(log, log * 7, 7, 28, 1000, 0, log + 1);
	add_run(5, 3, 5, 11, 300, 0, 9);
	feclearexcept(FE_ALL_EXCEPT);
	build();
	expect(0, 3, 0, 0);
	cr_assert_eq(fetestexcept(FE_ALL_EXCEPT), 0);
}
