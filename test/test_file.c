/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Logical files as programs use them, in one process and between two: data, sizes, truncation, appending, names,
 * fork and exit.
 */
#include "scratch.h"

#include "../core/file.h"
#include "../core/dropping.h"
#include "../core/mount.h"
#include "../core/stub.h"

#include <criterion/criterion.h>
#include <sys/mman.h>

#define SUITE(name) TestSuite(name, .init = scratch_setup, .fini = scratch_remove)

SUITE(file_data);
SUITE(file_size);
SUITE(file_truncate);
SUITE(file_append);
SUITE(file_names);
SUITE(file_mode);
SUITE(file_fork);
SUITE(file_exit);
SUITE(file_bad);

static struct lfile made(const char *name)
{
	return lopen(name, O_RDWR | O_CREAT);
}

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
	cr_assert_eq(plfs_pwrite(l.f, &c, 1, INT64_MAX), -EFBIG);
	cr_assert_eq(plfs_pwrite(l.f, &c, 1, INT64_MAX - 4096), -EFBIG);
	cr_assert_eq(plfs_pread(l.f, &c, 1, INT64_MAX), 0);
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
	plfs_fix_stat(&st);
	cr_assert_eq(st.st_size, 12345);
	cr_assert_eq(st.st_mode & 07777, 0644 & ~(umask(022) & 0777) & 07777);
	lclose(&l);
	cr_assert_eq(stat(path, &st), 0);
	plfs_fix_stat(&st);
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

/* ---- truncation ---- */

Test(file_truncate, cuts_and_what_grows_again_is_zeros)
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, 100000, 1), 100000);
	cr_assert_eq(plfs_truncate(l.f, 300), 0);
	cr_assert_eq(plfs_size(l.f), 300);
	cr_assert_eq(plfs_truncate(l.f, 5000), 0);
	cr_assert_eq(plfs_size(l.f), 5000);
	cr_assert_eq(lcheck(&l, 0, 300, 1), 0);
	cr_assert(lzeros(&l, 300, 4700));
	lclose(&l);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 300, 1), 0);
	cr_assert(lzeros(&l, 300, 4700));
	lclose(&l);
}

Test(file_truncate, to_nothing_frees_the_logs)
{
	struct lfile l = made("a");

	for (int i = 0; i < 3; i++) {
		cr_assert_eq(lfill(&l, 0, 300000, (unsigned)i), 300000);
		cr_assert_eq(lcheck(&l, 0, 300000, (unsigned)i), 0);
		cr_assert_eq(plfs_truncate(l.f, 0), 0);
		cr_assert_eq(plfs_size(l.f), 0);
		cr_assert_eq(count_files("data."), 0);
		cr_assert_eq(count_files("live."), 0);
	}
	cr_assert_eq(lfill(&l, 1000, 10, 9), 10);
	cr_assert(lzeros(&l, 0, 1000));
	lclose(&l);
	l = lopen("a", O_RDWR | O_TRUNC);
	cr_assert_eq(plfs_size(l.f), 0);
	lclose(&l);
	cr_assert_eq(count_files("data."), 0);
}

static int truncate_to(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);
	int ret = plfs_truncate(l.f, *(off_t *)arg);

	lclose(&l);
	return ret ? 1 : 0;
}

