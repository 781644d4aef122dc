/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The walk over the names below a backend: each file once, whatever the number of threads, and what it does
 * not enter.
 */
#include "core/admin/walk/walk.h"

#include "test/lib/scratch.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <sys/mount.h>

#define DIRS 20
#define FILES 300

TestSuite(walk, .init = scratch_setup, .fini = scratch_remove);

static unsigned seen[DIRS][FILES], others;
static int last_err;
static char troubled[PATH_MAX];

static void see(void *arg, const struct walk_entry *e)
{
	unsigned dir, file;
	struct stat st;

	(void)arg;
	if (sscanf(e->path, "d%u/sub/f%u", &dir, &file) == 2 && dir < DIRS && file < FILES &&
	    !fstatat(e->dirfd, e->name, &st, AT_SYMLINK_NOFOLLOW))
		__atomic_fetch_add(&seen[dir][file], 1, __ATOMIC_RELAXED);
	else
		__atomic_fetch_add(&others, 1, __ATOMIC_RELAXED);
}

static void note(void *arg, const char *path, int err)
{
	(void)arg;
	last_err = err;
	snprintf(troubled, sizeof(troubled), "%s", path);
}

static void walk(unsigned nr_threads)
{
	char path[PATH_MAX];
	struct walk w = { .m = lpath("", path), .nr_threads = nr_threads, .file = see, .trouble = note };
	const char *const starts[] = { "" };

	memset(seen, 0, sizeof(seen));
	others = 0;
	last_err = 0;
	walk_run(&w, starts, 1);
}

static void make_tree(void)
{
	char path[PATH_MAX];

	for (int d = 0; d < DIRS; d++) {
		snprintf(path, sizeof(path), "%s/d%d", scratch, d);
		mkdir(path, 0755);
		strcat(path, "/sub");
		mkdir(path, 0755);
		for (int f = 0; f < (d ? 10 : FILES); f++) {
			snprintf(path, sizeof(path), "%s/d%d/sub/f%d", scratch, d, f);
			close(open(path, O_WRONLY | O_CREAT, 0644));
		}
	}
}

Test(walk, finds_each_file_once_with_any_number_of_threads)
{
	static const unsigned nr_threads[] = { 0, 1, 2, 7 };
	struct lfile l = made("logical");

	make_tree();
	cr_assert_eq(lfill(&l, 0, 100, 1), 100); /* a container, which has files as well */
	lclose(&l);
	for (size_t i = 0; i < ARRAY_SIZE(nr_threads); i++) {
		walk(nr_threads[i]);
		for (int d = 0; d < DIRS; d++)
			for (int f = 0; f < FILES; f++)
				cr_assert_eq(seen[d][f], f < (d ? 10 : FILES), "%u threads, d%d/sub/f%d",
					     nr_threads[i], d, f);
		cr_assert_eq(others, 1);
		cr_assert_eq(last_err, 0);
	}
}

Test(walk, follows_no_symbolic_link)
{
	char path[PATH_MAX];

	make_tree();
	snprintf(path, sizeof(path), "%s/link", scratch);
	cr_assert_eq(symlink("d1/sub", path), 0);
	walk(1);
	cr_assert_eq(others, 0);
	cr_assert_eq(walk_open_dir(lpath("", path), "link"), -ELOOP);
	cr_assert_eq(walk_open_dir(lpath("", path), "link/sub"), -ELOOP);
}

static int walk_as_nobody(void *arg)
{
	(void)arg;
	if (setegid(65534) || seteuid(65534))
		return 2;
	walk(2);
	return last_err != -EACCES || strcmp(troubled, "d3/sub") || seen[3][0] || !seen[4][0];
}

Test(walk, reports_a_directory_that_it_may_not_list)
{
	char path[PATH_MAX];

	make_tree();
	chmod(scratch, 0755);
	snprintf(path, sizeof(path), "%s/d3/sub", scratch);
	chmod(path, 0700);
	if (geteuid())
		cr_skip_test("only root can become somebody else");
	cr_assert_eq(in_child(walk_as_nobody, NULL), 0);
}

/* ---- with a mount namespace of its own, in which the backend is opened ---- */

static bool may_mount;

static void mounted_setup(void)
{
	may_mount = !unshare(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
	scratch_setup();
}

TestSuite(walk_mounted, .init = mounted_setup, .fini = scratch_remove);

/* @bind: a part of the same file system, which has the same device number. */
static void walk_over_mount(bool bind)
{
	char from[PATH_MAX], to[PATH_MAX];

	if (!may_mount)
		cr_skip_test("needs a mount namespace of its own");
	make_tree();
	snprintf(from, sizeof(from), "%s/d1/sub", scratch);
	snprintf(to, sizeof(to), "%s/d2/sub", scratch);
	cr_assert(!(bind ? mount(from, to, NULL, MS_BIND, NULL) : mount("none", to, "tmpfs", 0, NULL)));
	walk(1);
	umount2(to, MNT_DETACH);
	cr_assert_eq(last_err, -EXDEV);
	cr_assert_str_eq(troubled, "d2/sub");
	cr_assert(!seen[2][0] && seen[1][0] == 1);
}

Test(walk_mounted, stops_at_another_file_system_and_reports_it)
{
	walk_over_mount(false);
}

Test(walk_mounted, stops_at_a_part_of_the_same_and_reports_it)
{
	walk_over_mount(true);
}
