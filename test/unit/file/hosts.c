/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several hosts have written a file, and of one of them nothing is left in the container: a purge by age, or
 * a copy of a part of the backend. No index says so. What it wrote must not read as zeros; what others wrote
 * is read as before.
 */
#include "core/base/sys.h"
#include "test/lib/scratch.h"

#include <criterion/criterion.h>

#define LEN 20000

TestSuite(hosts, .init = scratch_setup, .fini = scratch_remove);

/* All that is written happens later than this after the file was made. */
static time_t later_s;

static int clock_later(clockid_t id, struct timespec *ts)
{
	int ret = clock_gettime(id, ts);

	ts->tv_sec += later_s;
	return ret;
}

struct job {
	const char *host;
	off_t off;
	size_t len;
	int flags;
	bool killed;
};

/* In a child, which has the name of a host of its own. */
static int write_as(void *arg)
{
	const struct job *j = arg;
	struct lfile l;

	be_host(j->host);
	sys.clock_gettime = clock_later;
	l = lopen("a", O_RDWR | O_CREAT | j->flags);
	if (lfill(&l, j->off, j->len, 1) != (ssize_t)j->len)
		return 1;
	if (j->killed)
		raise(SIGKILL);
	return lclose(&l) != 0;
}

static void written(const char *name, off_t off, size_t len, int flags)
{
	struct job j = { name, off, len, flags, false };

	cr_assert_eq(in_child(write_as, &j), 0);
}

/* One and two write LEN bytes each, with as much between them that nobody writes. */
static void written_by_two(void)
{
	written("one", 0, LEN, 0);
	written("two", 2 * LEN, LEN, 0);
}

/* All that a host has in the container: @what is a pattern. */
static void lose(const char *what)
{
	shell("rm %s/.plfs/[0-9a-f]*/*/hostdir.*/%s", scratch, what);
}

struct answers {
	ssize_t one, hole, two;
};

static ssize_t get(struct lfile *l, off_t off)
{
	char buf[100];

	return plfs_pread(l->f, buf, sizeof(buf), off);
}

/* In a process that knows nothing of the file yet. */
static int look(void *arg)
{
	const struct answers *want = arg;
	struct lfile l = lopen("a", O_RDONLY);

	if (get(&l, 10) != want->one || get(&l, LEN + 10) != want->hole || get(&l, 2 * LEN + 10) != want->two)
		return 1;
	if (want->one > 0 && lcheck(&l, 0, LEN, 1))
		return 2;
	return lclose(&l) || stat_size("a") != 3 * LEN;
}

static void assert_answers(ssize_t one, ssize_t hole, ssize_t two)
{
	struct answers want = { one, hole, two };

	for (int i = 0; i < 3; i++) /* the first may keep its map for the next */
		cr_assert_eq(in_child(look, &want), 0, "look %d", i);
}

static void ignore(void *arg, const struct plfs_finding *finding)
{
	(void)arg, (void)finding;
}

static int checked(bool repair, bool partial)
{
	struct plfs_check check = { .found = ignore, .repair = repair, .partial = partial };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("a", path);

	return plfs_check(m, AT_FDCWD, path, &check);
}

Test(hosts, that_have_all_their_files_are_read)
{
	written_by_two();
	assert_answers(100, 100, 100);
	cr_assert_eq(checked(false, false), 0);
}

static void loses_two(bool kept_map, const char *what)
{
	written_by_two();
	if (kept_map)
		assert_answers(100, 100, 100);
	lose(what);
	assert_answers(100, -EIO, -EIO);
	cr_assert_eq(checked(false, false), 1);
}

Test(hosts, whose_files_have_gone_do_not_read_as_zeros) { loses_two(false, "*.two-*"); }
Test(hosts, also_if_the_notice_stays) { loses_two(false, "[id]*.two-*"); }
Test(hosts, also_if_the_file_has_been_read_before) { loses_two(true, "*.two-*"); }

/* The map that is kept is made by who reads a file that has lost something. */
Test(hosts, also_behind_a_kept_map)
{
	char name[20];

	written_by_two();
	for (int i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "more%d", i);
		written(name, 100 * i, 100, 0);
	}
	lose("*.two-*");
	assert_answers(100, -EIO, -EIO);
}

Test(hosts, that_write_later_have_their_bytes)
{
	struct lfile l;

	loses_two(false, "*.two-*");
	written("three", LEN, LEN, 0);
	assert_answers(100, 100, -EIO);
	written("two", 2 * LEN, LEN, 0);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 3 * LEN, 1), 0);
	lclose(&l);
}

