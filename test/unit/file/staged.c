/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Staged copies (core/backend/staged.h): readers of this node take bytes from them, and never a byte that the
 * file does not have any more.
 */
#include "test/lib/near.h"

#include "core/backend/mount.h"

#include <criterion/criterion.h>

#include <sys/stat.h>

#define LEN 300000

static void setup(void) { near_setup(",drain=none"); }

TestSuite(staged, .init = setup, .fini = near_remove, .timeout = 120);

/* ---- the file ---- */

static int write_it(void *arg)
{
	struct lfile l = made("a");

	(void)arg;
	if (lfill(&l, 0, LEN, 1) != LEN)
		return 1;
	return lclose(&l);
}

static int look(void *arg)
{
	struct lfile l = lopen("a", O_RDONLY);
	int ret = plfs_size(l.f) != LEN || lcheck(&l, 0, LEN, 1);

	(void)arg;
	return lclose(&l) || ret;
}

static struct plfs_drain staged(bool drops)
{
	struct plfs_drain d = { 0 };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("a", path);

	cr_assert_eq(plfs_stage_file(m, AT_FDCWD, path, drops, &d), 0);
	return d;
}

static int drain_it(void *arg)
{
	struct plfs_drain d = { 0 };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("a", path);

	(void)arg;
	return plfs_drain_file(m, AT_FDCWD, path, &d) || d.nr_left;
}

/* One log, at home, and a copy of it. */
static void make_staged(void)
{
	struct plfs_drain d;

	cr_assert_eq(in_child(write_it, NULL), 0);
	cr_assert_eq(in_child(drain_it, NULL), 0);
	d = staged(false);
	cr_assert_eq(d.nr_logs, 1);
	cr_assert_gt(d.bytes, LEN);
	cr_assert_eq(near_count("data."), 1);
	cr_assert_eq(count_files("data."), 1);
}

/* ---- damage, which shows what is read ---- */

#define DATA_OFF (65536 + 100000) /* in the file of a log */

static void flip(const char *path)
{
	int fd = open(path, O_RDWR);
	char c;

	cr_assert(fd >= 0 && pread(fd, &c, 1, DATA_OFF) == 1);
	c = (char)~c;
	cr_assert(pwrite(fd, &c, 1, DATA_OFF) == 1 && !close(fd));
}

static void flip_home(void)
{
	char path[PATH_MAX];

	cr_assert(find_file("data.", path));
	flip(path);
}

static void flip_copy(void)
{
	char path[PATH_MAX];

	cr_assert(near_find("data.", path));
	flip(path);
}

Test(staged, a_reader_takes_the_bytes_from_the_copy)
{
	make_staged();
	flip_home();
	cr_assert_eq(in_child(look, NULL), 0);
	near_lose();
	cr_assert_eq(in_child(look, NULL), 1); /* the damage is found there: nothing else was read */
}

static int write_and_sync(void *arg)
{
	struct lfile l = made("a");

	(void)arg;
	if (lfill(&l, 0, LEN, 1) != LEN || plfs_sync(l.f))
		return 1;
	return lclose(&l);
}

static int drain_and_keep(void *arg)
{
	struct plfs_drain d = { .keep = true };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("a", path);

	(void)arg;
	return plfs_drain_file(m, AT_FDCWD, path, &d) || d.nr_left || d.nr_lost;
}

Test(staged, a_log_that_goes_home_stays_as_a_copy)
{
	cr_assert_eq(in_child(write_and_sync, NULL), 0);
	cr_assert_eq(in_child(drain_and_keep, NULL), 0);
	cr_assert_eq(near_count("data."), 1);
	flip_home();
	cr_assert_eq(in_child(look, NULL), 0);
}

Test(staged, a_log_stays_not_as_a_copy_if_home_had_the_right_bytes)
{
	cr_assert_eq(in_child(write_and_sync, NULL), 0);
	flip_copy();
	cr_assert_eq(in_child(drain_and_keep, NULL), 0);
	cr_assert_eq(near_count("data."), 0);
	cr_assert_eq(in_child(look, NULL), 0);
}

Test(staged, a_log_that_home_had_before_a_restart_stays_not_as_a_copy)
{
	cr_assert_eq(in_child(write_and_sync, NULL), 0);
	cr_assert_eq(after_reboot(drain_and_keep), 0);
	cr_assert_eq(near_count("data."), 0);
	cr_assert_eq(in_child(look, NULL), 0);
}

