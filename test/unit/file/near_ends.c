/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where logs near end: the place is full, its disk fails, or the log is long enough to be moved while its
 * process writes on.
 */
#include "test/lib/near.h"

#include "core/backend/mount.h"
#include "core/base/sys.h"
#include "core/plfs_admin.h"

#include <criterion/criterion.h>

TestSuite(near_ends, .fini = near_remove);

/* ---- a place that fails ---- */

#define LEN 300000

static ssize_t (*real_pwrite)(int fd, const void *buf, size_t len, off_t off);
static ssize_t (*real_pwritev)(int fd, const struct iovec *iov, int cnt, off_t off);

static bool is_near(int fd)
{
	char link[64], path[PATH_MAX] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	errno = EIO;
	return readlink(link, path, sizeof(path) - 1) > 0 && !strncmp(path, near_dir, strlen(near_dir));
}

static ssize_t fail_pwrite(int fd, const void *buf, size_t len, off_t off)
{
	return is_near(fd) ? -1 : real_pwrite(fd, buf, len, off);
}

static ssize_t fail_pwritev(int fd, const struct iovec *iov, int cnt, off_t off)
{
	return is_near(fd) ? -1 : real_pwritev(fd, iov, cnt, off);
}

static int write_until_it_fails(void *arg)
{
	struct lfile l = made("a");

	(void)arg;
	if (lfill(&l, LEN + 1000, 1000, 1) != 1000 || plfs_sync(l.f)) /* home knows of this host */
		return 1;
	if (lfill(&l, 0, LEN, 1) != LEN || lfill(&l, LEN, 1000, 1) != 1000)
		return 1;
	real_pwrite = sys.pwrite;
	real_pwritev = sys.pwritev;
	sys.pwrite = fail_pwrite;
	sys.pwritev = fail_pwritev;
	return lclose(&l) ? 2 : 0;
}

static int read_none(void *arg)
{
	struct lfile l = lopen("a", O_RDONLY);

	(void)arg;
	return lcheck(&l, LEN + 1000, 1000, 1) || lcheck(&l, 0, LEN, 1) != -EIO ||
	       lcheck(&l, LEN, 1000, 1) != -EIO || lclose(&l);
}

/* The live file keeps what the log does not take. With the disk it goes as well: the records are at home. */
Test(near_ends, what_a_disk_that_fails_takes_is_an_error_and_no_hole)
{
	near_setup(",drain=none");
	cr_assert_eq(in_child(write_until_it_fails, NULL), 0);
	near_lose();
	cr_assert_eq(in_child(read_none, NULL), 0);
}

/* ---- a full place ---- */

#define BIG (8 << 20)

static int write_big(void *arg)
{
	struct lfile l = made("a");

	(void)arg;
	for (off_t off = 0; off < BIG; off += 100000)
		if (lfill(&l, off, 100000, 1) != 100000)
			return 1;
	for (off_t off = 0; off < BIG; off += 1000000) /* small ones */
		if (lfill(&l, off, 100, 2) != 100)
			return 2;
	return lclose(&l) ? 3 : 0;
}

static int read_big(void *arg)
{
	struct lfile l = lopen("a", O_RDONLY);

	(void)arg;
	for (off_t off = 0; off < BIG; off += 1000000)
		if (lcheck(&l, off, 100, 2) || lcheck(&l, off + 100, 388000, 1))
			return 1;
	return lclose(&l);
}

Test(near_ends, where_the_budget_ends_the_next_log_is_at_home)
{
	near_setup(",near-max=4M");
	cr_assert_eq(in_child(write_big, NULL), 0);
	cr_assert_eq(near_count("data."), 1);
	cr_assert_eq(near_count("live."), 0);
	cr_assert_eq(count_files("data."), 1);
	cr_assert_eq(in_child(read_big, NULL), 0);
}

Test(near_ends, a_budget_too_small_for_any_log_leaves_all_at_home)
{
	near_setup(",near-max=1");
	cr_assert_eq(in_child(write_big, NULL), 0);
	cr_assert_eq(near_count("data."), 0);
	cr_assert_eq(in_child(read_big, NULL), 0);
}

Test(near_ends, the_budget_counts_what_all_files_have)
{
	struct lfile l;

	near_setup(",near-max=4M");
	cr_assert_eq(in_child(write_big, NULL), 0);
	l = made("b");
	cr_assert_eq(lfill(&l, 0, 3 << 20, 1), 3 << 20);
	cr_assert_eq(lclose(&l), 0);
	cr_assert_leq(near_count("data."), 2);
	cr_assert_gt(count_files("data."), 1);
}

/* ---- a long log ---- */

static int drain_it(void *arg)
{
	struct plfs_drain d = { 0 };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("a", path);

	(void)arg;
	return plfs_drain_file(m, AT_FDCWD, path, &d) ? 100 : (int)d.nr_logs;
}

/* A stage holds 64 KiB and more: that much longer a log may become. */
Test(near_ends, a_long_log_is_moved_while_its_process_writes_on)
{
	struct lfile l;

	near_setup(",drain=none,log-max=3M");
	l = made("a");
	for (off_t off = 0; off < BIG; off += 1000)
		cr_assert_eq(lfill(&l, off, 1000, 1), 1000);
	cr_assert_eq(near_count("data."), 3);
	cr_assert_eq(near_count("live."), 1);
	cr_assert_eq(in_child(drain_it, NULL), 2, "all but the one that is written");
	cr_assert_eq(near_count("data."), 1);
	cr_assert_eq(lcheck(&l, 0, BIG / 1000 * 1000, 1), 0);
	cr_assert_eq(lclose(&l), 0);
	cr_assert_eq(in_child(drain_it, NULL), 1);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, BIG / 1000 * 1000, 1), 0);
	cr_assert_eq(lclose(&l), 0);
}

static int overwrite(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	return lfill(&l, 5000, 5000, 2) != 5000 || lclose(&l);
}

/* Each write ends a log, and what others write between them is not put below. */
Test(near_ends, the_order_of_writes_is_kept_over_many_logs)
{
	struct lfile l;

	near_setup(",drain=none,log-max=1");
	l = made("a");
	cr_assert_eq(lfill(&l, 0, 10000, 1), 10000);
	cr_assert_eq(in_child(overwrite, NULL), 0);
	cr_assert_eq(lcheck(&l, 5000, 5000, 2), 0);
	cr_assert_eq(lfill(&l, 7000, 1000, 3), 1000);
	cr_assert_eq(near_count("data."), 3);
	cr_assert_eq(lcheck(&l, 0, 5000, 1) || lcheck(&l, 5000, 2000, 2) || lcheck(&l, 7000, 1000, 3) ||
			     lcheck(&l, 8000, 2000, 2),
		     0);
	cr_assert_eq(lclose(&l), 0);
}
