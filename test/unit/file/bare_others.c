/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small files, which stay in their stubs: what happens to who is at one while somebody else claims, cuts,
 * moves or removes it.
 */
#include "test/lib/scratch.h"

#include "test/lib/calls.h"
#include "test/lib/flags.h"
#include "core/file/bare.h"

#include <criterion/criterion.h>

#define SMALL (64 * 1024)
#define BEYOND (BARE_SHARED * SMALL) /* a write that ends behind this makes a log */

TestSuite(bare_others, .init = scratch_setup_small, .fini = scratch_remove, .timeout = 300);

static int writes_large(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	if (lfill(&l, 50, 100, 2) != 100 || lfill(&l, BEYOND, 100, 2) != 100)
		return 1;
	raise_flag(&shared->claimed);
	await(&shared->done);
	return lclose(&l);
}

Test(bare_others, a_writer_from_before_the_claim_goes_on_in_a_log)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	pid_t pid;

	share();
	lfill(&l, 0, 200, 1);
	pid = start_child(writes_large, NULL);
	await(&shared->claimed);
	cr_assert_eq(lcheck(&l, 0, 50, 1) | lcheck(&l, 50, 100, 2) | lcheck(&l, 150, 50, 1), 0);
	cr_assert_eq(lcheck(&l, BEYOND, 100, 2), 0);
	lfill(&l, 100, 10, 3);
	cr_assert_eq(count_files("data."), 2);
	cr_assert_eq(lcheck(&l, 50, 50, 2) | lcheck(&l, 100, 10, 3), 0);
	raise_flag(&shared->done);
	cr_assert_eq(wait_child(pid), 0);
	cr_assert_eq(lcheck(&l, 50, 50, 2) | lcheck(&l, 100, 10, 3) | lcheck(&l, 110, 40, 2), 0);
	lclose(&l);
}

Test(bare_others, a_mode_that_is_changed_beside_the_claim_is_the_containers)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	char path[PATH_MAX];
	struct stat st;
	pid_t pid;

	share();
	lfill(&l, 0, 200, 1);
	pid = start_child(writes_large, NULL);
	await(&shared->claimed);
	cr_assert(find_file("data.", path) && !stat(path, &st));
	cr_assert_neq(st.st_mode & 0077, 0);
	lpath("a", path);
	cr_assert_eq(plfs_chmod(AT_FDCWD, path, 0600, 0), 0);
	cr_assert(find_file("data.", path) && !stat(path, &st));
	cr_assert_eq(st.st_mode & 0077, 0);
	raise_flag(&shared->done);
	cr_assert_eq(wait_child(pid), 0);
	lclose(&l);
}

Test(bare_others, a_reader_sees_each_write_whether_in_the_stub_or_a_log)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT), r = { 0 };
	pid_t pid;

	share();
	lfill(&l, 0, 200, 1);
	r = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&r, 0, 200, 1), 0);
	lfill(&l, 0, 200, 4);
	cr_assert_eq(lcheck(&r, 0, 200, 4), 0);
	pid = start_child(writes_large, NULL);
	await(&shared->claimed);
	cr_assert_eq(lcheck(&r, 50, 100, 2), 0);
	lfill(&l, 60, 10, 5);
	cr_assert_eq(lcheck(&r, 60, 10, 5), 0);
	raise_flag(&shared->done);
	cr_assert_eq(wait_child(pid), 0);
	lclose(&r);
	lclose(&l);
}

static int maps_to_read(void *arg)
{
	struct stat before, after;
	struct lfile l;

	lclose(arg); /* the one who writes is another process */
	l = lopen("a", O_RDONLY);
	if (fstat(l.fd, &before) || plfs_in_body(l.f, PLFS_MAP_READ) != 1 || fstat(l.fd, &after))
		return 1;
	return before.st_mtim.tv_sec != after.st_mtim.tv_sec ||
	       before.st_mtim.tv_nsec != after.st_mtim.tv_nsec || lclose(&l);
}

