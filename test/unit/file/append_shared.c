/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two processes share a description that appends, of a file with record locks: there O_APPEND is taken off
 * (open.c). The call of one, in the middle of a truncation by the other, does not make the header's bytes
 * land at the end of the file.
 */
#include "test/lib/scratch.h"

#include "test/lib/asked.h"
#include "test/lib/calls.h"

#include <criterion/criterion.h>

enum { LEN = 5000, CUT = 3000 };

TestSuite(append_shared, .init = scratch_setup, .fini = scratch_remove, .timeout = 60);

static struct lfile shared;

static void begin(int who)
{
	(void)who;
	on_call = NULL;
}

static void size_it(const void *order, void *answer)
{
	(void)order;
	*(off_t *)answer = plfs_size(shared.f);
}

static struct asked other = {
	.nr = 1, .order_len = 1, .answer_len = sizeof(off_t), .begin = begin, .act = size_it,
};

static long left;
static off_t answer;

static int ask_before(enum call call)
{
	if (call == CALL_PWRITE && left > 0 && !--left)
		asked_ask(&other, 0, "", &answer);
	return 0;
}

static bool is_right(long nth)
{
	struct lfile l = made("file"), r;

	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	cr_assert_eq(plfs_commit(l.f), 0);
	plfs_note_record_lock(l.f);
	shared = lopen("file", O_RDWR | O_APPEND);
	asked_start(&other);
	left = nth;
	on_call = ask_before;
	cr_assert_eq(plfs_truncate(shared.f, CUT), 0);
	on_call = NULL;
	asked_end(&other);
	cr_assert_eq(lclose(&shared), 0);
	cr_assert_eq(lclose(&l), 0);
	r = lopen("file", O_RDONLY);
	cr_assert_eq(plfs_size(r.f), CUT, "at write %ld", nth);
	cr_assert_eq(lcheck(&r, 0, CUT, 1), 0, "at write %ld", nth);
	cr_assert_eq(lclose(&r), 0);
	cr_assert_eq(lunlink("file"), 0);
	return left <= 0;
}

Test(append_shared, a_call_beside_a_truncation_leaves_the_header_where_it_is)
{
	long nth = 1;

	calls_intercept();
	while (is_right(nth))
		nth++;
	cr_assert_gt(nth, 1);
}
