/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file that is written over again and again does not grow and grow on the disk.
 */
#include "core/dropping/datalog.h"
#include "core/file/logged.h"
#include "core/file/sweep.h"
#include "test/lib/scratch.h"

#include <criterion/criterion.h>

#include <sys/stat.h>

#define LEN 1000000
#define PART 50000

static void setup(void)
{
	scratch_setup();
	logged_least_len = 1 << 16;
}

TestSuite(sweep, .init = setup, .fini = scratch_remove, .timeout = 300);

struct run {
	unsigned round;
	int part, nr_parts; /* every so manieth piece */
	off_t from, to;
	bool kill;
	int done; /* 0, or say there that it is written */
	int go; /* wait for a byte there before the close; -1: do not */
};

static int write_parts(void *arg)
{
	const struct run *run = arg;
	struct lfile l = lopen("f", O_RDWR | O_CREAT);
	char c;

	for (off_t off = run->from; off < run->to; off += PART)
		if (off / PART % run->nr_parts == run->part && lfill(&l, off, PART, run->round) != PART)
			return 1;
	if (run->kill)
		kill(getpid(), SIGKILL);
	if (run->done && write(run->done, "", 1) != 1)
		return 4;
	if (run->go >= 0 && read(run->go, &c, 1) != 1)
		return 2;
	return lclose(&l) ? 3 : 0;
}

static void one(unsigned round, off_t from, off_t to)
{
	struct run run = { .round = round, .nr_parts = 1, .from = from, .to = to, .go = -1 };

	cr_assert_eq(in_child(write_parts, &run), 0);
}

/* As many processes at once as @nr. As in an MPI job none closes the file before all have written. */
static void together(unsigned round, int nr)
{
	int go[2], done[2];
	pid_t pids[8];
	char c;

	cr_assert(!pipe(go) && !pipe(done));
	for (int i = 0; i < nr; i++) {
		struct run run = { .round = round, .part = i, .nr_parts = nr, .to = LEN, .done = done[1],
				   .go = go[0] };

		pids[i] = start_child(write_parts, &run);
	}
	for (int i = 0; i < nr; i++)
		cr_assert_eq(read(done[0], &c, 1), 1);
	for (int i = 0; i < nr; i++)
		cr_assert_eq(write(go[1], "", 1), 1);
	for (int i = 0; i < nr; i++)
		cr_assert_eq(wait_child(pids[i]), 0);
	for (int i = 0; i < 2; i++) {
		close(go[i]);
		close(done[i]);
	}
}

/* Bytes in logs. */
static off_t disk(void)
{
	char *const paths[] = { scratch, NULL };
	FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	off_t sum = 0;

	for (FTSENT *e = fts_read(tree); e; e = fts_read(tree))
		if (e->fts_info == FTS_F && !strncmp(e->fts_name, "data.", 5))
			sum += e->fts_statp->st_size - DATALOG_DATA_OFF;
	fts_close(tree);
	return sum;
}

static void reads(off_t from, off_t to, unsigned round)
{
	struct lfile l = lopen("f", O_RDONLY);

	cr_assert_eq(lcheck(&l, from, (size_t)(to - from), round), 0);
	cr_assert_eq(plfs_size(l.f), LEN);
	cr_assert_eq(lclose(&l), 0);
}

static void found(void *arg, const struct plfs_finding *f)
{
	int *nr = arg;

	*nr += f->severity != PLFS_NOTED;
}

static void is_sound(void)
{
	int nr = 0;
	struct plfs_check c = { .found = found, .arg = &nr };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("f", path);

	cr_assert_eq(plfs_check(m, AT_FDCWD, path, &c), 0);
	cr_assert_eq(nr, 0);
}

Test(sweep, runs_that_write_it_over_and_over)
{
	for (unsigned round = 1; round <= 8; round++) {
		one(round, 0, LEN);
		reads(0, LEN, round);
		cr_assert_lt(disk(), 2 * LEN + LEN / 4, "run %u: %lld", round, (long long)disk());
	}
	is_sound();
}

#define LITTLE 4000

/*
 * A process that changes a little here and there, and closes the file each time, begins a new log in time.
 * Left are twice the size, and a little more than twice the size until the next look.
 */
