/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The container of a file is gone, or all files in it are: a purge of old files took them, while somebody
 * kept the stub young. What was in it must not read as zeros, neither before somebody writes nor afterwards;
 * and whoever begins anew with an empty file must be able to.
 */
#include "test/lib/scratch.h"

#include <criterion/criterion.h>

#define LEN 20000

TestSuite(gone, .init = scratch_setup, .fini = scratch_remove);
TestSuite(gone_small, .init = scratch_setup_small, .fini = scratch_remove);

enum loss { CONTAINER, HOSTDIRS, FILES, NR_LOSSES };

static void run(const char *command)
{
	char line[PATH_MAX + 200];

	snprintf(line, sizeof(line), "cd %s/.plfs && %s", scratch, command);
	cr_assert_eq(system(line), 0, "%s", line);
}

static void lose(enum loss loss)
{
	run(loss == CONTAINER ? "rm -rf [0-9a-f]*/*" :
	    loss == HOSTDIRS ? "rm -rf [0-9a-f]*/*/*" : "find [0-9a-f]*/ -type f -delete");
}

/* A closed file of LEN bytes, and nothing of it but the stub. */
static void lost(enum loss loss)
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	lclose(&l);
	lose(loss);
}

static ssize_t get(struct lfile *l)
{
	char buf[100];

	return plfs_pread(l->f, buf, sizeof(buf), 0);
}

static void ignore(void *arg, const struct plfs_finding *finding)
{
	(void)arg, (void)finding;
}

static void assert_lost(void)
{
	struct plfs_check check = { .found = ignore };
	char path[PATH_MAX];
	struct lfile l = lopen("a", O_RDONLY);
	struct plfs_mount *m = lpath("a", path);

	cr_assert_eq(get(&l), -EIO);
	lclose(&l);
	cr_assert_eq(stat_size("a"), LEN);
	cr_assert_eq(plfs_check(m, AT_FDCWD, path, &check), 1, "plfs check says so");
	cr_assert_eq(check.nr_damaged, 1);
}

/* As a process of its own, which knows nothing of this one. */
static int change(void *arg)
{
	struct lfile l = lopen("a", O_RDWR | *(int *)arg);
	off_t end;
	int ret = 0;

	if (*(int *)arg & O_APPEND)
		ret |= lappend(&l, "x", 1, &end) != -EIO;
	ret |= (get(&l) != -EIO) << 1;
	ret |= (lfill(&l, 10, 100, 2) != -EIO) << 2;
	ret |= (plfs_truncate(l.f, 50) != -EIO) << 3;
	ret |= (get(&l) != -EIO) << 4;
	ret |= (lclose(&l) != 0) << 5;
	return ret;
}

static void stays_lost(enum loss loss)
{
	static const int flags[] = { 0, O_APPEND };

	lost(loss);
	assert_lost();
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(in_child(change, (void *)&flags[i]), 0);
		assert_lost();
	}
}

Test(gone, nothing_is_written_where_the_container_was) { stays_lost(CONTAINER); }
Test(gone, nothing_is_written_to_an_empty_container) { stays_lost(HOSTDIRS); }
Test(gone, nothing_is_written_where_only_directories_are_left) { stays_lost(FILES); }

/* Of who has not read it before. */
static int write_first(void *arg)
{
	struct lfile l = lopen("a", *(int *)arg);
	off_t end;
	ssize_t n = *(int *)arg & O_APPEND ? lappend(&l, "x", 1, &end) : lfill(&l, 10, 100, 2);

	return n != -EIO || lclose(&l);
}

static void first_of_all(int flags)
{
	for (enum loss loss = 0; loss < NR_LOSSES; loss++) {
		lost(loss);
		cr_assert_eq(in_child(write_first, &flags), 0, "loss %d", loss);
		assert_lost();
		cr_assert_eq(lunlink("a"), 0);
	}
}

Test(gone, who_only_writes_gets_an_error) { first_of_all(O_WRONLY); }
Test(gone, who_reads_and_writes_gets_an_error) { first_of_all(O_RDWR); }
Test(gone, who_appends_gets_an_error) { first_of_all(O_WRONLY | O_APPEND); }

/* What the next run of a job does with the checkpoint. */
static int write_anew(void *arg)
{
	struct lfile l = lopen("a", O_RDWR | O_TRUNC);

	if (plfs_size(l.f) || (*(int *)arg && plfs_truncate(l.f, LEN)))
		return 1;
	if (*(int *)arg && !lzeros(&l, 0, LEN))
		return 2;
	if (lclose(&l))
		return 3;
	l = lopen("a", O_RDWR);
	if (*(int *)arg && (!lzeros(&l, 0, LEN)))
		return 4;
	if (lfill(&l, 100, LEN, 3) != LEN || lcheck(&l, 100, LEN, 3))
		return 5;
	return lclose(&l);
}

