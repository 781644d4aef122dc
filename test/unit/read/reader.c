/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading: the stack of maps, logs in windows, many logs with few descriptors, and index.global.
 */
#include "test/lib/scratch.h"

#include "core/file/file.h"
#include "core/backend/mount.h"

#include <criterion/criterion.h>
#include <dirent.h>

/* Ten thousand logs take seconds on a disk that others use as well. */
static void setup_in_memory(void)
{
	scratch_in_memory = true;
	scratch_setup();
}

TestSuite(reader, .init = scratch_setup, .fini = scratch_remove, .timeout = 300);
TestSuite(reader_logs, .init = setup_in_memory, .fini = scratch_remove, .timeout = 300);
TestSuite(kept_map, .init = scratch_setup, .fini = scratch_remove, .timeout = 300);

static int any_piece(void *arg, uint64_t logical_off, uint64_t len, const char *log, uint64_t log_off)
{
	(void)arg, (void)logical_off, (void)len, (void)log, (void)log_off;
	return 0;
}

Test(reader, a_map_that_speaks_of_more_logs_than_there_are_is_damaged)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	uint32_t nr;
	char c;

	lfill(&l, 0, 100, 1);
	lclose(&l);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 100, 1), 0);
	nr = l.f->ino->v.r.logs.nr;
	l.f->ino->v.r.logs.nr = 0;
	cr_assert_eq(plfs_get_map(l.f, any_piece, NULL), -EIO);
	cr_assert_eq(plfs_pread(l.f, &c, 1, 0), -EIO);
	l.f->ino->v.r.logs.nr = nr;
	lclose(&l);
}

/* ---- levels ---- */

Test(reader, levels_stay_few_however_often_small_deltas_are_added)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	int most = 0;

	for (int i = 0; i < 2000; i++) {
		off_t off = (i * 7919 % 2000) * 100;

		cr_assert_eq(lfill(&l, off, 60, 1), 60);
		cr_assert_eq(lcheck(&l, off, 60, 1), 0);
		if (l.f->ino->v.r.levels.nr > most)
			most = l.f->ino->v.r.levels.nr;
	}
	cr_assert_leq(most, 14);
	for (int i = 0; i < 2000; i++)
		cr_assert_eq(lcheck(&l, i * 100, 60, 1), 0);
	lclose(&l);
}

Test(reader, own_overwrites_win_over_the_base_and_over_older_own_ones)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);

	lfill(&l, 0, 100000, 1);
	lclose(&l);
	l = lopen("a", O_RDWR);
	for (unsigned round = 2; round < 30; round++) {
		cr_assert_eq(lfill(&l, round * 100, 1000, round), 1000);
		cr_assert_eq(lcheck(&l, round * 100, 1000, round), 0);
		cr_assert_eq(lcheck(&l, (round - 1) * 100, 100, round - 1), 0);
		cr_assert_eq(lcheck(&l, round * 100 + 1000, 90000, 1), 0);
	}
	lclose(&l);
}

/* A log is closed before an exec, and if that fails the next write opens another. */
Test(reader, own_records_of_several_logs_are_not_mixed_up)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);

	cr_assert_eq(lfill(&l, 0, 100000, 1), 100000);
	for (unsigned round = 2; round < 120; round++) {
		cr_assert_eq(lfill(&l, round * 100, 700, round), 700);
		cr_assert_eq(lcheck(&l, round * 100, 700, round), 0);
		cr_assert_eq(lfill(&l, round * 100 + 50000, 10, round), 10);
		if (round % 3 == 0)
			plfs_exec_prepare();
		for (unsigned r = 2; r < round; r++) {
			cr_assert_eq(lcheck(&l, r * 100, 100, r), 0);
			cr_assert_eq(lcheck(&l, r * 100 + 50000, 10, r), 0);
		}
	}
	lclose(&l);
}

Test(reader, records_that_leave_the_live_index_stay_in_the_map)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);

	for (int i = 0; i < 3000; i++) { /* irregular: a record each, several spills */
		cr_assert_eq(lfill(&l, i * 200 + i * i % 97, 50, 1), 50);
		if (i % 400 == 0)
			cr_assert_eq(lcheck(&l, i * 200 + i * i % 97, 50, 1), 0);
	}
	for (int i = 0; i < 3000; i++)
		cr_assert_eq(lcheck(&l, i * 200 + i * i % 97, 50, 1), 0, "write %d", i);
	lclose(&l);
}

/* ---- another process, at the worst moment ---- */

static ssize_t (*real_getdents64)(int fd, void *buf, size_t len);
static int to_writer[2], from_writer[2];
static bool asked;

static void ask_writer(void)
{
	char c = 0;

	if (asked)
		return;
	asked = true;
	if (write(to_writer[1], "x", 1) != 1 || read(from_writer[0], &c, 1) != 1)
		die("the writer has gone");
}

/*
 * After the hostdir has been listed and before the live file is read, its records move to a node index that
 * is new.
 */