/* A writer that has told nobody of its size yet must not bring it back. */
static void truncated_by_another(off_t size)
{
	struct lfile l = made("a");
	int pipefd[2];
	char c;
	pid_t pid;

	cr_assert_eq(pipe(pipefd), 0);
	cr_assert_eq(lfill(&l, 0, 10, 0), 10);
	cr_assert_eq(plfs_sync(l.f), 0);
	pid = fork_child();
	if (!pid) { /* another program: it does not know that the parent has the file open */
		struct lfile other;

		plfs_fork_child();
		close(pipefd[1]);
		if (read(pipefd[0], &c, 1) != 1)
			_exit(3);
		other = lopen("a", O_RDWR);
		c = (char)plfs_truncate(other.f, size);
		lclose(&other);
		_exit(c);
	}
	cr_assert_eq(lfill(&l, 0, 60000, 1), 60000);
	cr_assert_eq(write(pipefd[1], "x", 1), 1);
	cr_assert_eq(wait_child(pid), 0);
	cr_assert_eq(plfs_sync(l.f), 0);
	cr_assert_eq(plfs_size(l.f), size);
	if (size)
		cr_assert_eq(lcheck(&l, 0, (size_t)size, 1), 0);
	cr_assert_eq(lfill(&l, size, 100, 2), 100);
	cr_assert_eq(lcheck(&l, size, 100, 2), 0);
	lclose(&l);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(plfs_size(l.f), size + 100);
	cr_assert_eq(lcheck(&l, size, 100, 2), 0);
	lclose(&l);
}

Test(file_truncate, to_nothing_by_another_process_stays_while_a_writer_goes_on)
{
	truncated_by_another(0);
}

Test(file_truncate, by_another_process_stays_while_a_writer_goes_on)
{
	truncated_by_another(1000);
}

Test(file_truncate, by_another_process_to_what_was_published_is_the_size)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	off_t size = 1000;

	lfill(&l, 0, 1000, 1);
	plfs_commit(l.f);
	lfill(&l, 1000, 1000, 1); /* of this the stub does not know */
	cr_assert_eq(in_child(truncate_to, &size), 0);
	cr_assert_eq(plfs_size(l.f), 1000);
	lclose(&l);
}

Test(file_truncate, to_nothing_by_another_process_is_the_end_of_file_for_a_reader)
{
	struct lfile l = made("a"), r;
	off_t zero = 0;
	char c;

	cr_assert_eq(lfill(&l, 0, 300000, 1), 300000);
	lclose(&l);
	r = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&r, 0, 10, 1), 0);
	cr_assert_eq(in_child(truncate_to, &zero), 0);
	/* Nobody told the reader; what it gets may be old or the end, but no error. */
	cr_assert_geq(plfs_pread(r.f, &c, 1, 250000), 0);
	cr_assert_eq(plfs_refresh(r.f), 0);
	cr_assert_eq(plfs_pread(r.f, &c, 1, 0), 0);
	lclose(&r);
}

/* The logs are gone and the reader had not opened all of them yet. */
Test(file_truncate, to_nothing_by_another_process_is_no_missing_log_for_a_reader)
{
	struct lfile l = made("a"), r;
	off_t zero = 0;
	char c;

	cr_assert_eq(lfill(&l, 0, 1000, 1), 1000);
	lclose(&l);
	r = lopen("a", O_RDONLY);
	cr_assert_eq(plfs_size(r.f), 1000);
	cr_assert_eq(in_child(truncate_to, &zero), 0);
	cr_assert_eq(plfs_pread(r.f, &c, 1, 0), 0);
	lclose(&r);
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
		int len = snprintf(line, sizeof(line), "%d:%04d:%.*s\n", no, i, i % 20, "abcdefghijklmnopqrstuvwxyz");

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

/* ---- names ---- */

Test(file_names, unlink_removes_stub_and_container)
{
	struct lfile l = made("a");
	char path[PATH_MAX];

	cr_assert_eq(lfill(&l, 0, 1000, 1), 1000);
	lclose(&l);
	cr_assert_eq(count_files("data."), 1);
	cr_assert_eq(lunlink("a"), 0);
	lpath("a", path);
	cr_assert_eq(access(path, F_OK), -1);
	cr_assert_eq(count_files("data."), 0);
	cr_assert_eq(count_files("index."), 0);
	cr_assert_eq(lunlink("a"), -ENOENT);
}

Test(file_names, an_unlinked_file_works_until_its_last_close)
{
	struct lfile a = made("a"), b = lopen("a", O_RDWR);

	cr_assert_eq(lfill(&a, 0, 1000, 1), 1000);
	cr_assert_eq(lunlink("a"), 0);
	cr_assert_eq(lfill(&b, 1000, 100000, 1), 100000);
	lclose(&a);
	cr_assert_eq(lcheck(&b, 0, 101000, 1), 0);
	cr_assert_eq(lfill(&b, 0, 10, 2), 10);
	cr_assert_eq(lcheck(&b, 0, 10, 2), 0);
	cr_assert_geq(count_files("data."), 1);
	lclose(&b);
	cr_assert_eq(count_files("data."), 0);
	cr_assert_eq(count_files("live."), 0);
}

static int unlink_a(void *arg)
{
	(void)arg;
	return lunlink("a") ? 1 : 0;
}

static int rename_over_a(void *arg)
{
	struct lfile l = made("b");

	(void)arg;
	if (lfill(&l, 0, 100, 2) != 100)
		return 1;
	lclose(&l);
	return lrename("b", "a") ? 2 : 0;
}

static void taken_away(int (*fn)(void *))
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, 1000, 1), 1000);
	lclose(&l);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(in_child(fn, NULL), 0);
	cr_assert_eq(lcheck(&l, 0, 1000, 1), 0);
	lclose(&l);
}

