/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who makes copies of logs (mirror=), heals by them, or removes them, is killed at its system calls, or one
 * of them fails (turn.h). At every such moment the file has its bytes; the next drain or repair completes
 * the work; with the logs lost after that the file still has its bytes.
 */
#include "test/lib/calls.h"
#include "test/lib/near.h"
#include "test/lib/spoil.h"
#include "test/lib/turn.h"

#include <criterion/criterion.h>

#define LEN 300000

static void setup(void)
{
	scratch_in_memory = true;
	near_setup_copies("");
}

TestSuite(crash_copies, .init = setup, .fini = near_remove, .timeout = 1200);

/* ---- the file ---- */

static unsigned char image[LEN];

static int write_piece(off_t off, size_t len, unsigned round)
{
	struct lfile l = made("f");

	return lfill(&l, off, len, round) != (ssize_t)len || lclose(&l);
}

static int write_first(void *arg) { return (void)arg, write_piece(0, LEN, 1); }
static int write_second(void *arg) { return (void)arg, write_piece(100000, 150000, 2); }

static void make_file(void)
{
	cr_assert_eq(in_child(write_first, NULL), 0);
	cr_assert_eq(in_child(write_second, NULL), 0);
	pattern_fill(image, LEN, 0, 1);
	pattern_fill(image + 100000, 150000, 100000, 2);
}

static int look(void *arg)
{
	static unsigned char buf[LEN + 1];
	struct lfile l;
	ssize_t n;

	(void)arg;
	if (stat_size("f") != LEN)
		return 1;
	l = lopen("f", O_RDONLY);
	for (off_t off = 0; off < LEN; off += n) {
		n = plfs_pread(l.f, buf, 60000, off);
		if (n <= 0 || memcmp(buf, image + off, (size_t)n))
			return n < 0 ? 2 : 3;
	}
	return lclose(&l);
}

/* ---- what is done to it ---- */

struct doing {
	int (*what)(void);
	int (*hook)(enum call call); /* NULL: it runs */
};

static int drain_it(void)
{
	struct plfs_drain d = { .dry = false };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("f", path);
	int ret = plfs_drain_file(m, AT_FDCWD, path, &d);

	return d.nr_lost ? 1 : ret || d.nr_left ? 75 : 0;
}

static int check_it(bool repair)
{
	int ret = lexamine("f", repair);

	return ret < 0 ? 2 : ret;
}

static int repair_it(void) { return check_it(true); }
static int look_for_damage(void) { return check_it(false); }
static int remove_it(void) { return lunlink("f") ? 1 : 0; }

static int empty_it(void)
{
	struct lfile l;

	return ltry(&l, "f", O_RDWR | O_TRUNC) || lclose(&l);
}

static int run(void *arg)
{
	const struct doing *d = arg;

	if (d->hook) {
		calls_intercept();
		on_call = d->hook;
	}
	return d->what();
}

static int done(int (*what)(void))
{
	struct doing d = { .what = what };

	return in_child(run, &d);
}

/* True: it came to its end before the call number @nr. */
static bool killed_at(int (*what)(void), long nr)
{
	struct doing d = { .what = what, .hook = die_at_last };
	int status;

	calls_left = nr;
	status = in_child(run, &d);
	cr_assert(!status || status == 256 + SIGKILL, "call %ld: %d", nr, status);
	return !status;
}

static void each_file(const char *dir, void (*fn)(const char *path))
{
	char *paths[] = { (char *)dir, NULL };
	FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);

	for (FTSENT *e = fts_read(fts); e; e = fts_read(fts))
		if (e->fts_info == FTS_F && !strncmp(e->fts_name, "data.", 5) && !strstr(e->fts_name, ".tmp."))
			fn(e->fts_path);
	fts_close(fts);
}

static void lose(const char *path) { unlink(path); }
static void flip(const char *path) { spoil_bit(path, 70000); }

/* All copies are there: the logs are not needed. And nothing is left of the file when it is removed. */
static void lose_and_remove(long nr)
{
	cr_assert_eq(done(look_for_damage), 0, "call %ld", nr);
	each_file(scratch, lose);
	cr_assert_eq(in_child(look, NULL), 0, "call %ld: without its logs", nr);
	cr_assert_eq(done(remove_it), 0);
	cr_assert_eq(near_count("data."), 0, "call %ld: copies of a file that was removed", nr);
}

/* ---- killed ---- */

Test(crash_copies, drain_killed_at_any_call_loses_nothing_and_the_next_completes)
{
	struct turn turn = turn_begin(17);
	bool over = false;
	long nr;

	for (nr = turn.nr; !over; nr += turn.step) {
		make_file();
		over = killed_at(drain_it, nr);
		cr_assert_eq(in_child(look, NULL), 0, "call %ld", nr);
		cr_assert_eq(done(look_for_damage), 0, "call %ld: check", nr);
		cr_assert_eq(done(drain_it), 0, "call %ld: the next drain", nr);
		cr_assert_eq(in_child(look, NULL), 0, "call %ld", nr);
		lose_and_remove(nr);
	}
	cr_assert_gt(nr, 60);
}

