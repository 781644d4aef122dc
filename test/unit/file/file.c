/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Logical files as programs use them, in one process and between two: data, sizes, appending.
 */
#include "test/lib/scratch.h"

#include "core/file/file.h"

#include <criterion/criterion.h>

#define SUITE(name) TestSuite(name, .init = scratch_setup, .fini = scratch_remove)

SUITE(file_data);
SUITE(file_size);
SUITE(file_append);

/* ---- data ---- */

Test(file_data, is_read_back_before_and_after_close)
{
	struct lfile l = made("a");

	cr_assert_not_null(l.f);
	cr_assert_eq(lfill(&l, 0, 100, 1), 100);
	cr_assert_eq(lfill(&l, 1000, 200000, 1), 200000);
	cr_assert_eq(lcheck(&l, 0, 100, 1), 0);
	cr_assert(lzeros(&l, 100, 900));
	cr_assert_eq(lcheck(&l, 1000, 200000, 1), 0);
	cr_assert_eq(plfs_size(l.f), 201000);
	cr_assert_eq(lclose(&l), 0);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 100, 1), 0);
	cr_assert(lzeros(&l, 100, 900));
	cr_assert_eq(lcheck(&l, 1000, 200000, 1), 0);
	cr_assert_eq(plfs_size(l.f), 201000);
	lclose(&l);
}

/* Each round the file's logs are spread over another number of directories. */
Test(file_data, is_read_whatever_the_number_of_hostdirs_it_was_written_with)
{
	static const unsigned NR[] = { 32, 1, 4096, 7 };
	char path[2 * PATH_MAX];
	struct plfs_info info;
	struct stat st;

	for (unsigned i = 0; i < ARRAY_SIZE(NR); i++) {
		struct lfile l = lopen("a", O_RDWR | O_CREAT);

		l.f->ino->m->spec->nr_hostdirs = NR[i];
		lclose(&l);
		l = lopen("a", O_RDWR);
		cr_assert_eq(lfill(&l, i * 1000, 500, 1), 500);
		for (unsigned k = 0; k <= i; k++)
			cr_assert_eq(lcheck(&l, k * 1000, 500, 1), 0);
		cr_assert_eq(plfs_get_info(l.f, &info), 0);
		cr_assert_eq(info.nr_logs, i + 1);
		lclose(&l);
	}
	snprintf(path, sizeof(path), "%s/hostdir.0", info.container);
	cr_assert_eq(stat(path, &st), 0);
}

/* The open record must not grow behind the back of a map that was made from it. */
Test(file_data, contiguous_writes_between_reads_are_all_seen)
{
	struct lfile l = made("a");

	for (int i = 0; i < 50; i++) {
		cr_assert_eq(lfill(&l, i * 100, 100, 1), 100);
		cr_assert_eq(lcheck(&l, 0, (size_t)(i + 1) * 100, 1), 0, "after write %d", i);
	}
	lclose(&l);
}

Test(file_data, strided_writes_between_reads_are_all_seen)
{
	struct lfile l = made("a");

	for (int i = 0; i < 50; i++) {
		cr_assert_eq(lfill(&l, i * 300, 100, 1), 100);
		cr_assert_eq(lcheck(&l, i * 300, 100, 1), 0, "after write %d", i);
		cr_assert_eq(lcheck(&l, 0, 100, 1), 0);
	}
	lclose(&l);
}

Test(file_data, contiguous_writes_after_asking_the_size_are_all_seen)
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 5000, 10, 1), 10);
	for (int i = 0; i < 20; i++) {
		cr_assert_eq(plfs_size(l.f), 5010);
		cr_assert_eq(lfill(&l, i * 100, 100, 1), 100);
	}
	cr_assert_eq(lcheck(&l, 0, 2000, 1), 0);
	lclose(&l);
}