static void begins_anew(int extended)
{
	for (enum loss loss = 0; loss < NR_LOSSES; loss++) {
		struct lfile l;

		lost(loss);
		cr_assert_eq(in_child(write_anew, &extended), 0, "loss %d", loss);
		l = lopen("a", O_RDWR);
		cr_assert(lzeros(&l, 0, 100));
		cr_assert_eq(lcheck(&l, 100, LEN, 3), 0);
		cr_assert_eq(plfs_size(l.f), LEN + 100);
		lclose(&l);
		cr_assert_eq(lunlink("a"), 0);
		cr_assert_eq(count_files("data."), 0);
	}
}

Test(gone, a_file_that_is_emptied_begins_anew) { begins_anew(0); }
Test(gone, so_does_one_that_is_emptied_and_extended) { begins_anew(1); }

/* An empty file loses nothing: it can be purged, extended and written. */
static void empty_then(int extend)
{
	for (enum loss loss = 0; loss < NR_LOSSES; loss++) {
		struct lfile l;

		lost(CONTAINER);
		l = lopen("a", O_RDWR | O_TRUNC);
		lclose(&l);
		lose(loss);
		l = lopen("a", O_RDWR);
		if (extend)
			cr_assert(!plfs_truncate(l.f, 50) && lzeros(&l, 0, 50));
		lclose(&l);
		l = lopen("a", O_RDWR);
		if (extend)
			cr_assert(lzeros(&l, 0, 50));
		cr_assert_eq(lfill(&l, 0, LEN, 4), LEN);
		cr_assert_eq(lcheck(&l, 0, LEN, 4), 0);
		lclose(&l);
		l = lopen("a", O_RDONLY);
		cr_assert_eq(lcheck(&l, 0, LEN, 4), 0);
		lclose(&l);
		cr_assert_eq(lunlink("a"), 0);
	}
}

Test(gone, an_empty_file_has_lost_nothing) { empty_then(0); }
Test(gone, nor_has_one_that_is_extended_then) { empty_then(1); }

/* ---- while a process has it open ---- */

Test(gone, the_close_of_a_log_whose_container_is_gone_is_an_error)
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	cr_assert_eq(plfs_sync(l.f), 0);
	cr_assert_eq(lfill(&l, 0, 100, 1), 100);
	lose(CONTAINER);
	cr_assert_eq(lclose(&l), -EIO);
	assert_lost();
}

/* Its size is not known to others yet. */
Test(gone, nor_does_a_writer_read_what_it_has_just_written, .timeout = 60)
{
	for (enum loss loss = 0; loss < HOSTDIRS; loss++) {
		struct lfile l = made("a");

		cr_assert_eq(lfill(&l, 0, 100, 1), 100);
		lose(loss);
		cr_assert_eq(get(&l), -EIO);
		lclose(&l);
		cr_assert_eq(lunlink("a"), 0);
	}
}

/* As another host does that removes the file: it does not see who has it open. */
Test(gone, nor_does_one_without_a_name_read_as_zeros)
{
	struct lfile l = made("a");
	char path[PATH_MAX];

	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	lclose(&l);
	l = lopen("a", O_RDWR);
	lpath("a", path);
	cr_assert_eq(unlink(path), 0);
	lose(CONTAINER);
	cr_assert_eq(lfill(&l, 0, 10, 2), -EIO);
	cr_assert_eq(get(&l), -EIO);
	cr_assert_eq(lclose(&l), 0);
	cr_assert_eq(count_files("data."), 0);
}

/* ---- what has no logs yet is no loss ---- */

static int write_and_die(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	return lfill(&l, 100, 200000, 1) == 200000 && raise(SIGKILL);
}

/* A file that had bytes before it got a container, whose writer died before it had a log. */
Test(gone_small, a_container_without_a_log_is_no_loss)
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, 100, 1), 100);
	lclose(&l);
	cr_assert_eq(in_child(write_and_die, NULL), 256 + SIGKILL);
	run("rm -f [0-9a-f]*/*/hostdir.*/data.* [0-9a-f]*/*/hostdir.*/live.* [0-9a-f]*/*/hostdir.*/index.* [0-9a-f]*/*/index.global");
	l = lopen("a", O_RDWR);
	cr_assert_eq(lcheck(&l, 0, 100, 1), 0, "the lock says that there may have been none");
	lclose(&l);
}