Test(sweep, little_writes_of_one_process_do_not_go_into_one_log_for_ever)
{
	one(1, 0, LEN);
	for (int i = 0; i < 8 * LEN / LITTLE; i++) {
		struct lfile l = lopen("f", O_RDWR);
		off_t at = i * 37 % (LEN / LITTLE) * LITTLE;

		cr_assert_eq(lfill(&l, at, LITTLE, 2), LITTLE);
		cr_assert_eq(lclose(&l), 0);
		cr_assert_leq(disk(), 5 * LEN, "%ld bytes after %d writes", (long)disk(), i);
	}
	reads(0, LEN, 2);
	is_sound();
}

Test(sweep, runs_of_several_processes)
{
	for (unsigned round = 1; round <= 8; round++) {
		together(round, 4);
		reads(0, LEN, round);
		cr_assert_lt(disk(), 2 * LEN + LEN / 4, "run %u: %lld", round, (long long)disk());
	}
	is_sound();
}

static int write_it_often(void *arg)
{
	(void)arg;
	for (unsigned round = 1; round <= 8; round++) {
		struct run run = { .round = round, .nr_parts = 1, .to = LEN, .go = -1 };
		int ret = write_parts(&run);

		if (ret)
			return ret;
	}
	return 0;
}

Test(sweep, one_process_that_opens_and_writes_it_over_and_over)
{
	cr_assert_eq(in_child(write_it_often, NULL), 0);
	cr_assert_lt(disk(), 2 * LEN + LEN / 4, "%lld", (long long)disk());
	reads(0, LEN, 8);
	is_sound();
}

static int write_a_little_often(void *arg)
{
	(void)arg;
	for (int i = 0; i < 100; i++) {
		struct lfile l = lopen("f", O_RDWR);

		if (lfill(&l, i * 100, 100, 9) != 100 || lclose(&l))
			return 1;
	}
	return 0;
}

Test(sweep, small_writes_go_on_with_one_log)
{
	one(1, 0, LEN);
	cr_assert_eq(in_child(write_a_little_often, NULL), 0);
	cr_assert_eq(count_files("data."), 2);
	reads(0, 10000, 9);
	reads(10000, LEN, 1);
}

/* As of the header of a file that the first run alone has written. */
Test(sweep, a_little_that_stays_visible_pins_nothing)
{
	one(1, 0, LEN);
	for (unsigned round = 2; round <= 9; round++)
		one(round, PART, LEN);
	cr_assert_lt(disk(), 2 * LEN + LEN / 4, "%lld", (long long)disk());
	reads(0, PART, 1);
	reads(PART, LEN, 9);
	is_sound();
}

/* The other half is never written again: to copy it would take as much as it gives. */
Test(sweep, much_that_stays_visible_is_not_copied)
{
	char path[PATH_MAX];

	one(1, 0, LEN);
	cr_assert(find_file("data.", path));
	for (unsigned round = 2; round <= 9; round++)
		one(round, LEN / 2, LEN);
	cr_assert_eq(access(path, F_OK), 0, "the first log");
	reads(0, LEN / 2, 1);
	reads(LEN / 2, LEN, 9);
	is_sound();
}

/* A file that shrinks and grows again: what was cut off must not come back. */
Test(sweep, what_was_cut_off_stays_away)
{
	struct lfile l;

	for (unsigned round = 1; round <= 6; round++) {
		one(round, 0, LEN);
		l = lopen("f", O_RDWR);
		cr_assert_eq(plfs_truncate(l.f, LEN / 2), 0);
		cr_assert_eq(plfs_truncate(l.f, LEN), 0);
		cr_assert_eq(lclose(&l), 0);
		l = lopen("f", O_RDONLY);
		cr_assert_eq(lcheck(&l, 0, LEN / 2, round), 0);
		cr_assert(lzeros(&l, LEN / 2, LEN / 2));
		cr_assert_eq(lclose(&l), 0);
	}
	is_sound();
}

/* The newest logs are not on the disk yet: what they hide stays until the next time. */
Test(sweep, the_last_but_one_stays)
{
	for (unsigned round = 1; round <= 3; round++)
		one(round, 0, LEN);
	cr_assert_eq(count_files("data."), 2);
}

Test(sweep, a_reader_with_an_old_map_reads_on)
{
	struct lfile l;

	one(1, 0, LEN);
	l = lopen("f", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, PART, 1), 0);
	for (unsigned round = 2; round <= 6; round++) {
		one(round, 0, LEN);
		cr_assert_eq(lcheck(&l, (off_t)round * PART, PART, round), 0);
	}
	cr_assert_eq(lcheck(&l, 0, LEN, 6), 0);
	cr_assert_eq(lclose(&l), 0);
}

