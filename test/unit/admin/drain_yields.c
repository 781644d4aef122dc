/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A helper gives way to processes that write in the place. The clock is the test's own: it goes on with each
 * sleep, and while it is early a process writes.
 */
#include "test/lib/near.h"

#include "core/base/sys.h"

#include <criterion/criterion.h>

#include <unistd.h>

#define LEN 100000
#define S 1000000000ULL
#define MOST (10 * S)

static unsigned eighths_free = 5; /* of the place's file system */

static int some_are_free(int fd, struct statvfs *fs)
{
	int ret = fstatvfs(fd, fs);

	fs->f_bavail = fs->f_blocks / 8 * eighths_free;
	return ret;
}

static void setup(void) { near_setup(",drain=none"); }

TestSuite(drain_yields, .init = setup, .fini = near_remove, .timeout = 60);

static uint64_t now;         /* since the test began */
static uint64_t writes_until;
static char log_path[PATH_MAX]; /* of who writes */
static uint64_t copied_at[4];
static unsigned nr_copied;

static struct timespec began;

static struct timespec time_at(uint64_t ns)
{
	uint64_t sum = (uint64_t)began.tv_nsec + ns;

	return (struct timespec){ began.tv_sec + (time_t)(sum / S), (long)(sum % S) };
}

static int the_time(clockid_t id, struct timespec *t)
{
	(void)id;
	*t = time_at(now);
	return 0;
}

static void write_now(void)
{
	const struct timespec times[2] = { time_at(now), time_at(now) };

	utimensat(AT_FDCWD, log_path, times, 0);
}

static int sleeps(const struct timespec *t, struct timespec *left)
{
	(void)left;
	now += (uint64_t)t->tv_sec * S + (uint64_t)t->tv_nsec;
	if (now < writes_until)
		write_now();
	return 0;
}

static void progress(void *arg, const struct plfs_drain *d)
{
	(void)arg;
	if (d->nr_logs == nr_copied && nr_copied < ARRAY_SIZE(copied_at))
		copied_at[nr_copied++] = now;
}

static int write_one(void *arg)
{
	struct lfile l = made(arg);

	return lfill(&l, 0, LEN, 1) == LEN && !lclose(&l) ? 0 : 1;
}

static int drain_top(void *arg, const char *top, const char *home)
{
	(void)home;
	return plfs_drain_place(plfs_mount_at(0), top, false, arg);
}

/* Files "a" to @last are closed, and "w" is written for @writes_s seconds. */
static void drain(char last, uint64_t writes_s, struct plfs_yield *yield)
{
	struct plfs_drain d = { .closed_only = true, .yield = yield, .progress = progress };
	const struct timespec long_ago[2] = { { 1, 0 }, { 1, 0 } };
	struct lfile l = made("w");
	char name[2] = "a";

	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	cr_assert(near_find("data.", log_path));
	for (; *name <= last; (*name)++)
		cr_assert_eq(in_child(write_one, name), 0);
	clock_gettime(CLOCK_REALTIME, &began);
	writes_until = writes_s * S;
	if (writes_s)
		write_now();
	else
		cr_assert_eq(utimensat(AT_FDCWD, log_path, long_ago, 0), 0);
	sys.fstatvfs = some_are_free;
	sys.clock_gettime = the_time;
	sys.nanosleep = sleeps;
	cr_assert_eq(plfs_places_in(near_dir, drain_top, &d), 0);
	sys_init();
	cr_assert_eq(near_count("data."), 1);
	cr_assert_eq(d.nr_open, 1);
	cr_assert_eq(lclose(&l), 0);
}

Test(drain_yields, it_waits_while_a_process_writes)
{
	struct plfs_yield yield = { .most_ns = MOST };

	drain('a', 3, &yield);
	cr_assert(copied_at[0] >= 3 * S && copied_at[0] < 4 * S, "%g", (double)copied_at[0]);
}

/* And then copies for as long without waiting. */
Test(drain_yields, it_does_not_wait_for_ever)
{
	struct plfs_yield yield = { .most_ns = MOST };

	drain('c', 1000, &yield);
	cr_assert_eq(nr_copied, 3);
	cr_assert(copied_at[0] >= MOST && copied_at[0] < MOST + S, "%g", (double)copied_at[0]);
	cr_assert_eq(copied_at[2], copied_at[0]);
}

Test(drain_yields, it_does_not_wait_for_one_that_is_open_and_idle)
{
	struct plfs_yield yield = { .most_ns = MOST };

	drain('b', 0, &yield);
	cr_assert_eq(now, 0);
}

Test(drain_yields, the_command_does_not_wait)
{
	drain('a', 1000, NULL);
	cr_assert_eq(now, 0);
}

Test(drain_yields, it_does_not_wait_where_the_place_is_nearly_full)
{
	struct plfs_yield yield = { .most_ns = MOST };

	eighths_free = 0;
	drain('a', 1000, &yield);
	cr_assert_eq(now, 0);
}
