/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A list of the logs, in the middle of which the last one near is moved home, and its directory removed: no
 * call fails for that, and none takes the file for one without logs.
 */
#include "test/lib/near.h"

#include "test/lib/calls.h"

#include <criterion/criterion.h>

#define LEN 100000

static void setup(void) { near_setup(",drain=none"); }

TestSuite(near_listed, .init = setup, .fini = near_remove, .timeout = 60);

static long left;
static bool drained;

static int drain_before_a_list(enum call call)
{
	if (call == CALL_GETDENTS && left > 0 && !--left)
		drained = near_drain_a() >= 0;
	return 0;
}

static int sync_it(struct lfile *l) { return plfs_sync(l->f); }
static int read_it(struct lfile *l) { return lcheck(l, 0, LEN, 1); }
static int size_it(struct lfile *l) { return plfs_size(l->f) == LEN ? 0 : 1; }

/* Returns whether the call lists so often. */
static bool is_right(int (*call)(struct lfile *l), long nth)
{
	struct lfile l = made("a"), r;

	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	cr_assert_eq(lclose(&l), 0);
	r = lopen("a", O_RDWR);
	left = nth;
	drained = true;
	on_call = drain_before_a_list;
	cr_assert_eq(call(&r), 0, "at list %ld", nth);
	on_call = NULL;
	cr_assert(drained);
	cr_assert_eq(lcheck(&r, 0, LEN, 1), 0);
	cr_assert_eq(lclose(&r), 0);
	cr_assert_eq(lunlink("a"), 0);
	return left <= 0;
}

static void at_each_list(int (*call)(struct lfile *l))
{
	long nth = 1;

	near_start_drainer();
	calls_intercept();
	while (is_right(call, nth))
		nth++;
	cr_assert_gt(nth, 2);
	near_end_drainer();
}

Test(near_listed, a_sync_does_not_fail_whichever_list_met_the_move) { at_each_list(sync_it); }
Test(near_listed, the_bytes_are_read_whichever_list_met_the_move) { at_each_list(read_it); }
Test(near_listed, the_size_is_right_whichever_list_met_the_move) { at_each_list(size_it); }