Test(file_names, a_file_unlinked_by_another_process_is_read_on)
{
	taken_away(unlink_a);
	cr_assert_eq(count_files("data."), 0);
}

Test(file_names, a_file_replaced_by_another_process_is_read_on)
{
	struct lfile l;

	taken_away(rename_over_a);
	cr_assert_eq(count_files("data."), 1);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(plfs_size(l.f), 100);
	cr_assert_eq(lcheck(&l, 0, 100, 2), 0);
	lclose(&l);
}

static int (*real_fcntl)(int fd, int cmd, ...);
static int (*instead)(void *arg);

/* Just before the opener says that it has the file open, another process acts. */
static int act_before_mark(int fd, int cmd, ...)
{
	int (*fn)(void *arg) = instead;
	va_list args;
	void *arg;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	if (cmd == F_OFD_SETLKW && fn) {
		pid_t pid;

		instead = NULL;
		pid = fork_child();
		if (!pid)
			_exit(fn(NULL));
		wait_child(pid);
	}
	return real_fcntl(fd, cmd, arg);
}

Test(file_names, an_open_that_meets_an_unlink_finds_all_or_nothing)
{
	struct lfile l = made("a");
	int ret;

	cr_assert_eq(lfill(&l, 0, 1000, 1), 1000);
	lclose(&l);
	real_fcntl = sys.fcntl;
	sys.fcntl = act_before_mark;
	instead = unlink_a;
	ret = ltry(&l, "a", O_RDONLY);
	cr_assert_null(instead);
	if (ret) {
		cr_assert_eq(ret, -ENOENT);
	} else {
		cr_assert_eq(lcheck(&l, 0, 1000, 1), 0);
		lclose(&l);
	}
}

Test(file_names, an_open_that_meets_a_rename_finds_one_or_the_other)
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, 1000, 1), 1000);
	lclose(&l);
	real_fcntl = sys.fcntl;
	sys.fcntl = act_before_mark;
	instead = rename_over_a;
	l = lopen("a", O_RDONLY);
	cr_assert(plfs_size(l.f) == 100 || plfs_size(l.f) == 1000);
	cr_assert_eq(lcheck(&l, 0, (size_t)plfs_size(l.f), plfs_size(l.f) == 100 ? 2 : 1), 0);
	lclose(&l);
}

Test(file_names, rename_replaces_and_removes_the_old_container)
{
	struct lfile l = made("a"), k = made("b");

	lfill(&l, 0, 1000, 1);
	lfill(&k, 0, 500, 2);
	lclose(&l);
	lclose(&k);
	cr_assert_eq(lrename("b", "a"), 0);
	cr_assert_eq(count_files("data."), 1);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(plfs_size(l.f), 500);
	cr_assert_eq(lcheck(&l, 0, 500, 2), 0);
	lclose(&l);
}

