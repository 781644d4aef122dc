/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads that are checked (PLFS_VERIFY), in files of many chunks and tables: in windows, in place, by
 * pieces of several logs, and from the live file. unit/admin/flips.c has every bit of small ones.
 */
#include "test/lib/scratch.h"

#include "test/lib/calls.h"

#include "core/dropping/datalog.h"
#include "core/file/file.h"
#include "core/dropping/sums.h"

#include <criterion/criterion.h>

static void setup(void)
{
	scratch_in_memory = true;
	scratch_setup();
	sums_verify = SUMS_ONCE;
}

TestSuite(sums, .init = setup, .fini = scratch_remove, .timeout = 300);

static void flip(const char *prefix, off_t off)
{
	char path[PATH_MAX];
	uint8_t byte;
	int fd;

	cr_assert(find_file(prefix, path));
	fd = open(path, O_RDWR);
	cr_assert_eq(pread(fd, &byte, 1, off), 1);
	byte ^= 4;
	cr_assert_eq(pwrite(fd, &byte, 1, off), 1);
	close(fd);
}

static int check(off_t off, size_t len)
{
	struct lfile l = lopen("file", O_RDONLY);
	int ret = lcheck(&l, off, len, 1);

	lclose(&l);
	return ret;
}

/*
 * Position @at of the log is flipped: reads of any size that touch its chunk are errors, all others are
 * right.
 */
static void check_around(off_t at, off_t size)
{
	static const size_t LENS[] = { 1, 700, 4096, 70000, 300000, 3000000 };
	off_t chunk = at / INDEX_CHUNK_LEN * INDEX_CHUNK_LEN;

	flip("data.", DATALOG_DATA_OFF + at);
	for (size_t i = 0; i < ARRAY_SIZE(LENS); i++) {
		off_t len = (off_t)LENS[i];

		if (chunk >= len)
			cr_assert_eq(check(chunk - len, LENS[i]), 0, "%zu in front of it", LENS[i]);
		if (chunk + INDEX_CHUNK_LEN + len <= size)
			cr_assert_eq(check(chunk + INDEX_CHUNK_LEN, LENS[i]), 0, "%zu behind it", LENS[i]);
		if (at + len <= size)
			cr_assert_eq(check(at, LENS[i]), -EIO, "%zu from it on", LENS[i]);
	}
	cr_assert_eq(check(0, (size_t)size), -EIO, "all");
	flip("data.", DATALOG_DATA_OFF + at);
}

Test(sums, of_a_closed_log_are_compared_whatever_is_read)
{
	struct lfile l = made("file");
	size_t size = 5000000;

	cr_assert_eq(lfill(&l, 0, size, 1), (ssize_t)size);
	lclose(&l);
	cr_assert_eq(check(0, size), 0);
	check_around(0, (off_t)size);
	check_around(2000000, (off_t)size);
	check_around((off_t)size - 1, (off_t)size);
}

Test(sums, of_an_open_log_are_in_its_live_file)
{
	struct lfile l;

	sums_verify = SUMS_ALWAYS; /* the file is open all the time, and would be compared once */
	l = made("file");
	cr_assert_eq(lfill(&l, 0, 1000000, 1), 1000000);
	cr_assert_eq(plfs_commit(l.f), 0);
	cr_assert_eq(lfill(&l, 1000000, 5000, 1), 5000);
	cr_assert_eq(check(0, 1005000), 0);
	check_around(70000, 1005000);
	check_around(999999, 1005000); /* in the chunk under way */
	lclose(&l);
}

/*
 * 300 MiB, small writes between: two tables on the way; and a dozen small ones, of a process that closes and
 * goes on.
 */
Test(sums, of_older_tables_are_found)
{
	static char buf[1 << 20];
	struct lfile l = made("file");
	off_t at = 0;

	for (int i = 0; i < 300; i++, at += (off_t)sizeof(buf)) {
		pattern_fill(buf, sizeof(buf), (uint64_t)at, 1);
		cr_assert_eq(plfs_pwrite(l.f, buf, sizeof(buf), at), (ssize_t)sizeof(buf));
	}
	for (int i = 0; i < 12; i++, at += 30000) {
		lclose(&l);
		l = made("file");
		cr_assert_eq(lfill(&l, at, 30000, 1), 30000);
	}
	lclose(&l);
	cr_assert_eq(count_files("data."), 1);
	cr_assert_eq(check(0, (size_t)at), 0);
	for (off_t pos = 1000; pos < (off_t)300 << 20; pos += 29999999) {
		flip("data.", DATALOG_DATA_OFF + pos);
		/* the tables in front of it are in the log alone */
		cr_assert_eq(check(pos < 300000 ? 0 : pos - 300000, 1 << 20), -EIO, "at %lld",
			     (long long)pos);
		flip("data.", DATALOG_DATA_OFF + pos);
	}
}

