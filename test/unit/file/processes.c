/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Logical files in processes that fork, execute another program, or end.
 */
#include "test/lib/scratch.h"

#include <criterion/criterion.h>

#define SUITE(name) TestSuite(name, .init = scratch_setup, .fini = scratch_remove)

SUITE(file_fork);
SUITE(file_exit);

/* ---- fork ---- */

static int check_b(void *arg)
{
	struct lfile *l = arg;

	return lcheck(l, 0, 100, 2) || lcheck(l, 100, 100, 1);
}

/* The parent had a map before it wrote more: the child must see what came after. */
Test(file_fork, a_child_sees_what_its_parent_wrote_since_it_last_read)
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, 200, 1), 200);
	cr_assert_eq(lcheck(&l, 0, 200, 1), 0);
	cr_assert_eq(lfill(&l, 0, 100, 2), 100);
	cr_assert_eq(in_child(check_b, &l), 0);
	lclose(&l);
}

static int write_in_child(void *arg)
{
	struct lfile *l = arg;

	if (lfill(l, 50, 100, 3) != 100 || lfill(l, 200, 70000, 3) != 70000)
		return 1;
	return lcheck(l, 50, 100, 3) || lcheck(l, 200, 70000, 3) || lcheck(l, 0, 50, 1);
}

Test(file_fork, parent_and_child_write_logs_of_their_own)
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, 200, 1), 200);
	cr_assert_eq(in_child(write_in_child, &l), 0);
	cr_assert_eq(count_files("data."), 2);
	cr_assert_eq(lfill(&l, 300, 100, 4), 100);
	cr_assert_eq(plfs_refresh(l.f), 0);
	cr_assert_eq(lcheck(&l, 0, 50, 1), 0);
	cr_assert_eq(lcheck(&l, 50, 100, 3), 0);
	cr_assert_eq(lcheck(&l, 200, 100, 3), 0);
	cr_assert_eq(lcheck(&l, 300, 100, 4), 0);
	cr_assert_eq(lcheck(&l, 400, 69800, 3), 0);
	lclose(&l);
	cr_assert_eq(count_files("live."), 0);
}

static int cut_in_child(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);
	int ret = plfs_truncate(l.f, *(int *)arg) || plfs_truncate(l.f, 150);

	lclose(&l);
	return ret;
}

/* What we wrote is looked for in our own log first, and no write of anybody's tells that it is gone. */
Test(file_fork, what_another_process_cuts_off_is_seen_at_once)
{
	for (int size = 20; size >= 0; size -= 20) {
		struct lfile l = made("a");
		char buf[200], zeros[200] = "";

		cr_assert_eq(lfill(&l, 0, 200, 1), 200);
		cr_assert_eq(lcheck(&l, 0, 200, 1), 0);
		cr_assert_eq(in_child(cut_in_child, &size), 0);
		cr_assert_eq(plfs_pread(l.f, buf, 100, 50), 100);
		cr_expect_arr_eq(buf, zeros, 100, "cut to %d", size);
		cr_assert_eq(plfs_pread(l.f, buf, 200, 0), 150);
		cr_assert_eq(lfill(&l, 60, 10, 2), 10);
		cr_assert_eq(lcheck(&l, 60, 10, 2), 0);
		lclose(&l);
		cr_assert_eq(lunlink("a"), 0);
	}
}

static int close_in_child(void *arg)
{
	lclose(arg);
	return 0;
}

Test(file_fork, a_child_that_closes_does_not_end_its_parents_log)
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, 200, 1), 200);
	cr_assert_eq(in_child(close_in_child, &l), 0);
	cr_assert_eq(count_files("live."), 1);
	cr_assert_eq(lfill(&l, 200, 200, 1), 200);
	lclose(&l);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 400, 1), 0);
	lclose(&l);
}

static int unlinked_in_child(void *arg)
{
	struct lfile *l = arg;

	if (lcheck(l, 0, 200, 1))
		return 1;
	lclose(l);
	return 0;
}

Test(file_fork, an_unlinked_file_lives_on_in_the_parent)
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, 200, 1), 200);
	cr_assert_eq(lunlink("a"), 0);
	cr_assert_eq(in_child(unlinked_in_child, &l), 0);
	cr_assert_eq(lcheck(&l, 0, 200, 1), 0);
	lclose(&l);
	cr_assert_eq(count_files("data."), 0);
}

Test(file_fork, costs_no_descriptor)
{
	struct lfile l = made("a");
	int before;

	cr_assert_eq(lfill(&l, 0, 200, 1), 200);
	before = count_fds();
	for (int i = 0; i < 5; i++)
		cr_assert_eq(in_child(check_b, &l), 1);
	cr_assert_eq(count_fds(), before);
	lclose(&l);
}

/* ---- exit and exec ---- */