static int cannot_be_compacted(void *arg)
{
	(void)arg;
	sys.clock_gettime = clock_later;
	return lcompact("a") != -EIO;
}

/* What it makes does not pass for what it has lost. */
static void writes_after_its_loss(const char *what)
{
	loses_two(false, what);
	later_s = 100;
	written("two", 3 * LEN - 100, 100, 0);
	written("two", 3 * LEN - 200, 100, 0);
	assert_answers(100, -EIO, -EIO);
	cr_assert_eq(checked(false, false), 1);
	written("one", 0, LEN, 0);
	cr_assert_eq(in_child(cannot_be_compacted, NULL), 0);
	cr_assert_eq(checked(true, true), 1);
	assert_answers(100, 100, 100);
	cr_assert_eq(checked(false, false), 0);
}

Test(hosts, that_write_after_a_loss_do_not_hide_it) { writes_after_its_loss("*.two-*"); }
Test(hosts, nor_if_the_notice_stays) { writes_after_its_loss("[id]*.two-*"); }

Test(hosts, whose_files_come_back_after_that_are_whole)
{
	struct lfile l;

	written_by_two();
	shell("cd %s/.plfs/[0-9a-f]*/* && tar -cf ../../../back.tar hostdir.*/*.two-*", scratch);
	lose("*.two-*");
	later_s = 100;
	written("two", LEN, LEN, 0);
	shell("cd %s/.plfs/[0-9a-f]*/* && tar -xf ../../../back.tar", scratch);
	cr_assert_eq(checked(true, true), 1);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 3 * LEN, 1), 0);
	lclose(&l);
	cr_assert_eq(checked(false, false), 0);
}

/* Each of them could take the log of another for what its host had. */
Test(hosts, with_several_processes_do_not_hide_it_either)
{
	struct job j[4];
	pid_t pids[4];
	int status;

	loses_two(false, "*.two-*");
	later_s = 100;
	for (int i = 0; i < 4; i++) {
		j[i] = (struct job){ "two", 3 * LEN - 100 * (i + 1), 100, 0, false };
		pids[i] = start_child(write_as, &j[i]);
	}
	for (int i = 0; i < 4; i++)
		cr_assert(waitpid(pids[i], &status, 0) == pids[i] && !status);
	assert_answers(100, -EIO, -EIO);
}

/* Processes begin to write while others compact the file: nothing is lost, and nothing is said to be. */
static int compact_and_compact(void *arg)
{
	(void)arg;
	sys.clock_gettime = clock_later;
	for (int i = 0; i < 100; i++) {
		int ret = lcompact("a");

		if (ret < 0 && ret != -EBUSY && ret != -EAGAIN)
			return 1;
	}
	return 0;
}

Test(hosts, that_begin_beside_a_compact_have_lost_nothing)
{
	pid_t pid;
	int status = 0, jobs = 0;

	written_by_two();
	later_s = 100;
	pid = start_child(compact_and_compact, NULL);
	while (!waitpid(pid, &status, WNOHANG)) {
		written(jobs % 2 ? "one" : "two", jobs % 2 ? 0 : 2 * LEN, LEN, 0);
		jobs++;
		later_s += 61;
	}
	cr_assert_eq(status, 0);
	cr_assert_gt(jobs, 10);
	cr_assert_eq(checked(false, false), 0);
	assert_answers(100, 100, 100);
}

Test(hosts, of_a_file_that_is_emptied_are_forgotten)
{
	struct lfile l;

	loses_two(false, "*.two-*");
	written("three", 2 * LEN, LEN, O_TRUNC);
	l = lopen("a", O_RDONLY);
	cr_assert(lzeros(&l, 0, 2 * LEN));
	cr_assert_eq(lcheck(&l, 2 * LEN, LEN, 1), 0);
	lclose(&l);
	cr_assert_eq(checked(false, false), 0);
}

Test(hosts, are_given_up_by_a_partial_repair_alone)
{
	struct lfile l;

	loses_two(false, "*.two-*");
	cr_assert_eq(checked(true, false), 1);
	assert_answers(100, -EIO, -EIO);
	cr_assert_eq(checked(true, true), 1);
	assert_answers(100, 100, 100);
	l = lopen("a", O_RDONLY);
	cr_assert(lzeros(&l, LEN, 2 * LEN));
	lclose(&l);
	cr_assert_eq(checked(false, false), 0);
}

