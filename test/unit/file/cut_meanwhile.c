/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file that another process truncates in the middle of a call: what comes of it is as if one of the two had
 * come first. The size does not come back, and no write counts for the size alone.
 */
#include "test/lib/scratch.h"

#include "test/lib/calls.h"

#include "core/dropping/live_layout.h"
#include "core/file/file.h"
#include "core/base/stamp.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <poll.h>

TestSuite(cut_meanwhile, .init = scratch_setup, .fini = scratch_remove, .timeout = 60);

static int ask[2], answer[2], patience_ms = 300;

/* @arg: what it appends first, or NULL. */
static int cut_when_asked(void *arg)
{
	struct lfile l = lopen("file", O_RDWR);
	off_t len;

	if (arg && (lappend(&l, arg, strlen(arg), &len) < 0 || write(answer[1], "d", 1) != 1))
		return 1;
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
		if (lfill(&l, at, 5000, at ? 2 : 1) != 5000 || (!at && plfs_commit(l.f)) ||
		    write(answer[1], "d", 1) != 1)
			return 1;
	} while (read(ask[0], &at, sizeof(at)) == sizeof(at) && at >= 0);
	return lclose(&l);
}

static pid_t start_cutter_of(char *first)
{
	cr_assert(!pipe(ask) && !pipe(answer));
	return start_child(cut_when_asked, first);
}

static pid_t start_cutter(void) { return start_cutter_of(NULL); }

static void end_cutter(pid_t pid)
{
	off_t end = -1;

	cr_assert_eq(write(ask[1], &end, sizeof(end)), sizeof(end));
	cr_assert_eq(wait_child(pid), 0);
}

static bool is_done_soon(void)
{
	struct pollfd done = { .fd = answer[0], .events = POLLIN };
	char c;

	return poll(&done, 1, patience_ms) == 1 && read(answer[0], &c, 1) == 1;
}

