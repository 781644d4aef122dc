/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A truncation whose process was killed at one of its system calls (test/lib/cut.h), and what others then do
 * with the file: repair it, truncate it again, make it longer, move it into its body, make it plain, or only
 * close it. The bytes and the size are those of before or of afterwards, with the other change on top.
 */
#include "test/lib/calls.h"
#include "test/lib/cut.h"
#include "test/lib/turn.h"

#include <criterion/criterion.h>

TestSuite(crash_cut_left, .timeout = 300);

static bool is_as_seen(void)
{
	unsigned char *buf = calloc(1, FILE_MAX);
	off_t told = stat_size("f");
	struct lfile l = lopen("f", O_RDONLY);
	ssize_t n = l.f ? plfs_pread(l.f, buf, FILE_MAX, 0) : pread(l.fd, buf, FILE_MAX, 0);
	bool same = n == cut_size[*cut_seen] && !memcmp(buf, cut_image[*cut_seen], (size_t)n) && told == n;

	if (!same)
		fprintf(stderr, "it has %zd bytes, stat() says %lld\n", n, (long long)told);
	lclose(&l);
	free(buf);
	return same;
}

static bool truncate_again(void)
{
	struct lfile l = lopen("f", O_RDWR);
	bool ok = !plfs_truncate(l.f, 2000);

	lclose(&l);
	memset(cut_image[*cut_seen] + 2000, 0, FILE_MAX - 2000);
	cut_size[*cut_seen] = 2000;
	return ok;
}

static bool make_longer(void)
{
	struct lfile l = lopen("f", O_RDWR);
	bool ok = !plfs_fallocate(l.f, 0, 0, 160000);

	lclose(&l);
	cut_size[*cut_seen] = 160000;
	return ok;
}

static bool move_into_body(void)
{
	struct lfile l = lopen("f", O_RDWR);
	bool ok = plfs_in_body(l.f, PLFS_MAP_WRITE) == 1;

	lclose(&l);
	return ok;
}

static bool make_plain(void)
{
	char path[PATH_MAX];

	lpath("f", path);
	return !plfs_flatten(AT_FDCWD, path, NULL);
}

static unsigned nr_notes, nr_repairs, nr_bad;

static void take_finding(void *arg, const struct plfs_finding *f)
{
	(void)arg;
	nr_notes += f->severity == PLFS_NOTED && !strcmp(f->code, "truncation");
	nr_repairs += f->severity == PLFS_REPAIRED && !strcmp(f->code, "truncation");
	nr_bad += f->severity == PLFS_DAMAGED || f->severity == PLFS_REMAINS || f->severity == PLFS_FAILED;
}

/* Told of if, and only if, there is something to finish, and finished. */
static bool check_and_repair(void)
{
	struct plfs_check check = { .found = take_finding },
			  repair = { .found = take_finding, .repair = true };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("f", path);
	bool due = cut_word_is_set(), ok;

	ok = !plfs_check(m, AT_FDCWD, path, &check) && nr_notes == due;
	ok &= !plfs_check(m, AT_FDCWD, path, &repair) && nr_repairs == due && !cut_word_is_set() &&
	      !count_files("live.");
	nr_notes = 0;
	ok &= !plfs_check(m, AT_FDCWD, path, &check) && !nr_notes && !nr_bad &&
	      cut_stub_size() == cut_size[*cut_seen];
	if (!ok)
		fprintf(stderr, "due %d, notes %u, repairs %u, bad %u\n", due, nr_notes, nr_repairs, nr_bad);
	return ok;
}

static int do_and_look(void *arg)
{
	bool (**what)(void) = arg;

	return !(*what)() || !is_as_seen();
}

static void kill_and(bool (*what)(void), long to)
{
	struct turn turn = turn_begin(3);
	int code = 1;

	cut_begin((struct cut_plan){ .options = "", .to = to });
	for (long nr = turn.nr; code; nr += turn.step) {
		cut_know_file("", to);
		cr_assert_eq(in_child(cut_make_file, ""), 0);
		*cut_seen = OLD;
		calls_left = nr;
		code = in_child(cut_change_file, NULL);
		cr_assert(!code || code == 256 + SIGKILL);
		cr_assert_eq(in_child(cut_look_newly, NULL), 0, "call %ld", nr);
		cr_assert_eq(in_child(do_and_look, &what), 0, "call %ld", nr);
		cr_assert_eq(in_child(cut_remove_file, NULL), 0);
	}
	scratch_remove();
}

static bool do_nothing(void) { return true; }

/*
 * A writer that was told of a truncation that has not happened, or has, closes the file: the size is known
 * all the same.
 */
static void kill_beside_a_writer(long to)
{
	bool (*what)(void) = do_nothing;
	struct turn turn = turn_begin(3);
	int code = 1;

	cut_begin((struct cut_plan){ .options = "", .to = to });
	for (long nr = turn.nr; code; nr += turn.step) {
		struct looker writer = { .flags = O_RDWR, .writes = true, .ends = true };

		cut_know_file("w", to);
		cr_assert_eq(in_child(cut_make_file, ""), 0);
		*cut_seen = OLD;
		start_looker(&writer);
		calls_left = nr;
		code = in_child(cut_change_file, NULL);
		cr_assert_eq(in_child(cut_look_newly, NULL), 0, "call %ld", nr);
		end_looker(&writer);
		cr_assert_eq(in_child(do_and_look, &what), 0, "call %ld", nr);
		cr_assert_eq(in_child(cut_remove_file, NULL), 0);
	}
	scratch_remove();
}

Test(crash_cut_left, left_unfinished_and_closed_by_a_writer) { kill_beside_a_writer(700); }
Test(crash_cut_left, left_unfinished_to_nothing_and_closed_by_a_writer) { kill_beside_a_writer(0); }
Test(crash_cut_left, left_unfinished_that_makes_it_longer_and_closed_by_a_writer)
{
	kill_beside_a_writer(150000);
}

#define LEFT(name, what) \
	Test(crash_cut_left, left_unfinished_##name) { kill_and(what, 700); } \
	Test(crash_cut_left, left_unfinished_to_nothing_##name) { kill_and(what, 0); } \
	Test(crash_cut_left, left_unfinished_that_makes_it_longer_##name) { kill_and(what, 150000); }

LEFT(is_repaired, check_and_repair)
LEFT(and_truncated_again, truncate_again)
LEFT(and_made_longer, make_longer)
LEFT(and_moved_into_its_body, move_into_body)
LEFT(and_made_plain, make_plain)