Test(staged, a_lost_place_loses_nothing)
{
	make_staged();
	near_lose();
	cr_assert_eq(in_child(look, NULL), 0);
}

Test(staged, a_damaged_copy_is_passed_over)
{
	make_staged();
	flip_copy();
	cr_assert_eq(in_child(look, NULL), 0);
}

Test(staged, another_host_reads_at_home)
{
	make_staged();
	near_go_elsewhere();
	cr_assert_eq(in_child(look, NULL), 0);
}

Test(staged, a_second_staging_copies_nothing_and_drop_removes_the_copies)
{
	struct plfs_drain d;

	make_staged();
	d = staged(false);
	cr_assert_eq(d.nr_logs, 0);
	cr_assert_eq(d.nr_there, 1);
	d = staged(true);
	cr_assert_eq(near_count("data."), 0);
	cr_assert_eq(in_child(look, NULL), 0);
	staged(true);
}

Test(staged, a_drain_leaves_copies_of_files_that_are_there)
{
	make_staged();
	cr_assert_eq(in_child(drain_it, NULL), 0);
	cr_assert_eq(near_count("data."), 1);
	flip_home();
	cr_assert_eq(in_child(look, NULL), 0);
}

Test(staged, a_file_that_somebody_else_could_have_put_there_is_not_read)
{
	char path[PATH_MAX], *end;

	make_staged();
	flip_home();
	cr_assert(near_find("data.", path));
	end = strstr(path, "/plfs.");
	cr_assert(end);
	*strchr(end + 1, '/') = '\0';
	cr_assert_eq(chmod(path, 0777), 0);
	cr_assert_eq(in_child(look, NULL), 1);
	cr_assert_eq(chmod(path, 0755), 0);
	cr_assert_eq(in_child(look, NULL), 0);
}

/* ---- what may make a copy stale ---- */

static int goes_on(void *arg)
{
	struct lfile l = made("a"), r;
	int ret;

	(void)arg;
	if (lfill(&l, 0, LEN, 1) != LEN || lclose(&l) || drain_it(NULL))
		return 1;
	staged(false);
	r = lopen("a", O_RDONLY);
	ret = lcheck(&r, 0, LEN, 1); /* with the copy */
	l = lopen("a", O_RDWR); /* the same log goes on, at home */
	if (lfill(&l, 1000, 5000, 2) != 5000 || lfill(&l, LEN, 100000, 3) != 100000 || lclose(&l))
		return 2;
	ret |= lcheck(&r, 0, 1000, 1) | lcheck(&r, 1000, 5000, 2) | lcheck(&r, 6000, LEN - 6000, 1) |
	       lcheck(&r, LEN, 100000, 3);
	return lclose(&r) || ret;
}

static int look_newly(void *arg)
{
	struct lfile l = lopen("a", O_RDONLY);
	int ret = lcheck(&l, 0, 1000, 1) | lcheck(&l, 1000, 5000, 2) | lcheck(&l, 6000, LEN - 6000, 1) |
		  lcheck(&l, LEN, 100000, 3);

	(void)arg;
	return lclose(&l) || ret;
}

Test(staged, a_log_that_goes_on_after_it_was_staged_is_read_to_its_end)
{
	cr_assert_eq(in_child(goes_on, NULL), 0);
	cr_assert_eq(in_child(look_newly, NULL), 0);
	cr_assert_eq(in_child(drain_it, NULL), 0);
	staged(false);
	cr_assert_eq(in_child(look_newly, NULL), 0);
}

static int overwrite(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	if (lfill(&l, 0, LEN, 5) != LEN)
		return 1;
	return lclose(&l) || drain_it(NULL);
}

static int empty_and_write(void *arg)
{
	struct lfile l = lopen("a", O_RDWR | O_TRUNC);

	(void)arg;
	if (lfill(&l, 0, LEN, 5) != LEN)
		return 1;
	return lclose(&l) || drain_it(NULL);
}

static int cut_it(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	return plfs_truncate(l.f, 1000) || plfs_truncate(l.f, LEN) || lclose(&l) || drain_it(NULL);
}

