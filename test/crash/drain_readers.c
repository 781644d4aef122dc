/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A reader that is stopped at its system calls (turn.h) while all logs move home, and one that is stopped
 * while they come near and move again. It reads all bytes, whichever call it was. The other order, a drain
 * that is stopped at each of its calls while others read, is in drain.c.
 *
 * Two things see to that, and each is enough for these readers: the store looks near first (placed_open()),
 * and who misses a log loads its map anew and looks again (logged_read()). Seen by hand, at each call
 * (PLFS_TEST_STRIDE=1): with a store that looks at home first, and near afterwards, all tests pass; with a
 * reader that looks once, all pass; with both, all four fail. The last test is the control: the same move
 * between two looks of a plain program.
 */
#include "test/lib/calls.h"
#include "test/lib/near.h"
#include "test/lib/turn.h"

#include <criterion/criterion.h>

#define LEN 200000

static void setup(void)
{
	scratch_in_memory = true;
	near_setup("");
}

TestSuite(crash_drain_readers, .init = setup, .fini = near_remove, .timeout = 600);

static int write_round(void *arg)
{
	struct lfile l = lopen("f", O_RDWR | O_CREAT);

	return lfill(&l, 0, LEN, *(unsigned *)arg) != LEN || lclose(&l);
}

static int drain(void *arg)
{
	struct plfs_drain d = { .closed_only = false };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("f", path);

	(void)arg;
	return plfs_drain_file(m, AT_FDCWD, path, &d) || d.nr_left || d.nr_lost;
}

static void begin_calls(void)
{
	calls_intercept();
	on_call = stop_at_last;
}

static int read_newly(void *arg)
{
	struct lfile l;

	(void)arg;
	begin_calls();
	if (stat_size("f") != LEN)
		return 1;
	l = lopen("f", O_RDONLY);
	return lcheck(&l, 0, LEN, 1) || lclose(&l);
}

/* It has a map, and one of the two logs. */
static int read_on(void *arg)
{
	struct lfile l = lopen("f", O_RDONLY);

	(void)arg;
	if (lcheck(&l, 0, 100, 1))
		return 1;
	begin_calls();
	return lcheck(&l, LEN / 2, LEN / 2, 1) || lcheck(&l, 0, LEN, 1) || lclose(&l);
}

/* After a lock, say: it lists the container again. */
static int look_again(void *arg)
{
	struct lfile l = lopen("f", O_RDONLY);

	(void)arg;
	if (lcheck(&l, 0, 100, 1))
		return 1;
	begin_calls();
	return plfs_refresh(l.f) || plfs_size(l.f) != LEN || lcheck(&l, 0, LEN, 1) || lclose(&l);
}

/* The first half and the rest are in logs of two processes. */
static int write_half(void *arg)
{
	struct lfile l = lopen("f", O_RDWR | O_CREAT);
	off_t off = *(off_t *)arg;

	return lfill(&l, off, LEN / 2, 1) != LEN / 2 || lclose(&l);
}

static void make_file(void)
{
	unsigned older = 2;
	off_t off = 0;

	cr_assert_eq(in_child(write_round, &older), 0);
	cr_assert_eq(in_child(drain, NULL), 0); /* what must not be read any more is at home */
	for (; off < LEN; off += LEN / 2)
		cr_assert_eq(in_child(write_half, &off), 0);
}

/* Returns whether the reader came to its end before. */
static bool at_call(int (*reader)(void *arg), long nr, bool again)
{
	unsigned same = 1;
	int status;
	pid_t pid;

	make_file();
	calls_left = nr;
	pid = start_child(reader, NULL);
	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	if (WIFEXITED(status)) {
		cr_assert_eq(WEXITSTATUS(status), 0);
		return true;
	}
	cr_assert(WIFSTOPPED(status), "call %ld: %x", nr, status);
	if (again) {
		cr_assert_eq(in_child(drain, NULL), 0, "call %ld", nr);
		cr_assert_eq(in_child(write_round, &same), 0, "call %ld", nr);
	}
	cr_assert_eq(in_child(drain, NULL), 0, "call %ld", nr);
	kill(pid, SIGCONT);
	cr_assert_eq(wait_child(pid), 0, "call %ld: the reader", nr);
	return false;
}

static void at_each_call(int (*reader)(void *arg), bool again)
{
	struct turn turn = turn_begin(3);
	long nr_stopped = 0;

	while (!at_call(reader, turn.nr, again)) {
		cr_assert_eq(lunlink("f"), 0);
		nr_stopped++;
		turn.nr += turn.step;
	}
	cr_assert_gt(nr_stopped, 1);
	cr_log_info("%ld calls\n", turn.nr);
}

Test(crash_drain_readers, who_opens_the_file_reads_it_whichever_call_the_drain_met)
{
	at_each_call(read_newly, false);
}

Test(crash_drain_readers, who_had_it_open_reads_it_whichever_call_the_drain_met)
{
	at_each_call(read_on, false);
}

Test(crash_drain_readers, who_looks_again_reads_it_whichever_call_the_drain_met)
{
	at_each_call(look_again, false);
}

Test(crash_drain_readers, who_opens_the_file_reads_it_whichever_call_two_drains_met)
{
	at_each_call(read_newly, true);
}

/* ---- the control ---- */

struct looks {
	char path[2][PATH_MAX]; /* in this order */
	int before;             /* the look before which it is stopped */
};

/* 0: found; 1: missed. */
static int look_once_each(void *arg)
{
	const struct looks *l = arg;
	int fd = -1;

	for (int i = 0; i < 2 && fd < 0; i++) {
		if (i == l->before)
			raise(SIGSTOP);
		fd = open(l->path[i], O_RDONLY);
	}
	return fd < 0;
}

static bool misses(int home_first, int before)
{
	struct looks l = { .before = before };
	char *near = l.path[home_first], *home = l.path[!home_first], *rest;
	pid_t pid;
	int status;

	make_file();
	cr_assert(near_find("data.", near));
	rest = near + strlen(near_dir) + 1; /* plfs.UID/BACKEND-ID/XX/ID/... */
	rest = strchr(strchr(rest, '/') + 1, '/');
	snprintf(home, PATH_MAX, "%s/.plfs%.400s", scratch, rest);
	pid = start_child(look_once_each, &l);
	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	if (WIFSTOPPED(status)) {
		cr_assert_eq(in_child(drain, NULL), 0);
		cr_assert_eq(access(home, F_OK), 0);
		cr_assert_eq(kill(pid, SIGCONT), 0);
		status = wait_child(pid);
	} else {
		status = WEXITSTATUS(status);
	}
	cr_assert_eq(lunlink("f"), 0);
	return status;
}

Test(crash_drain_readers, a_look_that_begins_at_home_misses_a_log_on_its_way)
{
	for (int before = 0; before < 2; before++) {
		cr_assert_not(misses(false, before));
		cr_assert_eq(misses(true, before), before == 1);
	}
}
