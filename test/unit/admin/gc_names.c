/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs gc while names change, at the worst of moments: between the listing of one directory and the next.
 */
#include "test/lib/gc.h"

TestSuite(gc, .init = scratch_setup, .fini = scratch_remove);

static ssize_t (*real_getdents64)(int fd, void *buf, size_t len);
static char places[2][PATH_MAX];
static int at, moves_left, nr_moves;

/* Whether @fd is the directory @path, by whatever name it was opened. */
static bool is_dir(int fd, const char *path)
{
	struct stat st, of_path;

	return !fstat(fd, &st) && !stat(path, &of_path) && st.st_ino == of_path.st_ino;
}

static bool is_parent(int fd, const char *path)
{
	char dir[PATH_MAX];

	strcpy(dir, path);
	*strrchr(dir, '/') = '\0';
	return is_dir(fd, dir);
}

/*
 * The worst that a file can do: whenever one of two directories has been listed, and it was not there, it
 * goes there before the other is listed.
 */
static ssize_t dodge(int fd, void *buf, size_t len)
{
	ssize_t n = real_getdents64(fd, buf, len);
	int other = 1 - at;

	if (!n && moves_left && is_parent(fd, places[other])) {
		moves_left--;
		nr_moves++;
		if (rename(places[at], places[other]))
			die("rename");
		at = other;
	}
	return n;
}

static struct plfs_gc gc_while_dodging(int moves)
{
	struct plfs_gc g;

	moves_left = moves;
	nr_moves = 0;
	real_getdents64 = sys.getdents64;
	sys.getdents64 = dodge;
	g = gc_now();
	sys.getdents64 = real_getdents64;
	return g;
}

static void make_dodger(void)
{
	make_dir("one");
	make_dir("two");
	make("one/file", 1);
	make("orphan", 2);
	orphan("orphan");
	lpath("one/file", places[0]);
	lpath("two/file", places[1]);
}

Test(gc, a_file_that_moves_while_names_are_listed_keeps_its_container, .timeout = 60)
{
	int dodged = 0;

	make_dodger();
	for (int moves = 1; moves <= 5; moves++) {
		struct plfs_gc g = gc_while_dodging(moves);

		dodged += nr_moves;
		cr_assert_eq(g.nr_removed, moves == 1, "the orphan, once");
		assert_whole(at ? "two/file" : "one/file", 1);
	}
	cr_assert_geq(dodged, 5);
}

static int no_sleep(const struct timespec *want, struct timespec *left)
{
	(void)want, (void)left;
	return 0;
}

Test(gc, where_names_never_rest_all_containers_stay, .timeout = 60)
{
	struct plfs_gc g;

	make_dodger();
	sys.nanosleep = no_sleep;
	g = gc_while_dodging(1000);
	cr_assert_gt(nr_moves, 5);
	cr_assert(g.nr_removed == 0 && g.nr_left >= 1 && strstr(last_why, "renamed all the time"));
	assert_whole(at ? "two/file" : "one/file", 1);
}

/* The file's container becomes @uid's, as if he had made it. */
static void give_container(const char *name, uid_t uid, char *dir)
{
	container_of_file(name, dir);
	cr_assert_eq(chown(dir, uid, uid), 0);
}

/* Directories that only their owner can write hide no file of others. */
Test(gc, where_names_of_one_user_never_rest_those_of_others_go, .timeout = 60)
{
	enum { A = 41001, B = 41002 };
	char of_a[PATH_MAX], of_b[PATH_MAX], path[PATH_MAX];
	struct plfs_gc g;

	if (geteuid())
		cr_skip_test("only root can be several users");
	make_dodger();
	make("orphan_b", 3);
	make("orphan_a", 4);
	give_container("orphan_b", B, of_b);
	give_container("orphan_a", A, of_a);
	orphan("orphan_b");
	orphan("orphan_a");
	for (int i = 0; i < 2; i++) {
		lpath(i ? "two" : "one", path);
		cr_assert(!chown(path, B, B) && !chmod(path, 0755));
	}
	sys.nanosleep = no_sleep;
	g = gc_while_dodging(1000);
	cr_assert_gt(nr_moves, 5);
	cr_assert_eq(g.nr_removed, 1);
	cr_assert_neq(access(of_a, F_OK), 0);
	cr_assert_eq(access(of_b, F_OK), 0);
	assert_whole(at ? "two/file" : "one/file", 1);
	for (int i = 0; i < 2; i++) {
		lpath(i ? "two" : "one", path);
		cr_assert_eq(chmod(path, 01777), 0);
	}
	make("orphan_c", 5);
	give_container("orphan_c", A, of_a);
	orphan("orphan_c");
	g = gc_while_dodging(1000);
	cr_assert_eq(g.nr_removed, 0, "all may write there");
	cr_assert_eq(access(of_a, F_OK), 0);
}

