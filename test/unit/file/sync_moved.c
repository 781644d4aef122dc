/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file that another process moves into its body in the middle of a sync, with the log that is synced. The
 * mover has synced what it copied, so nothing is lost, and no line says so.
 */
#include "test/lib/scratch.h"

#include "test/lib/calls.h"

#include "core/base/msg.h"

#include <criterion/criterion.h>
#include <poll.h>

TestSuite(sync_moved, .init = scratch_setup, .fini = scratch_remove, .timeout = 120);

#define LEN 5000

static int ask[2], answer[2], to_go;

static int move_when_asked(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);
	char c;

	(void)arg;
	if (read(ask[0], &c, 1) != 1 || plfs_in_body(l.f, PLFS_MAP_WRITE) != 1 ||
	    write(answer[1], "d", 1) != 1)
		return 1;
	return lclose(&l);
}

/* It may have to wait for who is told of it. */
static int move_at_last(enum call call)
{
	struct pollfd done = { .fd = answer[0], .events = POLLIN };

	(void)call;
	if (!--to_go && write(ask[1], "m", 1) == 1)
		poll(&done, 1, 200);
	return 0;
}

/* At the @nth call of the sync; returns whether there was one. */
static bool move_at_call(int nth)
{
	struct lfile l = made("a");
	unsigned nr_errors = msg_nr_errors();
	pid_t pid = start_child(move_when_asked, NULL);

	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	to_go = nth;
	on_call = move_at_last;
	cr_assert_eq(plfs_sync(l.f), 0, "moved at call %d", nth);
	on_call = NULL;
	if (to_go > 0)
		cr_assert_eq(write(ask[1], "m", 1), 1);
	cr_assert_eq(wait_child(pid), 0);
	cr_assert_eq(plfs_sync(l.f), 0);
	cr_assert_eq(msg_nr_errors(), nr_errors, "moved at call %d", nth);
	cr_assert_eq(lcheck(&l, 0, LEN, 1), 0);
	cr_assert_eq(lclose(&l), 0);
	cr_assert_eq(stat_size("a"), LEN);
	cr_assert_eq(lunlink("a"), 0);
	return to_go <= 0;
}

Test(sync_moved, at_whichever_call_that_was_nothing_is_lost_and_no_line_says_so)
{
	char c;
	int nth = 1;

	cr_assert(!pipe(ask) && !pipe(answer));
	calls_intercept();
	for (bool any = true; any; nth++) {
		any = move_at_call(nth);
		cr_assert_eq(read(answer[0], &c, 1), 1);
	}
	cr_assert_gt(nth, 10);
}