/* Returns whether it was done at once: it may have to wait for us. */
static bool have_it_cut(off_t len)
{
	return write(ask[1], &len, sizeof(len)) == sizeof(len) && is_done_soon();
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

Test(cut_meanwhile, the_size_is_published_before_or_after_a_truncation) { cut_while_told(1000); }
Test(cut_meanwhile, the_size_is_published_before_or_after_a_truncation_to_nothing) { cut_while_told(0); }

/* As on a slow server. */
Test(cut_meanwhile, a_truncation_waits_for_who_publishes_for_long)
{
	patience_ms = 1500;
	cut_while_told(1000);
	cr_assert_not(is_cut);
}

/* It seems to publish for ever, but has become a program that has no log. */
static int writes_and_is_replaced(void *arg)
{
	const uint64_t telling = 1;
	struct lfile l = lopen("file", O_RDWR);
	char pattern[PATH_MAX];
	glob_t found;
	int fd;

	(void)arg;
	if (lfill(&l, 0, 2000, 1) != 2000 || plfs_commit(l.f))
		return 1;
	snprintf(pattern, sizeof(pattern), "%s/.plfs/*/*/hostdir.*/live.*", scratch);
	fd = glob(pattern, 0, NULL, &found) ? -1 : open(found.gl_pathv[0], O_RDWR | O_CLOEXEC);
	if (pwrite(fd, &telling, sizeof(telling), LIVE_OFF_TELLING) == sizeof(telling))
		execlp("sleep", "sleep", "1000", (char *)NULL);
	return 1;
}

Test(cut_meanwhile, a_truncation_does_not_wait_for_who_has_the_number_of_a_writer)
{
	struct lfile l = made("file");
	int ends[2];
	pid_t pid;
	char c;

	cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
	pid = start_child(writes_and_is_replaced, NULL);
	close(ends[1]);
	cr_assert_eq(read(ends[0], &c, 1), 0);
	cr_assert_eq(plfs_truncate(l.f, 1000), 0);
	cr_assert_eq(lclose(&l), 0);
	look(1000);
	kill(pid, SIGKILL);
	cr_assert_eq(wait_child(pid), 256 + SIGKILL);
}

/* ---- while a record has its stamp, and is not there yet ---- */

static int cut_behind_the_stamp(clockid_t clock, struct timespec *ts)
{
	int ret = calls_real.clock_gettime(clock, ts);

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

static int to_go;

static int cut_when_it_comes(enum call call)
{
	(void)call;
	return due && !--to_go ? cut_behind_the_length(CALL_PREAD) : 0;
}

/* At the @nth system call of the look; returns whether there was one. */
static bool cut_at_call(int nth, off_t len)
{
	struct lfile l = made("file");
	pid_t pid = start_cutter_of("first");
	off_t end, size;
	char c;

	cr_assert_eq(read(answer[0], &c, 1), 1);
	cr_assert_eq(lappend(&l, "second", 6, &end), 6);
	cr_assert_eq(plfs_refresh(l.f), 0); /* else a few loads say that nothing has changed */
	cut_len = len;
	to_go = nth;
	due = true;
	on_call = cut_when_it_comes;
	size = plfs_size(l.f);
	on_call = NULL;
	cr_assert(size == 11 || size == len, "cut to %ld at call %d: %ld", (long)len, nth, (long)size);
	cr_assert(due || is_cut);
	if (!due)
		cr_assert_eq(plfs_size(l.f), len);
	end_cutter(pid);
	cr_assert_eq(lclose(&l), 0);
	cr_assert_eq(lunlink("file"), 0);
	return !due;
}

static void cut_at_each_call(off_t len)
{
	int nth = 1;

	calls_intercept();
	while (cut_at_call(nth, len))
		nth++;
	cr_assert_gt(nth, 5);
}

Test(cut_meanwhile, a_size_is_of_before_or_after_whichever_call_of_the_look_met_it) { cut_at_each_call(2); }
Test(cut_meanwhile, a_size_is_of_before_or_after_whichever_call_of_the_look_met_one_to_nothing)
{
	cut_at_each_call(0);
}

/* ---- while a log is closed ---- */

/* A truncation that has to wait for us comes before the first look at the length that it can come before. */
static int cut_when_it_can(enum call call)
{
	if (due)
		return cut_when_it_comes(call);
	if (!is_cut && call == CALL_FSTAT)
		is_cut = is_done_soon();
	return 0;
}

/* Another process is told to cut it to @len at the @nth call of the close, or behind it; and has done so. */
static void close_while_cut(struct lfile *l, int nth, off_t len)
{
	char c;

	cut_len = len;
	to_go = nth;
	due = true;
	is_cut = true;
	patience_ms = 5;
	on_call = cut_when_it_can;
	cr_assert_eq(lclose(l), 0);
	on_call = NULL;
	patience_ms = 300;
	if (!is_cut)
		cr_assert_eq(read(answer[0], &c, 1), 1);
	if (due)
		cr_assert(have_it_cut(len) || is_done_soon());
}

/* It was cut to 30 before, which the process that closes it has not heeded yet. */
static bool cut_at_call_of_close(int nth)
{
	struct lfile l = made("file");
	pid_t pid = start_cutter();

	cr_assert_eq(lfill(&l, 0, 100, 1), 100);
	cr_assert(have_it_cut(30) || is_done_soon());
	close_while_cut(&l, nth, 0);
	cr_assert_eq(stat_size("file"), 0, "at call %d", nth);
	end_cutter(pid);
	look(0);
	cr_assert_eq(lunlink("file"), 0);
	return !due;
}

Test(cut_meanwhile, the_size_does_not_come_back_whichever_call_of_a_close_met_it)
{
	int nth = 1;

	calls_intercept();
	while (cut_at_call_of_close(nth))
		nth++;
	cr_assert_gt(nth, 20);
}

/* It cuts the file, and writes behind that: the second write it does not publish yet. */
static int cut_and_write_when_asked(void *arg)
{
	struct lfile l = lopen("file", O_RDWR);
	off_t len;

	(void)arg;
	while (read(ask[0], &len, sizeof(len)) == sizeof(len) && len >= 0)
		if (plfs_truncate(l.f, len) || lfill(&l, len, 100, 3) != 100 ||
		    lfill(&l, len + 100, 3000, 4) != 3000 || write(answer[1], "d", 1) != 1)
			return 1;
	return lclose(&l);
}

/* The log stays open for the description that only reads, with which nothing can be published. */
static bool cut_when_only_a_reader_stays(int nth)
{
	struct lfile l = made("file"), r = lopen("file", O_RDONLY);
	pid_t pid;

	cr_assert(!pipe(ask) && !pipe(answer));
	pid = start_child(cut_and_write_when_asked, NULL);
	cr_assert_eq(lfill(&l, 0, 5000, 1), 5000);
	close_while_cut(&l, nth, 200);
	cr_assert_eq(plfs_sync(r.f), 0, "at call %d", nth);
	cr_assert_eq(plfs_size(r.f), 3300, "at call %d", nth);
	cr_assert_eq(lclose(&r), 0);
	end_cutter(pid);
	look(3300);
	cr_assert_eq(lunlink("file"), 0);
	return !due;
}

Test(cut_meanwhile, a_sync_through_what_only_reads_does_not_fail_whichever_call_of_the_writers_close_met_it)
{
	int nth = 1;

	calls_intercept();
	while (cut_when_only_a_reader_stays(nth))
		nth++;
	cr_assert_gt(nth, 5);
}

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

Test(cut_meanwhile, a_write_behind_a_truncation_that_is_not_done_counts_for_the_size)
{
	write_while_it_is_cut(1000, 8000);
}
Test(cut_meanwhile, a_write_before_a_truncation_to_nothing_that_is_not_done_does_not)
{
	write_while_it_is_cut(0, 8000);
}

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
