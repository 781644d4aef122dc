/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trees that strangers may change meanwhile: listed, measured and removed, and nothing else.
 */
#include "test/lib/scratch.h"

#include "core/base/io.h"
#include "core/base/msg.h"
#include "core/store/dirs.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <sys/mount.h>

static int top;

static void setup(void)
{
	sys_init();
	scratch_dir();
	top = open(scratch, O_RDONLY | O_DIRECTORY);
}

TestSuite(dirs, .init = setup, .fini = scratch_remove);

static void make_dir(const char *path)
{
	cr_assert_eq(mkdirat(top, path, 0755), 0, "%s", path);
}

static void make_file(const char *path, size_t len)
{
	int fd = openat(top, path, O_WRONLY | O_CREAT, 0644);

	cr_assert_eq(ftruncate(fd, (off_t)len), 0, "%s", path);
	close(fd);
}

static bool is_there(const char *path)
{
	struct stat st;

	return !fstatat(top, path, &st, AT_SYMLINK_NOFOLLOW);
}

/* All but what begins with "not". */
static bool known(const char *name, int depth, bool dir)
{
	(void)depth, (void)dir;
	return strncmp(name, "not", 3);
}

static int count(void *arg, int fd, const char *name, unsigned char type)
{
	(void)fd, (void)name, (void)type;
	++*(int *)arg;
	return 0;
}

Test(dirs, a_long_listing_has_each_name)
{
	char name[64];
	int nr = 0, fd;

	make_dir("d");
	for (int i = 0; i < 500; i++) {
		snprintf(name, sizeof(name), "d/a name that fills the buffer soon, %d", i);
		make_file(name, 0);
	}
	fd = dirs_open(top, "d");
	cr_assert_eq(dirs_list(fd, count, &nr), 0);
	cr_assert_eq(nr, 500);
	close(fd);
	cr_assert_eq(dirs_remove(top, "d", false, known), 0);
	cr_assert(!is_there("d"));
}

Test(dirs, a_link_is_removed_and_not_followed)
{
	make_dir("d");
	make_dir("d/below");
	make_dir("elsewhere");
	make_file("elsewhere/f", 1);
	cr_assert_eq(symlinkat("../../elsewhere", top, "d/below/link"), 0);
	cr_assert_eq(symlinkat("elsewhere", top, "link"), 0);
	cr_assert_eq(dirs_open(top, "link"), -ELOOP);
	cr_assert_eq(dirs_open(top, "d/below/link"), -ELOOP);
	cr_assert_lt(dirs_remove(top, "link", false, known), 0);
	cr_assert_eq(dirs_remove(top, "d", false, known), 0);
	cr_assert(!is_there("d") && is_there("elsewhere/f"));
}

static int no_openat2(int dirfd, const char *path, struct open_how *how, size_t size)
{
	(void)dirfd, (void)path, (void)how, (void)size;
	errno = ENOSYS;
	return -1;
}

Test(dirs, without_openat2_no_link_on_the_way_is_followed_either)
{
	const char *name;
	int fd;

	make_dir("d");
	make_dir("d/below");
	make_dir("d/below/last");
	cr_assert_eq(symlinkat("below", top, "d/link"), 0);
	sys.openat2 = no_openat2;
	cr_assert_eq(dirs_open(top, "d/link/last"), -ELOOP);
	cr_assert_eq(dirs_open(top, "d/link"), -ELOOP);
	cr_assert_lt(dirs_open(top, "d/../d"), 0);
	cr_assert_lt(dirs_open_of(top, "d/link/last/f", &name), 0);
	fd = dirs_open(top, "d//below/last");
	cr_assert_geq(fd, 0);
	close(fd);
	fd = dirs_open_of(top, "d/below/f", &name);
	cr_assert_geq(fd, 0);
	cr_assert_str_eq(name, "f");
	close(fd);
	fd = dirs_open_of(top, "f", &name);
	cr_assert_geq(fd, 0);
	close(fd);
}

/* A part of the same file system has its device number: what it hides, or holds, is nobody's to remove. */
Test(dirs, without_openat2_what_is_mounted_is_not_entered_either)
{
	char from[PATH_MAX], to[PATH_MAX];
	const char *name;

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		cr_skip_test("needs a mount namespace of its own");
	close(top);
	top = open(scratch, O_RDONLY | O_DIRECTORY);
	make_dir("d");
	make_dir("d/a");
	make_dir("other");
	make_dir("other/below");
	make_file("other/f", 1);
	snprintf(from, sizeof(from), "%s/other", scratch);
	snprintf(to, sizeof(to), "%s/d/a", scratch);
	cr_assert_eq(mount(from, to, NULL, MS_BIND, NULL), 0);
	sys.openat2 = no_openat2;
	cr_assert_eq(dirs_open(top, "d/a"), -EXDEV);
	cr_assert_eq(dirs_open(top, "d/a/below"), -EXDEV);
	cr_assert_eq(dirs_open_of(top, "d/a/f", &name), -EXDEV);
	cr_assert_eq(dirs_remove(top, "d", false, known), -EXDEV);
	cr_assert_eq(umount2(to, MNT_DETACH), 0);
	cr_assert(is_there("other/f") && is_there("d/a"));
	cr_assert_eq(dirs_remove(top, "d", false, known), 0);
}

