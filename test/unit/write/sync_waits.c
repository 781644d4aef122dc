/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes of a host sync a file one at a time. One that is stopped in its sync keeps nobody from anything
 * for good: other threads of who waits for it go on reading and writing, and the wait ends. And what somebody
 * has synced needs not be synced again: that and no more.
 */
#include "test/lib/scratch.h"

#include "test/lib/calls.h"

#include <criterion/criterion.h>

TestSuite(sync_waits, .init = scratch_setup, .fini = scratch_remove, .timeout = 60);
TestSuite(sync_again, .init = scratch_setup, .fini = scratch_remove, .timeout = 60);

static int nr_syncs;

/* The first is of its own log; the next comes with the lock. */
static int stop_at_second_sync(enum call call)
{
	if ((call == CALL_FSYNC || call == CALL_FDATASYNC) && ++nr_syncs == 2)
		raise(SIGSTOP);
	return 0;
}

static int write_and_stop_in_sync(void *arg)
{
	struct lfile l = made("file");

	(void)arg;
	if (lfill(&l, 0, 1000, 1) != 1000)
		return 1;
	calls_intercept();
	on_call = stop_at_second_sync;
	return plfs_sync(l.f) || lclose(&l);
}

static pid_t start_stopped(void)
{
	pid_t pid = start_child(write_and_stop_in_sync, NULL);
	int status;

	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	cr_assert(WIFSTOPPED(status));
	return pid;
}

static bool synced;

static void *sync_it(void *arg)
{
	struct lfile *l = arg;
	int ret = plfs_sync(l->f);

	__atomic_store_n(&synced, true, __ATOMIC_SEQ_CST);
	return (void *)(intptr_t)ret;
}

Test(sync_waits, other_threads_read_and_write_while_one_waits_for_another_process)
{
	pid_t pid = start_stopped();
	struct lfile l = lopen("file", O_RDWR);
	pthread_t thread;
	void *ret;

	plfs_sync_patience_ms = 3600 * 1000;
	cr_assert_eq(lfill(&l, 1000, 1000, 2), 1000);
	cr_assert_eq(pthread_create(&thread, NULL, sync_it, &l), 0);
	for (int i = 0; i < 200; i++) { /* it comes to wait meanwhile */
		cr_assert_eq(lfill(&l, 2000, 1000, 3), 1000);
		cr_assert_eq(lcheck(&l, 0, 1000, 1), 0);
		cr_assert(!__atomic_load_n(&synced, __ATOMIC_SEQ_CST));
		usleep(1000);
	}
	kill(pid, SIGCONT);
	cr_assert_eq(wait_child(pid), 0);
	pthread_join(thread, &ret);
	cr_assert_null(ret);
	lclose(&l);
}

Test(sync_waits, a_stopped_process_is_not_waited_for_for_ever)
{
	pid_t pid = start_stopped();
	struct lfile l = lopen("file", O_RDWR);

	plfs_sync_patience_ms = 50;
	cr_assert_eq(lfill(&l, 1000, 1000, 2), 1000);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(plfs_sync(l.f), 0);
	plfs_sync_all();
	kill(pid, SIGCONT);
	cr_assert_eq(wait_child(pid), 0);
	cr_assert_eq(plfs_sync(l.f), 0);
	cr_assert_eq(lcheck(&l, 0, 1000, 1), 0);
	cr_assert_eq(lcheck(&l, 1000, 1000, 2), 0);
	lclose(&l);
}

/* ---- what has been synced already ---- */

static bool is_open_as(int fd, const char *part)
{
	char link[64], path[PATH_MAX] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return readlink(link, path, sizeof(path) - 1) > 0 && strstr(path, part);
}

/* File systems give the inode of a file that was removed to the next. */
static int (*real_statx)(int dirfd, const char *path, int flags, unsigned mask, struct statx *stx);
static int (*real_fstat)(int fd, struct stat *st);
static int (*real_fdatasync)(int fd);
static int nr_logs_synced;

static int one_inode_statx(int dirfd, const char *path, int flags, unsigned mask, struct statx *stx)
{
	int ret = real_statx(dirfd, path, flags, mask, stx);

	if (!ret && is_open_as(dirfd, "/index."))
		stx->stx_ino = 4711;
	return ret;
}

static int one_inode_fstat(int fd, struct stat *st)
{
	int ret = real_fstat(fd, st);

	if (!ret && is_open_as(fd, "/index."))
		st->st_ino = 4711;
	return ret;
}

static int count_fdatasync(int fd)
{
	nr_logs_synced += is_open_as(fd, "/data.");
	return real_fdatasync(fd);
}

static int write_and_close(void *arg)
{
	struct lfile l = made("file");

	(void)arg;
	return lfill(&l, 0, 1000, 1) != 1000 || lclose(&l);
}

/* How many logs a sync finds to be synced. */
static int sync_file(void)
{
	struct lfile l = lopen("file", O_RDWR);

	nr_logs_synced = 0;
	cr_assert_eq(plfs_sync(l.f), 0);
	cr_assert_eq(lclose(&l), 0);
	return nr_logs_synced;
}

Test(sync_again, a_node_index_is_not_taken_for_one_that_was_removed)
{
	struct lfile l;

	cr_assert_eq(in_child(write_and_close, NULL), 0);
	real_statx = sys.statx;
	real_fstat = sys.fstat;
	real_fdatasync = sys.fdatasync;
	sys.statx = one_inode_statx;
	sys.fstat = one_inode_fstat;
	sys.fdatasync = count_fdatasync;
	cr_assert_eq(sync_file(), 1);
	l = lopen("file", O_RDWR | O_TRUNC);
	cr_assert_eq(lclose(&l), 0);
	cr_assert_eq(count_files("index."), 0);
	cr_assert_eq(in_child(write_and_close, NULL), 0);
	cr_assert_eq(count_files("index."), 1);
	cr_assert_eq(sync_file(), 1);
}
