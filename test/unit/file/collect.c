/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a truncation to nothing gives back of killed writers, and what it must leave to those that live.
 */
#include "test/lib/scratch.h"

#include "test/lib/calls.h"

#include <criterion/criterion.h>
#include <sched.h>

#define LEN 300000

TestSuite(collect, .init = scratch_setup, .fini = scratch_remove);

/* Records that do not fold, so many that some have moved to the node index when @arg is large. */
static int write_and_die(void *arg)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT | O_TRUNC);
	int nr = *(int *)arg;

	if (lfill(&l, 0, LEN, 1) != LEN)
		return 1;
	for (int i = 0; i < nr; i++)
		if (lfill(&l, LEN + i * 60 + i * i % 17, (size_t)(20 + i % 3), 1) < 0)
			return 1;
	kill(getpid(), SIGKILL);
	return 2;
}

static void killed_writer(int nr_records)
{
	cr_assert_eq(in_child(write_and_die, &nr_records), 256 + SIGKILL);
}

static void truncate_and_close(void)
{
	struct lfile l = lopen("a", O_RDWR | O_TRUNC);

	cr_assert_eq(plfs_size(l.f), 0);
	lclose(&l);
}

static void assert_empty(void)
{
	cr_assert_eq(count_files("data."), 0);
	cr_assert_eq(count_files("live."), 0);
	cr_assert_eq(count_files("index."), 0);
}

Test(collect, the_log_of_a_killed_writer_goes_with_a_truncation)
{
	killed_writer(0);
	cr_assert_eq(count_files("data."), 1);
	truncate_and_close();
	assert_empty();
}

Test(collect, so_does_one_with_blocks_in_the_node_index)
{
	killed_writer(2000);
	cr_assert_eq(count_files("index."), 1);
	truncate_and_close();
	assert_empty();
}

Test(collect, killing_and_truncating_in_turn_takes_no_more_space)
{
	for (int i = 0; i < 30; i++) {
		killed_writer(i % 2 * 100);
		cr_assert_leq(count_files("data."), 1, "round %d", i);
		cr_assert_leq(count_files("live."), 1, "round %d", i);
	}
	truncate_and_close();
	assert_empty();
}

Test(collect, a_truncation_through_an_open_file_does_it_as_well)
{
	struct lfile l;

	killed_writer(0);
	l = lopen("a", O_RDWR);
	cr_assert_eq(plfs_truncate(l.f, 1), 0);
	cr_assert_gt(count_files("data."), 0);
	cr_assert_eq(plfs_truncate(l.f, 0), 0);
	assert_empty();
	cr_assert_eq(lfill(&l, 0, LEN, 2), LEN);
	lclose(&l);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, LEN, 2), 0);
	lclose(&l);
}

/* ---- who lives ---- */

static int pipes[4];

static int hold(void *arg)
{
	struct lfile l = lopen("a", *(int *)arg);
	char c = 0;
	int ret = 0;

	if (*(int *)arg & O_RDWR && lfill(&l, 0, 1000, 5) != 1000)
		return 1;
	if (write(pipes[1], "o", 1) != 1 || read(pipes[2], &c, 1) != 1)
		return 2;
	if (*(int *)arg & O_RDWR)
		ret = lfill(&l, 1000, 1000, 5) != 1000;
	return lclose(&l) || ret;
}

static pid_t start_holder(int flags)
{
	pid_t pid;
	char c;

	cr_assert(!pipe(pipes) && !pipe(pipes + 2));
	pid = start_child(hold, &flags);
	cr_assert_eq(read(pipes[0], &c, 1), 1);
	return pid;
}

Test(collect, while_another_process_has_the_file_open_nothing_of_writers_goes)
{
	struct lfile l;
	pid_t pid;

	killed_writer(0);
	pid = start_holder(O_RDWR);
	truncate_and_close();
	cr_assert_eq(count_files("live."), 2);
	cr_assert(write(pipes[3], "g", 1) == 1 && !wait_child(pid));
	l = lopen("a", O_RDWR);
	cr_assert(lzeros(&l, 0, 1000));
	cr_assert_eq(lcheck(&l, 1000, 1000, 5), 0, "what was written after it");
	lclose(&l);
	truncate_and_close();
	assert_empty();
}

static int write_in_child(void *arg)
{
	struct lfile *l = arg;
	char c = 0;

	if (lfill(l, 0, 1000, 5) != 1000 || write(pipes[1], "o", 1) != 1 || read(pipes[2], &c, 1) != 1)
		return 1;
	return lfill(l, 1000, 1000, 5) != 1000;
}

