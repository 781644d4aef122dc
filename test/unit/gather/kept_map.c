/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The confirmed map: it spares readers the look at the container, and is never used when somebody has written
 * since. What happens when somebody does so at the worst of moments is in kept_map_calls.c.
 */
#include "test/lib/kept_map.h"

#include "core/base/bytes.h"
#include "core/base/crc32c.h"

SUITE(confirmed);

static int nr_calls[NR_CALLS];

static int count(enum call call)
{
	nr_calls[call]++;
	return 0;
}

/* What an open and a read of everything takes. */
static void count_calls(void)
{
	memset(nr_calls, 0, sizeof(nr_calls));
	on_call = count;
	cr_assert_eq(check_as_made(NULL), 0);
	on_call = NULL;
}

/* ---- what it spares ---- */

Test(confirmed, is_all_that_the_next_reader_looks_at)
{
	make_file(NULL);
	calls_intercept();
	count_calls();
	cr_assert_gt(nr_calls[CALL_GETDENTS], 0);
	cr_assert_eq(count_files("index.global"), 1);
	count_calls();
	cr_assert_eq(nr_calls[CALL_GETDENTS], 0);
	cr_assert_eq(nr_calls[CALL_FSTATAT], 2, "the name of the file, and whose the container is, no more");
}

/* As on a host that nobody has written from: there is no word to watch. */
Test(confirmed, is_not_asked_for_at_each_read_where_there_is_no_notice)
{
	char path[PATH_MAX];
	struct lfile l;

	make_file(NULL);
	cr_assert_eq(check_as_made(NULL), 0);
	cr_assert(find_file("notice.", path));
	cr_assert_eq(unlink(path), 0);
	calls_intercept();
	l = lopen(kept_name, O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, LEN, 1), 0);
	memset(nr_calls, 0, sizeof(nr_calls));
	on_call = count;
	cr_assert_eq(lcheck(&l, 0, LEN, 1), 0);
	on_call = NULL;
	for (int call = 0; call < NR_CALLS; call++)
		cr_expect_eq(nr_calls[call], 0, "%d calls of %s", nr_calls[call], CALL_NAMES[call]);
	lclose(&l);
}

Test(confirmed, is_made_of_one_that_its_maker_left_unconfirmed)
{
	make_file(NULL);
	calls_intercept();
	count_calls();
	set_word(OFF_CONFIRMED, 0);
	count_calls();
	cr_assert_gt(nr_calls[CALL_GETDENTS], 0);
	count_calls();
	cr_assert_eq(nr_calls[CALL_GETDENTS], 0);
}

Test(confirmed, costs_a_look_at_its_name_when_a_reader_acquires)
{
	struct lfile l;

	make_file(NULL);
	calls_intercept();
	for (int maker = 1; maker >= 0; maker--) {
		l = lopen(kept_name, O_RDONLY);
		cr_assert_eq(lcheck(&l, 0, LEN, 1), 0);
		memset(nr_calls, 0, sizeof(nr_calls));
		on_call = count;
		plfs_refresh(l.f);
		cr_assert_eq(lcheck(&l, 0, LEN, 1), 0);
		on_call = NULL;
		cr_assert_eq(nr_calls[CALL_GETDENTS], 0);
		cr_assert_eq(nr_calls[CALL_FSTATAT], 1);
		lclose(&l);
	}
}

/* Set the feature word at @off of the header, and make its checksum right. */
static void set_features(off_t off, uint32_t features)
{
	char path[PATH_MAX];
	uint8_t head[128];
	int fd;

	cr_assert(find_file("index.global", path));
	fd = open(path, O_RDWR);
	cr_assert_eq(pread(fd, head, sizeof(head), 0), sizeof(head));
	put_le32(head + off, features);
	put_le32(head + 12, 0);
	put_le32(head + 12, crc32c(0, head, sizeof(head)));
	cr_assert_eq(pwrite(fd, head, sizeof(head), 0), sizeof(head));
	close(fd);
}

/* It is a cache: one that is not understood is as good as none, and made anew. */
Test(confirmed, is_ignored_with_an_unknown_feature_unless_that_may_be_ignored)
{
	make_file(NULL);
	calls_intercept();
	count_calls();
	set_features(80, UINT32_MAX);
	count_calls();
	cr_assert_eq(nr_calls[CALL_GETDENTS], 0);
	set_features(84, 1U << 31);
	count_calls();
	cr_assert_gt(nr_calls[CALL_GETDENTS], 0);
	count_calls();
	cr_assert_eq(nr_calls[CALL_GETDENTS], 0);
}