Test(hosts, are_known_in_a_file_that_was_compacted)
{
	written_by_two();
	for (int i = 0; i < 3; i++)
		written("one", 0, LEN, 0);
	cr_assert_eq(lcompact("a"), 0);
	assert_answers(100, 100, 100);
	lose("[di]*"); /* all of it was copied to one log */
	assert_answers(-EIO, -EIO, -EIO);
}

/* A process has the index of a host locked, all of whose records are void: that goes with the next one. */
Test(hosts, of_which_a_second_compact_takes_the_last_are_not_missed)
{
	struct flock lk = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	char path[PATH_MAX];
	int fd;

	written("two", 0, LEN, 0);
	written("one", 0, LEN, 0);
	written("one", 2 * LEN, LEN, 0);
	cr_assert(find_file("index.two", path));
	fd = open(path, O_RDWR);
	cr_assert(fd >= 0 && !fcntl(fd, F_OFD_SETLK, &lk));
	cr_assert_eq(lcompact("a"), 0);
	cr_assert(find_file("index.two", path), "it was locked");
	close(fd);
	assert_answers(100, 100, 100);
	cr_assert_eq(lcompact("a"), 0);
	cr_assert(!find_file("index.two", path));
	assert_answers(100, 100, 100);
	cr_assert_eq(checked(false, false), 0);
}

Test(hosts, that_are_missing_keep_a_file_from_being_compacted)
{
	written_by_two();
	written("one", 0, LEN, 0);
	lose("*.two-*");
	cr_assert_eq(lcompact("a"), -EIO, "nobody would know that");
	assert_answers(100, -EIO, -EIO);
}

/* A killed process of a host that has said nothing yet: its log is finished, and is as good as any. */
Test(hosts, with_killed_writers_alone_are_there)
{
	struct job j = { "two", 2 * LEN, LEN, 0, true };

	written("one", 0, LEN, 0);
	cr_assert_eq(in_child(write_as, &j), 256 + SIGKILL);
	for (int i = 0; i < 2; i++) {
		struct lfile l = lopen("a", O_RDONLY);

		cr_assert_eq(lcheck(&l, 2 * LEN, LEN, 1), 0);
		cr_assert(lzeros(&l, LEN, LEN));
		lclose(&l);
		cr_assert_eq(checked(!i, false), 0);
	}
}

/* Whether its notice stays, or goes too. */
static void is_given_up_and_writes(const char *what)
{
	written_by_two();
	lose(what);
	cr_assert_eq(checked(true, true), 1);
	assert_answers(100, 100, 100);
	written("two", 2 * LEN, LEN, 0);
	lose("*.two-*");
	assert_answers(100, -EIO, -EIO);
}

Test(hosts, that_were_given_up_and_write_again_are_missed_again) { is_given_up_and_writes("*.two-*"); }
Test(hosts, also_if_their_notices_had_stayed) { is_given_up_and_writes("[id]*.two-*"); }

/* More than the table holds. */
Test(hosts, of_any_number_are_read)
{
	char name[20];
	struct lfile l;

	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		written(name, 1000 * i, 1000, 0);
	}
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 300000, 1), 0);
	lclose(&l);
	lose("*.n7-*");
	l = lopen("a", O_RDONLY);
	cr_assert_eq(get(&l, 7000), -EIO);
	cr_assert_eq(lcheck(&l, 8000, 200000, 1), 0);
	lclose(&l);
}

/* Readers meet hosts that come meanwhile: none of these has lost anything. */
static int come_and_go(void *arg)
{
	char name[20];

	(void)arg;
	for (int i = 0; i < 100; i++) {
		struct job j = { name, 100 * i, 100, 0, false };

		snprintf(name, sizeof(name), "n%d", i);
		if (in_child(write_as, &j))
			return 1;
	}
	return 0;
}

Test(hosts, that_come_while_others_read_lose_nothing)
{
	pid_t pid;
	int status = 0, loads = 0;

	written("one", 100000, LEN, 0);
	pid = start_child(come_and_go, NULL);
	while (!waitpid(pid, &status, WNOHANG)) {
		struct lfile l = lopen("a", O_RDONLY);

		cr_assert_eq(get(&l, 50000), 100);
		lclose(&l);
		loads++;
	}
	cr_assert_eq(status, 0);
	cr_assert_gt(loads, 10);
	cr_assert_eq(checked(false, false), 0);
}
