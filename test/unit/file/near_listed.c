/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A list of the logs, in the middle of which the last one near is moved home, and its directory removed: no
 * call fails for that, and none takes the file for one without logs.
 */
#include "test/lib/near.h"

#include "test/lib/calls.h"

#include "core/plfs_admin.h"

#include <criterion/criterion.h>

#define LEN 100000

static void setup(void) { near_setup(",drain=none"); }

TestSuite(near_listed, .init = setup, .fini = near_remove, .timeout = 60);

static int ask[2], answer[2];

/* Another process, which was there before: a fork in the middle of a call would wait for that. */
static int drain_when_asked(void *arg)
{
	struct plfs_drain d = { 0 };
	char path[PATH_MAX], c;
	struct plfs_mount *m = lpath("a", path);

	(void)arg;
	on_call = NULL;
	while (read(ask[0], &c, 1) == 1 && c == 'a') {
		c = plfs_drain_file(m, AT_FDCWD, path, &d) ? 'n' : 'y';
		if (write(answer[1], &c, 1) != 1)
			return 1;
	}
	return 0;
}

static long left;
static char drained;

static int drain_before_a_list(enum call call)
{
	if (call == CALL_GETDENTS && left > 0 && !--left)
		cr_assert(write(ask[1], "a", 1) == 1 && read(answer[0], &drained, 1) == 1);
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
	drained = 'y';
	on_call = drain_before_a_list;
	cr_assert_eq(call(&r), 0, "at list %ld", nth);
	on_call = NULL;
	cr_assert_eq(drained, 'y');
	cr_assert_eq(lcheck(&r, 0, LEN, 1), 0);
	cr_assert_eq(lclose(&r), 0);
	cr_assert_eq(lunlink("a"), 0);
	return left <= 0;
}

static void at_each_list(int (*call)(struct lfile *l))
{
	long nth = 1;
	pid_t pid;

	cr_assert(!pipe(ask) && !pipe(answer));
	pid = start_child(drain_when_asked, NULL);
	calls_intercept();
	while (is_right(call, nth))
		nth++;
	cr_assert_gt(nth, 2);
	cr_assert_eq(write(ask[1], "e", 1), 1);
	cr_assert_eq(wait_child(pid), 0);
}

Test(near_listed, a_sync_does_not_fail_whichever_list_met_the_move) { at_each_list(sync_it); }
Test(near_listed, the_bytes_are_read_whichever_list_met_the_move) { at_each_list(read_it); }
Test(near_listed, the_size_is_right_whichever_list_met_the_move) { at_each_list(size_it); }