/* Random writes of random sizes against a plain buffer. */
Test(file_data, random_overwrites_read_as_a_plain_file_does)
{
	enum { LEN = 300000 };
	unsigned char *model = calloc(1, LEN), *buf = malloc(LEN);
	struct lfile l = made("a");
	size_t end = 0;
	unsigned x = 12345;

	for (int i = 0; i < 3000; i++) {
		size_t off, len;

		x = x * 1103515245 + 12345;
		off = (x >> 8) % (LEN - 1);
		x = x * 1103515245 + 12345;
		len = (x >> 8) % (i % 50 ? 700 : 100000) + 1;
		if (off + len > LEN)
			len = LEN - off;
		if (i % 7 == 3) {
			ssize_t want = off >= end ? 0 : (ssize_t)(off + len > end ? end - off : len);

			cr_assert_eq(plfs_pread(l.f, buf, len, (off_t)off), want, "step %d", i);
			cr_assert(want <= 0 || !memcmp(buf, model + off, (size_t)want), "step %d", i);
			continue;
		}
		if (i % 911 == 5) {
			lclose(&l);
			l = lopen("a", O_RDWR);
		}
		if (i % 503 == 7) {
			cr_assert_eq(plfs_truncate(l.f, (off_t)off), 0);
			if (off < end)
				memset(model + off, 0, end - off);
			end = off;
			continue;
		}
		for (size_t k = 0; k < len; k++)
			model[off + k] = (unsigned char)(i + k);
		cr_assert_eq(plfs_pwrite(l.f, model + off, len, (off_t)off), (ssize_t)len);
		end = off + len > end ? off + len : end;
	}
	lclose(&l);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(plfs_size(l.f), (off_t)end);
	cr_assert_eq(plfs_pread(l.f, buf, LEN, 0), (ssize_t)end);
	cr_assert_eq(memcmp(buf, model, end), 0);
	lclose(&l);
	free(model);
	free(buf);
}

Test(file_data, two_descriptions_see_each_other_at_once)
{
	struct lfile a = made("a"), b = lopen("a", O_RDONLY);

	cr_assert_eq(lfill(&a, 0, 500, 1), 500);
	cr_assert_eq(lcheck(&b, 0, 500, 1), 0);
	cr_assert_eq(lfill(&a, 100, 500, 2), 500);
	cr_assert_eq(lcheck(&b, 100, 500, 2), 0);
	cr_assert_eq(plfs_size(b.f), 600);
	lclose(&a);
	cr_assert_eq(lcheck(&b, 100, 500, 2), 0);
	lclose(&b);
}

Test(file_data, vectors_are_written_and_read_as_one)
{
	struct lfile l = made("a");
	char buf[6] = "";
	struct iovec out[] = { { "ab", 2 }, { NULL, 0 }, { "cde", 3 } };
	struct iovec in[] = { { buf, 1 }, { buf + 1, 4 } };

	cr_assert_eq(plfs_pwritev(l.f, out, 3, 10), 5);
	cr_assert_eq(plfs_preadv(l.f, in, 2, 10), 5);
	cr_assert_str_eq(buf, "abcde");
	cr_assert_eq(plfs_preadv(l.f, in, 2, 13), 2);
	cr_assert_eq(plfs_preadv(l.f, in, 2, 15), 0);
	lclose(&l);
}

Test(file_data, impossible_offsets_are_refused)
{
	struct lfile l = made("a");
	char c = 0;

	cr_assert_eq(plfs_pread(l.f, &c, 1, -1), -EINVAL);
	cr_assert_eq(plfs_pwrite(l.f, &c, 1, -1), -EINVAL);
	cr_assert_eq(plfs_pwrite(l.f, &c, 1, INT64_MAX), -EINVAL);
	cr_assert_eq(plfs_pwrite(l.f, &c, 1, INT64_MAX - 1), -EFBIG);
	cr_assert_eq(plfs_pwrite(l.f, &c, 1, INT64_MAX - 4096), -EFBIG);
	cr_assert_eq(plfs_pread(l.f, &c, 1, INT64_MAX), -EINVAL);
	cr_assert_eq(plfs_pread(l.f, &c, 1, INT64_MAX - 1), 0);
	cr_assert_eq(plfs_truncate(l.f, -1), -EINVAL);
	cr_assert_eq(plfs_truncate(l.f, INT64_MAX), -EFBIG);
	cr_assert_eq(plfs_pwrite(l.f, &c, 0, INT64_MAX), 0);
	cr_assert_eq(plfs_size(l.f), 0);
	lclose(&l);
}