/* The base need not be merged anew because of our own log. */
Test(confirmed, serves_a_reader_that_then_writes_as_well)
{
	struct lfile l;

	make_file(NULL);
	check_as_made(NULL);
	l = lopen(kept_name, O_RDWR);
	cr_assert_eq(lcheck(&l, 0, LEN, 1), 0);
	cr_assert_eq(lfill(&l, 50, 10, 2), 10);
	cr_assert_eq(lcheck(&l, 50, 10, 2), 0);
	cr_assert(l.f->ino->v.r.levels.v[0].mapped);
	cr_assert_eq(lcheck(&l, 60, LEN - 60, 1), 0);
	cr_assert_eq(in_child(check_written, NULL), 0);
	lclose(&l);
	cr_assert_eq(in_child(check_written, NULL), 0);
}

/* ---- when it must not be used ---- */

Test(confirmed, is_gone_when_a_write_returns)
{
	struct lfile l;

	make_file(NULL);
	check_as_made(NULL);
	cr_assert_eq(count_files("index.global"), 1);
	l = lopen(kept_name, O_RDWR);
	cr_assert_eq(count_files("index.global"), 1);
	cr_assert_eq(lfill(&l, 50, 10, 2), 10);
	cr_assert_eq(count_files("index.global"), 0);
	cr_assert_eq(in_child(check_written, NULL), 0);
	lclose(&l);
	cr_assert_eq(in_child(check_written, NULL), 0);
	cr_assert_eq(count_files("index.global"), 1);
}

Test(confirmed, is_not_made_while_a_log_is_open)
{
	struct lfile l;

	make_file(NULL);
	l = lopen(kept_name, O_RDWR);
	cr_assert_eq(lfill(&l, 0, 1, 1), 1);
	cr_assert_eq(in_child(check_as_made, NULL), 0);
	cr_assert_eq(count_files("index.global"), 0);
	cr_assert_eq(lfill(&l, 50, 10, 2), 10);
	lclose(&l);
	cr_assert_eq(in_child(check_written, NULL), 0);
}

Test(confirmed, is_not_believed_of_a_copy)
{
	char path[PATH_MAX], cmd[3 * PATH_MAX];

	make_file(NULL);
	check_as_made(NULL);
	cr_assert(find_file("index.global", path));
	snprintf(cmd, sizeof(cmd), "cp %s %s/copy", path, scratch);
	cr_assert_eq(system(cmd), 0);
	cr_assert_eq(write_some(NULL), 0);
	snprintf(cmd, sizeof(cmd), "cp %s/copy %s", scratch, path);
	cr_assert_eq(system(cmd), 0);
	cr_assert_eq(in_child(check_written, NULL), 0);
}

Test(confirmed, is_not_made_where_hosts_remember_names)
{
	char path[PATH_MAX];

	lpath(kept_name, path)->store.coherent = false;
	make_file(NULL);
	calls_intercept();
	count_calls();
	cr_assert_eq(count_files("index.global"), 1);
	count_calls();
	cr_assert_gt(nr_calls[CALL_GETDENTS], 0);
}

static int cannot_rename(enum call call)
{
	return call == CALL_RENAMEAT ? EACCES : 0;
}

Test(confirmed, is_no_loss_if_it_cannot_be_made)
{
	make_file(NULL);
	calls_intercept();
	on_call = cannot_rename;
	cr_assert_eq(check_as_made(NULL), 0);
	cr_assert_eq(check_as_made(NULL), 0);
	on_call = NULL;
	cr_assert_eq(count_files("index.global"), 0);
}

/* One of the two ways to revoke it is enough; without either nothing may be written. */
Test(confirmed, stops_a_writer_that_cannot_revoke_it)
{
	struct lfile l;

	if (!has_openat2())
		cr_skip_test("no openat2() here");
	make_file(NULL);
	check_as_made(NULL);
	calls_intercept();
	sys.openat2 = some_openat2;
	sys.unlinkat = some_unlinkat;
	open_fails = unlink_fails = true;
	l = lopen(kept_name, O_RDWR);
	cr_assert_eq(lfill(&l, 50, 10, 2), -EACCES);
	cr_assert_eq(count_files("live."), 0);
	cr_assert_eq(count_files("data."), LOGS);
	open_fails = false;
	cr_assert_eq(lfill(&l, 50, 10, 2), 10);
	lclose(&l);
	cr_assert_eq(check_written(NULL), 0);
	unlink_fails = false;
	open_fails = true;
	cr_assert_eq(check_written(NULL), 0);
	l = lopen(kept_name, O_RDWR);
	cr_assert_eq(lfill(&l, 50, 10, 1), 10);
	lclose(&l);
	cr_assert_eq(check_as_made(NULL), 0);
}