static int write_while_exiting(void *arg)
{
	struct lfile l = made("a");

	(void)arg;
	lfill(&l, 0, 100, 1);
	plfs_exit_prepare();
	lfill(&l, 100, 100, 1); /* as stdio's last flush does */
	_exit(count_files("live."));
}

Test(file_exit, what_is_written_after_the_preparations_is_closed_at_once)
{
	struct lfile l;

	cr_assert_eq(in_child(write_while_exiting, NULL), 0);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(plfs_size(l.f), 200);
	cr_assert_eq(lcheck(&l, 0, 200, 1), 0);
	lclose(&l);
}

Test(file_exit, a_failed_exec_leaves_everything_working)
{
	struct lfile l = made("a");

	lfill(&l, 0, 100, 1);
	plfs_exec_prepare();
	cr_assert_eq(count_files("live."), 0);
	cr_assert_eq(lcheck(&l, 0, 100, 1), 0);
	cr_assert_eq(lfill(&l, 50, 100, 2), 100);
	cr_assert_eq(lcheck(&l, 0, 50, 1), 0);
	cr_assert_eq(lcheck(&l, 50, 100, 2), 0);
	lclose(&l);
}

/* A descriptor that survives an exec is found by its stub. */
Test(file_exit, an_inherited_descriptor_is_adopted)
{
	struct lfile l = made("a"), again;

	lfill(&l, 0, 100, 1);
	cr_assert_eq(sys.lseek(l.fd, 123, SEEK_CUR), PLFS_BODY_OFF + 123);
	plfs_exec_prepare();
	again.fd = l.fd;
	cr_assert_eq(plfs_adopt(l.fd, &again.f), 0);
	cr_assert_not_null(again.f);
	cr_assert_eq(lcheck(&again, 0, 100, 1), 0);
	cr_assert_eq(sys.lseek(l.fd, 0, SEEK_CUR), PLFS_BODY_OFF + 123);
	cr_assert_eq(lfill(&again, 100, 100, 1), 100);
	cr_assert_eq(lcheck(&again, 0, 200, 1), 0);
	plfs_close(again.f);
	lclose(&l);
}

Test(file_exit, open_and_close_leave_no_descriptor)
{
	struct lfile l = made("a");
	int before;

	lfill(&l, 0, 100, 1);
	lclose(&l);
	before = count_fds();
	for (int i = 0; i < 20; i++) {
		off_t end;

		l = lopen("a", i % 2 ? O_RDWR : O_RDWR | O_APPEND);
		lfill(&l, i * 10, 100, 1);
		lcheck(&l, 0, 10, 1);
		lappend(&l, "x", 1, &end);
		if (i % 3 == 0)
			plfs_truncate(l.f, i % 2 ? 0 : 50);
		lclose(&l);
	}
	cr_assert_eq(count_fds(), before);
}

/* ---- descriptions that are sent to another process ---- */

static int sent_pipes[4];

/*
 * Takes descriptor @arg of its parent, as through a socket, and looks at the file when the parent has closed
 * it.
 */
static int receive_and_read(void *arg)
{
	int pid = (int)syscall(SYS_pidfd_open, getppid(), 0), ret;
	struct lfile l;
	int number;
	char c;

	(void)arg;
	if (read(sent_pipes[0], &number, sizeof(number)) != sizeof(number))
		return 2;
	l.fd = (int)syscall(SYS_pidfd_getfd, pid, number, 0);
	if (l.fd < 0)
		return 77;
	if (plfs_adopt(l.fd, &l.f) || !l.f || write(sent_pipes[3], "r", 1) != 1 ||
	    read(sent_pipes[0], &c, 1) != 1)
		return 3;
	ret = lcheck(&l, 0, 1000, 1);
	return lclose(&l) || ret;
}

Test(file_fork, what_was_sent_elsewhere_outlives_its_name_and_its_sender)
{
	struct lfile l;
	pid_t pid;
	int rc;
	char c;

	cr_assert(!pipe(sent_pipes) && !pipe(sent_pipes + 2));
	pid = start_child(receive_and_read, NULL);
	close(sent_pipes[3]);
	l = made("a");
	cr_assert_eq(lfill(&l, 0, 1000, 1), 1000);
	cr_assert_eq(lunlink("a"), 0);
	cr_assert_eq(plfs_share(l.f), 0);
	cr_assert_eq(write(sent_pipes[1], &l.fd, sizeof(l.fd)), sizeof(l.fd));
	if (read(sent_pipes[2], &c, 1) == 1) {
		lclose(&l);
		cr_assert_eq(count_files("data."), 1);
		cr_assert_eq(write(sent_pipes[1], "g", 1), 1);
	}
	rc = wait_child(pid);
	if (rc == 77)
		cr_skip_test("may not take a descriptor of another process");
	cr_assert_eq(rc, 0);
	cr_assert_eq(count_files("data."), 0);
}