static int write_second(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	if (lfill(&l, 50, 100, 2) != 100)
		return 1;
	return lclose(&l) ? 2 : 0;
}

Test(file_data, what_another_process_closed_is_seen_after_refresh)
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, 200, 1), 200);
	cr_assert_eq(lcheck(&l, 0, 200, 1), 0);
	cr_assert_eq(in_child(write_second, NULL), 0);
	cr_assert_eq(plfs_refresh(l.f), 0);
	cr_assert_eq(lcheck(&l, 0, 50, 1), 0);
	cr_assert_eq(lcheck(&l, 50, 100, 2), 0);
	cr_assert_eq(lcheck(&l, 150, 50, 1), 0);
	/* And what is written after the refresh is later than what it saw. */
	cr_assert_eq(lfill(&l, 100, 100, 3), 100);
	lclose(&l);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 50, 50, 2), 0);
	cr_assert_eq(lcheck(&l, 100, 100, 3), 0);
	lclose(&l);
}

static int (*true_clock)(clockid_t clock, struct timespec *ts);

static int clock_an_hour_ago(clockid_t clock, struct timespec *ts)
{
	int ret = true_clock(clock, ts);

	ts->tv_sec -= 3600;
	return ret;
}

static int write_an_hour_ago(void *arg)
{
	true_clock = sys.clock_gettime;
	sys.clock_gettime = clock_an_hour_ago;
	return write_second(arg);
}

static int write_first(void *arg)
{
	struct lfile l = made("a");

	(void)arg;
	return lfill(&l, 0, 200, 1) != 200 || lclose(&l);
}

/* Two children: a process's own stamps never go back. */
Test(file_data, a_later_write_wins_although_the_clock_was_set_back)
{
	struct lfile l;

	cr_assert_eq(in_child(write_first, NULL), 0);
	cr_assert_eq(in_child(write_an_hour_ago, NULL), 0);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 50, 1), 0);
	cr_assert_eq(lcheck(&l, 50, 100, 2), 0);
	lclose(&l);
}

static int write_and_die(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	for (int i = 0; i < 300; i++)
		if (lfill(&l, i * 1000 + i % 7, 500, 1) != 500)
			return 1;
	raise(SIGKILL);
	return 2;
}

Test(file_data, of_a_killed_process_is_there)
{
	struct lfile l = made("a");

	cr_assert_eq(in_child(write_and_die, NULL), 256 + SIGKILL);
	for (int i = 0; i < 300; i++)
		cr_assert_eq(lcheck(&l, i * 1000 + i % 7, 500, 1), 0, "write %d", i);
	cr_assert_eq(plfs_size(l.f), 299 * 1000 + 299 % 7 + 500);
	lclose(&l);
}

/* ---- size ---- */

Test(file_size, stat_shows_the_logical_file)
{
	struct lfile l = made("a");
	char path[PATH_MAX];
	struct stat st;

	lpath("a", path);
	cr_assert_eq(lfill(&l, 0, 12345, 1), 12345);
	cr_assert_eq(sys.fstat(l.fd, &st), 0);
	cr_assert(plfs_maybe_stub(st.st_mode));
	plfs_fix_stat(&st, NULL);
	cr_assert_eq(st.st_size, 12345);
	cr_assert_eq(st.st_mode & 07777, 0644 & ~(umask(022) & 0777) & 07777);
	lclose(&l);
	cr_assert_eq(stat(path, &st), 0);
	plfs_fix_stat(&st, NULL);
	cr_assert_eq(st.st_size, 12345);
	cr_assert_eq(st.st_blocks, 32);
}

Test(file_size, a_new_file_is_empty)
{
	struct lfile l = made("a");
	char c;

	cr_assert_eq(plfs_size(l.f), 0);
	cr_assert_eq(plfs_pread(l.f, &c, 1, 0), 0);
	cr_assert_eq(plfs_seek_hole(l.f, 0, SEEK_DATA), -ENXIO);
	lclose(&l);
	cr_assert_eq(count_files("data."), 0);
}