Test(file_names, hard_links_share_the_data_and_the_last_one_removes_it)
{
	struct lfile l = made("a");
	char a[PATH_MAX], b[PATH_MAX];

	lpath("a", a);
	lpath("b", b);
	cr_assert_eq(link(a, b), 0);
	lfill(&l, 0, 1000, 1);
	lclose(&l);
	cr_assert_eq(lunlink("a"), 0);
	l = lopen("b", O_RDWR);
	cr_assert_eq(lcheck(&l, 0, 1000, 1), 0);
	lclose(&l);
	cr_assert_eq(lunlink("b"), 0);
	cr_assert_eq(count_files("data."), 0);
}

Test(file_names, exclusive_creation_of_what_exists_fails)
{
	struct lfile l = made("a");

	lclose(&l);
	cr_assert_eq(ltry(&l, "a", O_RDWR | O_CREAT | O_EXCL), -EEXIST);
	cr_assert_eq(ltry(&l, "b", O_RDWR), -ENOENT);
	cr_assert_eq(ltry(&l, "b/c", O_RDWR | O_CREAT), -ENOENT);
}

static int create_exclusively(void *arg)
{
	struct lfile l;
	int ret = ltry(&l, "x", O_RDWR | O_CREAT | O_EXCL);

	(void)arg;
	return ret == 0 ? 10 : ret == -EEXIST ? 0 : 1;
}

Test(file_names, of_many_exclusive_creators_one_wins)
{
	for (int round = 0; round < 5; round++) {
		pid_t pid[6];
		int winners = 0;

		for (int i = 0; i < 6; i++)
			pid[i] = start_child(create_exclusively, NULL);
		for (int i = 0; i < 6; i++) {
			int code = wait_child(pid[i]);

			cr_assert(code == 0 || code == 10);
			winners += code == 10;
		}
		cr_assert_eq(winners, 1);
		cr_assert_eq(lunlink("x"), 0);
	}
}

/* All create, write their own part and read the others' after they have ended: one container for all. */
static int create_and_write(void *arg)
{
	struct lfile l = lopen("new/x", O_RDWR | O_CREAT);
	int no = *(int *)arg;

	for (int i = 0; i < 20; i++)
		if (lfill(&l, (i * 6 + no) * 100, 100, 1) != 100)
			return 1;
	return lclose(&l) ? 2 : 0;
}

Test(file_names, ranks_that_create_one_file_at_once_share_it)
{
	char dir[PATH_MAX];

	lpath("new", dir);
	cr_assert_eq(mkdir(dir, 0755), 0);
	for (int round = 0; round < 10; round++) {
		pid_t pid[6];
		struct lfile l;

		for (int i = 0; i < 6; i++)
			pid[i] = start_child(create_and_write, &i);
		for (int i = 0; i < 6; i++)
			cr_assert_eq(wait_child(pid[i]), 0);
		l = lopen("new/x", O_RDONLY);
		cr_assert_eq(plfs_size(l.f), 12000);
		cr_assert_eq(lcheck(&l, 0, 12000, 1), 0);
		lclose(&l);
		cr_assert_eq(lunlink("new/x"), 0);
	}
}

/* ---- modes ---- */

Test(file_mode, chmod_reaches_the_container)
{
	struct lfile l = made("a");
	char path[PATH_MAX], data[PATH_MAX];
	struct stat st;

	lpath("a", path);
	lfill(&l, 0, 1000, 1);
	cr_assert_eq(plfs_chmod(AT_FDCWD, path, 0600, 0), 0);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_mode & 07777, 01600);
	cr_assert(find_file("data.", data));
	cr_assert_eq(stat(data, &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0600);
	lclose(&l);
	cr_assert(find_file("index.", data));
	cr_assert_eq(stat(data, &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0600);
	cr_assert_eq(plfs_chmod(AT_FDCWD, path, 0664, 0), 0);
	cr_assert_eq(stat(data, &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0664);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 1000, 1), 0);
	lclose(&l);
}

