/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file that another process truncates in the middle of a call: what comes of it is as if one of the two had come first. The size does not
 * come back, and no write counts for the size alone.
 */
#include "scratch.h"

#include "calls.h"

#include <criterion/criterion.h>
#include <poll.h>

TestSuite(cut_meanwhile, .init = scratch_setup, .fini = scratch_remove, .timeout = 60);

static int ask[2], answer[2];
static off_t cut_to;

static int cut_when_asked(void *arg)
{
	struct lfile l = lopen("file", O_RDWR);
	char c;

	(void)arg;
	while (read(ask[0], &c, 1) == 1 && c == 'c')
		if (plfs_truncate(l.f, cut_to) || write(answer[1], "d", 1) != 1)
			return 1;
	return lclose(&l);
}

static pid_t start_cutter(off_t len)
{
	cut_to = len;
	cr_assert(!pipe(ask) && !pipe(answer));
	return start_child(cut_when_asked, NULL);
}

static void end_cutter(pid_t pid)
{
	cr_assert_eq(write(ask[1], "e", 1), 1);
	cr_assert_eq(wait_child(pid), 0);
}

/* @limit_ms: it may have to wait for us. */
static bool have_it_cut(int limit_ms)
{
	struct pollfd done = { .fd = answer[0], .events = POLLIN };
	char c;

	if (write(ask[1], "c", 1) != 1)
		die("write");
	return poll(&done, 1, limit_ms) == 1 && read(answer[0], &c, 1) == 1;
}

static bool due, is_cut;

static void look(off_t size)
{
	struct lfile l = lopen("file", O_RDONLY);

	cr_assert_eq(plfs_size(l.f), size);
	lclose(&l);
}

/* ---- while the stub is told how long the file is ---- */

static int cut_before_it_grows(enum call call)
{
	if (call == CALL_FALLOCATE && due) {
		due = false;
		is_cut = have_it_cut(300);
	}
	return 0;
}

static void cut_while_told(off_t len)
{
	struct lfile l = made("file");
	pid_t pid;
	char c;

	cr_assert_eq(lfill(&l, 0, 2000, 1), 2000);
	cr_assert_eq(plfs_commit(l.f), 0);
	pid = start_cutter(len);
	cr_assert_eq(lfill(&l, 3000, 5000, 2), 5000);
	calls_intercept();
	due = true;
	on_call = cut_before_it_grows;
	cr_assert_eq(plfs_commit(l.f), 0);
	on_call = NULL;
	cr_assert(!due);
	if (!is_cut)
		cr_assert_eq(read(answer[0], &c, 1), 1);
	cr_assert_eq(plfs_size(l.f), len);
	look(len);
	cr_assert_eq(lclose(&l), 0);
	end_cutter(pid);
	look(len);
}

Test(cut_meanwhile, the_size_is_told_before_or_after_a_truncation) { cut_while_told(1000); }
Test(cut_meanwhile, the_size_is_told_before_or_after_a_truncation_to_nothing) { cut_while_told(0); }

/* ---- while a record has its stamp, and is not there yet ---- */

static int cut_behind_the_stamp(clockid_t clock, struct timespec *ts)
{
	int ret = real.clock_gettime(clock, ts);

	if (clock == CLOCK_REALTIME && due) {
		due = false;
		is_cut = have_it_cut(300);
	}
	return ret;
}

Test(cut_meanwhile, a_write_is_before_a_truncation_or_behind_it_in_bytes_and_size)
{
	struct lfile l = made("file");
	pid_t pid;

	cr_assert_eq(lfill(&l, 0, 2000, 1), 2000);
	cr_assert_eq(plfs_commit(l.f), 0);
	pid = start_cutter(1000);
	calls_intercept();
	sys.clock_gettime = cut_behind_the_stamp;
	due = true;
	cr_assert_eq(lfill(&l, 3000, 5000, 2), 5000);
	cr_assert(!due && is_cut);
	cr_assert_eq(plfs_commit(l.f), 0);
	if (plfs_size(l.f) != 1000) {
		cr_assert_eq(plfs_size(l.f), 8000);
		cr_assert_eq(lcheck(&l, 3000, 5000, 2), 0);
	}
	cr_assert_eq(lcheck(&l, 0, 1000, 1), 0);
	cr_assert_eq(lclose(&l), 0);
	end_cutter(pid);
	l = lopen("file", O_RDONLY);
	if (plfs_size(l.f) != 1000)
		cr_assert_eq(lcheck(&l, 3000, 5000, 2), 0);
	lclose(&l);
}
