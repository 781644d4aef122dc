/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A reader of a file that other processes go on writing: what it takes in bit by bit is what a merge of
 * everything makes.
 */
#include "test/lib/scratch.h"

#include "core/file/file.h"

#include <criterion/criterion.h>
#include <sys/mman.h>

TestSuite(follow, .init = scratch_setup, .fini = scratch_remove, .timeout = 300);

enum { NR_WRITERS = 3, FILE_MAX = 200000 };

/* What a writer is told to do, and its answer. */
struct order {
	enum { WRITE, COMMIT, SYNC, REOPEN, TRUNCATE, END } what;
	long off, len;
	unsigned round;
};

static int to[NR_WRITERS][2], from[NR_WRITERS][2];

static int obey(void *arg)
{
	int no = *(int *)arg;
	struct lfile l = lopen("a", O_RDWR);
	struct order o;
	char done = 'x';

	while (read(to[no][0], &o, sizeof(o)) == sizeof(o) && o.what != END) {
		if (o.what == WRITE && lfill(&l, o.off, (size_t)o.len, o.round) != o.len)
			return 1;
		if (o.what == COMMIT && plfs_commit(l.f))
			return 2;
		if (o.what == SYNC && plfs_sync(l.f))
			return 2;
		if (o.what == REOPEN) {
			lclose(&l);
			l = lopen("a", O_RDWR);
		}
		if (o.what == TRUNCATE && plfs_truncate(l.f, o.len))
			return 3;
		if (write(from[no][1], &done, 1) != 1)
			return 4;
	}
	lclose(&l);
	return 0;
}

static void tell(int no, struct order o)
{
	char done;

	cr_assert_eq(write(to[no][1], &o, sizeof(o)), (ssize_t)sizeof(o));
	if (o.what != END)
		cr_assert_eq(read(from[no][0], &done, 1), 1);
}

static pid_t pids[NR_WRITERS];

static int no_fsync(int fd)
{
	(void)fd;
	return 0;
}

static void start_writers(void)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);

	/* what a sync moves is of interest here, not when it is on the disk */
	sys.fsync = sys.fdatasync = no_fsync;
	lclose(&l);
	for (int i = 0; i < NR_WRITERS; i++) {
		cr_assert_eq(pipe(to[i]), 0);
		cr_assert_eq(pipe(from[i]), 0);
		pids[i] = start_child(obey, &i);
	}
}

static void end_writers(void)
{
	for (int i = 0; i < NR_WRITERS; i++) {
		tell(i, (struct order){ .what = END });
		cr_assert_eq(wait_child(pids[i]), 0);
	}
}

static uint64_t state;

static long rnd(long n)
{
	state = mix64(state);
	return (long)(state >> 8) % n;
}

/* Writers take turns, strided, and now and then do something else. */
static struct order next_order(int no, long step, unsigned round, int wildness)
{
	long len = 500, at = (step / NR_WRITERS * NR_WRITERS + no) * len % (FILE_MAX - 2000);

	if (rnd(100) >= wildness)
		return (struct order){ WRITE, at, len, round };
	switch (rnd(8)) {
	case 0:
		return (struct order){ .what = rnd(2) ? COMMIT : SYNC };
	case 1:
		return (struct order){ .what = REOPEN };
	case 2:
		return (struct order){ .what = TRUNCATE, .len = rnd(4) ? rnd(FILE_MAX / 2) : 0 };
	case 3:
		return (struct order){ WRITE, at, 200, round };
	default:
		return (struct order){ WRITE, rnd(FILE_MAX - 3000), 1 + rnd(2000), round };
	}
}

static ssize_t read_file(struct lfile *l, char *buf)
{
	return plfs_pread(l->f, buf, FILE_MAX, 0);
}

/* Whatever the writers do, without any agreement. */
static void follow_and_compare(int wildness, unsigned seed, int steps)
{
	static char before[FILE_MAX], after[FILE_MAX];
	struct lfile l;
	int no = 0;

	state = seed;
	start_writers();
	l = lopen("a", O_RDWR);
	for (int step = 0; step < steps; step++) {
		ssize_t n, m;

		no = rnd(5) ? (no + 1) % NR_WRITERS : (int)rnd(NR_WRITERS);
		tell(no, next_order(no, step, (unsigned)step, wildness));
		if (wildness && !rnd(40)) {
			long off = rnd(FILE_MAX - 1000);

			cr_assert_eq(lfill(&l, off, 300, (unsigned)step), 300);
		}
		n = plfs_pread(l.f, after, 700, rnd(FILE_MAX)); /* somewhere, to follow or not */
		cr_assert_geq(n, 0);
		if (rnd(3))
			continue;
		n = read_file(&l, before);
		l.f->ino->v.r.loaded = false;
		m = read_file(&l, after);
		cr_assert_eq(n, m, "seed %u step %d: %zd bytes followed, %zd merged", seed, step, n, m);
		for (ssize_t i = 0; i < n; i++)
			cr_assert_eq(before[i], after[i], "seed %u step %d: byte %zd", seed, step, i);
	}
	end_writers();
	lclose(&l);
	lunlink("a");
}

