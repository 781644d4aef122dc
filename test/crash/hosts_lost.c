/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A compact is killed at its system calls (turn.h), fails at them, or meets a host there; and then a host
 * loses all that it has in the container. What it wrote must never read as zeros, nor as older bytes.
 */
#include "core/base/sys.h"
#include "test/lib/calls.h"
#include "test/lib/scratch.h"
#include "test/lib/turn.h"

#include <criterion/criterion.h>

#define LEN 20000
#define PART 100
#define NO_SUCH_CALL 99

TestSuite(crash_hosts_lost, .timeout = 600);

/* ---- hosts that write ---- */

struct job {
	const char *host;
	off_t off;
	size_t len;
	unsigned round;
};

static void write_it(const struct job *j)
{
	struct lfile l = lopen("f", O_RDWR | O_CREAT);

	if (lfill(&l, j->off, j->len, j->round) != (ssize_t)j->len || lclose(&l))
		_exit(1);
}

/* In a child, which has the name of a host of its own. */
static int write_as(void *arg)
{
	const struct job *j = arg;

	be_host(j->host);
	write_it(j);
	return 0;
}

static void written(const char *name, off_t off, unsigned round)
{
	struct job j = { name, off, LEN, round };

	cr_assert_eq(in_child(write_as, &j), 0);
}

static time_t later_s;

static int clock_later(clockid_t clock, struct timespec *now)
{
	int ret = clock_gettime(clock, now);

	now->tv_sec += later_s;
	return ret;
}

/* The file is so old that a purge could have taken something. */
static int write_later(void *arg)
{
	later_s = 100;
	sys.clock_gettime = clock_later;
	return write_as(arg);
}

static void lose(const char *name)
{
	shell("rm -f %s/.plfs/[0-9a-f]*/*/hostdir.*/*.%s-*", scratch, name);
}

/* ---- what is read ---- */

/* All of it, or as much as an error lets through. */
static int look_at(struct lfile *l, off_t off, size_t len, unsigned round)
{
	int ret = lcheck(l, off, len, round);

	return ret == -EIO ? 0 : ret;
}

/* One has written [0, LEN) twice, two [2 * LEN, 3 * LEN). */
static int look(void *arg)
{
	struct lfile l = lopen("f", O_RDONLY);

	(void)arg;
	return look_at(&l, 0, LEN, 2) || look_at(&l, 2 * LEN, LEN, 1) || lclose(&l);
}

/* Nothing is lost. */
static int look_all(void *arg)
{
	struct lfile l = lopen("f", O_RDONLY);

	(void)arg;
	return lcheck(&l, 0, LEN, 2) || !lzeros(&l, LEN, LEN) || lcheck(&l, 2 * LEN, LEN, 1) || lclose(&l);
}

/* ---- a compact that does not come to its end ---- */

static int compact(void *arg)
{
	int ret = lcompact("f");

	(void)arg;
	return ret < 0 ? 100 : ret;
}

static int fail_at_last(enum call call)
{
	(void)call;
	return --calls_left ? 0 : EIO;
}

static int (*hook)(enum call call);

static int compact_to_call(void *arg)
{
	int ret;

	be_host("three");
	calls_intercept();
	on_call = hook;
	ret = compact(arg);
	return calls_left > 0 ? NO_SUCH_CALL : ret;
}

static void make_file(bool copies)
{
	if (copies)
		written("two", 2 * LEN, 1);
	written("one", 0, 1);
	if (!copies)
		written("two", 2 * LEN, 1);
	written("one", 0, 2);
}

static const char *const hosts[] = { "one", "two", "three" };

/* Returns whether the compact came to its end. */
static bool at_call(long nr, const char *saved)
{
	int status = 0;

	for (int i = 0; i < 3; i++) {
		scratch_put_back(saved);
		calls_left = nr;
		status = in_child(compact_to_call, NULL);
		cr_assert_eq(in_child(look_all, NULL), 0, "call %ld", nr);
		lose(hosts[i]);
		cr_assert_eq(in_child(look, NULL), 0, "call %ld: what %s wrote", nr, hosts[i]);
	}
	return status == NO_SUCH_CALL;
}

/* Whether it comes to its end; else it waits for a lock of one that stands. */
static bool ends(pid_t pid)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	int status;

	for (int ms = 0; ms < 100; ms++, nanosleep(&pause, NULL))
		if (waitpid(pid, &status, WNOHANG) == pid) {
			cr_assert_eq(status, 0);
			return true;
		}
	return false;
}

static bool beside_call(long nr, const char *saved)
{
	struct job j = { "two", 3 * LEN, PART, 1 };
	pid_t pid, two;
	int status;

	scratch_put_back(saved);
	calls_left = nr;
	pid = start_child(compact_to_call, NULL);
	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	if (WIFSTOPPED(status)) {
		bool waits;

		lose("two");
		two = start_child(write_later, &j);
		waits = !ends(two);
		kill(pid, SIGCONT);
		wait_child(pid);
		if (waits)
			cr_assert_eq(wait_child(two), 0, "call %ld", nr);
	}
	cr_assert_eq(in_child(look, NULL), 0, "call %ld", nr);
	return WIFEXITED(status);
}

