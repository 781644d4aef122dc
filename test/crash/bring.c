/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs drain --to home, of a file whose logs are in several backends (spread=): killed at each of its system
 * calls (turn.h), with each of them failing once, and with readers and writers amid its calls, or it amid
 * theirs. At every such moment the file has its bytes. The next drain completes the work; then the file needs
 * no other backend.
 */
#include "test/lib/calls.h"
#include "test/lib/spoil.h"
#include "test/lib/three.h"
#include "test/lib/turn.h"

#include <criterion/criterion.h>
#include <poll.h>

static void by_process(void)
{
	scratch_in_memory = true;
	near_spread("process");
}

static void by_file(void)
{
	scratch_in_memory = true;
	near_spread("file");
}

TestSuite(crash_bring, .init = by_process, .fini = near_remove, .timeout = 3600);
TestSuite(crash_bring_file, .init = by_file, .fini = near_remove, .timeout = 600);

static int (*hook)(enum call call); /* NULL: it runs */

static void begin_calls(void)
{
	if (hook)
		calls_intercept();
	on_call = hook;
}

/* ---- the drain ---- */

/* 0: all is home; 50: something is left; 100: it failed. */
static int bring(void *arg)
{
	struct plfs_drain d = { .to_home = true };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("a", path);
	int ret;

	(void)arg;
	begin_calls();
	ret = plfs_drain_file(m, AT_FDCWD, path, &d);
	on_call = NULL;
	return ret || d.nr_lost ? 100 : d.nr_left ? 50 : 0;
}

static int read_image(void)
{
	size_t len = 60000;

	return in_child(image_read, &len);
}

static int with_hook(int (*what)(void *arg), void *arg, int (*fn)(enum call call), long nr)
{
	int status;

	hook = fn;
	calls_left = nr;
	status = in_child(what, arg);
	hook = NULL;
	return status;
}

/*
 * All is home: nothing leads elsewhere, and the other backends may go. A spread.N.HOST there, to which
 * nothing led any more, may have been left.
 */
static void look_alone(long nr)
{
	cr_assert_eq(near_count("data.") + count_files("spread."), 0, "call %ld", nr);
	three_lose(2, true);
	three_lose(3, false);
	cr_assert_eq(read_image(), 0, "call %ld: alone", nr);
	cr_assert_eq(image_check(NULL), 0, "call %ld: alone", nr);
	three_bring_back(2);
	three_bring_back(3);
}

static void bring_and_end(long nr)
{
	cr_assert_eq(in_child(bring, NULL), 0, "call %ld: the next drain", nr);
	cr_assert_eq(read_image(), 0, "call %ld", nr);
	look_alone(nr);
	image_write(0, 50000, 7);
	cr_assert_eq(read_image(), 0, "call %ld: it can be written", nr);
	cr_assert_eq(lunlink("a"), 0);
	cr_assert_eq(count_files("data.") + near_count("data."), 0, "call %ld", nr);
	image_len = 0;
}

Test(crash_bring, killed_at_any_call_it_loses_nothing_and_the_next_completes)
{
	struct turn turn = turn_begin(23);
	bool over = false;

	for (long nr = turn.nr; !over; nr += turn.step) {
		int status;

		three_make();
		status = with_hook(bring, NULL, die_at_last, nr);
		cr_assert(!status || status == 256 + SIGKILL, "call %ld: %d", nr, status);
		over = !status;
		cr_assert_eq(read_image(), 0, "call %ld", nr);
		cr_assert_lt(image_check(NULL), 1, "call %ld: check", nr);
		for (int i = 2; i < 4; i++) { /* what is home is read, and the rest is an error */
			three_lose(i, false);
			cr_assert_lt(read_image(), 2, "call %ld: without %d", nr, i);
			three_bring_back(i);
		}
		bring_and_end(nr);
	}
}

static int bad_errno;

static int fail_at_last(enum call call)
{
	(void)call;
	return --calls_left ? 0 : bad_errno;
}

