/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clocks that were set back, and hosts whose clocks are an hour apart: what a close and an open separate is
 * in order, whatever the clocks say. Each step is a process; the file system's times are always those of now.
 */
#include "test/lib/scratch.h"

#include "core/file/file.h"
#include "core/backend/mount.h"

#include <criterion/criterion.h>

#include <sys/mman.h>

static bool several_hosts;
/* The hours of the process that has changed the stub last, which gives it its times. */
static int *touched_at;

static void setup_hosts(void)
{
	several_hosts = true;
	scratch_setup();
}

static void setup_clients(void)
{
	touched_at = mmap(NULL, sizeof(*touched_at), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			  0);
	cr_assert(touched_at != MAP_FAILED);
	scratch_setup();
}

static void setup_clients_of_hosts(void)
{
	several_hosts = true;
	setup_clients();
}

TestSuite(clocks, .init = scratch_setup, .fini = scratch_remove);
TestSuite(clocks_of_hosts, .init = setup_hosts, .fini = scratch_remove);
TestSuite(clocks_of_clients, .init = setup_clients, .fini = scratch_remove);
TestSuite(clocks_of_clients_and_hosts, .init = setup_clients_of_hosts, .fini = scratch_remove);

static int (*true_clock)(clockid_t clock, struct timespec *ts);
static int hours;

static int clock_elsewhere(clockid_t clock, struct timespec *ts)
{
	int ret = true_clock(clock, ts);

	ts->tv_sec += clock == CLOCK_REALTIME ? hours * 3600 : 0;
	return ret;
}

static int (*true_fstat)(int fd, struct stat *st);
static ino_t stub_number;

static int fstat_of_client(int fd, struct stat *st)
{
	int ret = true_fstat(fd, st);

	st->st_ctim.tv_sec += (st->st_ino == stub_number ? *touched_at : hours) * 3600;
	return ret;
}

/* A file system whose times are those of the hosts' clocks, as CephFS; or a host whose clock was set. */
static int take_step_as_client(int (*fn)(void))
{
	char path[PATH_MAX];
	struct stat st;
	int ret;

	lpath("a", path);
	stub_number = stat(path, &st) ? 0 : st.st_ino;
	true_fstat = sys.fstat;
	sys.fstat = fstat_of_client;
	ret = fn();
	*touched_at = hours;
	return ret;
}

struct step {
	int hours;
	int (*fn)(void);
};

static int take_step(void *arg)
{
	const struct step *step = arg;
	char path[PATH_MAX], host[20];

	hours = step->hours;
	true_clock = sys.clock_gettime;
	sys.clock_gettime = clock_elsewhere;
	if (several_hosts) {
		snprintf(host, sizeof(host), "host%d", hours);
		be_host(host);
		lpath("a", path)->store.remote = true;
	}
	return touched_at ? take_step_as_client(step->fn) : step->fn();
}

static void at(int clock_hours, int (*fn)(void))
{
	struct step step = { clock_hours, fn };

	cr_assert_eq(in_child(take_step, &step), 0, "at %d h", clock_hours);
}

static int write_all_of_it(void)
{
	struct lfile l = made("a");

	return lfill(&l, 0, 200, 1) != 200 || lclose(&l);
}

static int write_a_part(void)
{
	struct lfile l = lopen("a", O_RDWR);

	return lfill(&l, 50, 100, 2) != 100 || lclose(&l);
}

static int write_a_part_again(void)
{
	struct lfile l = lopen("a", O_WRONLY);

	return lfill(&l, 50, 100, 3) != 100 || lclose(&l);
}

static int shorten(void)
{
	struct lfile l = lopen("a", O_RDWR);

	return plfs_truncate(l.f, 20) || plfs_truncate(l.f, 200) || lclose(&l);
}

static int empty(void)
{
	struct lfile l = lopen("a", O_RDWR);

	return plfs_truncate(l.f, 0) || plfs_truncate(l.f, 200) || lclose(&l);
}

static int begin_anew(void)
{
	struct lfile l = lopen("a", O_RDWR | O_TRUNC);

	return lfill(&l, 0, 10, 2) != 10 || plfs_truncate(l.f, 200) || lclose(&l);
}

static int expect_part(void)
{
	struct lfile l = lopen("a", O_RDONLY);

	return lcheck(&l, 0, 50, 1) || lcheck(&l, 50, 100, 2) || lcheck(&l, 150, 50, 1) || lclose(&l);
}

static int expect_part_again(void)
{
	struct lfile l = lopen("a", O_RDONLY);

	return lcheck(&l, 0, 50, 1) || lcheck(&l, 50, 100, 3) || lcheck(&l, 150, 50, 1) || lclose(&l);
}