/* The description is one, and its lock tells nobody. */
Test(collect, a_child_that_shares_the_description_keeps_its_log)
{
	struct lfile l = made("a");
	pid_t pid;
	char c;

	cr_assert_eq(lfill(&l, 5000, 10, 5), 10);
	cr_assert(!pipe(pipes) && !pipe(pipes + 2));
	pid = start_child(write_in_child, &l);
	cr_assert_eq(read(pipes[0], &c, 1), 1);
	cr_assert_eq(plfs_truncate(l.f, 0), 0);
	cr_assert(write(pipes[3], "g", 1) == 1 && !wait_child(pid));
	plfs_refresh(l.f);
	cr_assert_eq(plfs_size(l.f), 2000);
	cr_assert_eq(lcheck(&l, 1000, 1000, 5), 0);
	lclose(&l);
}

/* ---- locks that do not work, and asking for them ---- */

static int (*real_fcntl)(int fd, int cmd, ...);
static bool locks_work = true, locks_lie;
static unsigned nr_asked;

static int fcntl_hook(int fd, int cmd, ...)
{
	bool lock = cmd == F_OFD_GETLK || cmd == F_OFD_SETLK || cmd == F_OFD_SETLKW;
	va_list args;
	void *arg;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	nr_asked += cmd == F_OFD_GETLK;
	if (lock && !locks_work) {
		errno = EINVAL;
		return -1;
	}
	if (cmd == F_OFD_GETLK && locks_lie) {
		((struct flock *)arg)->l_type = F_UNLCK;
		return 0;
	}
	return real_fcntl(fd, cmd, arg);
}

static void hook_fcntl(void)
{
	real_fcntl = sys.fcntl;
	sys.fcntl = fcntl_hook;
}

Test(collect, without_locks_no_process_is_taken_for_dead)
{
	killed_writer(0);
	hook_fcntl();
	locks_work = false;
	truncate_and_close();
	cr_assert_eq(count_files("data."), 1);
	locks_work = true;
	truncate_and_close();
	assert_empty();
}

/* A description may have been handed on in a way that nobody saw. */
Test(collect, a_process_that_runs_keeps_its_log_though_no_lock_shows_it)
{
	struct lfile l;
	pid_t pid;

	killed_writer(0);
	pid = start_holder(O_RDWR);
	hook_fcntl();
	locks_lie = true;
	truncate_and_close();
	cr_assert_gt(nr_asked, 0);
	cr_assert_eq(count_files("live."), 1);
	cr_assert_eq(count_files("data."), 1);
	cr_assert(write(pipes[3], "g", 1) == 1 && !wait_child(pid));
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 1000, 1000, 5), 0, "what was written after it");
	lclose(&l);
}

static unsigned asked_by_a_truncation(void)
{
	struct lfile l = lopen("a", O_RDWR);

	nr_asked = 0;
	cr_assert_eq(plfs_truncate(l.f, 0), 0);
	lclose(&l);
	return nr_asked;
}

Test(collect, where_there_are_no_live_files_no_process_is_looked_for)
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, 100, 1), 100);
	lclose(&l);
	hook_fcntl();
	cr_assert_eq(asked_by_a_truncation(), 0);
	killed_writer(0);
	cr_assert_eq(asked_by_a_truncation(), 1);
	cr_assert_eq(asked_by_a_truncation(), 0);
}

/* ---- kills ---- */

static int truncate_and_die(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	on_call = die_at_last;
	(void)arg;
	return plfs_truncate(l.f, 0);
}

/* What it was, or nothing; and it goes on. */
static int look(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);
	off_t size = plfs_size(l.f);

	(void)arg;
	if (size && (size != LEN || (lcheck(&l, 0, LEN, 1) && !lzeros(&l, 0, LEN))))
		return 1;
	if (lfill(&l, 0, LEN, 3) != LEN || lcheck(&l, 0, LEN, 3))
		return 2;
	lclose(&l);
	return 0;
}

Test(collect, a_kill_at_any_call_leaves_a_file_that_works, .timeout = 600)
{
	int code = 256 + SIGKILL, n;

	calls_intercept();
	for (n = 1; code; n++) {
		on_call = NULL;
		killed_writer(0);
		calls_left = n;
		code = in_child(truncate_and_die, NULL);
		cr_assert(!code || code == 256 + SIGKILL);
		cr_assert_eq(in_child(look, NULL), 0, "killed at call %d", n);
	}
	cr_assert_gt(n, 20);
	truncate_and_close();
	assert_empty();
}