Test(dirs, that_are_to_be_empty_go_only_if_they_are)
{
	make_dir("d");
	make_dir("d/a");
	make_file("d/a/f", 0);
	cr_assert_eq(dirs_remove(top, "d", true, known), -ENOTEMPTY);
	cr_assert(is_there("d/a/f"));
	cr_assert_eq(unlinkat(top, "d/a/f", 0), 0);
	make_dir("d/c");
	cr_assert_eq(dirs_remove(top, "d", true, known), 0);
	cr_assert(!is_there("d"));
	cr_assert_eq(dirs_remove(top, "d", true, known), 0, "it has gone already");
}

Test(dirs, what_is_not_known_stays_with_the_way_to_it)
{
	msg_is_muted = true;
	make_dir("d");
	make_dir("d/a");
	make_dir("d/not this");
	make_file("d/not this/f", 0);
	make_file("d/a/f", 0);
	make_file("d/a/not that", 0);
	make_file("d/f", 0);
	cr_assert_eq(dirs_remove(top, "d", false, known), -ENOTEMPTY);
	cr_assert(!is_there("d/f") && !is_there("d/a/f"));
	cr_assert(is_there("d/a/not that") && is_there("d/not this/f"));
}

Test(dirs, nothing_is_removed_three_levels_down)
{
	msg_is_muted = true;
	make_dir("d");
	make_dir("d/a");
	make_dir("d/a/b");
	make_dir("d/a/b/c");
	make_file("d/a/b/c/f", 0);
	make_file("d/a/b/f", 0);
	make_file("d/a/f", 0);
	cr_assert_eq(dirs_remove(top, "d", false, known), -ENOTEMPTY);
	cr_assert(is_there("d/a/b/c/f") && !is_there("d/a/b/f") && !is_there("d/a/f"));
	cr_assert_eq(dirs_remove(top, "d/a", false, known), 0);
	cr_assert_eq(dirs_remove(top, "d", false, known), 0);
}

/* Root removes what a user has moved into a container that only he could write to. */
Test(dirs, of_another_user_are_not_entered)
{
	if (geteuid())
		cr_skip_test("only root can give files away");
	msg_is_muted = true;
	make_dir("d");
	make_dir("d/a");
	make_file("d/a/f", 0);
	cr_assert_eq(fchownat(top, "d", 41003, 41003, 0), 0);
	cr_assert_eq(fchownat(top, "d/a", 41001, 41001, 0), 0);
	cr_assert_eq(dirs_remove(top, "d", false, known), -ENOTEMPTY);
	cr_assert(is_there("d/a/f"));
	cr_assert_eq(fchownat(top, "d/a", 41003, 41003, 0), 0);
	cr_assert_eq(dirs_remove(top, "d", false, known), 0);
}

static int (*really_unlink)(int dirfd, const char *path, int flags);
static int nr_late;

/* Another process makes one more file as soon as the directory is empty. */
static int unlink_and_make(int dirfd, const char *path, int flags)
{
	if (flags == AT_REMOVEDIR && nr_late > 0) {
		nr_late--;
		make_file("d/late", 0);
	}
	return really_unlink(dirfd, path, flags);
}

Test(dirs, what_comes_late_is_removed_as_well)
{
	really_unlink = sys.unlinkat;
	sys.unlinkat = unlink_and_make;
	make_dir("d");
	nr_late = 2;
	cr_assert_eq(dirs_remove(top, "d", false, known), 0);
	cr_assert(!is_there("d"));
	make_dir("d");
	nr_late = 9;
	cr_assert_eq(dirs_remove(top, "d", false, known), -ENOTEMPTY, "but not for ever");
	cr_assert_eq(nr_late, 6);
}

Test(dirs, all_that_is_in_a_tree_is_measured)
{
	struct dirs_sum sum;

	make_dir("d");
	make_dir("d/a");
	make_file("d/f", 0);
	make_file("d/a/g", 0);
	cr_assert_eq(symlinkat("f", top, "d/link"), 0);
	cr_assert_eq(dirs_measure(top, "d", &sum), 0);
	cr_assert_eq(sum.nr_files, 3);
	cr_assert_gt(sum.changed_ns, 0);
}

Test(dirs, leave_no_descriptor_behind)
{
	int fds = count_fds();

	make_dir("d");
	make_dir("d/a");
	make_file("d/a/f", 0);
	cr_assert_eq(dirs_sync_parent(top, "d/a/f"), 0);
	cr_assert_eq(dirs_sync_parent(top, "d"), 0);
	cr_assert_eq(dirs_sync_parent(top, "none/f"), -ENOENT);
	cr_assert_eq(dirs_remove(top, "d", false, known), 0);
	cr_assert_eq(count_fds(), fds);
}
