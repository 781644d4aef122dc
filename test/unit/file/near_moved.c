/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Before the 1st, 2nd, 3rd... system call of an operation another process moves the last log near home, and
 * removes what leads there: no operation fails for that, and each finds what it would find without it.
 */
#include "test/lib/near.h"

#include "test/lib/calls.h"
#include "test/lib/turn.h"

#include <criterion/criterion.h>

#define LEN 100000

static void setup(void)
{
	scratch_in_memory = true;
	near_setup(",drain=none");
}

TestSuite(near_moved, .init = setup, .fini = near_remove, .timeout = 600);

static long left;
static int drained;

static int drain_before(enum call call)
{
	(void)call;
	if (left > 0 && !--left)
		drained = near_drain_a();
	return 0;
}

static int sync_it(struct lfile *l) { return plfs_sync(l->f); }
static int read_it(struct lfile *l) { return lcheck(l, 0, LEN, 1); }
static int size_it(struct lfile *l) { return plfs_size(l->f) == LEN ? 0 : 1; }
static int stat_it(struct lfile *l) { return l->f && stat_size("a") == LEN ? 0 : 1; }
static int close_it(struct lfile *l) { return lclose(l); }

static int open_it(struct lfile *l)
{
	struct lfile other;

	(void)l;
	if (ltry(&other, "a", O_RDWR))
		return 1;
	return lcheck(&other, 0, LEN, 1) || lclose(&other);
}

/* The same bytes, so that all of it is as before. */
static int write_it(struct lfile *l) { return lfill(l, 3000, 5000, 1) == 5000 ? 0 : 1; }
static int write_and_sync(struct lfile *l) { return write_it(l) || plfs_sync(l->f); }
static int write_and_close(struct lfile *l) { return write_it(l) || lclose(l); }

static int append_it(struct lfile *l)
{
	off_t end;

	return plfs_truncate(l->f, LEN - 1000) || lappend(l, "", 1, &end) != 1 || end != LEN - 999 ||
	       lfill(l, LEN - 1000, 1000, 1) != 1000;
}

/* Whether the operation makes so many calls. */
static bool is_right(int (*fn)(struct lfile *l), long nth, bool reads_first)
{
	struct lfile l = made("a"), r;

	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	cr_assert_eq(lclose(&l), 0);
	r = lopen("a", O_RDWR);
	if (reads_first)
		cr_assert_eq(lcheck(&r, 0, LEN, 1), 0);
	left = nth;
	drained = 0;
	on_call = drain_before;
	cr_assert_eq(fn(&r), 0, "at call %ld", nth);
	on_call = NULL;
	cr_assert_geq(drained, 0, "at call %ld: %s", nth, strerror(-drained));
	if (r.fd < 0)
		r = lopen("a", O_RDWR);
	cr_assert_eq(lcheck(&r, 0, LEN, 1), 0, "at call %ld", nth);
	cr_assert_eq(lclose(&r), 0);
	r = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&r, 0, LEN, 1), 0, "at call %ld", nth);
	cr_assert_eq(lclose(&r), 0);
	cr_assert_eq(lunlink("a"), 0);
	return left <= 0;
}

/* @step: of so many calls one, where the drain waits at many of them for a lock of this process: a second. */
static void at_each_call(int (*fn)(struct lfile *l), unsigned step)
{
	struct turn turn = turn_begin(step);
	bool here = true, there = true;

	near_start_drainer();
	calls_intercept();
	for (long nth = turn.nr; here || there; nth += turn.step) { /* one has fewer calls, or none */
		here = is_right(fn, nth, false);
		there = is_right(fn, nth, true);
	}
	near_end_drainer();
}

Test(near_moved, a_sync_does_not_fail_at_whichever_call) { at_each_call(sync_it, 1); }
Test(near_moved, the_bytes_are_read_at_whichever_call) { at_each_call(read_it, 1); }
Test(near_moved, the_size_is_right_at_whichever_call) { at_each_call(size_it, 1); }
Test(near_moved, stat_is_right_at_whichever_call) { at_each_call(stat_it, 1); }
Test(near_moved, a_close_is_right_at_whichever_call) { at_each_call(close_it, 1); }
Test(near_moved, an_open_is_right_at_whichever_call) { at_each_call(open_it, 1); }
Test(near_moved, a_write_is_right_at_whichever_call) { at_each_call(write_it, 1); }
Test(near_moved, a_write_with_its_sync_is_right_at_whichever_call) { at_each_call(write_and_sync, 17); }
Test(near_moved, a_write_with_its_close_is_right_at_whichever_call) { at_each_call(write_and_close, 5); }
Test(near_moved, a_cut_and_an_append_are_right_at_whichever_call) { at_each_call(append_it, 41); }
