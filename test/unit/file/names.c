/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Logical files under their names: unlinked, replaced, linked, created by many at once; and their modes.
 */
#include "test/lib/scratch.h"

#include <criterion/criterion.h>

#define SUITE(name) TestSuite(name, .init = scratch_setup, .fini = scratch_remove)

SUITE(file_names);
SUITE(file_mode);

static void setup_flat(void)
{
	scratch_map("{mode=flat}");
}

TestSuite(file_flat, .init = setup_flat, .fini = scratch_remove);

/* It would be taken for a damaged stub. */
Test(file_flat, a_plain_file_is_not_made_with_the_mark_of_a_stub)
{
	char path[PATH_MAX], buf[4] = "";
	struct plfs_mount *m = lpath("a", path);
	struct plfs_file *f;
	int fd = plfs_open(m, AT_FDCWD, path, O_RDWR | O_CREAT, 01644, &f);

	cr_assert_geq(fd, 0);
	cr_assert_null(f);
	cr_assert_eq(write(fd, "abc", 3), 3);
	close(fd);
	fd = plfs_open(m, AT_FDCWD, path, O_RDONLY, 0, &f);
	cr_assert_geq(fd, 0);
	cr_assert_null(f);
	cr_assert_eq(read(fd, buf, 4), 3);
	close(fd);
}

static int (*real_openat)(int dirfd, const char *path, int flags, ...);
static int nr_made;

/* Another process removes the name as soon as it is there. */
static int openat_and_unlink(int dirfd, const char *path, int flags, ...)
{
	int fd = real_openat(dirfd, path, flags, 0644 | S_ISVTX);

	if (fd >= 0 && flags & O_CREAT) {
		nr_made++;
		unlinkat(dirfd, path, 0);
	}
	return fd;
}

Test(file_names, one_that_is_removed_as_soon_as_it_is_made_is_not_made_again)
{
	char path[PATH_MAX];
	struct lfile l;

	real_openat = sys.openat;
	sys.openat = openat_and_unlink;
	l = made("a");
	sys.openat = real_openat;
	lpath("a", path);
	cr_assert_eq(nr_made, 1);
	cr_assert_eq(access(path, F_OK), -1);
	cr_assert_eq(lfill(&l, 0, 1000, 1), 1000);
	cr_assert_eq(lcheck(&l, 0, 1000, 1), 0);
	lclose(&l);
	cr_assert_eq(count_files("data."), 0);
}

static int (*real_unlinkat)(int dirfd, const char *path, int flags);
static struct lfile to_close;

/* Another thread closes it just before. */
static int close_and_unlinkat(int dirfd, const char *path, int flags)
{
	sys.unlinkat = real_unlinkat;
	cr_assert_eq(lclose(&to_close), 0);
	return real_unlinkat(dirfd, path, flags);
}

Test(file_names, an_unlink_beside_the_last_close_leaves_no_container)
{
	to_close = made("a");
	cr_assert_eq(lfill(&to_close, 0, 1000, 1), 1000);
	real_unlinkat = sys.unlinkat;
	sys.unlinkat = close_and_unlinkat;
	cr_assert_eq(lunlink("a"), 0);
	cr_assert_eq(count_files("data."), 0);
}

Test(file_names, unlink_removes_stub_and_container)
{
	struct lfile l = made("a");
	char path[PATH_MAX];

	cr_assert_eq(lfill(&l, 0, 1000, 1), 1000);
	lclose(&l);
	cr_assert_eq(count_files("data."), 1);
	cr_assert_eq(lunlink("a"), 0);
	lpath("a", path);
	cr_assert_eq(access(path, F_OK), -1);
	cr_assert_eq(count_files("data."), 0);
	cr_assert_eq(count_files("index."), 0);
	cr_assert_eq(lunlink("a"), -ENOENT);
}

Test(file_names, an_unlinked_file_works_until_its_last_close)
{
	struct lfile a = made("a"), b = lopen("a", O_RDWR);

	cr_assert_eq(lfill(&a, 0, 1000, 1), 1000);
	cr_assert_eq(lunlink("a"), 0);
	cr_assert_eq(lfill(&b, 1000, 100000, 1), 100000);
	lclose(&a);
	cr_assert_eq(lcheck(&b, 0, 101000, 1), 0);
	cr_assert_eq(lfill(&b, 0, 10, 2), 10);
	cr_assert_eq(lcheck(&b, 0, 10, 2), 0);
	cr_assert_geq(count_files("data."), 1);
	lclose(&b);
	cr_assert_eq(count_files("data."), 0);
	cr_assert_eq(count_files("live."), 0);
}

