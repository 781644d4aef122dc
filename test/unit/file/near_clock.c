/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hosts whose clocks are an hour apart, with logs in places of their own, whose times are those of the host.
 * The backend's times are those of its server. What a close and an open separate is in order all the same.
 */
#include "test/lib/near.h"

#include "core/backend/mount.h"
#include "core/base/sys.h"
#include "core/plfs_admin.h"

#include <criterion/criterion.h>

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEN 300000

static void setup(void)
{
	char path[PATH_MAX];

	near_setup(",drain=none");
	lpath("a", path)->store.remote = true;
}

TestSuite(near_clock, .init = setup, .fini = near_remove);

static int (*true_clock)(clockid_t clock, struct timespec *ts);
static int (*true_fstat)(int fd, struct stat *st);

static int clock_ahead(clockid_t clock, struct timespec *ts)
{
	int ret = true_clock(clock, ts);

	ts->tv_sec += clock == CLOCK_REALTIME ? 3600 : 0;
	return ret;
}

static int fstat_of_host(int fd, struct stat *st)
{
	char link[64], path[PATH_MAX] = "";
	int ret = true_fstat(fd, st);

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (!ret && readlink(link, path, sizeof(path) - 1) > 0 && !strncmp(path, near_dir, strlen(near_dir)))
		st->st_ctim.tv_sec += 3600;
	return ret;
}

/* From here on this process is of a host that is ahead. */
static void be_ahead(void)
{
	be_host("ahead");
	true_clock = sys.clock_gettime;
	true_fstat = sys.fstat;
	sys.clock_gettime = clock_ahead;
	sys.fstat = fstat_of_host;
}

static int write_ahead(void *arg)
{
	struct lfile l;

	(void)arg;
	be_ahead();
	l = made("a");
	return lfill(&l, 0, LEN, 1) != LEN || lclose(&l);
}

static int write_ahead_and_die(void *arg)
{
	struct lfile l;

	(void)arg;
	be_ahead();
	l = made("a");
	if (lfill(&l, 0, LEN, 1) != LEN)
		return 1;
	return raise(SIGKILL);
}

static int drain_ahead(void *arg)
{
	struct plfs_drain d = { 0 };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("a", path);

	(void)arg;
	be_ahead();
	return plfs_drain_file(m, AT_FDCWD, path, &d) || !d.nr_logs;
}

static int overwrite(void *arg)
{
	struct lfile l;

	(void)arg;
	near_go_elsewhere();
	l = lopen("a", O_WRONLY);
	return lfill(&l, 1000, 1000, 2) != 1000 || lclose(&l);
}

static int read_it(void *arg)
{
	struct lfile l = lopen("a", O_RDONLY);

	(void)arg;
	return lcheck(&l, 0, 1000, 1) || lcheck(&l, 1000, 1000, 2) || lcheck(&l, 2000, LEN - 2000, 1) ||
	       lclose(&l);
}

Test(near_clock, an_overwrite_is_later_than_what_a_host_that_is_ahead_has_closed)
{
	cr_assert_eq(in_child(write_ahead, NULL), 0);
	cr_assert_eq(in_child(overwrite, NULL), 0);
	cr_assert_eq(in_child(drain_ahead, NULL), 0);
	cr_assert_eq(in_child(read_it, NULL), 0);
}

Test(near_clock, an_overwrite_is_later_than_what_was_drained)
{
	cr_assert_eq(in_child(write_ahead, NULL), 0);
	cr_assert_eq(in_child(drain_ahead, NULL), 0);
	cr_assert_eq(in_child(overwrite, NULL), 0);
	cr_assert_eq(in_child(read_it, NULL), 0);
}

Test(near_clock, an_overwrite_is_later_than_what_was_drained_of_a_killed_process)
{
	pid_t pid = start_child(write_ahead_and_die, NULL);
	int status;

	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFSIGNALED(status));
	cr_assert_eq(in_child(drain_ahead, NULL), 0);
	cr_assert_eq(in_child(overwrite, NULL), 0);
	cr_assert_eq(in_child(read_it, NULL), 0);
}
