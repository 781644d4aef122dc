/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All that a host had in a container is lost, as by a purge of old files, and then it writes again.
 */
#include "test/lib/scratch.h"

#include <criterion/criterion.h>
#include <time.h>

TestSuite(file_hosts, .init = scratch_setup, .fini = scratch_remove);

#define LEN 200000

static int (*real_gettime)(clockid_t clock, struct timespec *ts);

static int an_hour_later(clockid_t clock, struct timespec *ts)
{
	int ret = real_gettime(clock, ts);

	ts->tv_sec += 3600;
	return ret;
}

static void later(void)
{
	real_gettime = sys.clock_gettime;
	sys.clock_gettime = an_hour_later;
}

static int write_at(void *arg)
{
	struct lfile l = made("f");
	off_t off = *(off_t *)arg;

	if (off)
		later();
	msg_is_muted = off;
	if (lfill(&l, off, LEN, 1) != LEN)
		return 1;
	return lclose(&l) ? 2 : 0;
}

static int read_at(void *arg)
{
	struct lfile l = lopen("f", O_RDONLY);
	off_t off = *(off_t *)arg;
	int ret;

	msg_is_muted = true;
	ret = lcheck(&l, off, LEN, 1);
	lclose(&l);
	return ret == -EIO ? 5 : ret ? 1 : 0;
}

static int truncate_to_none(void *arg)
{
	struct lfile l;

	(void)arg;
	msg_is_muted = true;
	l = lopen("f", O_RDWR | O_TRUNC);
	return lclose(&l);
}

static off_t first = 0, second = 1000000;

static void lose(const char *what)
{
	char cmd[1024];

	snprintf(cmd, sizeof(cmd), "cd %s/.plfs/*/*/hostdir.* && rm -r %s", scratch, what);
	cr_assert_eq(system(cmd), 0);
}

static void what_was_lost_is_an_error_also_when(const char *what)
{
	cr_assert_eq(in_child(write_at, &first), 0);
	lose(what);
	cr_assert_eq(in_child(read_at, &first), 5);
	cr_assert_eq(in_child(write_at, &second), 0);
	cr_assert_eq(in_child(read_at, &first), 5, "zeros for what was lost");
	cr_assert_eq(in_child(read_at, &second), 0);
	cr_assert_eq(in_child(write_at, &first), 0); /* all of it */
	cr_assert_eq(in_child(read_at, &first), 0);
}

Test(file_hosts, what_a_host_lost_is_an_error_also_when_it_has_written_again)
{
	what_was_lost_is_an_error_also_when("data.* index.*");
}

Test(file_hosts, what_a_host_lost_with_its_directory_is_an_error_also_when_it_has_written_again)
{
	what_was_lost_is_an_error_also_when("$PWD");
}

Test(file_hosts, a_file_that_was_emptied_has_lost_nothing)
{
	char buf[100];
	struct lfile l;

	cr_assert_eq(in_child(write_at, &first), 0);
	lose("data.* index.*");
	cr_assert_eq(in_child(write_at, &second), 0);
	cr_assert_eq(in_child(truncate_to_none, NULL), 0);
	cr_assert_eq(in_child(write_at, &second), 0);
	l = lopen("f", O_RDONLY);
	cr_assert_eq(plfs_pread(l.f, buf, sizeof(buf), 0), 100);
	lclose(&l);
}

/* Processes of one host, one after the other and killed: the first one's log is there all the time. */
Test(file_hosts, a_host_that_has_its_log_has_lost_nothing)
{
	char buf[100];
	struct lfile l;

	cr_assert_eq(in_child(write_at, &second), 0);
	cr_assert_eq(in_child(write_at, &second), 0);
	l = lopen("f", O_RDONLY);
	cr_assert_eq(plfs_pread(l.f, buf, sizeof(buf), 0), 100);
	cr_assert_eq(plfs_pread(l.f, buf, sizeof(buf), (off_t)second - 100), 100);
	lclose(&l);
}
