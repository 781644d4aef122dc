/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files with logs near, after a power failure, or after somebody changed files in the place: logs that lack
 * what was synced, near.HOSTs that are torn or missing, logs that were moved and have come back. Reads give
 * right bytes, or an error where nothing was synced; plfs drain brings home all that is whole.
 */
#include "test/lib/near.h"

#include "core/base/sys.h"
#include "core/dropping/sums.h"

#include <criterion/criterion.h>

#define LEN 300000

static void setup(void) { near_setup(""); }

TestSuite(near_damage, .init = setup, .fini = near_remove, .timeout = 120);

/* ---- the file ---- */

static int write_synced(void *arg)
{
	struct lfile l = made("a");

	(void)arg;
	if (lfill(&l, 0, LEN, 1) != LEN || plfs_sync(l.f) || lfill(&l, LEN, LEN, 1) != LEN)
		return 1;
	return lclose(&l);
}

/* What was synced is right. Returns 1 if all the rest is, too; 2 if it cannot be read; 3: it is zeros. */
static int look(void *arg)
{
	struct lfile l = lopen("a", O_RDONLY);
	int rest;

	(void)arg;
	if (plfs_size(l.f) != 2 * LEN || lcheck(&l, 0, LEN, 1))
		return 0;
	rest = lcheck(&l, LEN, LEN, 1);
	rest = !rest ? 1 : rest == -EIO ? 2 : lzeros(&l, LEN, LEN) ? 3 : 0;
	return lclose(&l) ? 0 : rest;
}

static int look_unverified(void *arg)
{
	sums_verify = SUMS_OFF;
	return look(arg);
}

/* ---- damage ---- */

/* Files whose names begin with @prefix, in @dir, by the shell: $1 is each of them. */
static void each(const char *dir, const char *prefix, const char *command)
{
	char text[600];

	snprintf(text, sizeof(text), "find %s -name '%s*' -type f | while read -r f; do set -- \"$f\"; %s; done",
		 dir, prefix, command);
	cr_assert_eq(system(text), 0);
}

#define CUT "truncate -s 0 \"$1\""
#define SHORT "truncate -s 70 \"$1\""
#define ZEROS "s=$(stat -c %s \"$1\"); truncate -s 0 \"$1\"; truncate -s $s \"$1\""
#define ZEROS_INSIDE "dd if=/dev/zero of=\"$1\" bs=65536 seek=2 count=2 conv=notrunc status=none"

/* ---- draining ---- */

static int nr_lost_ends; /* the logs that were named for it */

static void trouble(void *arg, const char *path, const char *why)
{
	(void)arg;
	nr_lost_ends += strstr(path, "/data.") && strstr(why, "its end is lost");
	fprintf(stderr, "drain: %s: %s\n", path, why);
}

/* As the command's exit code. */
static int code(int ret, const struct plfs_drain *d)
{
	return d->nr_lost ? 1 : ret || d->nr_left || d->nr_elsewhere ? 75 : 0;
}

static int drain_top(void *arg, const char *top, const char *home)
{
	struct plfs_mount *m = plfs_mount_at(0);

	return strcmp(home, plfs_backend(m)) ? -ENOENT : plfs_drain_place(m, top, false, arg);
}

static int drain_place(void *arg)
{
	struct plfs_drain d = { .trouble = trouble };
	int ret = plfs_places_in(near_dir, drain_top, &d);

	(void)arg;
	return code(ret, &d);
}

static int drain_file(void *arg)
{
	struct plfs_drain d = { .trouble = trouble };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("a", path);
	int ret = plfs_drain_file(m, AT_FDCWD, path, &d);

	(void)arg;
	return code(ret, &d);
}

static void note(void *arg, const struct plfs_finding *f)
{
	*(bool *)arg |= !strcmp(f->code, "near-damaged");
}

static int check_names_it(void *arg)
{
	bool named = false;
	struct plfs_check c = { .found = note, .arg = &named };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("a", path);

	(void)arg;
	return plfs_check(m, AT_FDCWD, path, &c) > 0 && named;
}

static void drains_right(void)
{
	cr_assert_eq(after_reboot(drain_place), 0);
	cr_assert_eq(near_count("data."), 0);
	cr_assert_eq(count_files("near."), 0);
	cr_assert_eq(after_reboot(look), 1);
	cr_assert_eq(after_reboot(check_names_it), 0);
}

/* ---- logs that lack what was synced ---- */

Test(near_damage, a_log_that_was_cut_reads_from_home_what_was_synced)
{
	cr_assert_eq(in_child(write_synced, NULL), 0);
	each(near_dir, "data.", CUT);
	cr_assert_eq(after_reboot(look), 2);
	cr_assert_eq(in_child(look, NULL), 2);
}