static int unlink_a(void *arg)
{
	(void)arg;
	return lunlink("a") ? 1 : 0;
}

static int rename_over_a(void *arg)
{
	struct lfile l = made("b");

	(void)arg;
	if (lfill(&l, 0, 100, 2) != 100)
		return 1;
	lclose(&l);
	return lrename("b", "a") ? 2 : 0;
}

static void taken_away(int (*fn)(void *))
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, 1000, 1), 1000);
	lclose(&l);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(in_child(fn, NULL), 0);
	cr_assert_eq(lcheck(&l, 0, 1000, 1), 0);
	lclose(&l);
}

Test(file_names, a_file_unlinked_by_another_process_is_read_on)
{
	taken_away(unlink_a);
	cr_assert_eq(count_files("data."), 0);
}

Test(file_names, a_file_replaced_by_another_process_is_read_on)
{
	struct lfile l;

	taken_away(rename_over_a);
	cr_assert_eq(count_files("data."), 1);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(plfs_size(l.f), 100);
	cr_assert_eq(lcheck(&l, 0, 100, 2), 0);
	lclose(&l);
}

static int (*real_fcntl)(int fd, int cmd, ...);
static int (*instead)(void *arg);

/* Just before the opener says that it has the file open, another process acts. */
static int act_before_mark(int fd, int cmd, ...)
{
	int (*fn)(void *arg) = instead;
	va_list args;
	void *arg;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	if (cmd == F_OFD_SETLK && fn) {
		pid_t pid;

		instead = NULL;
		pid = fork_child();
		if (!pid)
			_exit(fn(NULL));
		wait_child(pid);
	}
	return real_fcntl(fd, cmd, arg);
}

Test(file_names, an_open_that_meets_an_unlink_finds_all_or_nothing)
{
	struct lfile l = made("a");
	int ret;

	cr_assert_eq(lfill(&l, 0, 1000, 1), 1000);
	lclose(&l);
	real_fcntl = sys.fcntl;
	sys.fcntl = act_before_mark;
	instead = unlink_a;
	ret = ltry(&l, "a", O_RDONLY);
	cr_assert_null(instead);
	if (ret) {
		cr_assert_eq(ret, -ENOENT);
	} else {
		cr_assert_eq(lcheck(&l, 0, 1000, 1), 0);
		lclose(&l);
	}
}

Test(file_names, an_open_that_meets_a_rename_finds_one_or_the_other)
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, 1000, 1), 1000);
	lclose(&l);
	real_fcntl = sys.fcntl;
	sys.fcntl = act_before_mark;
	instead = rename_over_a;
	l = lopen("a", O_RDONLY);
	cr_assert(plfs_size(l.f) == 100 || plfs_size(l.f) == 1000);
	cr_assert_eq(lcheck(&l, 0, (size_t)plfs_size(l.f), plfs_size(l.f) == 100 ? 2 : 1), 0);
	lclose(&l);
}

Test(file_names, rename_replaces_and_removes_the_old_container)
{
	struct lfile l = made("a"), k = made("b");

	lfill(&l, 0, 1000, 1);
	lfill(&k, 0, 500, 2);
	lclose(&l);
	lclose(&k);
	cr_assert_eq(lrename("b", "a"), 0);
	cr_assert_eq(count_files("data."), 1);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(plfs_size(l.f), 500);
	cr_assert_eq(lcheck(&l, 0, 500, 2), 0);
	lclose(&l);
}

Test(file_names, hard_links_share_the_data_and_the_last_one_removes_it)
{
	struct lfile l = made("a");
	char a[PATH_MAX], b[PATH_MAX];

	lpath("a", a);
	lpath("b", b);
	cr_assert_eq(link(a, b), 0);
	lfill(&l, 0, 1000, 1);
	lclose(&l);
	cr_assert_eq(lunlink("a"), 0);
	l = lopen("b", O_RDWR);
	cr_assert_eq(lcheck(&l, 0, 1000, 1), 0);
	lclose(&l);
	cr_assert_eq(lunlink("b"), 0);
	cr_assert_eq(count_files("data."), 0);
}

Test(file_names, exclusive_creation_of_what_exists_fails)
{
	struct lfile l = made("a");

	lclose(&l);
	cr_assert_eq(ltry(&l, "a", O_RDWR | O_CREAT | O_EXCL), -EEXIST);
	cr_assert_eq(ltry(&l, "b", O_RDWR), -ENOENT);
	cr_assert_eq(ltry(&l, "b/c", O_RDWR | O_CREAT), -ENOENT);
}