Test(bare_others, a_mapping_shows_what_another_process_writes_beyond_the_limit)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	char byte = 0;

	lfill(&l, 0, 1000, 1);
	cr_assert_eq(in_child(maps_to_read, &l), 0);
	cr_assert_eq(plfs_pwrite(l.f, "new", 3, 0), 3);
	lfill(&l, 1000, SMALL, 2);
	cr_assert_eq(count_files("data."), 0);
	cr_assert_eq(pread(l.fd, &byte, 1, PLFS_BODY_OFF), 1);
	cr_assert_eq(byte, 'n');
	lclose(&l);
}

/* Between the header that names a container and the first log in it. */
static int stop_before_the_log(enum call call)
{
	static int stage;

	if (call == CALL_PWRITE && !stage)
		stage = 1;
	else if (call == CALL_OPENAT && stage == 1) {
		stage = 2;
		raise_flag(&shared->started);
		await(&shared->claimed);
	}
	return 0;
}

static int claims_slowly(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);
	int ret;

	(void)arg;
	calls_intercept();
	on_call = stop_before_the_log;
	ret = lfill(&l, BEYOND, 100, 2) != 100;
	on_call = NULL;
	raise_flag(&shared->done);
	pause();
	return ret;
}

Test(bare_others, a_reader_of_a_container_that_is_still_empty_sees_what_comes)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	pid_t pid;

	share();
	lfill(&l, 0, 200, 1);
	lclose(&l);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 200, 1), 0);
	pid = start_child(claims_slowly, NULL);
	await(&shared->started);
	cr_assert_eq(lcheck(&l, 0, 200, 1), 0);
	raise_flag(&shared->claimed);
	await(&shared->done);
	cr_assert_eq(lcheck(&l, BEYOND, 100, 2), 0);
	cr_assert_eq(lcheck(&l, 0, 200, 1), 0);
	kill(pid, SIGKILL);
	wait_child(pid);
	lclose(&l);
}

/* Nobody may go by a container of which he has not heard. */
static int claims_and_unlinks(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	lfill(&l, BEYOND, 100, 2);
	lunlink("a");
	return lclose(&l);
}

Test(bare_others, the_last_to_close_removes_a_container_that_it_has_not_known)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);

	lfill(&l, 0, 100, 1);
	cr_assert_eq(in_child(claims_and_unlinks, NULL), 0);
	cr_assert_eq(count_files("data."), 1);
	lclose(&l);
	cr_assert_eq(count_files("data."), 0);
	cr_assert_eq(count_files(""), 2); /* the format file, and who writes (writer_table.h) */
}

static int unlinked_at;

static int claims_meanwhile(enum call call)
{
	if (call == CALL_UNLINKAT && !unlinked_at++) {
		struct lfile l = lopen("a", O_RDWR);

		lfill(&l, 0, SMALL + 1, 1);
		lclose(&l);
	}
	return 0;
}

Test(bare_others, a_container_made_just_before_the_name_goes_is_removed)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);

	lfill(&l, 0, 100, 1);
	lclose(&l);
	calls_intercept();
	on_call = claims_meanwhile;
	cr_assert_eq(lunlink("a"), 0);
	on_call = NULL;
	cr_assert_eq(count_files("data."), 0);
}

/* ---- a server that makes one user of all, and shows another number than the process has ---- */

static struct sys_table before_squash;

static int squashed_fstat(int fd, struct stat *st)
{
	int ret = before_squash.fstat(fd, st);

	st->st_uid++;
	return ret;
}

static int squashed_fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
	int ret = before_squash.fstatat(dirfd, path, st, flags);

	st->st_uid++;
	return ret;
}

static int writes_as_one_of_all(void *arg)
{
	struct lfile l;

	(void)arg;
	if (seteuid(65534))
		return 2;
	before_squash = sys;
	sys.fstat = squashed_fstat;
	sys.fstatat = squashed_fstatat;
	l = made("squashed");
	return lfill(&l, 0, 100000, 1) != 100000 || lcheck(&l, 0, 100000, 1) || lclose(&l);
}

Test(bare_others, a_user_of_another_number_who_is_the_owner_makes_logs)
{
	char path[PATH_MAX];

	if (geteuid())
		cr_skip_test("only root can become another user");
	lpath("", path);
	cr_assert_eq(chmod(path, 0777), 0);
	cr_assert_eq(in_child(writes_as_one_of_all, NULL), 0);
	cr_assert_eq(count_files("data."), 1);
}