static void fails(int err)
{
	struct turn turn = turn_begin(41);

	bad_errno = err;
	for (long nr = turn.nr; nr < 1500; nr += turn.step) {
		three_make();
		cr_assert_lt(with_hook(bring, NULL, fail_at_last, nr), 200, "call %ld", nr);
		cr_assert_eq(read_image(), 0, "call %ld", nr);
		bring_and_end(nr);
	}
}

Test(crash_bring, whichever_call_fails_the_next_completes) { fails(EIO); }
Test(crash_bring, whichever_call_finds_the_disk_full_the_next_completes) { fails(ENOSPC); }

/* ---- others at the time ---- */

static int to_other[2], from_other[2];

/* It may have to wait for a lock that this process has: then both go on. */
static int let_other(enum call call)
{
	struct pollfd done = { .fd = from_other[0], .events = POLLIN };

	(void)call;
	if (--calls_left)
		return 0;
	if (write(to_other[1], "g", 1) != 1)
		return EIO;
	poll(&done, 1, 500);
	return 0;
}

/* At call @nr of @what another process, which began before, does @other. The status of @what. */
static int with_other(int (*what)(void *arg), int (*other)(void *arg), long nr)
{
	int status, ret;
	char c;
	pid_t pid;

	cr_assert(!pipe(to_other) && !pipe(from_other));
	pid = fork_child();
	if (!pid) {
		ret = read(to_other[0], &c, 1) == 1 ? other(NULL) : 100;
		_exit(write(from_other[1], "d", 1) == 1 ? ret : 100);
	}
	status = with_hook(what, NULL, let_other, nr);
	cr_assert_eq(write(to_other[1], "g", 1), 1); /* if there were fewer calls */
	cr_assert_eq(wait_child(pid), 0, "call %ld: the other", nr);
	for (int i = 0; i < 2; i++) {
		close(to_other[i]);
		close(from_other[i]);
	}
	return status;
}

static int read_it(void *arg)
{
	size_t len = 60000;

	(void)arg;
	return image_read(&len);
}

static int read_begun(void *arg)
{
	begin_calls();
	return read_it(arg);
}

Test(crash_bring, readers_find_all_bytes_at_each_of_its_calls)
{
	struct turn turn = turn_begin(17);

	for (long nr = turn.nr; nr < 1500; nr += turn.step) {
		three_make();
		cr_assert_eq(with_other(bring, read_it, nr), 0, "call %ld", nr);
		bring_and_end(nr);
	}
}

Test(crash_bring, a_reader_finds_all_bytes_with_the_drain_at_any_of_its_calls)
{
	struct turn turn = turn_begin(11);

	for (long nr = turn.nr; nr < 700; nr += turn.step) {
		three_make();
		cr_assert_eq(with_other(read_begun, bring, nr), 0, "call %ld", nr);
		bring_and_end(nr);
	}
}

/* It goes on with logs, or makes others. */
static int write_over(void *arg)
{
	struct image_piece p = { 0, THREE_LEN, 2 };

	(void)arg;
	return image_write_piece(&p);
}

static int write_begun(void *arg)
{
	begin_calls();
	return write_over(arg);
}

static int bring_some(void *arg)
{
	int ret = bring(arg);

	return ret == 50 ? 0 : ret;
}

Test(crash_bring, what_is_written_at_any_of_its_calls_is_there)
{
	struct turn turn = turn_begin(29);

	for (long nr = turn.nr; nr < 1500; nr += turn.step) {
		int status;

		three_make();
		status = with_other(bring, write_over, nr);
		cr_assert(!status || status == 50, "call %ld: %d", nr, status);
		if (read_image())
			image_note(0, THREE_LEN, 2);
		cr_assert_eq(read_image(), 0, "call %ld", nr);
		bring_and_end(nr);
	}
}

Test(crash_bring, what_is_written_is_there_with_the_drain_at_any_of_the_writers_calls)
{
	struct turn turn = turn_begin(29);

	for (long nr = turn.nr; nr < 700; nr += turn.step) {
		three_make();
		cr_assert_eq(with_other(write_begun, bring_some, nr), 0, "call %ld", nr);
		image_note(0, THREE_LEN, 2);
		cr_assert_eq(read_image(), 0, "call %ld", nr);
		bring_and_end(nr);
	}
}