/* The checksums are zeros too: as with a log at home, what was not synced may read as zeros then. */
Test(near_damage, a_log_with_zeros_reads_from_home_what_was_synced)
{
	cr_assert_eq(in_child(write_synced, NULL), 0);
	each(near_dir, "data.", ZEROS);
	cr_assert_geq(after_reboot(look), 2);
	cr_assert_geq(in_child(look, NULL), 2);
	cr_assert_eq(after_reboot(drain_place), 1, "what was not synced is not home");
	cr_assert_eq(near_count("data."), 1);
	cr_assert_geq(after_reboot(look), 2);
}

Test(near_damage, zeros_where_home_has_the_bytes_lose_nothing)
{
	cr_assert_eq(in_child(write_synced, NULL), 0);
	each(near_dir, "data.", ZEROS_INSIDE);
	cr_assert_eq(after_reboot(look_unverified), 1);
	cr_assert_eq(after_reboot(look), 1);
	cr_assert_eq(in_child(look, NULL), 1);
	drains_right();
}

Test(near_damage, zeros_at_home_lose_nothing_that_is_near)
{
	cr_assert_eq(in_child(write_synced, NULL), 0);
	each(scratch, "data.", ZEROS_INSIDE);
	cr_assert_eq(after_reboot(look), 1);
	cr_assert_eq(in_child(look, NULL), 1);
	drains_right();
}

/* ---- logs of killed processes that lack what was not synced ---- */

static int write_and_die(void *arg)
{
	struct lfile l = made("a");

	(void)arg;
	if (lfill(&l, 0, LEN, 1) == LEN && !plfs_sync(l.f) && lfill(&l, LEN, LEN, 1) == LEN)
		raise(SIGKILL);
	return 1;
}

static int write_other(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	return lfill(&l, 0, 1000, 1) != 1000 || lclose(&l);
}

static int (*drain)(void *arg);

static int drain_names_it(void *arg)
{
	int ret = drain(arg);

	return nr_lost_ends == 1 ? ret : 100;
}

/* No later drain does more. A log of another process comes home all the same. */
static void stays_damaged(int (*how)(void *arg))
{
	drain = how;
	cr_assert_eq(in_child(write_and_die, NULL), 256 + SIGKILL);
	each(near_dir, "data.", "truncate -s $((4096 + 300000)) \"$1\"");
	cr_assert_eq(in_child(write_other, NULL), 0);
	cr_assert_eq(near_count("data."), 2);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(after_reboot(drain_names_it), 1);
		cr_assert_eq(near_count("data."), 1);
		cr_assert_eq(near_count("live."), 1);
		cr_assert_eq(after_reboot(look), 2);
	}
}

Test(near_damage, a_drain_of_a_file_names_a_log_whose_end_is_lost) { stays_damaged(drain_file); }
Test(near_damage, a_drain_of_a_place_names_a_log_whose_end_is_lost) { stays_damaged(drain_place); }

/* ---- near.HOST ---- */

static void torn(const char *dir, const char *how, int rest)
{
	cr_assert_eq(in_child(write_synced, NULL), 0);
	each(dir, "near.", how);
	cr_assert_eq(after_reboot(look), rest);
	cr_assert_eq(after_reboot(drain_file), 75);
	cr_assert_eq(after_reboot(look), rest);
	drains_right();
}

Test(near_damage, an_empty_near_host_at_home_hides_nothing_that_was_synced) { torn(scratch, CUT, 2); }
Test(near_damage, a_short_near_host_at_home_hides_nothing_that_was_synced) { torn(scratch, SHORT, 2); }
Test(near_damage, a_near_host_of_zeros_at_home_hides_nothing_that_was_synced) { torn(scratch, ZEROS, 2); }
Test(near_damage, an_empty_near_host_in_the_place_hides_nothing_that_was_synced) { torn(near_dir, CUT, 2); }
Test(near_damage, a_near_host_of_zeros_in_the_place_hides_nothing_that_was_synced)
{
	torn(near_dir, ZEROS, 2);
}

Test(near_damage, check_names_a_near_host_that_is_damaged)
{
	cr_assert_eq(in_child(write_synced, NULL), 0);
	each(scratch, "near.", ZEROS);
	cr_assert_eq(after_reboot(check_names_it), 1);
}

Test(near_damage, drain_finds_logs_that_no_near_host_leads_to)
{
	cr_assert_eq(in_child(write_synced, NULL), 0);
	each(scratch, "near.", "rm \"$1\"");
	cr_assert_eq(after_reboot(look), 2);
	drains_right();
}

Test(near_damage, drain_finds_logs_without_any_near_host)
{
	cr_assert_eq(in_child(write_synced, NULL), 0);
	each(scratch, "near.", ZEROS);
	each(near_dir, "near.", "rm \"$1\"");
	cr_assert_eq(after_reboot(look), 2);
	drains_right();
}