Test(follow, strided_writers_are_followed_to_the_same_map)
{
	follow_and_compare(0, 1, 1500);
}

Test(follow, whatever_writers_do_the_map_is_what_a_merge_makes)
{
	for (unsigned seed = 2; seed < 10; seed++)
		follow_and_compare(seed % 2 ? 5 : 40, seed, 400);
}

/* Each write that has returned is seen at once. */
Test(follow, what_has_been_written_is_read)
{
	static unsigned round_of[FILE_MAX / 100];
	struct lfile l;

	state = 77;
	start_writers();
	l = lopen("a", O_RDONLY);
	for (unsigned step = 1; step < 3000; step++) {
		int no = (int)rnd(NR_WRITERS);
		long at = rnd(20) ? (long)step % (FILE_MAX / 100) : rnd(FILE_MAX / 100), old;

		if (round_of[at])
			/* what comes next is later than what others wrote there */
			tell(no, (struct order){ .what = COMMIT });
		tell(no, (struct order){ WRITE, at * 100, 100, step });
		round_of[at] = step;
		cr_assert_eq(lcheck(&l, at * 100, 100, step), 0, "step %u", step);
		old = rnd(FILE_MAX / 100);
		if (round_of[old])
			cr_assert_eq(lcheck(&l, old * 100, 100, round_of[old]), 0, "step %u", step);
	}
	end_writers();
	lclose(&l);
}

/* One record that grows, by a power of two: no number that it is known by may come out the same. */
Test(follow, a_write_of_any_length_is_noticed)
{
	struct lfile l;
	long at = 1;

	start_writers();
	tell(0, (struct order){ .what = TRUNCATE, .len = 256L << 20 });
	tell(0, (struct order){ WRITE, 0, 1, 1 });
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 1, 1), 0);
	for (long len = 1; len <= 32L << 20; len *= 2) {
		tell(0, (struct order){ WRITE, at, len, 1 });
		cr_assert_eq(lcheck(&l, at + len / 2, 1, 1), 0, "%ld bytes", len);
		at += len;
	}
	end_writers();
	lclose(&l);
}

/* Its live file is as empty as it was when the reader looked: what was in it has gone to the node index. */
Test(follow, what_was_written_and_synced_between_two_reads_is_read)
{
	struct lfile l;

	start_writers();
	tell(0, (struct order){ WRITE, 0, 1000, 1 });
	tell(0, (struct order){ .what = SYNC });
	l = lopen("a", O_RDONLY);
	for (unsigned round = 1; round < 10; round++) {
		cr_assert_eq(lcheck(&l, 0, 1000, round), 0);
		tell(0, (struct order){ WRITE, 0, 1000, round + 1 });
		tell(0, (struct order){ .what = SYNC });
		if (round % 2)
			tell(0, (struct order){ WRITE, 2000, 1000, round });
	}
	end_writers();
	lclose(&l);
}

/* That one's own record was the latest that one knew of says nothing of those that have come since. */
Test(follow, what_others_write_over_ones_own_bytes_is_read)
{
	struct lfile l;

	start_writers();
	l = lopen("a", O_RDWR);
	for (unsigned round = 1; round < 9; round += 2) {
		cr_assert_eq(lfill(&l, 4560, 1000, round), 1000);
		cr_assert_eq(lcheck(&l, 4560, 100, round), 0);
		tell(0, (struct order){ WRITE, 4560, 168, round + 1 });
		if (round % 4 == 3)
			tell(0, (struct order){ .what = SYNC });
		cr_assert_eq(lcheck(&l, 4560, 42, round + 1), 0);
		cr_assert_eq(lcheck(&l, 4560 + 168, 100, round), 0);
	}
	end_writers();
	lclose(&l);
}

static void remove_notice(void)
{
	char path[PATH_MAX];

	cr_assert(find_file("notice.", path));
	cr_assert_eq(unlink(path), 0);
}

static int write_part(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	return lfill(&l, 0, 1000, (unsigned)(size_t)arg) != 1000 || lclose(&l);
}

static int cut_short(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	return plfs_truncate(l.f, 100) || lclose(&l);
}

/* Written on another host, as it were: nobody of this one has left anything to be watched. */
Test(follow, what_the_first_of_this_host_writes_or_cuts_is_seen)
{
	struct lfile l = made("a");

	lclose(&l);
	cr_assert_eq(in_child(write_part, (void *)1), 0);
	remove_notice();
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 1000, 1), 0);
	cr_assert_eq(in_child(write_part, (void *)2), 0);
	cr_assert_eq(lcheck(&l, 0, 1000, 2), 0);
	lclose(&l);
	remove_notice();
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 1000, 2), 0);
	cr_assert_eq(in_child(cut_short, NULL), 0);
	cr_assert_eq(plfs_size(l.f), 100);
	cr_assert_eq(lcheck(&l, 0, 100, 2), 0);
	lclose(&l);
}

