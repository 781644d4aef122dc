/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file that is truncated, and made longer afterwards: a process that looked in the middle of the
 * truncation, and next when that is over and the file has grown, finds the size of now.
 */
#include "test/lib/scratch.h"

#include "test/lib/calls.h"

#include <criterion/criterion.h>

TestSuite(cut_then_grown, .init = scratch_setup, .fini = scratch_remove, .timeout = 300);

struct stopped {
	off_t len;  /* the file gets this length, */
	bool grows; /* by fallocate() and not by ftruncate(), which notifies others at the end */
	long left;  /* and the process stops before this call of that */
	off_t then; /* what it truncates it to afterwards, or -1 */
};

static int change_length(const struct stopped *s, struct plfs_file *f)
{
	return s->grows ? plfs_fallocate(f, 0, 0, s->len) : plfs_truncate(f, s->len);
}

static int truncate_and_stop(void *arg)
{
	struct lfile l = lopen("file", O_RDWR);
	struct stopped *s = arg;

	calls_intercept();
	calls_left = s->left;
	on_call = stop_at_last;
	if (change_length(s, l.f))
		return 1;
	on_call = NULL;
	return calls_left > 0 ? 2 : (s->then >= 0 && plfs_truncate(l.f, s->then)) || lclose(&l);
}

/* Returns its number, or 0: it has not so many calls, and has ended. */
static pid_t start_stopped(struct stopped *s)
{
	pid_t pid = start_child(truncate_and_stop, s);
	int status;

	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	cr_assert(WIFSTOPPED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 2));
	return WIFSTOPPED(status) ? pid : 0;
}

static void check_grown(struct lfile *l, long nth)
{
	off_t size = plfs_size(l->f);
	unsigned char buf[100];

	cr_assert_eq(size, 6000, "%lld at call %ld", (long long)size, nth);
	cr_assert_eq(plfs_pread(l->f, buf, 100, 5500), 100, "at call %ld", nth);
}

/* The file, with 5000 bytes, open once more with @flags; *@l: for writing, or closed if they say O_RDONLY. */
static struct lfile made_and_opened(struct lfile *l, int flags)
{
	struct lfile r;

	*l = made("file");
	cr_assert_eq(lfill(l, 0, 5000, 1), 5000);
	r = lopen("file", flags);
	if (flags == O_RDONLY)
		cr_assert_eq(lclose(l), 0);
	cr_assert_eq(lcheck(&r, 0, 5000, 1), 0);
	return r;
}

static void done_with(struct lfile *l, struct lfile *r, int flags)
{
	cr_assert_eq(lclose(r), 0);
	if (flags != O_RDONLY)
		cr_assert_eq(lclose(l), 0);
	cr_assert_eq(lunlink("file"), 0);
}

static bool cut_grown_and_seen(off_t cut, long nth, int flags)
{
	struct stopped s = { .len = cut, .left = nth, .then = 6000 };
	struct lfile l, r = made_and_opened(&l, flags);
	pid_t pid = start_stopped(&s);
	off_t size = plfs_size(r.f);

	if (pid) {
		cr_assert(size == 5000 || size == cut, "%lld at call %ld", (long long)size, nth);
		cr_assert_eq(kill(pid, SIGCONT), 0);
		cr_assert_eq(wait_child(pid), 0);
		check_grown(&r, nth);
	}
	done_with(&l, &r, flags);
	return pid;
}

static void grown_and_seen(off_t cut, int flags)
{
	long nth = 1;

	while (cut_grown_and_seen(cut, nth, flags))
		nth++;
	cr_assert_gt(nth, 5);
}

Test(cut_then_grown, is_seen_by_a_writer_that_met_a_call_of_the_truncation)
{
	grown_and_seen(200, O_RDWR);
}
Test(cut_then_grown, is_seen_by_a_reader_that_met_a_call_of_the_truncation)
{
	grown_and_seen(200, O_RDONLY);
}
Test(cut_then_grown, is_seen_by_a_writer_that_met_a_call_of_one_to_nothing)
{
	grown_and_seen(0, O_RDWR);
}
Test(cut_then_grown, is_seen_by_a_reader_that_met_a_call_of_one_to_nothing)
{
	grown_and_seen(0, O_RDONLY);
}

/*
 * The process that truncates is killed before call *@nth, or a later one: the first where that has happened.
 * Returns whether the one that makes the file longer then has @mth calls.
 */
static bool killed_grown_and_seen(off_t cut, long *nth, long mth, int flags)
{
	struct lfile l, r = made_and_opened(&l, flags);
	struct stopped s = { .len = cut, .left = *nth, .then = -1 };
	struct stopped grows = { .len = 6000, .grows = true, .left = mth, .then = -1 };
	pid_t pid = start_stopped(&s);

	cr_assert(pid && !kill(pid, SIGKILL) && waitpid(pid, NULL, 0) == pid);
	if (plfs_size(r.f) == 5000) {
		done_with(&l, &r, flags);
		++*nth;
		return killed_grown_and_seen(cut, nth, mth, flags);
	}
	cr_assert_eq(plfs_size(r.f), cut);
	pid = start_stopped(&grows);
	if (pid) {
		plfs_size(r.f);
		cr_assert_eq(kill(pid, SIGCONT), 0);
		cr_assert_eq(wait_child(pid), 0);
	}
	check_grown(&r, mth);
	done_with(&l, &r, flags);
	return pid;
}

static void finished_and_seen(off_t cut, int flags)
{
	long nth = 1, mth = 1;

	while (killed_grown_and_seen(cut, &nth, mth, flags))
		mth++;
	cr_assert_gt(mth, 5);
}

Test(cut_then_grown, is_seen_by_a_writer_behind_one_of_a_killed_process)
{
	finished_and_seen(200, O_RDWR);
}
Test(cut_then_grown, is_seen_by_a_reader_behind_one_of_a_killed_process)
{
	finished_and_seen(200, O_RDONLY);
}
Test(cut_then_grown, is_seen_behind_one_to_nothing_of_a_killed_process)
{
	finished_and_seen(0, O_RDONLY);
}
