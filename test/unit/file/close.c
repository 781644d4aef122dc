/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files whose close() tells that bytes did not arrive, as NFS does when a quota is used up: what the program
 * is told, and what stays.
 */
#include "test/lib/scratch.h"

#include "test/lib/calls.h"

#include <criterion/criterion.h>

#define LEN 200000

TestSuite(close, .init = scratch_setup, .fini = scratch_remove);

static int (*real_close)(int fd);
static const char *bad_name;
static int bad_errno;

/* It is closed in any case. */
static int close_badly(int fd)
{
	char link_name[64], name[PATH_MAX] = "";

	snprintf(link_name, sizeof(link_name), "/proc/self/fd/%d", fd);
	if (readlink(link_name, name, sizeof(name) - 1) < 0)
		*name = '\0';
	real_close(fd);
	if (!bad_name || !strstr(name, bad_name))
		return 0;
	errno = bad_errno;
	return -1;
}

/* What plfs_close() returns when the file whose name has @name in it is closed with that error. */
static int close_with(const char *name, int err)
{
	struct lfile l = made("a");
	int ret, fds;

	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	real_close = sys.close;
	sys.close = close_badly;
	bad_name = name;
	bad_errno = err;
	ret = lclose(&l);
	bad_name = NULL;
	sys.close = real_close;
	fds = count_fds();
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, LEN, 1), 0);
	lclose(&l);
	cr_assert_eq(count_fds(), fds);
	return ret;
}

Test(close, reports_that_bytes_of_the_log_did_not_arrive)
{
	static const int errors[] = { EDQUOT, ENOSPC, EIO };

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		cr_assert_eq(close_with("/data.", errors[i]), -errors[i]);
	cr_assert_eq(close_with("/data.", EINTR), 0);
}

/* Then the live file has the index still. */
Test(close, keeps_the_live_file_where_the_index_block_did_not_arrive)
{
	cr_assert_eq(close_with("/index.", EDQUOT), 0);
	cr_assert_eq(count_files("live."), 1);
}

Test(close, of_anything_else_is_nobodys_business)
{
	cr_assert_eq(close_with("/notice.", EIO), 0);
	cr_assert_eq(count_files("live."), 0);
}

static int no_room_for_the_size(enum call call)
{
	return call == CALL_FALLOCATE || call == CALL_FTRUNCATE ? ENOSPC : 0;
}

Test(close, that_could_not_publish_the_size_is_told_by_a_sync_through_what_only_reads)
{
	struct lfile l = made("a"), r;

	cr_assert_eq(lfill(&l, 0, 100, 1), 100);
	cr_assert_eq(plfs_commit(l.f), 0);
	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	r = lopen("a", O_RDONLY);
	calls_intercept();
	on_call = no_room_for_the_size;
	lclose(&l);
	on_call = NULL;
	cr_assert_eq(plfs_sync(r.f), -EIO);
	cr_assert_eq(lcheck(&r, 0, LEN, 1), 0);
	lclose(&r);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, LEN, 1), 0);
	lclose(&l);
}