static int nr_lists;
static ssize_t (*real_getdents64)(int fd, void *buf, size_t len);

static ssize_t count_getdents64(int fd, void *buf, size_t len)
{
	nr_lists++;
	return real_getdents64(fd, buf, len);
}

Test(follow, a_growing_run_is_followed_without_a_look_at_the_container)
{
	struct lfile l;

	start_writers();
	for (int i = 0; i < NR_WRITERS; i++)
		tell(i, (struct order){ WRITE, i * 500, 500, 1 });
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 1500, 1), 0);
	real_getdents64 = sys.getdents64;
	sys.getdents64 = count_getdents64;
	for (int k = 1; k < 100; k++)
		for (int i = 0; i < NR_WRITERS; i++) {
			long at = (k * NR_WRITERS + i) * 500;

			tell(i, (struct order){ WRITE, at, 500, 1 });
			cr_assert_eq(lcheck(&l, at, 500, 1), 0);
		}
	sys.getdents64 = real_getdents64;
	cr_assert_eq(nr_lists, 0);
	end_writers();
	lclose(&l);
}

Test(follow, records_that_pile_up_are_merged_now_and_then)
{
	struct lfile l;

	start_writers();
	tell(0, (struct order){ WRITE, 0, 10, 1 });
	l = lopen("a", O_RDONLY);
	for (int i = 0; i < 6000; i++) {
		tell(0, (struct order){ WRITE, i * 30 + i * i % 17, 10, 1 });
		cr_assert_eq(lcheck(&l, i * 30 + i * i % 17, 10, 1), 0);
		cr_assert_leq(l.f->ino->v.r.levels.nr_own, 4096 + 17);
	}
	end_writers();
	lclose(&l);
}

static struct order meanwhile[2];

/* Between a reader's list of the container and what comes next. */
static ssize_t obeyed_after_the_list(int fd, void *buf, size_t len)
{
	ssize_t n = real_getdents64(fd, buf, len);

	for (int i = 0; !n && i < 2; i++)
		if (meanwhile[i].len)
			tell(0, meanwhile[i]);
	if (!n)
		memset(meanwhile, 0, sizeof(meanwhile));
	return n;
}

Test(follow, what_was_written_before_a_close_that_a_look_met_is_read)
{
	struct lfile l;

	start_writers();
	tell(0, (struct order){ WRITE, 0, 500, 1 });
	tell(1, (struct order){ WRITE, 500, 500, 1 });
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 1000, 1), 0);
	meanwhile[0] = (struct order){ WRITE, 0, 100, 2 };
	meanwhile[1] = (struct order){ .what = REOPEN, .len = 1 };
	real_getdents64 = sys.getdents64;
	sys.getdents64 = obeyed_after_the_list;
	cr_assert_eq(plfs_refresh(l.f), 0);
	cr_assert_eq(lcheck(&l, 500, 500, 1), 0);
	sys.getdents64 = real_getdents64;
	cr_assert_eq(meanwhile[0].len, 0, "the container was listed");
	cr_assert_eq(lcheck(&l, 0, 100, 2), 0);
	cr_assert_eq(lcheck(&l, 100, 900, 1), 0);
	end_writers();
	lclose(&l);
}

/* Where a live file says how far the last record is recorded (live.h). */
#define RECORDED_OFF 568

static void change_recorded(uint64_t *value)
{
	char path[PATH_MAX];
	uint64_t was;
	int fd;

	cr_assert(find_file("live.", path));
	fd = open(path, O_RDWR);
	cr_assert_eq(pread(fd, &was, 8, RECORDED_OFF), 8);
	if (*value)
		cr_assert_eq(pwrite(fd, value, 8, RECORDED_OFF), 8);
	*value = was;
	close(fd);
}

Test(follow, a_write_that_a_look_met_in_the_middle_is_read_when_it_is_done)
{
	uint64_t before = 0;
	struct lfile l;

	for (int late = 0; late < 2; late++) { /* its own element, or a record more */
		start_writers();
		tell(0, (struct order){ WRITE, 0, 100, 1 });
		tell(0, (struct order){ WRITE, 1000, 100, 1 });
		before = 0;
		change_recorded(&before);
		tell(0, (struct order){ WRITE, late ? 300 : 2000, 100, 1 });
		change_recorded(&before);
		l = lopen("a", O_RDONLY);
		cr_assert_eq(lcheck(&l, 0, 100, 1), 0); /* the owner has got so far, and no further */
		change_recorded(&before);
		cr_assert_eq(lcheck(&l, late ? 300 : 2000, 100, 1), 0);
		end_writers();
		lclose(&l);
		cr_assert_eq(lunlink("a"), 0);
	}
}