Test(file_mode, a_file_made_without_write_permission_is_written_all_the_same)
{
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("a", path);
	struct lfile l;

	l.fd = plfs_open(m, AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL, 0400, &l.f);
	cr_assert_geq(l.fd, 0);
	cr_assert_eq(lfill(&l, 0, 1000, 1), 1000);
	lclose(&l);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 1000, 1), 0);
	lclose(&l);
}

/* ---- fork ---- */

static int check_b(void *arg)
{
	struct lfile *l = arg;

	return lcheck(l, 0, 100, 2) || lcheck(l, 100, 100, 1);
}

/* The parent had a map before it wrote more: the child must see what came after. */
Test(file_fork, a_child_sees_what_its_parent_wrote_since_it_last_read)
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, 200, 1), 200);
	cr_assert_eq(lcheck(&l, 0, 200, 1), 0);
	cr_assert_eq(lfill(&l, 0, 100, 2), 100);
	cr_assert_eq(in_child(check_b, &l), 0);
	lclose(&l);
}

static int write_in_child(void *arg)
{
	struct lfile *l = arg;

	if (lfill(l, 50, 100, 3) != 100 || lfill(l, 200, 70000, 3) != 70000)
		return 1;
	return lcheck(l, 50, 100, 3) || lcheck(l, 200, 70000, 3) || lcheck(l, 0, 50, 1);
}

Test(file_fork, parent_and_child_write_logs_of_their_own)
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, 200, 1), 200);
	cr_assert_eq(in_child(write_in_child, &l), 0);
	cr_assert_eq(count_files("data."), 2);
	cr_assert_eq(lfill(&l, 300, 100, 4), 100);
	cr_assert_eq(plfs_refresh(l.f), 0);
	cr_assert_eq(lcheck(&l, 0, 50, 1), 0);
	cr_assert_eq(lcheck(&l, 50, 100, 3), 0);
	cr_assert_eq(lcheck(&l, 200, 100, 3), 0);
	cr_assert_eq(lcheck(&l, 300, 100, 4), 0);
	cr_assert_eq(lcheck(&l, 400, 69800, 3), 0);
	lclose(&l);
	cr_assert_eq(count_files("live."), 0);
}

static int close_in_child(void *arg)
{
	lclose(arg);
	return 0;
}

Test(file_fork, a_child_that_closes_does_not_end_its_parents_log)
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, 200, 1), 200);
	cr_assert_eq(in_child(close_in_child, &l), 0);
	cr_assert_eq(count_files("live."), 1);
	cr_assert_eq(lfill(&l, 200, 200, 1), 200);
	lclose(&l);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 400, 1), 0);
	lclose(&l);
}

static int unlinked_in_child(void *arg)
{
	struct lfile *l = arg;

	if (lcheck(l, 0, 200, 1))
		return 1;
	lclose(l);
	return 0;
}

Test(file_fork, an_unlinked_file_lives_on_in_the_parent)
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, 200, 1), 200);
	cr_assert_eq(lunlink("a"), 0);
	cr_assert_eq(in_child(unlinked_in_child, &l), 0);
	cr_assert_eq(lcheck(&l, 0, 200, 1), 0);
	lclose(&l);
	cr_assert_eq(count_files("data."), 0);
}

Test(file_fork, costs_no_descriptor)
{
	struct lfile l = made("a");
	int before;

	cr_assert_eq(lfill(&l, 0, 200, 1), 200);
	before = count_fds();
	for (int i = 0; i < 5; i++)
		cr_assert_eq(in_child(check_b, &l), 1);
	cr_assert_eq(count_fds(), before);
	lclose(&l);
}

/* ---- exit and exec ---- */

static int write_while_exiting(void *arg)
{
	struct lfile l = made("a");

	(void)arg;
	lfill(&l, 0, 100, 1);
	plfs_exit_prepare();
	lfill(&l, 100, 100, 1); /* as stdio's last flush does */
	_exit(count_files("live."));
}