Test(file_size, fallocate_extends_keeps_and_zeros)
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, 5000, 1), 5000);
	cr_assert_eq(plfs_fallocate(l.f, FALLOC_FL_KEEP_SIZE, 0, 100000), 0);
	cr_assert_eq(plfs_size(l.f), 5000);
	cr_assert_eq(plfs_fallocate(l.f, 0, 0, 10000), 0);
	cr_assert_eq(plfs_size(l.f), 10000);
	cr_assert_eq(lcheck(&l, 0, 5000, 1), 0);
	cr_assert(lzeros(&l, 5000, 5000));
	cr_assert_eq(plfs_fallocate(l.f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 100, 200), 0);
	cr_assert(lzeros(&l, 100, 200));
	cr_assert_eq(lcheck(&l, 300, 4700, 1), 0);
	cr_assert_eq(plfs_fallocate(l.f, FALLOC_FL_ZERO_RANGE, 9000, 2000), 0);
	cr_assert_eq(plfs_size(l.f), 11000);
	cr_assert(lzeros(&l, 9000, 2000));
	cr_assert_eq(plfs_fallocate(l.f, 0, 0, 0), -EINVAL);
	cr_assert_eq(plfs_fallocate(l.f, FALLOC_FL_KEEP_SIZE, 1024, INT64_MAX - 1023), -EFBIG);
	lclose(&l);
}

/* ---- appending ---- */

#define APPENDERS 4
#define APPENDS 100

static int append_lines(void *arg)
{
	struct lfile l = lopen("a", O_WRONLY | O_APPEND);
	int no = *(int *)arg;
	char line[40];

	for (int i = 0; i < APPENDS; i++) {
		off_t end = 0;
		int len = snprintf(line, sizeof(line), "%d:%04d:%.*s\n", no, i, i % 20,
				   "abcdefghijklmnopqrstuvwxyz");

		if (lappend(&l, line, (size_t)len, &end) != len)
			return 1;
		if (i == APPENDS / 2) {
			lclose(&l);
			l = lopen("a", O_WRONLY | O_APPEND);
		}
	}
	return lclose(&l) ? 2 : 0;
}

Test(file_append, of_many_processes_never_overlaps)
{
	struct lfile l = made("a");
	pid_t pid[APPENDERS];
	int next[APPENDERS] = { 0 };
	char *text;
	off_t size;

	lclose(&l);
	for (int i = 0; i < APPENDERS; i++)
		pid[i] = start_child(append_lines, &i);
	for (int i = 0; i < APPENDERS; i++)
		cr_assert_eq(wait_child(pid[i]), 0);
	l = lopen("a", O_RDONLY);
	size = plfs_size(l.f);
	text = calloc(1, (size_t)size + 1);
	cr_assert_eq(plfs_pread(l.f, text, (size_t)size, 0), size);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		int no, i;

		cr_assert_eq(sscanf(line, "%d:%d:", &no, &i), 2, "%s", line);
		cr_assert_eq(i, next[no], "%s", line);
		cr_assert_eq(strlen(line), 7 + (size_t)(i % 20), "%s", line);
		next[no]++;
	}
	for (int i = 0; i < APPENDERS; i++)
		cr_assert_eq(next[i], APPENDS);
	free(text);
	lclose(&l);
}

Test(file_append, finds_what_a_killed_process_wrote)
{
	struct lfile l = made("a");
	off_t end, want = 299 * 1000 + 299 % 7 + 500;

	cr_assert_eq(in_child(write_and_die, NULL), 256 + SIGKILL);
	cr_assert_eq(lappend(&l, "x", 1, &end), 1);
	cr_assert_eq(end, want + 1);
	lclose(&l);
}

/* The same when the appender has had a map since before. */
Test(file_append, finds_what_a_process_killed_meanwhile_wrote)
{
	struct lfile l = made("a");
	off_t end, want = 299 * 1000 + 299 % 7 + 500;

	cr_assert_eq(lfill(&l, 0, 10, 1), 10);
	cr_assert_eq(lcheck(&l, 0, 10, 1), 0);
	cr_assert_eq(in_child(write_and_die, NULL), 256 + SIGKILL);
	cr_assert_eq(lappend(&l, "x", 1, &end), 1);
	cr_assert_eq(end, want + 1);
	lclose(&l);
}