static ssize_t act_after_listing(int fd, void *buf, size_t len)
{
	ssize_t n = real_getdents64(fd, buf, len);
	char link[64], path[PATH_MAX];
	ssize_t k;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	k = readlink(link, path, sizeof(path) - 1);
	path[k > 0 ? k : 0] = '\0';
	if (strstr(path, "/hostdir.") && n > 0)
		ask_writer();
	return n;
}

static void irregular(struct lfile *l, int from, int to)
{
	for (int i = from; i < to; i++)
		if (lfill(l, i * 200 + i * i % 97, 50, 1) != 50)
			die("write");
}

static void spill_while_listing(bool close_it)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	pid_t pid;

	lclose(&l);
	cr_assert_eq(pipe(to_writer), 0);
	cr_assert_eq(pipe(from_writer), 0);
	pid = fork_child();
	if (!pid) {
		char c;

		l = lopen("a", O_RDWR);
		irregular(&l, 0, 500);
		plfs_commit(l.f);
		if (write(from_writer[1], "x", 1) != 1 || read(to_writer[0], &c, 1) != 1)
			_exit(1);
		if (close_it)
			lclose(&l);
		else
			irregular(&l, 500, 2000);
		if (write(from_writer[1], "x", 1) != 1)
			_exit(1);
		pause();
	}
	{
		char c;

		cr_assert_eq(read(from_writer[0], &c, 1), 1);
	}
	real_getdents64 = sys.getdents64;
	sys.getdents64 = act_after_listing;
	l = lopen("a", O_RDONLY);
	for (int i = 0; i < 500; i++)
		cr_assert_eq(lcheck(&l, i * 200 + i * i % 97, 50, 1), 0, "write %d", i);
	cr_assert(asked);
	lclose(&l);
	kill(pid, SIGKILL);
	wait_child(pid);
}

Test(reader, a_log_that_spills_while_the_container_is_listed_is_read_whole)
{
	spill_while_listing(false);
}

Test(reader, a_log_that_is_closed_while_the_container_is_listed_is_read_whole)
{
	spill_while_listing(true);
}

/* Many writers come and go while a reader loads again and again. */
static int come_and_go(void *arg)
{
	int no = *(int *)arg;

	for (int i = 0; i < 30; i++) {
		struct lfile l = lopen("a", O_RDWR);

		for (int k = 0; k < 20; k++)
			if (lfill(&l, ((i * 20 + k) * 4 + no) * 64, 64, 1) != 64)
				return 1;
		lclose(&l);
	}
	return 0;
}

Test(reader, sees_all_that_was_closed_while_others_come_and_go)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	pid_t pid[3];

	for (int i = 0; i < 600; i++)
		lfill(&l, (i * 4 + 3) * 64, 64, 1);
	lclose(&l);
	for (int i = 0; i < 3; i++)
		pid[i] = start_child(come_and_go, &i);
	for (int round = 0; round < 60; round++) {
		l = lopen("a", O_RDONLY);
		for (int i = 0; i < 600; i += 7)
			cr_assert_eq(lcheck(&l, (i * 4 + 3) * 64, 64, 1), 0);
		lclose(&l);
	}
	for (int i = 0; i < 3; i++)
		cr_assert_eq(wait_child(pid[i]), 0);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 600 * 4 * 64, 1), 0);
	lclose(&l);
}

/* ---- many logs ---- */

static void limit_descriptors(rlim_t soft)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = soft;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void make_logs(int nr, int part)
{
	for (int i = 0; i < nr; i++) {
		struct lfile l = lopen("a", O_RDWR | O_CREAT);

		if (lfill(&l, (off_t)i * part, (size_t)part, 1) != part)
			die("write");
		lclose(&l);
	}
}

Test(reader_logs, ten_thousand_are_read_with_64_descriptors_and_some_stay_for_the_program)
{
	struct lfile l;
	int fds[12];

	make_logs(10000, 32);
	limit_descriptors(64);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 10000 * 32, 1), 0);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = open("/dev/null", O_RDONLY);
		cr_assert_geq(fds[i], 0, "only %zu descriptors are left to the program", i);
	}
	cr_assert_eq(lcheck(&l, 5000, 10000, 1), 0);
	lclose(&l);
}

Test(reader_logs, are_given_back_when_the_program_has_taken_all_descriptors)
{
	struct lfile l;

	make_logs(200, 5000);
	limit_descriptors(64);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 100000, 1), 0);
	while (open("/dev/null", O_RDONLY) >= 0)
		;
	cr_assert_eq(lcheck(&l, 0, 1000000, 1), 0);
}

static ssize_t (*real_preadv)(int fd, const struct iovec *iov, int cnt, off_t off);

/* All of them get here at the same time. */
static ssize_t slow_preadv(int fd, const struct iovec *iov, int cnt, off_t off)
{
	usleep(300);
	return real_preadv(fd, iov, cnt, off);
}

static void *read_it_all(void *arg)
{
	long failed = 0;

	for (int i = 0; i < 20; i++)
		failed += lcheck(arg, i * 5000, 100 * 9000, 1) != 0;
	return (void *)failed;
}