Test(file_exit, what_is_written_after_the_preparations_is_closed_at_once)
{
	struct lfile l;

	cr_assert_eq(in_child(write_while_exiting, NULL), 0);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(plfs_size(l.f), 200);
	cr_assert_eq(lcheck(&l, 0, 200, 1), 0);
	lclose(&l);
}

Test(file_exit, a_failed_exec_leaves_everything_working)
{
	struct lfile l = made("a");

	lfill(&l, 0, 100, 1);
	plfs_exec_prepare();
	cr_assert_eq(count_files("live."), 0);
	cr_assert_eq(lcheck(&l, 0, 100, 1), 0);
	cr_assert_eq(lfill(&l, 50, 100, 2), 100);
	cr_assert_eq(lcheck(&l, 0, 50, 1), 0);
	cr_assert_eq(lcheck(&l, 50, 100, 2), 0);
	lclose(&l);
}

/* A descriptor that survives an exec is found by its stub. */
Test(file_exit, an_inherited_descriptor_is_adopted)
{
	struct lfile l = made("a"), again;

	lfill(&l, 0, 100, 1);
	cr_assert_eq(sys.lseek(l.fd, 123, SEEK_CUR), PLFS_BODY_OFF + 123);
	plfs_exec_prepare();
	again.fd = l.fd;
	cr_assert_eq(plfs_adopt(l.fd, &again.f), 0);
	cr_assert_not_null(again.f);
	cr_assert_eq(lcheck(&again, 0, 100, 1), 0);
	cr_assert_eq(sys.lseek(l.fd, 0, SEEK_CUR), PLFS_BODY_OFF + 123);
	cr_assert_eq(lfill(&again, 100, 100, 1), 100);
	cr_assert_eq(lcheck(&again, 0, 200, 1), 0);
	plfs_close(again.f);
	lclose(&l);
}

Test(file_exit, open_and_close_leave_no_descriptor)
{
	struct lfile l = made("a");
	int before;

	lfill(&l, 0, 100, 1);
	lclose(&l);
	before = count_fds();
	for (int i = 0; i < 20; i++) {
		off_t end;

		l = lopen("a", i % 2 ? O_RDWR : O_RDWR | O_APPEND);
		lfill(&l, i * 10, 100, 1);
		lcheck(&l, 0, 10, 1);
		lappend(&l, "x", 1, &end);
		if (i % 3 == 0)
			plfs_truncate(l.f, i % 2 ? 0 : 50);
		lclose(&l);
	}
	cr_assert_eq(count_fds(), before);
}

/* ---- bad input ---- */

static void spoil(const char *prefix, off_t off, const char *bytes, size_t len)
{
	char path[PATH_MAX];
	int fd;

	cr_assert(find_file(prefix, path));
	fd = open(path, O_WRONLY);
	cr_assert_geq(fd, 0);
	cr_assert_eq(pwrite(fd, bytes, len, off), (ssize_t)len);
	close(fd);
}

static void make_closed(size_t len)
{
	struct lfile l = made("file");

	cr_assert_eq(lfill(&l, 0, len, 1), (ssize_t)len);
	lclose(&l);
}

Test(file_bad, a_garbage_stub_is_an_error_and_stays_as_it_is)
{
	char path[PATH_MAX], before[200], after[200];
	struct lfile l;
	int fd;

	make_closed(1000);
	spoil("file", 30, "garbage", 7);
	lpath("file", path);
	fd = open(path, O_RDONLY);
	cr_assert_eq(pread(fd, before, 200, 0), 200);
	cr_assert_eq(ltry(&l, "file", O_RDWR), -EIO);
	cr_assert_eq(ltry(&l, "file", O_RDWR | O_TRUNC), -EIO);
	cr_assert_eq(ltry(&l, "file", O_RDWR | O_CREAT), -EIO);
	cr_assert_eq(pread(fd, after, 200, 0), 200);
	cr_assert_arr_eq(before, after, 200);
	close(fd);
	cr_assert_eq(count_files("data."), 1);
}

