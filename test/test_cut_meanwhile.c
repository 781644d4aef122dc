/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file that another process truncates in the middle of a call: what comes of it is as if one of the two had come first. The size does not
 * come back, and no write counts for the size alone.
 */
#include "scratch.h"

#include "calls.h"

#include "../core/file.h"
#include "../core/stamp.h"

#include <criterion/criterion.h>
#include <poll.h>

TestSuite(cut_meanwhile, .init = scratch_setup, .fini = scratch_remove, .timeout = 60);

static int ask[2], answer[2];

static int cut_when_asked(void *arg)
{
	struct lfile l = lopen("file", O_RDWR);
	off_t len;

	(void)arg;
	while (read(ask[0], &len, sizeof(len)) == sizeof(len) && len >= 0)
		if (plfs_truncate(l.f, len) || write(answer[1], "d", 1) != 1)
			return 1;
	return lclose(&l);
}

/* 5000 bytes each time, the first before it is asked; it keeps the file open till the end. */
static int write_when_asked(void *arg)
{
	struct lfile l = lopen("file", O_RDWR);
	off_t at = 0;

	(void)arg;
	do {
		if (lfill(&l, at, 5000, at ? 2 : 1) != 5000 || (!at && plfs_commit(l.f)) || write(answer[1], "d", 1) != 1)
			return 1;
	} while (read(ask[0], &at, sizeof(at)) == sizeof(at) && at >= 0);
	return lclose(&l);
}

static pid_t start_cutter(void)
{
	cr_assert(!pipe(ask) && !pipe(answer));
	return start_child(cut_when_asked, NULL);
}

static void end_cutter(pid_t pid)
{
	off_t end = -1;

	cr_assert_eq(write(ask[1], &end, sizeof(end)), sizeof(end));
	cr_assert_eq(wait_child(pid), 0);
}

/* Returns whether it was done at once: it may have to wait for us. */
static bool have_it_cut(off_t len)
{
	struct pollfd done = { .fd = answer[0], .events = POLLIN };
	char c;

	if (write(ask[1], &len, sizeof(len)) != sizeof(len))
		die("write");
	return poll(&done, 1, 300) == 1 && read(answer[0], &c, 1) == 1;
}

static bool due, is_cut;
static off_t cut_len;

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
		is_cut = have_it_cut(cut_len);
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
	pid = start_cutter();
	cut_len = len;
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
		is_cut = have_it_cut(cut_len);
	}
	return ret;
}

Test(cut_meanwhile, a_write_is_before_a_truncation_or_behind_it_in_bytes_and_size)
{
	struct lfile l = made("file");
	pid_t pid;

	cr_assert_eq(lfill(&l, 0, 2000, 1), 2000);
	cr_assert_eq(plfs_commit(l.f), 0);
	pid = start_cutter();
	cut_len = 1000;
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

/* ---- while it is looked at ---- */

static int cut_behind_the_length(enum call call)
{
	if (call == CALL_PREAD && due) {
		due = false;
		is_cut = have_it_cut(cut_len);
	}
	return 0;
}

static void cut_while_looked_at(off_t len, bool own)
{
	struct lfile l = made("file");
	char buf[3500]; /* of what was there: nobody asks for the length then */
	pid_t pid;

	cr_assert_eq(lfill(&l, 0, 5000, 1), 5000);
	if (!own) {
		cr_assert_eq(lclose(&l), 0);
		l = lopen("file", O_RDWR);
	}
	cr_assert_eq(lcheck(&l, 0, 5000, 1), 0);
	pid = start_cutter();
	cr_assert(have_it_cut(4000));
	calls_intercept();
	cut_len = len;
	due = true;
	on_call = cut_behind_the_length;
	(void)plfs_size(l.f); /* one or the other */
	on_call = NULL;
	cr_assert(!due && is_cut);
	cr_assert_eq(plfs_pread(l.f, buf, sizeof(buf), 0), len);
	cr_assert_eq(plfs_size(l.f), len);
	end_cutter(pid);
	cr_assert_eq(lclose(&l), 0);
	look(len);
}

Test(cut_meanwhile, a_look_does_not_miss_a_truncation) { cut_while_looked_at(1000, false); }
Test(cut_meanwhile, a_look_does_not_miss_a_truncation_to_nothing) { cut_while_looked_at(0, false); }
Test(cut_meanwhile, a_writers_look_does_not_miss_a_truncation) { cut_while_looked_at(1000, true); }
Test(cut_meanwhile, a_writers_look_does_not_miss_a_truncation_to_nothing) { cut_while_looked_at(0, true); }

/* ---- while one that cuts has said so in its log, and nowhere else yet ---- */

static int written_before_others_are_told(enum call call)
{
	if (call == CALL_GETDENTS && due) {
		due = false;
		is_cut = have_it_cut(cut_len); /* written, that is */
	}
	return 0;
}

static void write_while_it_is_cut(off_t len, off_t at)
{
	struct lfile l = made("file");
	off_t size;
	pid_t pid;
	char c;

	cr_assert(!pipe(ask) && !pipe(answer));
	pid = start_child(write_when_asked, NULL);
	cr_assert_eq(read(answer[0], &c, 1), 1);
	cr_assert_eq(plfs_size(l.f), 5000);
	cr_assert_eq(lfill(&l, 100, 10, 1), 10); /* it has a log */
	calls_intercept();
	cut_len = at;
	due = true;
	on_call = written_before_others_are_told;
	cr_assert_eq(plfs_truncate(l.f, len), 0);
	on_call = NULL;
	cr_assert(!due && is_cut);
	cr_assert_eq(lclose(&l), 0);
	end_cutter(pid);
	size = stat_size("file");
	cr_assert(size == len || size == at + 5000);
	look(size);
	l = lopen("file", O_RDONLY);
	if (size > len)
		cr_assert_eq(lcheck(&l, at, 5000, 2), 0);
	lclose(&l);
}

Test(cut_meanwhile, a_write_behind_a_truncation_that_is_not_done_counts_for_the_size) { write_while_it_is_cut(1000, 8000); }
Test(cut_meanwhile, a_write_before_a_truncation_to_nothing_that_is_not_done_does_not) { write_while_it_is_cut(0, 8000); }

/* It told the writers, and died before the one store by which it happens. */
Test(cut_meanwhile, one_that_was_announced_and_never_came_takes_nothing_from_the_size)
{
	struct lfile l = made("file");

	cr_assert_eq(lfill(&l, 0, 60, 1), 60);
	cr_assert_eq(lcheck(&l, 0, 60, 1), 0);
	cr_assert_eq(lfill(&l, 300, 100, 1), 100);
	inode_notify_writers(l.f->ino, stamp_next());
	cr_assert_eq(plfs_size(l.f), 400);
	cr_assert_eq(lfill(&l, 10, 10, 1), 10);
	inode_notify_writers(l.f->ino, stamp_next());
	lclose(&l);
	cr_assert_eq(stat_size("file"), 400);
}
