/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The mark of a file in use: how long it lasts, and how long those wait who cannot have it.
 */
#include "test/lib/scratch.h"

#include "core/backend/stub_use.h"
#include "core/base/msg.h"

#include <criterion/criterion.h>

#define OTHER 12345 /* a user */

static char path[100];

static void setup(void)
{
	scratch_dir();
	snprintf(path, sizeof(path), "%s/stub", scratch);
	close(open(path, O_RDWR | O_CREAT | O_EXCL, 0644));
}

TestSuite(stub_use, .init = setup, .fini = scratch_remove);

Test(stub_use, it_lasts_as_long_as_a_description)
{
	int a = open(path, O_RDONLY), b = open(path, O_RDONLY), c = dup(a);

	cr_assert_not(stub_in_use(b));
	cr_assert_eq(stub_mark_in_use(a), 0);
	cr_assert(stub_in_use(b));
	cr_assert_not(stub_in_use(a));
	close(a);
	cr_assert(stub_in_use(b));
	close(c);
	cr_assert_not(stub_in_use(b));
	close(b);
}

Test(stub_use, it_outlives_the_opener_in_its_child)
{
	int a = open(path, O_RDONLY), b, wait_pipe[2];
	pid_t pid;

	cr_assert_eq(pipe(wait_pipe), 0);
	cr_assert_eq(stub_mark_in_use(a), 0);
	pid = fork_child();
	if (!pid) {
		char c;

		close(wait_pipe[1]);
		_exit(read(wait_pipe[0], &c, 1) == 0 ? 0 : 1);
	}
	close(a);
	b = open(path, O_RDONLY);
	cr_assert(stub_in_use(b));
	close(wait_pipe[1]);
	cr_assert_eq(wait_child(pid), 0);
	cr_assert_not(stub_in_use(b));
	close(b);
}

/* For @busy_s seconds a child has the file for itself and, if it @works, shows that. */
static pid_t lock_out_for(double busy_s, bool works)
{
	int ready[2], fd = open(path, O_RDWR);
	uint64_t shown_ns = 0;
	pid_t pid;
	char c;

	cr_assert_eq(pipe(ready), 0);
	pid = fork_child();
	if (!pid) {
		double end = now_s() + busy_s;

		if (stub_lock_out(fd) || write(ready[1], "", 1) != 1)
			_exit(1);
		while (now_s() < end) {
			if (works)
				stub_show_work(fd, &shown_ns);
			usleep(50000);
		}
		_exit(0);
	}
	cr_assert_eq(read(ready[0], &c, 1), 1);
	close(fd);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

/* What the mark comes to for a user whose file it is not alone, and the seconds that this takes. */
static int mark(double *took_s)
{
	double begin = now_s();
	int fd = open(path, O_RDONLY), ret = stub_mark_in_use(fd);

	*took_s = now_s() - begin;
	close(fd);
	return ret;
}

Test(stub_use, who_shows_that_he_works_is_waited_for)
{
	struct timespec times[2] = { { .tv_sec = 1000 }, { .tv_sec = 2000 } };
	unsigned nr_lines = msg_nr_errors();
	struct stat st;
	double took_s;
	pid_t pid;

	cr_assert_eq(chmod(path, 0664), 0);
	cr_assert_eq(utimensat(AT_FDCWD, path, times, 0), 0);
	stub_told_ns = 2000000000;
	pid = lock_out_for(9, true);
	cr_assert_eq(mark(&took_s), 0);
	cr_assert_eq(msg_nr_errors(), nr_lines + 1); /* why it takes so long */
	cr_assert_gt(took_s, 5.5);
	cr_assert_eq(wait_child(pid), 0);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_atim.tv_sec, 1000);
	cr_assert_eq(st.st_mtim.tv_sec, 2000);
	cr_assert_eq(st.st_mode & 07777, 0664);
}

Test(stub_use, root_does_not_wait_for_another_user_for_ever)
{
	double took_s;
	pid_t pid;

	if (geteuid())
		cr_skip_test("not root");
	cr_assert(!chown(path, OTHER, OTHER) && !chmod(path, 0664));
	stub_roots_patience_ns = 1000000000;
	pid = lock_out_for(60, true);
	cr_assert_eq(mark(&took_s), -EBUSY);
	cr_assert_eq(kill(pid, SIGKILL), 0);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
}

Test(stub_use, who_does_not_is_left_to_his_lock)
{
	double took_s;
	pid_t pid;

	cr_assert_eq(chmod(path, 0664), 0);
	pid = lock_out_for(60, false);
	cr_assert_eq(mark(&took_s), -EBUSY);
	cr_assert_eq(kill(pid, SIGKILL), 0);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	cr_assert_eq(mark(&took_s), 0);
}

/* Whoever is not its owner may not move the ctime so: it is no error. */
Test(stub_use, a_stranger_shows_nothing)
{
	uint64_t shown_ns = 0;
	struct stat before, after;
	int fd = open(path, O_RDONLY);

	cr_assert_eq(fstat(fd, &before), 0);
	usleep(20000);
	if (geteuid()) {
		close(fd);
		cr_skip_test("not root: there is no other user to be");
	}
	cr_assert_eq(seteuid(OTHER), 0);
	stub_show_work(fd, &shown_ns);
	cr_assert_eq(seteuid(0), 0);
	cr_assert_eq(fstat(fd, &after), 0);
	cr_assert_eq(before.st_ctim.tv_nsec, after.st_ctim.tv_nsec);
	close(fd);
}