Test(sweep, killed_writers_logs_go_as_well)
{
	struct run run = { .round = 1, .nr_parts = 1, .to = LEN, .kill = true, .go = -1 };

	cr_assert_eq(in_child(write_parts, &run), 256 + SIGKILL);
	for (unsigned round = 2; round <= 8; round++)
		one(round, 0, LEN);
	cr_assert_lt(disk(), 2 * LEN + LEN / 4, "%lld", (long long)disk());
	cr_assert_eq(count_files("live."), 0);
	reads(0, LEN, 8);
	is_sound();
}

/* Its live file alone knows the size. */
Test(sweep, a_killed_writers_end_stays)
{
	struct run run = { .round = 1, .nr_parts = 1, .to = LEN, .kill = true, .go = -1 };

	cr_assert_eq(in_child(write_parts, &run), 256 + SIGKILL);
	for (unsigned round = 2; round <= 8; round++)
		one(round, 0, LEN - PART);
	cr_assert_eq(stat_size("f"), LEN);
	reads(0, LEN - PART, 8);
	reads(LEN - PART, LEN, 1);
	is_sound();
}

/* It may still read, and write. */
Test(sweep, not_beside_a_writer)
{
	struct run run = { .round = 1, .nr_parts = 1, .to = LEN };
	int go[2];
	pid_t pid;

	cr_assert_eq(pipe(go), 0);
	run.go = go[0];
	one(1, 0, LEN);
	pid = start_child(write_parts, &run);
	for (unsigned round = 2; round <= 5; round++)
		one(round, 0, LEN);
	cr_assert_gt(disk(), 3 * LEN, "%lld", (long long)disk());
	cr_assert_eq(write(go[1], "", 1), 1);
	cr_assert_eq(wait_child(pid), 0);
	one(6, 0, LEN);
	reads(0, LEN, 6);
	cr_assert_lt(disk(), 3 * LEN + LEN / 4, "%lld", (long long)disk());
}

static int write_anew(void *arg)
{
	unsigned round = *(unsigned *)arg;
	struct lfile l = lopen("f", O_RDWR | O_CREAT | O_TRUNC);

	return lfill(&l, 0, LEN, round) != LEN || lclose(&l);
}

Test(sweep, truncations_count_nothing)
{
	for (unsigned round = 1; round <= 6; round++)
		cr_assert_eq(in_child(write_anew, &round), 0);
	one(7, 0, LEN);
	cr_assert_eq(count_files("data."), 2, "no sweep yet");
	reads(0, LEN, 7);
}

Test(sweep, times_stay)
{
	struct stat before, after;
	char path[PATH_MAX];

	for (unsigned round = 1; round <= 2; round++)
		one(round, 0, LEN);
	lpath("f", path);
	cr_assert_eq(stat(path, &before), 0);
	usleep(20000);
	one(3, 0, LEN);
	cr_assert_eq(stat(path, &after), 0);
	cr_assert_eq(count_files("data."), 2);
	cr_assert_eq(after.st_size, before.st_size);
	cr_assert_gt(after.st_mtim.tv_sec * 1000000000LL + after.st_mtim.tv_nsec,
		     before.st_mtim.tv_sec * 1000000000LL + before.st_mtim.tv_nsec, "it was written");
}

/* ---- logs of little (sweep_little.c) ---- */

/* They are no processes for a line each: of all that write at once the last to close counts. */
Test(sweep, what_ranks_write_at_once_stays_in_their_logs)
{
	sweep_little_at = 8;
	for (unsigned round = 1; round <= 2; round++)
		together(round, 8);
	cr_assert_eq(count_files("data."), 16);
	reads(0, LEN, 2);
}

/* PART for each log is less than RECLAIM_LITTLE, twice that is more. */
Test(sweep, logs_of_much_stay)
{
	sweep_little_at = 4;
	for (int i = 0; i < LEN / PART / 2; i++)
		one(1, 2 * i * PART, 2 * (i + 1) * PART);
	cr_assert_eq(count_files("data."), LEN / PART / 2);
	for (int i = 0; i < LEN / PART; i++)
		one(2, i * PART, (i + 1) * PART);
	cr_assert_lt(count_files("data."), LEN / PART);
	reads(0, LEN, 2);
	is_sound();
}
