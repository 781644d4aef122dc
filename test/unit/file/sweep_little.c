/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A new process appends a line, again and again: of many logs of little one is made.
 */
#include "core/dropping/lease.h"
#include "core/file/sweep.h"
#include "test/lib/scratch.h"

#include <criterion/criterion.h>

#include <sys/resource.h>

TestSuite(sweep_little, .init = scratch_setup, .fini = scratch_remove, .timeout = 300);

#define LINE 100

struct line {
	int no;
	bool kill;
};

/* A process of its own appends a line. */
static int append_line(void *arg)
{
	const struct line *line = arg;
	struct lfile l = lopen("f", O_RDWR | O_CREAT);

	if (lfill(&l, line->no * LINE, LINE, 1) != LINE)
		return 1;
	if (line->kill)
		kill(getpid(), SIGKILL);
	return lclose(&l) ? 2 : 0;
}

/* Lines from @no on, up to @end. */
static void append_lines(int no, int end)
{
	for (; no < end; no++)
		cr_assert_eq(in_child(append_line, &(struct line){ .no = no }), 0, "line %d", no);
}

static void has_lines(int nr)
{
	struct lfile l = lopen("f", O_RDONLY);

	cr_assert_eq(plfs_size(l.f), nr * LINE);
	cr_assert_eq(lcheck(&l, 0, (size_t)nr * LINE, 1), 0);
	cr_assert_eq(lclose(&l), 0);
	cr_assert_eq(lexamine("f", false), 0);
}

Test(sweep_little, a_process_for_each_line_leaves_few_logs)
{
	sweep_little_at = 8;
	for (int no = 0; no < 100; no += 10) {
		append_lines(no, no + 10);
		cr_assert_leq(count_files("data."), 8, "%d lines", no + 10);
		has_lines(no + 10);
	}
}

Test(sweep_little, by_default_of_128_such_logs_one_is_made)
{
	append_lines(0, 127);
	cr_assert_eq(count_files("data."), 127);
	append_lines(127, 128);
	cr_assert_eq(count_files("data."), 1);
	has_lines(128);
}

static void kill_at(int no)
{
	cr_assert_eq(in_child(append_line, &(struct line){ .no = no, .kill = true }), 256 + SIGKILL);
}

static void few_logs_with(int nr)
{
	cr_assert_eq(count_files("live."), 0);
	cr_assert_lt(count_files("data."), 8);
	has_lines(nr);
}

/* Its live file has what no log has. */
Test(sweep_little, a_killed_process_keeps_its_line)
{
	sweep_little_at = 8;
	append_lines(0, 5);
	kill_at(5);
	append_lines(6, 20);
	few_logs_with(20);
}

/* And what no stub has: how long the file is. */
Test(sweep_little, a_killed_process_keeps_the_end_of_the_file)
{
	sweep_little_at = 8;
	append_lines(0, 10);
	kill_at(19);
	append_lines(10, 19);
	few_logs_with(20);
}

static int holds_open(void *arg)
{
	int *ends = arg;
	struct lfile l = lopen("f", O_RDWR);
	char c;

	if (lfill(&l, 3 * LINE, LINE, 1) != LINE || write(ends[0], "", 1) != 1 || read(ends[1], &c, 1) != 1)
		return 1;
	return lclose(&l) ? 2 : 0;
}

/* Its live file is not that of a killed one. */
Test(sweep_little, not_beside_a_writer)
{
	int to[2], from[2];
	pid_t pid;
	char c;

	sweep_little_at = 8;
	cr_assert(!pipe(to) && !pipe(from));
	append_lines(0, 3);
	pid = start_child(holds_open, (int[]){ from[1], to[0] });
	cr_assert_eq(read(from[0], &c, 1), 1);
	append_lines(4, 20);
	cr_assert_eq(count_files("live."), 1);
	cr_assert_eq(count_files("data."), 20);
	cr_assert_eq(write(to[1], "", 1), 1);
	cr_assert_eq(wait_child(pid), 0);
	has_lines(20);
	for (int i = 0; i < 2; i++) {
		close(to[i]);
		close(from[i]);
	}
}

static int goes_on(void *arg)
{
	int *go = arg;
	char c;

	for (int i = 0; i < 2; i++) {
		int ret = append_line(&(struct line){ .no = i });

		if (ret || write(go[1], "", 1) != 1 || read(go[2], &c, 1) != 1)
			return ret ? ret : 3;
	}
	return 0;
}

/* The log that it would go on with has gone. */
Test(sweep_little, a_process_goes_on_whose_log_has_gone)
{
	int to[2], from[2];
	pid_t pid;
	char c;

	sweep_little_at = 8;
	cr_assert(!pipe(to) && !pipe(from));
	pid = start_child(goes_on, (int[]){ 0, from[1], to[0] });
	cr_assert_eq(read(from[0], &c, 1), 1);
	append_lines(2, 12);
	cr_assert_lt(count_files("data."), 8);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(write(to[1], "", 1), 1);
	cr_assert_eq(wait_child(pid), 0);
	has_lines(12);
	for (int i = 0; i < 2; i++) {
		close(to[i]);
		close(from[i]);
	}
}

Test(sweep_little, of_what_was_emptied_nothing_is_counted)
{
	struct lfile l;

	sweep_little_at = 8;
	for (int i = 0; i < 4; i++) {
		append_lines(0, 5);
		l = lopen("f", O_RDWR | O_TRUNC);
		cr_assert_eq(lclose(&l), 0);
	}
	append_lines(0, 7);
	cr_assert_eq(count_files("data."), 7);
	append_lines(7, 8);
	cr_assert_eq(count_files("data."), 1);
	has_lines(8);
}

/* To meet its limit would kill a program that writes little. */
static int append_limited(void *arg)
{
	struct rlimit limit = { 1 << 21, 1 << 21 };

	return setrlimit(RLIMIT_FSIZE, &limit) || append_line(arg);
}

Test(sweep_little, not_by_a_process_whose_files_may_not_be_as_long)
{
	sweep_little_at = 8;
	append_lines(0, 7);
	for (int no = 7; no < 10; no++)
		cr_assert_eq(in_child(append_limited, &(struct line){ .no = no }), 0);
	cr_assert_eq(count_files("data."), 10);
	append_lines(10, 11);
	cr_assert_eq(count_files("data."), 1);
	has_lines(11);
}

/* Another host, which does not share the floor, would take earlier stamps. */
Test(sweep_little, not_while_stamps_are_ahead_of_the_clock)
{
	uint64_t floor_ns;
	char path[PATH_MAX];
	int fd;

	sweep_little_at = 8;
	append_lines(0, 2);
	cr_assert(find_file("notice.", path));
	fd = open(path, O_RDWR);
	cr_assert_eq(pread(fd, &floor_ns, sizeof(floor_ns), LEASE_TABLE_OFF), sizeof(floor_ns));
	floor_ns += 3600000000000;
	cr_assert_eq(pwrite(fd, &floor_ns, sizeof(floor_ns), LEASE_TABLE_OFF), sizeof(floor_ns));
	close(fd);
	append_lines(2, 20);
	cr_assert_eq(count_files("data."), 20);
	has_lines(20);
}