static int disappear_left;
static char from_dir[PATH_MAX], to_dir[PATH_MAX];

/* A directory goes from where nobody has looked yet to where all has been looked at. */
static ssize_t move_dir(int fd, void *buf, size_t len)
{
	ssize_t n = real_getdents64(fd, buf, len);
	char name[PATH_MAX + 8];

	if (!n && disappear_left && is_dir(fd, to_dir)) {
		disappear_left = 0;
		snprintf(name, sizeof(name), "%s/sub", to_dir);
		if (rename(from_dir, name))
			die("rename");
	}
	return n;
}

Test(gc, a_directory_that_moves_while_names_are_listed_keeps_the_containers_below, .timeout = 60)
{
	struct plfs_gc g;

	make_dir("one");
	make_dir("two");
	for (int turn = 0; turn < 2; turn++) { /* either is listed first */
		char name[40];

		snprintf(name, sizeof(name), "%s/sub", turn ? "two" : "one");
		if (!turn) {
			make_dir(name);
			make("one/sub/file", 1);
		}
		lpath(name, from_dir);
		lpath(turn ? "one" : "two", to_dir);
		disappear_left = 1;
		real_getdents64 = sys.getdents64;
		sys.getdents64 = move_dir;
		g = gc_now();
		sys.getdents64 = real_getdents64;
		cr_assert_eq(g.nr_removed, 0);
		cr_assert(!disappear_left);
		assert_whole(turn ? "one/sub/file" : "two/sub/file", 1);
	}
}

/* ---- too deep for a path ---- */

#define DEEP 40

static char long_name[201];

/* The directory @depth levels below "deep", which is open at the result. */
static int deep_dir(unsigned depth)
{
	char path[PATH_MAX];
	int fd, next;

	memset(long_name, 'd', sizeof(long_name) - 1);
	lpath("deep", path);
	mkdir(path, 0755);
	fd = open(path, O_RDONLY | O_DIRECTORY);
	for (; depth; depth--) {
		mkdirat(fd, long_name, 0755);
		next = openat(fd, long_name, O_RDONLY | O_DIRECTORY);
		cr_assert_geq(next, 0);
		close(fd);
		fd = next;
	}
	return fd;
}

static int bottom = -1;

Test(gc, a_file_too_deep_for_a_path_keeps_its_container_and_no_others, .timeout = 60)
{
	char path[PATH_MAX];
	struct plfs_gc g;

	make("file", 1);
	make("orphan", 2);
	orphan("orphan");
	bottom = deep_dir(DEEP);
	lpath("file", path);
	cr_assert_eq(renameat(AT_FDCWD, path, bottom, "file"), 0);
	g = gc_now();
	cr_assert(g.nr_removed == 1 && g.nr_troubles == 0 && g.nr_files == 1);
	cr_assert_eq(renameat(bottom, "file", AT_FDCWD, path), 0);
	assert_whole("file", 1);
	close(bottom);
}

/* From the deep place to the other, or back, when the one where it was not has been listed. */
static ssize_t dodge_deep(int fd, void *buf, size_t len)
{
	ssize_t n = real_getdents64(fd, buf, len);
	struct stat st, there;

	if (n || !moves_left || fstat(fd, &st) || fstat(bottom, &there))
		return n;
	if (at ? is_parent(fd, places[0]) : st.st_ino == there.st_ino) {
		moves_left--;
		nr_moves++;
		if (at ? renameat(bottom, "file", AT_FDCWD, places[0]) :
			 renameat(AT_FDCWD, places[0], bottom, "file"))
			die("rename");
		at = 1 - at;
	}
	return n;
}

Test(gc, a_file_that_moves_to_and_from_the_depth_keeps_its_container, .timeout = 60)
{
	int dodged = 0;

	make_dodger();
	bottom = deep_dir(DEEP);
	real_getdents64 = sys.getdents64;
	for (int moves = 1; moves <= 5; moves++) {
		struct plfs_gc g;

		moves_left = moves;
		nr_moves = 0;
		sys.getdents64 = dodge_deep;
		g = gc_now();
		sys.getdents64 = real_getdents64;
		dodged += nr_moves;
		cr_assert_eq(g.nr_removed, moves == 1, "the orphan, once");
	}
	cr_assert_geq(dodged, 5);
	if (at)
		cr_assert_eq(renameat(bottom, "file", AT_FDCWD, places[0]), 0);
	assert_whole("one/file", 1);
	close(bottom);
}
