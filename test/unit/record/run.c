/* SPDX-License-Identifier: BSD-3-Clause */
#include "index/record/run.h"

#include <criterion/criterion.h>

static struct index_record write_of(uint64_t logical_off, uint64_t len, uint64_t log_off)
{
	return (struct index_record){ INDEX_WRITE, logical_off, len, 0, 1, log_off, 7, 0, 0 };
}

static void assert_is(const struct index_record *rec, uint64_t logical_off, uint64_t length, uint64_t stride,
		      uint64_t count, uint64_t log_off)
{
	cr_assert_eq(rec->type, INDEX_WRITE);
	cr_assert_eq(rec->logical_off, logical_off);
	cr_assert_eq(rec->length, length);
	cr_assert_eq(rec->stride, stride);
	cr_assert_eq(rec->count, count);
	cr_assert_eq(rec->log_off, log_off);
	cr_assert_eq(rec->stamp_ns, 7);
}

Test(index_run_grow, contiguous_writes_lengthen_a_single_element)
{
	struct index_record rec = write_of(100, 10, 0);

	cr_assert(index_run_grow(&rec, 110, 5));
	cr_assert(index_run_grow(&rec, 115, 15));
	assert_is(&rec, 100, 30, 0, 1, 0);
}

Test(index_run_grow, a_checkpoint_is_one_run)
{
	struct index_record rec = write_of(4096 * 3, 4096, 50);

	for (uint64_t i = 1; i < 100000; i++)
		cr_assert(index_run_grow(&rec, 4096 * 3 + i * 4096 * 8, 4096));
	assert_is(&rec, 4096 * 3, 4096, 4096 * 8, 100000, 50);
}

Test(index_run_grow, what_was_not_predicted_begins_a_new_record)
{
	struct index_record single = write_of(100, 10, 0), run = single, before;

	cr_assert_not(index_run_grow(&single, 105, 10), "overlapping");
	cr_assert_not(index_run_grow(&single, 100, 10), "the same place");
	cr_assert_not(index_run_grow(&single, 50, 10), "backwards");
	cr_assert_not(index_run_grow(&single, 200, 11), "another length");
	cr_assert_not(index_run_grow(&single, 110, 0), "nothing");
	assert_is(&single, 100, 10, 0, 1, 0);

	cr_assert(index_run_grow(&run, 200, 10));
	before = run;
	cr_assert_not(index_run_grow(&run, 210, 10), "contiguous with the last element");
	cr_assert_not(index_run_grow(&run, 299, 10), "not quite");
	cr_assert_not(index_run_grow(&run, 300, 9), "another length");
	cr_assert_not(index_run_grow(&run, 400, 10), "one left out");
	assert_is(&run, before.logical_off, before.length, before.stride, before.count, before.log_off);
}

Test(index_run_grow, never_grows_past_the_end_of_everything)
{
	struct index_record rec = write_of(INT64_MAX - 20, 10, 0), run = write_of(0, 10, 0);

	cr_assert_not(index_run_grow(&rec, INT64_MAX - 10, 10));
	cr_assert_not(index_run_grow(&run, INT64_MAX - 10, 10));
	cr_assert_not(index_run_grow(&run, UINT64_MAX - 5, 10));
	cr_assert(index_run_grow(&run, 1ull << 62, 10));
	cr_assert_not(index_run_grow(&run, 1ull << 63, 10));
}

Test(index_run_grow, truncate_records_do_not_grow)
{
	struct index_record rec = { .type = INDEX_TRUNCATE, .logical_off = 100 };

	cr_assert_not(index_run_grow(&rec, 100, 10));
}

Test(index_run_fold, elements_written_in_pieces_become_a_run)
{
	struct index_record prev = write_of(0, 30, 0), second = write_of(100, 10, 30);
	struct index_record third = write_of(200, 30, 60);

	cr_assert(index_run_grow(&second, 110, 20));
	cr_assert(index_run_fold(&prev, &second));
	cr_assert(index_run_fold(&prev, &third));
	assert_is(&prev, 0, 30, 100, 3, 0);
}

Test(index_run_fold, runs_join_runs_that_go_on_where_they_end)
{
	struct index_record prev = write_of(0, 10, 0), run = { INDEX_WRITE, 100, 10, 100, 5, 10, 9, 0, 0 };
	struct index_record more = { INDEX_WRITE, 600, 10, 100, 4, 60, 9, 0, 0 };

	cr_assert(index_run_fold(&prev, &run));
	assert_is(&prev, 0, 10, 100, 6, 0);
	cr_assert(index_run_fold(&prev, &more));
	assert_is(&prev, 0, 10, 100, 10, 0);
}

Test(index_run_fold, contiguous_singles_join)
{
	struct index_record prev = write_of(0, 10, 0), last = write_of(10, 7, 10);

	cr_assert(index_run_fold(&prev, &last));
	assert_is(&prev, 0, 17, 0, 1, 0);
}

