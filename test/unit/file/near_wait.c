/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait=: a read of bytes that are near on another host waits for their drain. The other host is a process of
 * another boot for which the directory of near= is not there; its clock goes on with each sleep.
 */
#include "test/lib/near.h"

#include "core/backend/mount.h"
#include "core/base/sys.h"

#include <criterion/criterion.h>

#define LEN 300000
#define S 1000000000ULL

static void setup_with(const char *options)
{
	char path[PATH_MAX];

	near_setup(options);
	lpath("a", path)->store.remote = true;
}

static void setup(void) { setup_with(",drain=none,wait=10"); }

TestSuite(near_wait, .init = setup, .fini = near_remove, .timeout = 60);

static int write_a(void *arg)
{
	struct lfile l = made("a");

	(void)arg;
	return lfill(&l, 0, LEN, 1) != LEN || lclose(&l);
}

/* The first half is synced, and so at home. */
static int write_half_synced(void *arg)
{
	struct lfile l = made("a");

	(void)arg;
	if (lfill(&l, 0, LEN / 2, 1) != LEN / 2 || plfs_sync(l.f) ||
	    lfill(&l, LEN / 2, LEN / 2, 1) != LEN / 2)
		return 1;
	return lclose(&l);
}

/* ---- a reader ---- */

static uint64_t now, longest;
static unsigned nr_sleeps, drains_at, wrong;
static bool interrupts;
static struct lfile reader;

static int the_time(clockid_t id, struct timespec *t)
{
	if (id != CLOCK_MONOTONIC)
		return clock_gettime(id, t);
	*t = (struct timespec){ .tv_sec = (time_t)(now / S), .tv_nsec = (long)(now % S) };
	return 0;
}

/* Nobody is kept from using the file meanwhile. */
static int sleeps(const struct timespec *t, struct timespec *left)
{
	uint64_t ns = (uint64_t)t->tv_sec * S + (uint64_t)t->tv_nsec;

	(void)left;
	now += ns;
	longest = ns > longest ? ns : longest;
	wrong += plfs_size(reader.f) != LEN;
	if (++nr_sleeps == drains_at)
		wrong += near_drain_a() != 1;
	if (!interrupts)
		return 0;
	errno = EINTR;
	return -1;
}

static int capture(void)
{
	int fd = fileno(tmpfile());

	dup2(fd, STDERR_FILENO);
	return fd;
}

/* How many lines were written, and whether all name the place. */
static int nr_lines(int fd)
{
	static char text[65536];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	int nr = 0;

	text[n > 0 ? n : 0] = '\0';
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		if (!strncmp(line, "libplfs: ", 9))
			nr += strstr(line, "not drained") && strstr(line, "release=home") ? 1 : 100;
	return nr;
}

static int open_elsewhere(void)
{
	near_go_elsewhere();
	sys.clock_gettime = the_time;
	sys.nanosleep = sleeps;
	now = 1000 * S;
	reader = lopen("a", O_RDONLY);
	return capture();
}

/* Reads all: 10 if it is right, 5 if it cannot be read. */
static int look(void)
{
	int ret = lcheck(&reader, 0, LEN, 1);

	return !ret ? 10 : ret == -EIO ? 5 : 99;
}

static int read_until_drained(void *arg)
{
	int fd = open_elsewhere();

	drains_at = 5;
	(void)arg;
	if (look() != 10 || wrong || nr_sleeps != 5 || nr_lines(fd))
		return 1;
	return lclose(&reader);
}

static void is_waited_for(int (*write_it)(void *arg))
{
	cr_assert_eq(in_child(write_it, NULL), 0);
	near_start_drainer();
	cr_assert_eq(in_child(read_until_drained, NULL), 0);
	near_end_drainer();
}

Test(near_wait, a_drain_is_waited_for) { is_waited_for(write_a); }
Test(near_wait, the_drain_of_a_rest_is_waited_for) { is_waited_for(write_half_synced); }

Test(near_wait, a_signal_does_not_end_the_wait)
{
	interrupts = true;
	is_waited_for(write_a);
}

static int read_in_vain(void *arg)
{
	int fd = open_elsewhere();

	(void)arg;
	if (look() != 5 || wrong || longest > S || now != 1010 * S)
		return 1;
	if (nr_lines(fd) != 1 || nr_sleeps > 20)
		return 2;
	return lclose(&reader);
}

Test(near_wait, after_the_time_it_is_an_error_with_a_line)
{
	cr_assert_eq(in_child(write_a, NULL), 0);
	cr_assert_eq(in_child(read_in_vain, NULL), 0);
}

static int read_at_once(void *arg)
{
	int fd = open_elsewhere();

	(void)arg;
	mount_at(0)->spec->wait = 0;
	return look() != 5 || nr_sleeps || nr_lines(fd) != 1 || lclose(&reader);
}

Test(near_wait, without_it_nothing_waits)
{
	cr_assert_eq(in_child(write_a, NULL), 0);
	cr_assert_eq(in_child(read_at_once, NULL), 0);
}

static int read_here(void *arg)
{
	(void)arg;
	sys.nanosleep = sleeps;
	reader = lopen("a", O_RDONLY);
	return look() != 10 || nr_sleeps || lclose(&reader);
}

Test(near_wait, on_the_same_host_nothing_waits)
{
	cr_assert_eq(in_child(write_a, NULL), 0);
	cr_assert_eq(in_child(read_here, NULL), 0);
}

/* It has a part of the log open, which is another file by then. */
static int read_before_and_after(void *arg)
{
	int fd = open_elsewhere();

	(void)arg;
	mount_at(0)->spec->wait = 0;
	if (lcheck(&reader, 0, LEN / 2, 1) || look() != 5 || nr_lines(fd) != 1 || near_drain_a() != 1)
		return 1;
	return look() != 10 || nr_lines(fd) != 1 || lclose(&reader);
}

Test(near_wait, who_had_a_part_open_reads_what_was_drained_since)
{
	cr_assert_eq(in_child(write_half_synced, NULL), 0);
	near_start_drainer();
	cr_assert_eq(in_child(read_before_and_after, NULL), 0);
	near_end_drainer();
}
