/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rate=: how a drain spreads what it copies. The clock is the test's own: it goes on with each sleep, and by
 * what each write takes.
 */
#include "test/lib/near.h"

#include "core/base/sys.h"

#include <criterion/criterion.h>

#define MIB ((uint64_t)1 << 20)
#define S 1000000000ULL

static void setup(void) { near_setup(",drain=none"); }

TestSuite(drain_rate, .init = setup, .fini = near_remove, .timeout = 60);

static uint64_t now, slept, longest, write_takes;
static unsigned nr_sleeps;
static bool interrupts;

static int the_time(clockid_t id, struct timespec *t)
{
	(void)id;
	*t = (struct timespec){ .tv_sec = (time_t)(now / S), .tv_nsec = (long)(now % S) };
	return 0;
}

static int sleeps(const struct timespec *t, struct timespec *left)
{
	uint64_t ns = (uint64_t)t->tv_sec * S + (uint64_t)t->tv_nsec, part = interrupts ? ns / 2 : ns;

	nr_sleeps++;
	longest = ns > longest ? ns : longest;
	now += part;
	slept += part;
	interrupts = !interrupts && part < ns;
	if (part == ns)
		return 0;
	*left = (struct timespec){ .tv_sec = (time_t)((ns - part) / S), .tv_nsec = (long)((ns - part) % S) };
	errno = EINTR;
	return -1;
}

static ssize_t (*real_pwrite)(int fd, const void *buf, size_t len, off_t off);

static ssize_t slow_pwrite(int fd, const void *buf, size_t len, off_t off)
{
	now += len >= 65536 ? write_takes : 0;
	return real_pwrite(fd, buf, len, off);
}

static int write_files(void *arg)
{
	const uint64_t *sizes = arg;
	char name[2] = "a";

	for (; *sizes; sizes++, (*name)++) {
		struct lfile l = made(name);

		if (lfill(&l, 0, *sizes, 1) != (ssize_t)*sizes || lclose(&l))
			return 1;
	}
	return 0;
}

static int drain_top(void *arg, const char *top, const char *home)
{
	(void)home;
	return plfs_drain_place(plfs_mount_at(0), top, false, arg);
}

/* What is written to the logs takes @takes; the seconds that the drain took, in hundredths. */
static unsigned drain(const uint64_t *sizes, uint64_t rate, uint64_t takes)
{
	struct plfs_drain d = { .rate = rate };

	cr_assert_eq(in_child(write_files, (void *)sizes), 0);
	now = 1000 * S;
	write_takes = takes;
	real_pwrite = sys.pwrite;
	sys.pwrite = slow_pwrite;
	sys.clock_gettime = the_time;
	sys.nanosleep = sleeps;
	cr_assert_eq(plfs_places_in(near_dir, drain_top, &d), 0);
	sys_init();
	cr_assert_eq(near_count("data."), 0);
	return (unsigned)((now - 1000 * S) / (S / 100));
}

Test(drain_rate, without_a_rate_nothing_sleeps)
{
	drain((const uint64_t[]){ 4 * MIB, 0 }, 0, 0);
	cr_assert_eq(nr_sleeps, 0);
}

/* Eight pauses a second, and none is longer than an eighth. */
Test(drain_rate, a_log_is_copied_evenly)
{
	unsigned took = drain((const uint64_t[]){ 8 * MIB, 0 }, 2 * MIB, 0);

	cr_assert(took > 380 && took < 420, "%u", took);
	cr_assert(nr_sleeps >= 31 && nr_sleeps <= 33, "%u", nr_sleeps);
	cr_assert_leq(longest, S / 8);
}

Test(drain_rate, many_small_logs_are_copied_as_slowly)
{
	unsigned took = drain((const uint64_t[]){ MIB, MIB, MIB, MIB, MIB, MIB, MIB, MIB, 0 }, 2 * MIB, 0);

	cr_assert(took > 380 && took < 430, "%u", took);
	cr_assert_leq(longest, S / 8);
}

Test(drain_rate, the_time_of_the_copy_itself_counts)
{
	unsigned took = drain((const uint64_t[]){ 8 * MIB, 0 }, 2 * MIB, S / 10);

	cr_assert(took > 380 && took < 430, "%u", took);
	cr_assert_leq(slept, S);
}

Test(drain_rate, a_disk_that_is_slower_is_not_waited_for)
{
	drain((const uint64_t[]){ 8 * MIB, 0 }, 64 * MIB, S);
	cr_assert_leq(slept, S / 64, "but for the last piece, which took no time");
}

Test(drain_rate, a_low_rate_has_long_pauses)
{
	unsigned took = drain((const uint64_t[]){ MIB / 2, 0 }, 65536, 0);

	cr_assert(took > 680 && took < 820, "%u", took);
	cr_assert_eq(longest, S);
}

Test(drain_rate, a_signal_shortens_no_pause)
{
	unsigned took;

	interrupts = true;
	took = drain((const uint64_t[]){ 8 * MIB, 0 }, 2 * MIB, 0);
	cr_assert(took > 380 && took < 420, "%u", took);
}

/* ---- past the page cache ---- */

#define ODD (2 * MIB + 1000)

static bool refuses_direct;
static unsigned nr_direct, nr_through;

static ssize_t direct_pwrite(int fd, const void *buf, size_t len, off_t off)
{
	if (len < 65536)
		return real_pwrite(fd, buf, len, off);
	if (!(fcntl(fd, F_GETFL) & O_DIRECT)) {
		nr_through++;
		return real_pwrite(fd, buf, len, off);
	}
	nr_direct++;
	errno = EINVAL;
	return refuses_direct ? -1 : real_pwrite(fd, buf, len, off);
}

/* tmpfs of an older kernel has no such writes. */
static bool has_direct(void)
{
	char path[PATH_MAX];
	int fd;

	lpath("probe", path);
	fd = open(path, O_RDWR | O_CREAT | O_DIRECT, 0600);
	if (fd < 0)
		return false;
	close(fd);
	unlink(path);
	return true;
}

static void drain_directly(uint64_t rate)
{
	struct plfs_drain d = { .rate = rate };
	struct lfile l;

	cr_assert_eq(in_child(write_files, (void *)(const uint64_t[]){ ODD, 0 }), 0);
	real_pwrite = sys.pwrite;
	sys.pwrite = direct_pwrite;
	cr_assert_eq(plfs_places_in(near_dir, drain_top, &d), 0);
	sys_init();
	cr_assert_eq(near_count("data."), 0);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, ODD, 1), 0);
	cr_assert_eq(lclose(&l), 0);
}

Test(drain_rate, with_a_rate_whole_pages_are_copied_past_the_page_cache)
{
	if (!has_direct())
		cr_skip_test("no O_DIRECT here");
	drain_directly(64 * MIB);
	cr_assert_geq(nr_direct, 2);
}

Test(drain_rate, where_that_is_refused_they_go_through_it)
{
	if (!has_direct())
		cr_skip_test("no O_DIRECT here");
	refuses_direct = true;
	drain_directly(64 * MIB);
	cr_assert_eq(nr_direct, 1);
	cr_assert_geq(nr_through, 2);
}

Test(drain_rate, without_a_rate_all_goes_through_it)
{
	drain_directly(0);
	cr_assert_eq(nr_direct, 0);
}