Test(near_damage, drain_says_where_the_way_back_is_missing)
{
	cr_assert_eq(in_child(write_synced, NULL), 0);
	each(near_dir, "home", CUT);
	cr_assert_eq(after_reboot(drain_place), 75);
	cr_assert_eq(near_count("data."), 1);
	cr_assert_eq(after_reboot(look), 1);
}

static int write_more(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	return lfill(&l, 0, 2 * LEN, 3) != 2 * LEN || plfs_sync(l.f) || lclose(&l);
}

static int look_at_more(void *arg)
{
	struct lfile l = lopen("a", O_RDONLY);

	(void)arg;
	return lcheck(&l, 0, 2 * LEN, 3) || lclose(&l);
}

static int sync_all(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	return plfs_sync(l.f) || lclose(&l);
}

Test(near_damage, where_near_host_is_torn_new_logs_are_at_home)
{
	cr_assert_eq(in_child(write_synced, NULL), 0);
	cr_assert_eq(in_child(sync_all, NULL), 0); /* or a sync says that it cannot */
	each(near_dir, "near.", CUT);
	cr_assert_eq(in_child(write_more, NULL), 0);
	cr_assert_eq(near_count("data."), 1);
	cr_assert_eq(in_child(look_at_more, NULL), 0);
	cr_assert_eq(in_child(drain_place, NULL), 0);
	cr_assert_eq(near_count("data."), 0);
	cr_assert_eq(in_child(look_at_more, NULL), 0);
}

/* ---- logs that come back ---- */

static int empty_and_write(void *arg)
{
	struct lfile l = lopen("a", O_RDWR | O_TRUNC);
	char zeros[1000];

	(void)arg;
	return lfill(&l, 0, 1000, 4) != 1000 || plfs_truncate(l.f, 2 * LEN) || plfs_sync(l.f) || lclose(&l) ||
	       plfs_pread(lopen("a", O_RDONLY).f, zeros, 1000, 1000) != 1000;
}

static int look_emptied(void *arg)
{
	struct lfile l = lopen("a", O_RDONLY);

	(void)arg;
	return lcheck(&l, 0, 1000, 4) || !lzeros(&l, 1000, 2 * LEN - 1000) || lclose(&l);
}

static int cut_and_grow(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	return plfs_truncate(l.f, 1000) || plfs_truncate(l.f, 2 * LEN) || plfs_sync(l.f) || lclose(&l);
}

static int look_cut(void *arg)
{
	struct lfile l = lopen("a", O_RDONLY);

	(void)arg;
	return lcheck(&l, 0, 1000, 1) || !lzeros(&l, 1000, 2 * LEN - 1000) || lclose(&l);
}

static int compact(void *arg)
{
	struct plfs_progress watch = { .arg = NULL };
	struct plfs_compact k = { .dry = false };
	char path[PATH_MAX];

	lpath("a", path);
	return (arg ? cut_and_grow(NULL) : 0) || plfs_compact(path, &k, &watch) < 0;
}

/* The drain's removals near did not reach the disk; @all: nor that of near.HOST at home. */
static void comes_back(int (*change)(void *arg), int (*is_right)(void *arg), bool all)
{
	char text[600];

	cr_assert_eq(in_child(write_synced, NULL), 0);
	snprintf(text, sizeof(text), "cp -a %s %s.kept && cd %s && find . -name 'near.*' | tar -cf %s.home -T -",
		 near_dir, near_dir, scratch, near_dir);
	cr_assert_eq(system(text), 0);
	cr_assert_eq(in_child(drain_place, NULL), 0);
	cr_assert_eq(in_child(change, all ? near_dir : NULL), 0);
	cr_assert_eq(in_child(is_right, NULL), 0);
	snprintf(text, sizeof(text), "rm -rf %s && mv %s.kept %s && cd %s && { %s tar -xf %s.home; rm %s.home; }",
		 near_dir, near_dir, near_dir, scratch, all ? "" : ": ", near_dir, near_dir);
	cr_assert_eq(system(text), 0);
	cr_assert_eq(after_reboot(is_right), 0);
	cr_assert_eq(after_reboot(drain_place), 0);
	cr_assert_eq(near_count("data."), 0);
	cr_assert_eq(after_reboot(is_right), 0);
}

Test(near_damage, a_moved_log_that_comes_back_does_not_hide_an_overwrite)
{
	comes_back(write_more, look_at_more, true);
}

Test(near_damage, a_moved_log_that_comes_back_alone_does_not_hide_an_overwrite)
{
	comes_back(write_more, look_at_more, false);
}

Test(near_damage, a_moved_log_that_comes_back_does_not_undo_a_truncation_to_0)
{
	comes_back(empty_and_write, look_emptied, true);
}

Test(near_damage, a_moved_log_that_comes_back_does_not_undo_a_truncation)
{
	comes_back(cut_and_grow, look_cut, true);
}

Test(near_damage, a_moved_log_that_comes_back_does_not_undo_a_compaction)
{
	comes_back(compact, look_cut, true);
}