/* ---- logs that are not closed, and ones that are damaged ---- */

static int write_and_die(void *arg)
{
	struct image_piece *p = arg;
	struct lfile l = made("a");

	if (lfill(&l, p->off, p->len, p->round) == (ssize_t)p->len)
		raise(SIGKILL);
	return 1;
}

Test(crash_bring, logs_of_killed_processes_are_closed_and_come_home)
{
	three_make();
	three_write_into(2, 2, write_and_die);
	cr_assert_eq(read_image(), 0);
	bring_and_end(0);
}

static int to_writer[2], from_writer[2];

static int write_and_wait(void *arg)
{
	const struct image_piece *p = arg;
	struct lfile l = made("a");
	char c;

	return lfill(&l, p->off, p->len, p->round) != (ssize_t)p->len || write(from_writer[1], "w", 1) != 1 ||
	       read(to_writer[0], &c, 1) != 1 || lclose(&l);
}

Test(crash_bring, an_open_log_stays_until_it_is_closed)
{
	struct image_piece p = { 0, THREE_LEN, 3 };
	bool elsewhere = false;
	char c;

	cr_assert(!pipe(to_writer) && !pipe(from_writer));
	three_make();
	for (int tries = 0; !elsewhere; tries++) {
		pid_t pid = start_child(write_and_wait, &p);

		cr_assert_lt(tries, 40);
		cr_assert_eq(read(from_writer[0], &c, 1), 1);
		image_note(p.off, p.len, p.round);
		elsewhere = near_count("live.");
		if (elsewhere) {
			cr_assert_eq(in_child(bring, NULL), 50);
			cr_assert_eq(near_count("data."), 1);
		}
		cr_assert_eq(read_image(), 0);
		cr_assert_eq(write(to_writer[1], "c", 1), 1);
		cr_assert_eq(wait_child(pid), 0);
	}
	bring_and_end(0);
}

Test(crash_bring, a_damaged_log_stays_where_it_is)
{
	char log[PATH_MAX];

	three_make();
	cr_assert_gt(three_logs(2), 0);
	three_path(log, 0);
	spoil_bit(log, 65536 + 30000);
	cr_assert_eq(in_child(bring, NULL), 100);
	cr_assert_eq(access(log, F_OK), 0);
	cr_assert_eq(three_logs(3), 0, "the others come home");
	cr_assert_eq(read_image(), 1);
}

/* Whether another process writes a log cannot be told then. */
/* As one that was made anew at home while its backend was gone, and was continued. */
Test(crash_bring, a_log_of_which_home_has_more_is_not_put_in_its_place)
{
	char log[PATH_MAX], home[PATH_MAX];
	struct stat st;

	three_make();
	cr_assert_gt(three_logs(2), 0);
	three_path(log, 0);
	cr_assert(find_file("index.", home) && !stat(log, &st));
	snprintf(strrchr(home, '/'), 256, "%s", strrchr(log, '/'));
	three_shell("cp -p '%s' '%s'", log, home);
	cr_assert_eq(truncate(log, st.st_size - 5000), 0);
	cr_assert_eq(read_image(), 1);
	bring_and_end(0);
}

Test(crash_bring, without_a_backend_it_says_that_something_is_left)
{
	three_make();
	three_lose(2, false);
	cr_assert_eq(in_child(bring, NULL), 50);
	cr_assert_eq(read_image(), 1);
	three_bring_back(2);
	cr_assert_eq(read_image(), 0);
	bring_and_end(0);
}

Test(crash_bring_file, logs_beside_those_of_other_files_come_home)
{
	for (int tries = 0; !near_count("data."); tries++) {
		cr_assert_lt(tries, 40);
		lunlink("a");
		image_len = 0;
		three_write(0, 3, 1);
	}
	cr_assert_eq(in_child(bring, NULL), 0);
	cr_assert_eq(read_image(), 0);
	look_alone(0);
}