static int nr_preads;

static int count_preads(enum call call)
{
	nr_preads += call == CALL_PREAD;
	return 0;
}

/* A process that appends a line and closes, again and again, has a table and a trailer for each line. */
Test(sums, of_the_beginning_of_a_log_that_was_closed_often_are_found_by_few_reads)
{
	sums_verify = SUMS_ALWAYS; /* any number of steps */
	for (int i = 0; i < 1000; i++) {
		struct lfile l = made("file");

		cr_assert_eq(lfill(&l, i * 100, 100, 1), 100);
		cr_assert_eq(lclose(&l), 0);
	}
	cr_assert_eq(count_files("data."), 1);
	calls_intercept();
	on_call = count_preads;
	cr_assert_eq(check(0, 100), 0);
	on_call = NULL;
	cr_assert_leq(nr_preads, 30, "%d reads", nr_preads);
	flip("data.", DATALOG_DATA_OFF);
	cr_assert_eq(check(0, 100), -EIO, "the checksums were found");
	flip("data.", DATALOG_DATA_OFF);
	cr_assert_eq(check(0, 100000), 0);
}

static int write_stripe(void *arg)
{
	int no = *(int *)arg;
	struct lfile l = made("file");

	for (int k = 0; k < 100; k++)
		if (lfill(&l, (off_t)(k * 4 + no) * 10000, 10000, 1) < 0)
			return 1;
	return lclose(&l);
}

Test(sums, of_several_logs_in_one_request)
{
	for (int i = 0; i < 4; i++)
		cr_assert_eq(in_child(write_stripe, &i), 0);
	cr_assert_eq(check(0, 4000000), 0);
	cr_assert_eq(check(12345, 3000000), 0);
	flip("data.", DATALOG_DATA_OFF + 500000);
	cr_assert_eq(check(0, 4000000), -EIO);
	cr_assert_eq(check(2100000, 1000), 0);
}

Test(sums, a_piece_that_would_be_mapped_is_compared_before)
{
	struct lfile l = made("file");
	off_t fd_off;
	int fd;

	cr_assert_eq(lfill(&l, 0, 4000000, 1), 4000000);
	lclose(&l);
	flip("data.", DATALOG_DATA_OFF + 3000000);
	l = lopen("file", O_RDONLY);
	cr_assert_gt(plfs_extent(l.f, 0, 2900000, &fd, &fd_off), 0);
	cr_assert_geq(fd, 0);
	close(fd);
	cr_assert_eq(plfs_extent(l.f, 0, 4000000, &fd, &fd_off), -EIO);
	lclose(&l);
}

Test(sums, a_table_that_is_damaged_is_no_error)
{
	struct lfile l = made("file");

	cr_assert_eq(lfill(&l, 0, 1000000, 1), 1000000);
	lclose(&l);
	flip("data.", DATALOG_DATA_OFF + 1000000 + 30);
	cr_assert_eq(check(0, 1000000), 0);
}

Test(sums, are_not_asked_unless_it_is_wanted)
{
	struct lfile l = made("file");

	cr_assert_eq(lfill(&l, 0, 1000000, 1), 1000000);
	lclose(&l);
	sums_verify = SUMS_OFF;
	flip("data.", DATALOG_DATA_OFF + 1000);
	cr_assert_eq(check(0, 1000000), 1);
}

/* ---- a thread that changes the buffer of a write that is under way ---- */

static ssize_t (*real_pwrite)(int fd, const void *buf, size_t len, off_t off);
static char *racing;

static ssize_t pwrite_of_changed(int fd, const void *buf, size_t len, off_t off)
{
	if (racing && (const char *)buf <= racing && racing < (const char *)buf + len)
		(*racing)++;
	return real_pwrite(fd, buf, len, off);
}

Test(sums, bytes_that_were_changed_while_they_were_written_are_as_they_were_written)
{
	struct lfile l = made("file");
	size_t len = 3000000;
	char *buf = malloc(len), *back = malloc(len);

	sums_verify = SUMS_ALWAYS; /* with one thread nobody else is expected */
	pattern_fill(buf, len, 0, 1);
	racing = buf + 1234567;
	real_pwrite = sys.pwrite;
	sys.pwrite = pwrite_of_changed;
	cr_assert_eq(plfs_pwrite(l.f, buf, len, 0), (ssize_t)len);
	sys.pwrite = real_pwrite;
	lclose(&l);
	l = lopen("file", O_RDONLY);
	cr_assert_eq(plfs_pread(l.f, back, len, 0), (ssize_t)len);
	cr_assert_arr_eq(buf, back, len);
	lclose(&l);
	free(buf);
	free(back);
}