static int create_exclusively(void *arg)
{
	struct lfile l;
	int ret = ltry(&l, "x", O_RDWR | O_CREAT | O_EXCL);

	(void)arg;
	return ret == 0 ? 10 : ret == -EEXIST ? 0 : 1;
}

Test(file_names, of_many_exclusive_creators_one_wins)
{
	for (int round = 0; round < 5; round++) {
		pid_t pid[6];
		int winners = 0;

		for (int i = 0; i < 6; i++)
			pid[i] = start_child(create_exclusively, NULL);
		for (int i = 0; i < 6; i++) {
			int code = wait_child(pid[i]);

			cr_assert(code == 0 || code == 10);
			winners += code == 10;
		}
		cr_assert_eq(winners, 1);
		cr_assert_eq(lunlink("x"), 0);
	}
}

/* All create, write their own part and read the others' after they have ended: one container for all. */
static int create_and_write(void *arg)
{
	struct lfile l = lopen("new/x", O_RDWR | O_CREAT);
	int no = *(int *)arg;

	for (int i = 0; i < 20; i++)
		if (lfill(&l, (i * 6 + no) * 100, 100, 1) != 100)
			return 1;
	return lclose(&l) ? 2 : 0;
}

Test(file_names, ranks_that_create_one_file_at_once_share_it)
{
	char dir[PATH_MAX];

	lpath("new", dir);
	cr_assert_eq(mkdir(dir, 0755), 0);
	for (int round = 0; round < 10; round++) {
		pid_t pid[6];
		struct lfile l;

		for (int i = 0; i < 6; i++)
			pid[i] = start_child(create_and_write, &i);
		for (int i = 0; i < 6; i++)
			cr_assert_eq(wait_child(pid[i]), 0);
		l = lopen("new/x", O_RDONLY);
		cr_assert_eq(plfs_size(l.f), 12000);
		cr_assert_eq(lcheck(&l, 0, 12000, 1), 0);
		lclose(&l);
		cr_assert_eq(lunlink("new/x"), 0);
	}
}

/* ---- modes ---- */

Test(file_mode, chmod_reaches_the_container)
{
	struct lfile l = made("a");
	char path[PATH_MAX], data[PATH_MAX];
	struct stat st;

	lpath("a", path);
	lfill(&l, 0, 1000, 1);
	cr_assert_eq(plfs_chmod(AT_FDCWD, path, 0600, 0), 0);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_mode & 07777, 01600);
	cr_assert(find_file("data.", data));
	cr_assert_eq(stat(data, &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0600);
	lclose(&l);
	cr_assert(find_file("index.", data));
	cr_assert_eq(stat(data, &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0600);
	cr_assert_eq(plfs_chmod(AT_FDCWD, path, 0664, 0), 0);
	cr_assert_eq(stat(data, &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0664);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 1000, 1), 0);
	lclose(&l);
}

/* By another process, while this one has the file open and no log of it yet. */
static int change_mode(void *arg)
{
	char path[PATH_MAX];

	lpath("group", path);
	return plfs_chmod(AT_FDCWD, path, *(mode_t *)arg, 0) != 0;
}

static void use_when_the_mode_has_become(mode_t mode)
{
	struct lfile l = made("group"), reader;
	mode_t before = 0664;

	cr_assert_eq(change_mode(&before), 0);
	cr_assert_eq(lfill(&l, 0, 1000, 1), 1000);
	lclose(&l);
	l = lopen("group", O_RDWR);
	reader = lopen("group", O_RDONLY);
	cr_assert_eq(in_child(change_mode, &mode), 0);
	cr_assert_eq(lcheck(&reader, 0, 1000, 1), 0);
	cr_assert_eq(lfill(&l, 1000, 1000, 1), 1000);
	cr_assert_eq(lclose(&l), 0);
	cr_assert_eq(lcheck(&reader, 0, 2000, 1), 0);
	lclose(&reader);
}

Test(file_mode, an_open_file_is_written_when_its_group_may_only_read) { use_when_the_mode_has_become(0640); }
Test(file_mode, an_open_file_is_written_when_it_is_its_owners_alone) { use_when_the_mode_has_become(0600); }

Test(file_mode, a_file_made_without_write_permission_is_written_all_the_same)
{
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("a", path);
	struct lfile l;

	l.fd = plfs_open(m, AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL, 0400, &l.f);
	cr_assert_geq(l.fd, 0);
	cr_assert_eq(lfill(&l, 0, 1000, 1), 1000);
	lclose(&l);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 1000, 1), 0);
	lclose(&l);
}