Test(reader_logs, are_read_by_many_threads_with_few_descriptors)
{
	pthread_t thread[32];
	struct lfile l;

	make_logs(200, 9000);
	limit_descriptors(40);
	l = lopen("a", O_RDONLY);
	real_preadv = sys.preadv;
	sys.preadv = slow_preadv;
	for (size_t i = 0; i < ARRAY_SIZE(thread); i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, read_it_all, &l), 0);
	for (size_t i = 0; i < ARRAY_SIZE(thread); i++) {
		void *failed;

		cr_assert_eq(pthread_join(thread[i], &failed), 0);
		cr_assert_null(failed);
	}
	cr_assert_eq(l.f->ino->v.r.logs.nr_taken, 0);
	lclose(&l);
}

Test(reader_logs, keep_their_windows_within_a_budget)
{
	struct lfile l;

	make_logs(500, 5000);
	l = lopen("a", O_RDONLY);
	for (int i = 0; i < 500; i++)
		cr_assert_eq(lcheck(&l, i * 5000, 1000, 1), 0);
	cr_assert_leq(l.f->ino->v.r.logs.window_bytes, 16 * 1024 * 1024);
	cr_assert_leq(l.f->ino->v.r.logs.nr_open, 64);
	lclose(&l);
}

/* ---- index.global ---- */

static void make_many_records(void)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);

	irregular(&l, 0, 10000);
	lclose(&l);
}

static void check_many_records(void)
{
	struct lfile l = lopen("a", O_RDONLY);

	for (int i = 0; i < 10000; i += 13)
		cr_assert_eq(lcheck(&l, i * 200 + i * i % 97, 50, 1), 0, "write %d", i);
	lclose(&l);
}

static bool is_mapped(void)
{
	struct lfile l = lopen("a", O_RDONLY);
	bool mapped;

	lcheck(&l, 0, 50, 1);
	mapped = l.f->ino->v.r.levels.v[0].mapped;
	lclose(&l);
	return mapped;
}

Test(kept_map, is_written_by_the_first_reader_and_mapped_by_the_next)
{
	make_many_records();
	cr_assert_eq(count_files("index.global"), 0);
	check_many_records();
	cr_assert_eq(count_files("index.global"), 1);
	cr_assert(is_mapped());
	check_many_records();
}

Test(kept_map, is_not_made_for_a_few_records)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);

	lfill(&l, 0, 100, 1);
	lclose(&l);
	cr_assert_not(is_mapped());
	cr_assert_eq(count_files("index.global"), 0);
}

Test(kept_map, is_not_used_when_the_file_was_written_to_since)
{
	struct lfile l;

	make_many_records();
	check_many_records();
	l = lopen("a", O_RDWR);
	cr_assert_eq(lfill(&l, 50, 40, 2), 40);
	lclose(&l);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 50, 40, 2), 0);
	lclose(&l);
	cr_assert(is_mapped());
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 50, 40, 2), 0);
	lclose(&l);
}

Test(kept_map, is_not_used_while_a_process_writes)
{
	struct lfile l;
	pid_t pid;
	int ready[2];
	char c;

	make_many_records();
	check_many_records();
	cr_assert_eq(pipe(ready), 0);
	pid = fork_child();
	if (!pid) {
		l = lopen("a", O_RDWR);
		lfill(&l, 50, 40, 2);
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		pause();
	}
	cr_assert_eq(read(ready[0], &c, 1), 1);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 50, 40, 2), 0);
	lclose(&l);
	cr_assert_not(is_mapped());
	kill(pid, SIGKILL);
	wait_child(pid);
}

Test(kept_map, is_not_used_after_a_truncation_to_nothing)
{
	struct lfile l;
	char c;

	make_many_records();
	check_many_records();
	l = lopen("a", O_RDWR | O_TRUNC);
	cr_assert_eq(plfs_pread(l.f, &c, 1, 0), 0);
	lclose(&l);
	make_many_records();
	check_many_records();
}

static void damage_global(off_t off, const char *bytes, size_t len, off_t cut)
{
	char path[PATH_MAX];
	int fd;

	cr_assert(find_file("index.global", path));
	fd = open(path, O_WRONLY);
	cr_assert_geq(fd, 0);
	if (len)
		cr_assert_eq(pwrite(fd, bytes, len, off), (ssize_t)len);
	if (cut >= 0)
		cr_assert_eq(ftruncate(fd, cut), 0);
	close(fd);
}

Test(kept_map, is_made_anew_when_damaged_anywhere)
{
	static const off_t OFFS[] = { 0, 8, 12, 20, 40, 48, 56, 64, 72, 76, 130, 300, 5000, 50000 };

	make_many_records();
	check_many_records();
	for (size_t i = 0; i < ARRAY_SIZE(OFFS); i++) {
		damage_global(OFFS[i], "\xa5\x5a\xa5", 3, -1);
		check_many_records();
		cr_assert(is_mapped(), "not made anew after damage at %lld", (long long)OFFS[i]);
	}
	for (off_t cut = 0; cut < 1000; cut += 61) {
		damage_global(0, "", 0, cut);
		check_many_records();
		cr_assert(is_mapped(), "not made anew after a cut at %lld", (long long)cut);
	}
}