static void at_each_call(bool (*at)(long nr, const char *saved), int (*fn)(enum call call))
{
	hook = fn;
	scratch_in_memory = true;
	scratch_setup();
	for (int copies = 0; copies < 2; copies++) {
		struct turn turn = turn_begin(19);
		char saved[80];

		make_file(copies);
		snprintf(saved, sizeof(saved), "%s.saved", scratch);
		shell("cp -a %s %s", scratch, saved);
		while (!at(turn.nr, saved))
			turn.nr += turn.step;
		cr_assert_gt(turn.nr, 50);
		cr_log_info("%ld calls\n", turn.nr);
		shell("rm -rf %s", saved);
		scratch_clear();
	}
	scratch_remove();
}

Test(crash_hosts_lost, after_a_compact_that_was_killed_are_missed) { at_each_call(at_call, die_at_last); }
Test(crash_hosts_lost, after_a_compact_that_failed_are_missed) { at_each_call(at_call, fail_at_last); }
Test(crash_hosts_lost, amid_a_compact_are_missed_though_they_write)
{
	at_each_call(beside_call, stop_at_last);
}

/* ---- a host goes on with a log of which nothing counts ---- */

static int write_and_go_on(void *arg)
{
	be_host("two");
	write_it(&(struct job){ "two", 0, LEN, 1 });
	raise(SIGSTOP);
	write_it(arg);
	return 0;
}

static int no_sleep(const struct timespec *pause, struct timespec *left)
{
	(void)pause, (void)left;
	return 0;
}

/* It does not wait for the lock. */
static int compact_at_once(void *arg)
{
	sys.nanosleep = no_sleep;
	return compact(arg);
}

/* Two's index is locked when a first compact comes: it stays, with its log. */
static void begin(void)
{
	struct flock lk = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	char path[PATH_MAX];
	int fd;

	written("one", 0, 2);
	written("one", 2 * LEN, 1);
	cr_assert(find_file("index.two", path));
	fd = open(path, O_RDWR);
	cr_assert(fd >= 0 && !fcntl(fd, F_OFD_SETLK, &lk));
	cr_assert_eq(in_child(compact_at_once, NULL), 0);
	cr_assert(find_file("index.two", path), "it was locked");
	close(fd);
}

static int look_late(void *arg)
{
	struct lfile l = lopen("f", O_RDONLY);

	(void)arg;
	return lcheck(&l, 0, LEN, 2) || lcheck(&l, 2 * LEN, LEN, 1) || look_at(&l, 4 * LEN, PART, 1) ||
	       lclose(&l);
}

static int look_late_all(void *arg)
{
	struct lfile l = lopen("f", O_RDONLY);

	return lcheck(&l, 4 * LEN, PART, 1) || !lzeros(&l, LEN, LEN) || lclose(&l) || look_late(arg);
}

static long dies_behind;

static int stop_and_die(enum call call)
{
	(void)call;
	if (!--calls_left)
		raise(SIGSTOP);
	if (calls_left == -dies_behind)
		kill(getpid(), SIGKILL);
	return 0;
}

/* A second compact stands at call @nr while two goes on, and dies at the @behind th one after. */
static bool goes_on_at_call(long nr, long behind, bool *died)
{
	struct job j = { "two", 4 * LEN, PART, 1 };
	pid_t two, pid;
	int status;
	bool waits;

	two = start_child(write_and_go_on, &j);
	cr_assert(waitpid(two, &status, WUNTRACED) == two && WIFSTOPPED(status));
	begin();
	calls_left = nr;
	dies_behind = behind;
	hook = stop_and_die;
	pid = start_child(compact_to_call, NULL);
	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	kill(two, SIGCONT);
	waits = !WIFSTOPPED(status) || !ends(two);
	*died = false;
	if (WIFSTOPPED(status)) {
		kill(pid, SIGCONT);
		*died = wait_child(pid) == 256 + SIGKILL;
	}
	if (waits)
		cr_assert_eq(wait_child(two), 0);
	cr_assert_eq(in_child(look_late_all, NULL), 0, "call %ld and %ld", nr, behind);
	lose("two");
	cr_assert_eq(in_child(look_late, NULL), 0, "call %ld and %ld: lost", nr, behind);
	scratch_clear();
	return WIFEXITED(status);
}

Test(crash_hosts_lost, that_go_on_with_a_log_amid_a_compact_are_missed)
{
	struct turn turn = turn_begin(29);
	bool ended = false, died;

	scratch_in_memory = true;
	scratch_setup();
	while (!ended) {
		long from = 1;

		do
			ended = goes_on_at_call(turn.nr, turn_coarse(&from, 0, false), &died);
		while (!ended && died);
		turn.nr += turn.step;
	}
	cr_assert_gt(turn.nr, 50);
	scratch_remove();
}
