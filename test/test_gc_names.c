/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs gc while names change, at the worst of moments: between the listing of one directory and the next.
 */
#include "gc.h"

TestSuite(gc, .init = scratch_setup, .fini = scratch_remove);

static ssize_t (*real_getdents64)(int fd, void *buf, size_t len);
static char places[2][PATH_MAX];
static int at, moves_left, nr_moves;

/*
 * The worst that a file can do: whenever one of two directories has been listed, and it was not there, it goes there before the other is
 * listed.
 */
static ssize_t dodge(int fd, void *buf, size_t len)
{
	ssize_t n = real_getdents64(fd, buf, len);
	char link_name[64], name[PATH_MAX] = "";
	int other = 1 - at;

	snprintf(link_name, sizeof(link_name), "/proc/self/fd/%d", fd);
	if (n || !moves_left || readlink(link_name, name, sizeof(name) - 1) < 0)
		return n;
	if (strlen(name) < strlen(places[other]) && !strncmp(name, places[other], strlen(name)) &&
	    !strcmp(places[other] + strlen(name), "/file")) {
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
	cr_assert(g.nr_removed == 0 && g.nr_left >= 1 && strstr(last_why, "names kept changing"));
	assert_whole(at ? "two/file" : "one/file", 1);
}

static int disappear_left;
static char from_dir[PATH_MAX], to_dir[PATH_MAX];

/* A directory goes from where nobody has looked yet to where all has been looked at. */
static ssize_t move_dir(int fd, void *buf, size_t len)
{
	ssize_t n = real_getdents64(fd, buf, len);
	char link_name[64], name[PATH_MAX] = "";

	snprintf(link_name, sizeof(link_name), "/proc/self/fd/%d", fd);
	if (!n && disappear_left && readlink(link_name, name, sizeof(name) - 1) > 0 && !strcmp(name, to_dir)) {
		disappear_left = 0;
		strcat(name, "/sub");
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