static int expect_short(void)
{
	struct lfile l = lopen("a", O_RDONLY);

	return lcheck(&l, 0, 20, 1) || !lzeros(&l, 20, 180) || plfs_size(l.f) != 200 || lclose(&l);
}

static int expect_empty(void)
{
	struct lfile l = lopen("a", O_RDONLY);

	return !lzeros(&l, 0, 200) || plfs_size(l.f) != 200 || lclose(&l);
}

static int expect_anew(void)
{
	struct lfile l = lopen("a", O_RDONLY);

	return lcheck(&l, 0, 10, 2) || !lzeros(&l, 10, 190) || lclose(&l);
}

static int expect_anew_and_part(void)
{
	struct lfile l = lopen("a", O_RDONLY);

	return lcheck(&l, 0, 10, 2) || !lzeros(&l, 10, 40) || lcheck(&l, 50, 100, 3) ||
	       !lzeros(&l, 150, 50) || lclose(&l);
}

static void play(int first, int second)
{
	at(first, write_all_of_it);
	at(second, write_a_part);
	at(first, expect_part);
	at(first, write_a_part_again);
	at(second, expect_part_again);
	at(second, write_a_part);
	at(first, expect_part);
	at(second, shorten);
	at(first, expect_short);
	at(second, expect_short);
	at(first, write_all_of_it);
	at(second, write_a_part);
	at(first, expect_part);
	at(second, empty);
	at(first, expect_empty);
	at(second, write_all_of_it);
	at(first, write_a_part_again);
	at(second, expect_part_again);
	at(second, begin_anew);
	at(first, expect_anew);
	at(second, write_a_part_again);
	at(first, expect_anew_and_part);
	at(first, begin_anew);
	at(second, expect_anew);
}

Test(clocks, order_is_kept_when_the_clock_was_set_back) { play(0, -1); }
Test(clocks_of_hosts, order_is_kept_between_one_that_is_behind_and_the_file_system) { play(0, -1); }
Test(clocks_of_hosts, order_is_kept_between_one_that_is_ahead_and_the_file_system) { play(1, 0); }
Test(clocks_of_hosts, order_is_kept_between_one_that_is_behind_and_one_that_is_ahead) { play(1, -1); }
Test(clocks_of_hosts, order_is_kept_between_two_that_are_both_ahead) { play(2, 1); }
Test(clocks_of_hosts, order_is_kept_between_two_that_are_both_behind) { play(-1, -2); }

/* The second leaves no time behind by which the third could see that the first was ahead. */
static void play_three(int first, int second, int third)
{
	at(first, write_all_of_it);
	at(second, write_a_part);
	at(third, write_a_part_again);
	at(second, expect_part_again);
}

Test(clocks_of_clients, order_is_kept_when_the_clock_was_set_back_twice) { play_three(2, 0, 1); }
Test(clocks_of_clients_and_hosts, order_is_kept_among_three_if_the_first_is_ahead) { play_three(2, 0, 1); }

/* The same file in one process, whose clock is set while it has the file open. */
Test(clocks, order_is_kept_in_a_process_whose_clock_jumps)
{
	struct lfile l = made("a");

	true_clock = sys.clock_gettime;
	sys.clock_gettime = clock_elsewhere;
	for (int i = 0; i < 6; i++) {
		hours = i % 2 ? -i : i;
		cr_assert_eq(lfill(&l, 0, 300, (unsigned)i), 300);
		cr_assert_eq(plfs_commit(l.f), 0);
		hours = -hours;
		cr_assert_eq(lfill(&l, 100, 100, 10 + (unsigned)i), 100);
		cr_assert_eq(lcheck(&l, 0, 100, (unsigned)i), 0);
		cr_assert_eq(lcheck(&l, 100, 100, 10 + (unsigned)i), 0);
	}
	lclose(&l);
	sys.clock_gettime = true_clock;
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 100, 5), 0);
	cr_assert_eq(lcheck(&l, 100, 100, 15), 0);
	cr_assert_eq(lcheck(&l, 200, 100, 5), 0);
	lclose(&l);
}

static int clock_later(clockid_t clock, struct timespec *ts)
{
	int ret = true_clock(clock, ts);

	ts->tv_nsec += 150000000;
	ts->tv_sec += ts->tv_nsec / 1000000000;
	ts->tv_nsec %= 1000000000;
	return ret;
}

static int write_between(void *arg)
{
	struct lfile l = lopen("f", O_RDWR);

	(void)arg;
	lfill(&l, 1000, 10, 3);
	raise(SIGSTOP);
	lfill(&l, 100, 100, 3);
	raise(SIGSTOP);
	lclose(&l);
	return 0;
}

