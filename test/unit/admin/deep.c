/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The visit of a tree of any depth: each file once, with any number of descriptors.
 */
#include "core/admin/walk/deep.h"

#include "test/lib/scratch.h"

#include <criterion/criterion.h>

TestSuite(deep, .init = scratch_setup, .fini = scratch_remove);

static unsigned nr_seen;
static int last_err, away = -1;

static bool enters(void *arg, int fd, const char *name)
{
	(void)arg, (void)fd;
	return strcmp(name, "skipped") != 0;
}

static void see(void *arg, int fd, const char *name)
{
	struct stat st;

	(void)arg;
	nr_seen += !fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW);
}

static void note(void *arg, int err)
{
	(void)arg;
	last_err = err;
}

static struct deep_sum visit(unsigned max_open, void (*file)(void *arg, int fd, const char *name))
{
	struct deep_sum sum = { 0 };
	int fd = open(scratch, O_RDONLY | O_DIRECTORY);
	struct deep d = { .max_open = max_open, .enters = enters, .file = file, .trouble = note };
	struct stat st;

	cr_assert_eq(fstat(fd, &st), 0);
	d.dev = st.st_dev;
	nr_seen = 0;
	last_err = 0;
	deep_visit(&d, fd, "top", &sum);
	close(fd);
	return sum;
}

/* In each of 25 levels two directories beside the way down, each with one in it, and a file in each. */
static void make_tree(void)
{
	char path[PATH_MAX];
	size_t len = (size_t)snprintf(path, sizeof(path), "%s/top", scratch);

	for (int i = 0; i < 25; i++) {
		static const char *const names[] = { "", "/a", "/a/x", "/z", "/z/x", "/skipped" };

		for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
			snprintf(path + len, sizeof(path) - len, "%s", names[k]);
			cr_assert_eq(mkdir(path, 0755), 0);
			strcat(path, "/file");
			close(open(path, O_WRONLY | O_CREAT, 0644));
		}
		len += (size_t)snprintf(path + len, sizeof(path) - len, "/m");
	}
}

Test(deep, each_file_is_visited_once_with_any_number_of_descriptors)
{
	struct deep_sum first, sum;

	make_tree();
	first = visit(1000, see);
	cr_assert(nr_seen == 125 && first.nr == 125 && !last_err);
	for (unsigned max = 2; max < 20; max += 3) {
		sum = visit(max, see);
		cr_assert_eq(nr_seen, 125, "%u descriptors", max);
		cr_assert(sum.nr == first.nr && sum.mix == first.mix && sum.changed_ns == first.changed_ns);
	}
}

Test(deep, a_name_that_changes_anywhere_changes_the_sum)
{
	char path[PATH_MAX], to[PATH_MAX + 2];
	struct deep_sum before, sum;

	make_tree();
	before = visit(9, NULL);
	snprintf(path, sizeof(path), "%s/top/m/m/m/a/x/file", scratch);
	snprintf(to, sizeof(to), "%s.1", path);
	cr_assert_eq(rename(path, to), 0);
	sum = visit(9, NULL);
	cr_assert(sum.nr == before.nr && sum.mix != before.mix);
	cr_assert_eq(rename(to, path), 0);
	cr_assert_neq(visit(9, NULL).mix, before.mix, "there and back again");
}

/* The directory moves out of the tree while what is in it is visited. */
static void move_away(void *arg, int fd, const char *name)
{
	char path[PATH_MAX], to[PATH_MAX];

	see(arg, fd, name);
	if (nr_seen != 40)
		return;
	snprintf(path, sizeof(path), "%s/top/m/m/m", scratch);
	snprintf(to, sizeof(to), "%s/away", scratch);
	away = rename(path, to);
}

Test(deep, a_tree_that_moves_meanwhile_has_no_lasting_sum)
{
	make_tree();
	cr_assert_eq(visit(2, move_away).changed_ns, UINT64_MAX);
	cr_assert_eq(away, 0);
	cr_assert_eq(last_err, 0);
}