/* The log is lost while its copy is being made: right bytes or an error. */
Test(crash_copies, a_copy_that_was_not_finished_is_not_read)
{
	struct turn turn = turn_begin(17);
	bool over = false;

	for (long nr = turn.nr; !over; nr += turn.step) {
		int found;

		make_file();
		over = killed_at(drain_it, nr);
		each_file(scratch, lose);
		found = in_child(look, NULL);
		cr_assert(found == 2 || found == 0, "call %ld: %d", nr, found);
		cr_assert(over ? !found : true);
		cr_assert_eq(done(remove_it), 0);
	}
}

static void heal_killed(void (*damage)(const char *path), bool copies)
{
	struct turn turn = turn_begin(17);
	bool over = false;
	long nr;

	for (nr = turn.nr; !over; nr += turn.step) {
		make_file();
		cr_assert_eq(done(drain_it), 0);
		each_file(copies ? near_dir : scratch, damage);
		over = killed_at(repair_it, nr);
		cr_assert_eq(in_child(look, NULL), 0, "call %ld", nr);
		cr_assert_eq(done(repair_it), 0, "call %ld: the next repair", nr);
		cr_assert_eq(in_child(look, NULL), 0, "call %ld: repaired", nr);
		lose_and_remove(nr);
	}
	cr_assert_gt(nr, 60);
}

Test(crash_copies, repair_killed_at_any_call_heals_missing_logs_the_next_time) { heal_killed(lose, false); }
Test(crash_copies, repair_killed_at_any_call_heals_damaged_logs_the_next_time) { heal_killed(flip, false); }
Test(crash_copies, repair_killed_at_any_call_heals_missing_copies_the_next_time) { heal_killed(lose, true); }
Test(crash_copies, repair_killed_at_any_call_heals_damaged_copies_the_next_time) { heal_killed(flip, true); }

static int remove_orphans(void *arg, const char *top, const char *home)
{
	(void)home;
	return plfs_drain_place(plfs_mount_at(0), top, true, arg);
}

static int collect(void)
{
	struct plfs_drain d = { .dry = false };

	return plfs_places_in(near_dir, remove_orphans, &d) || d.nr_left;
}

Test(crash_copies, a_removal_that_was_killed_leaves_copies_that_are_found)
{
	struct turn turn = turn_begin(5);
	bool over = false;
	char text[200];

	for (long nr = turn.nr; !over; nr += turn.step) {
		make_file();
		cr_assert_eq(done(drain_it), 0);
		over = killed_at(remove_it, nr);
		if (!over && stat_size("f") >= 0) {
			cr_assert_eq(in_child(look, NULL), 0, "call %ld: the name is there", nr);
			cr_assert_eq(done(remove_it), 0);
		}
		snprintf(text, sizeof(text), "rm -rf %s/.plfs/??", scratch); /* as plfs gc */
		cr_assert_eq(system(text), 0);
		cr_assert_eq(done(collect), 0);
		cr_assert_eq(near_count("data."), 0, "call %ld", nr);
	}
}

Test(crash_copies, a_truncation_that_was_killed_brings_nothing_back)
{
	struct turn turn = turn_begin(5);
	bool over = false;

	for (long nr = turn.nr; !over; nr += turn.step) {
		off_t size;

		make_file();
		cr_assert_eq(done(drain_it), 0);
		over = killed_at(empty_it, nr);
		size = stat_size("f");
		cr_assert(!size || size == LEN, "call %ld: %ld", nr, (long)size);
		cr_assert(!size || !in_child(look, NULL), "call %ld", nr);
		cr_assert_eq(done(empty_it), 0, "call %ld", nr);
		cr_assert_eq(stat_size("f"), 0);
		cr_assert_eq(done(remove_it), 0);
		cr_assert_eq(near_count("data."), 0, "call %ld", nr);
	}
}

/* ---- failing ---- */

static int bad_errno;

static int fail_at_last(enum call call)
{
	(void)call;
	return --calls_left ? 0 : bad_errno;
}

#define CALLS_MAX 900 /* more than a drain makes */

static void drain_fails(int err)
{
	struct doing d = { .what = drain_it, .hook = fail_at_last };
	struct turn turn = turn_begin(23);

	bad_errno = err;
	for (long nr = turn.nr, over = false; !over; nr += turn.step) {
		int status;

		make_file();
		calls_left = nr;
		status = in_child(run, &d);
		cr_assert(status == 0 || status == 75 || status == 1, "call %ld: %d", nr, status);
		cr_assert_eq(in_child(look, NULL), 0, "call %ld", nr);
		cr_assert_eq(done(look_for_damage), 0, "call %ld: check", nr);
		cr_assert_eq(done(drain_it), 0, "call %ld: the next drain", nr);
		over = nr > CALLS_MAX;
		lose_and_remove(nr);
	}
}

Test(crash_copies, whichever_call_of_a_drain_fails_the_next_completes) { drain_fails(EIO); }
Test(crash_copies, whichever_call_of_a_drain_finds_the_disk_full_the_next_completes) { drain_fails(ENOSPC); }