Test(file_bad, a_stub_of_a_newer_version_is_refused)
{
	struct lfile l;

	make_closed(1000);
	spoil("file", 8, "\x02\0\0\0", 4);
	cr_assert_eq(ltry(&l, "file", O_RDONLY), -EPROTONOSUPPORT);
	cr_assert_eq(lunlink("file"), 0);
	cr_assert_eq(count_files("data."), 1);
}

Test(file_bad, a_missing_log_is_an_io_error)
{
	char path[PATH_MAX], buf[10];
	struct lfile l;

	make_closed(1000);
	cr_assert(find_file("data.", path));
	cr_assert_eq(unlink(path), 0);
	l = lopen("file", O_RDONLY);
	cr_assert_eq(plfs_size(l.f), 1000);
	cr_assert_eq(plfs_pread(l.f, buf, 10, 0), -EIO);
	lclose(&l);
}

Test(file_bad, a_cut_log_is_an_io_error_only_where_it_is_cut)
{
	char path[PATH_MAX], buf[10];
	struct lfile l;

	make_closed(300000);
	cr_assert(find_file("data.", path));
	cr_assert_eq(truncate(path, DROPPING_DATA_OFF + 200000), 0);
	l = lopen("file", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 200000, 1), 0);
	cr_assert_eq(plfs_pread(l.f, buf, 10, 250000), -EIO);
	lclose(&l);
}

Test(file_bad, a_damaged_node_index_is_an_io_error)
{
	char buf[10];
	struct lfile l;

	make_closed(1000);
	spoil("index.", 200, "garbage", 7);
	l = lopen("file", O_RDWR);
	cr_assert_eq(plfs_pread(l.f, buf, 10, 0), -EIO);
	lclose(&l);
}

Test(file_bad, a_log_of_another_container_is_an_io_error)
{
	char buf[10];
	struct lfile l;

	make_closed(1000);
	spoil("data.", 20, "garbage", 7);
	l = lopen("file", O_RDONLY);
	cr_assert_eq(plfs_pread(l.f, buf, 10, 0), -EIO);
	lclose(&l);
}

Test(file_bad, a_backend_of_a_newer_format_is_refused_and_nothing_written)
{
	struct lfile l;
	char path[PATH_MAX];

	make_closed(1000);
	spoil("format", 12, "9", 1);
	l = made("new");
	cr_assert_eq(lfill(&l, 0, 10, 1), -EPROTONOSUPPORT);
	lclose(&l);
	lpath("new", path);
	cr_assert_eq(count_files("data."), 1);
}

Test(file_bad, a_plain_file_stays_one)
{
	char path[PATH_MAX];
	struct lfile l;
	FILE *f;

	lpath("plain", path);
	f = fopen(path, "w");
	fputs("hello", f);
	fclose(f);
	l = lopen("plain", O_RDWR | O_TRUNC);
	cr_assert_null(l.f);
	lclose(&l);
	l = lopen("", O_RDONLY | O_DIRECTORY);
	cr_assert_null(l.f);
	lclose(&l);
	cr_assert_eq(lunlink("plain"), 0);
}

/* The stub came back from a backup, its container did not: no bytes are made up, and nobody crashes. */
Test(file_bad, a_stub_without_its_container_is_an_io_error)
{
	char path[PATH_MAX], cmd[PATH_MAX + 20], buf[10];
	struct lfile l;

	make_closed(1000);
	cr_assert(find_file("hostdir.", path));
	*strrchr(path, '/') = '\0';
	snprintf(cmd, sizeof(cmd), "rm -r '%s'", path);
	cr_assert_eq(system(cmd), 0);
	l = lopen("file", O_RDONLY);
	cr_assert_eq(plfs_pread(l.f, buf, 10, 0), -EIO);
	lclose(&l);
}