/*
 * Without the pause what it writes would count from when it began to write from there on, and what the other
 * wrote meanwhile as later.
 */
Test(clocks, a_process_that_has_paused_for_100_ms_writes_later_than_all_that_was_written_before)
{
	struct lfile l = made("f");
	int status;
	pid_t pid;

	cr_assert_eq(lfill(&l, 2000, 10, 1), 10);
	pid = start_child(write_between, NULL);
	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	cr_assert_eq(lfill(&l, 0, 100, 1), 100);
	kill(pid, SIGCONT);
	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	true_clock = sys.clock_gettime;
	sys.clock_gettime = clock_later;
	cr_assert_eq(lfill(&l, 100, 100, 1), 100);
	sys.clock_gettime = true_clock;
	cr_assert_eq(lcheck(&l, 0, 200, 1), 0);
	kill(pid, SIGCONT);
	cr_assert_eq(wait_child(pid), 0);
	lclose(&l);
	l = lopen("f", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 200, 1), 0);
	lclose(&l);
}

/*
 * Other hosts end no leases of this one: a run of it may not go on for so long that one of theirs is later by
 * 20 ms, and loses.
 */
static uint64_t added_ns;

static int clock_ahead(clockid_t clock, struct timespec *ts)
{
	int ret = true_clock(clock, ts);

	ts->tv_nsec += (long)added_ns;
	ts->tv_sec += ts->tv_nsec / 1000000000;
	ts->tv_nsec %= 1000000000;
	return ret;
}

Test(clocks, where_other_hosts_write_too_no_stamp_is_20_ms_older_than_the_write)
{
	char path[PATH_MAX];
	struct lfile l;

	lpath("f", path)->store.remote = true;
	l = made("f");
	true_clock = sys.clock_gettime;
	sys.clock_gettime = clock_ahead;
	for (int i = 0; i < 200; i++) {
		struct timespec now;
		uint64_t before;

		added_ns += 1000000;
		sys.clock_gettime(CLOCK_REALTIME, &now);
		before = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
		cr_assert_eq(lfill(&l, i * 100, 100, 1), 100);
		cr_assert_gt(l.f->ino->w.last.stamp_ns + 20000000, before, "%d", i);
	}
	sys.clock_gettime = true_clock;
	cr_assert_eq(lcheck(&l, 0, 20000, 1), 0);
	lclose(&l);
}

/* ---- the word that tells of a change ---- */

static int write_tomorrow(void *arg)
{
	struct lfile l = lopen("f", O_RDWR);

	(void)arg;
	hours = 24;
	true_clock = sys.clock_gettime;
	sys.clock_gettime = clock_elsewhere;
	lfill(&l, 0, 100, 1);
	raise(SIGSTOP);
	return lclose(&l);
}

static int read_then_write(void *arg)
{
	struct lfile l = lopen("f", O_RDWR);

	if (lcheck(&l, 0, 100, 1))
		return 1;
	raise(SIGSTOP);
	if (lfill(&l, 100, 100, 3) != 100)
		return 2;
	raise(SIGSTOP);
	(void)arg;
	return lclose(&l);
}

static pid_t start_till_it_stops(int (*fn)(void *arg))
{
	pid_t pid = start_child(fn, NULL);
	int status;

	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	cr_assert(WIFSTOPPED(status));
	return pid;
}

/*
 * Processes that have seen a stamp of tomorrow count on from there, each for itself: two of them come to the
 * same number.
 */
Test(clocks, who_emptied_a_file_of_tomorrow_sees_what_another_process_writes_next)
{
	struct lfile l = made("f");
	pid_t ahead = start_till_it_stops(write_tomorrow), other;
	unsigned char byte = 1;
	int status;

	cr_assert_eq(lcheck(&l, 0, 100, 1), 0);
	other = start_till_it_stops(read_then_write);
	cr_assert_eq(plfs_truncate(l.f, 0), 0);
	kill(other, SIGCONT);
	cr_assert_eq(waitpid(other, &status, WUNTRACED), other);
	cr_assert(WIFSTOPPED(status));
	cr_assert_eq(lcheck(&l, 100, 100, 3), 0);
	cr_assert_eq(plfs_pread(l.f, &byte, 1, 0), 1);
	cr_assert_eq(byte, 0);
	kill(ahead, SIGCONT);
	kill(other, SIGCONT);
	cr_assert_eq(wait_child(ahead), 0);
	cr_assert_eq(wait_child(other), 0);
	lclose(&l);
}