Test(index_run_fold, what_does_not_follow_stays_apart)
{
	struct index_record prev = { INDEX_WRITE, 0, 10, 100, 3, 0, 7, 0, 0 };
	struct index_record other[] = {
		{ INDEX_WRITE, 300, 10, 0, 1, 31, 7, 0, 0 },   /* elsewhere in the log */
		{ INDEX_WRITE, 300, 11, 0, 1, 30, 7, 0, 0 },   /* another length */
		{ INDEX_WRITE, 301, 10, 0, 1, 30, 7, 0, 0 },   /* another place */
		{ INDEX_WRITE, 300, 10, 101, 2, 30, 7, 0, 0 }, /* another stride */
		{ INDEX_WRITE, 400, 10, 100, 2, 30, 7, 0, 0 }, /* one left out */
		{ INDEX_TRUNCATE, 300, 0, 0, 0, 0, 7, 0, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(other); i++)
		cr_assert_not(index_run_fold(&prev, &other[i]), "record %zu", i);
	assert_is(&prev, 0, 10, 100, 3, 0);
}

static void assert_nested(const struct index_record *rec, uint64_t outer_stride, uint64_t outer_count)
{
	cr_assert_eq(rec->outer_stride, outer_stride);
	cr_assert_eq(rec->outer_count, outer_count);
	cr_assert(index_record_valid(rec));
}

Test(index_run_fold, rows_of_a_block_nest)
{
	struct index_record prev = { INDEX_WRITE, 50, 10, 100, 6, 0, 7, 0, 0 }, row = prev;

	for (uint64_t j = 1; j < 1000; j++) {
		row.logical_off = 50 + j * 5000;
		row.log_off = j * 60;
		cr_assert(index_run_fold(&prev, &row), "row %lu", j);
		assert_nested(&prev, 5000, j + 1);
	}
	assert_is(&prev, 50, 10, 100, 6, 0);
	cr_assert_not(index_run_grow(&prev, 50 + 600, 10), "what is nested does not grow in itself");
	cr_assert_not(index_run_grow(&prev, 50 + 1000 * 5000, 10));
	row.logical_off += 5001;
	row.log_off += 60;
	cr_assert_not(index_run_fold(&prev, &row), "not quite");
	row.logical_off--;
	row.log_off++;
	cr_assert_not(index_run_fold(&prev, &row), "elsewhere in the log");
	row.log_off--;
	row.count--;
	cr_assert_not(index_run_fold(&prev, &row), "a shorter row");
	row.count++;
	cr_assert(index_run_fold(&prev, &row));
}

Test(index_run_fold, interleaved_runs_nest_until_they_would_meet)
{
	struct index_record prev = { INDEX_WRITE, 0, 10, 40, 6, 0, 7, 0, 0 }, row = prev;

	for (uint64_t j = 1; j < 4; j++) {
		row.logical_off = j * 10;
		row.log_off = j * 60;
		cr_assert(index_run_fold(&prev, &row), "run %lu", j);
		assert_nested(&prev, 10, j + 1);
	}
	row.logical_off = 40;
	row.log_off = 240;
	cr_assert_not(index_run_fold(&prev, &row));
	assert_nested(&prev, 10, 4);
}

Test(index_run_fold, runs_of_another_shape_or_behind_do_not_nest)
{
	struct index_record prev = { INDEX_WRITE, 5000, 10, 100, 6, 0, 7, 0, 0 };
	struct index_record other[] = {
		{ INDEX_WRITE, 9000, 10, 100, 5, 60, 7, 0, 0 },
		{ INDEX_WRITE, 9000, 10, 101, 6, 60, 7, 0, 0 },
		{ INDEX_WRITE, 9000, 11, 100, 6, 60, 7, 0, 0 },
		{ INDEX_WRITE, 9000, 10, 100, 6, 61, 7, 0, 0 },
		{ INDEX_WRITE, 1000, 10, 100, 6, 60, 7, 0, 0 },
		{ INDEX_WRITE, 5000, 10, 100, 6, 60, 7, 0, 0 },
		/* between the elements, beyond the second */
		{ INDEX_WRITE, 5205, 10, 100, 6, 60, 7, 0, 0 },
		{ INDEX_WRITE, 9000, 10, 100, 6, 60, 7, 9000, 2 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(other); i++)
		cr_assert_not(index_run_fold(&prev, &other[i]), "record %zu", i);
	assert_is(&prev, 5000, 10, 100, 6, 0);
	assert_nested(&prev, 0, 0);
}

Test(index_run, a_run_goes_on_only_where_it_is_predicted)
{
	struct index_record rec = { INDEX_WRITE, 0, 10, 100, 3, 0, 7, 0, 0 };

	cr_assert(index_run_goes_on(&rec, 300));
	cr_assert_not(index_run_goes_on(&rec, 400));
	rec.count = 1;
	cr_assert(index_run_goes_on(&rec, 12345));
}