static int look_five(void *arg)
{
	struct lfile l = lopen("a", O_RDONLY);
	int ret = plfs_size(l.f) != LEN || lcheck(&l, 0, LEN, 5);

	(void)arg;
	return lclose(&l) || ret;
}

static int look_cut(void *arg)
{
	struct lfile l = lopen("a", O_RDONLY);
	int ret = plfs_size(l.f) != LEN || lcheck(&l, 0, 1000, 1) || !lzeros(&l, 1000, LEN - 1000);

	(void)arg;
	return lclose(&l) || ret;
}

static int by_other_host(void *arg)
{
	near_go_elsewhere();
	return ((int (*)(void *))arg)(NULL);
}

Test(staged, what_another_process_writes_over_it_is_read)
{
	make_staged();
	cr_assert_eq(in_child(overwrite, NULL), 0);
	cr_assert_eq(in_child(look_five, NULL), 0);
}

Test(staged, a_truncation_holds)
{
	make_staged();
	cr_assert_eq(in_child(cut_it, NULL), 0);
	cr_assert_eq(in_child(look_cut, NULL), 0);
}

Test(staged, a_file_that_was_emptied_and_written_anew_has_its_new_bytes)
{
	make_staged();
	cr_assert_eq(in_child(empty_and_write, NULL), 0);
	cr_assert_eq(in_child(look_five, NULL), 0);
}

static int compact_it(void *arg) { return (void)arg, lcompact("a"); }

Test(staged, after_a_compaction_the_file_has_its_bytes)
{
	make_staged();
	cr_assert_eq(in_child(overwrite, NULL), 0);
	staged(false);
	cr_assert_eq(in_child(compact_it, NULL), 0);
	cr_assert_eq(in_child(look_five, NULL), 0);
}

Test(staged, a_log_that_is_shorter_than_its_copy_is_read_itself)
{
	char path[PATH_MAX];

	make_staged();
	cr_assert(find_file("data.", path));
	cr_assert_eq(truncate(path, 65536 + LEN), 0); /* its end is gone: as after a power failure */
	flip_home();
	cr_assert_eq(in_child(look, NULL), 1);
}

static int remove_it(void *arg) { return (void)arg, lunlink("a") ? 1 : 0; }

Test(staged, the_copies_of_a_removed_file_go_with_it)
{
	make_staged();
	cr_assert_eq(in_child(remove_it, NULL), 0);
	cr_assert_eq(near_count("data."), 0);
}

static int drain_top(void *arg, const char *top, const char *home)
{
	struct plfs_drain *d = arg;

	(void)home;
	return plfs_drain_place(mount_at(0), top, true, d);
}

Test(staged, the_copies_of_a_file_that_another_host_removed_are_collected)
{
	struct plfs_drain d = { .dry = true };

	make_staged();
	cr_assert_eq(in_child(by_other_host, remove_it), 0);
	cr_assert_eq(near_count("data."), 1);
	cr_assert_eq(plfs_places_in(near_dir, drain_top, &d), 0);
	cr_assert_eq(d.nr_orphans, 1);
	cr_assert_eq(near_count("data."), 1);
	d = (struct plfs_drain){ 0 };
	cr_assert_eq(plfs_places_in(near_dir, drain_top, &d), 0);
	cr_assert_eq(d.nr_orphans, 1);
	cr_assert_eq(near_count("data."), 0);
}

/* ---- no room ---- */

static int stage_quietly(void *arg)
{
	struct plfs_drain *d = arg;
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("a", path);

	m->near.max = 100000;
	return plfs_stage_file(m, AT_FDCWD, path, false, d) || d->nr_logs || d->nr_left != 1;
}

Test(staged, where_there_is_no_room_the_file_is_read_at_home)
{
	struct plfs_drain d = { 0 };

	cr_assert_eq(in_child(write_it, NULL), 0);
	cr_assert_eq(in_child(drain_it, NULL), 0);
	cr_assert_eq(in_child(stage_quietly, &d), 0);
	cr_assert_eq(near_count("data."), 0);
	cr_assert_eq(in_child(look, NULL), 0);
}

/* ---- open files ---- */

Test(staged, what_a_process_writes_is_left)
{
	struct plfs_drain d;
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	d = staged(false);
	cr_assert_eq(d.nr_logs, 0);
	cr_assert_eq(d.nr_there, 1); /* near itself */
	cr_assert_eq(lclose(&l), 0);
}
