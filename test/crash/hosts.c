/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host of which nothing is visible any more loses its last files, and what removes them is killed at its
 * system calls (turn.h), or meets a process of the host at one of its calls: the host must not be missed
 * then, for a file that misses a host gives errors where nobody has written.
 */
#include "core/base/sys.h"
#include "test/lib/calls.h"
#include "test/lib/scratch.h"
#include "test/lib/turn.h"

#include <criterion/criterion.h>

#define LEN 20000

TestSuite(crash_hosts, .timeout = 600);

struct job {
	const char *host;
	off_t off;
};

/* In a child, which has the name of a host of its own. */
static int write_as(void *arg)
{
	const struct job *j = arg;
	struct lfile l;

	be_host(j->host);
	l = lopen("f", O_RDWR | O_CREAT);
	return lfill(&l, j->off, LEN, 1) != LEN || lclose(&l);
}

static void written(const char *name, off_t off)
{
	struct job j = { name, off };

	cr_assert_eq(in_child(write_as, &j), 0);
}

static int compact(void *arg)
{
	int ret = lcompact("f");

	(void)arg;
	return ret < 0 ? 100 : ret;
}

/* The index of a host, all of whose bytes are written over, is locked when a compact comes: so it stays. */
static void make_file(void)
{
	struct flock lk = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	char path[PATH_MAX];
	int fd;

	written("two", 0);
	written("one", 0);
	written("one", 2 * LEN);
	cr_assert(find_file("index.two", path));
	fd = open(path, O_RDWR);
	cr_assert(fd >= 0 && !fcntl(fd, F_OFD_SETLK, &lk));
	cr_assert_eq(in_child(compact, NULL), 0);
	cr_assert(find_file("index.two", path), "it was locked");
	close(fd);
}

static int look(void *arg)
{
	struct lfile l = lopen("f", O_RDONLY);

	(void)arg;
	return !lzeros(&l, LEN, LEN) || lcheck(&l, 0, LEN, 1) || lcheck(&l, 2 * LEN, LEN, 1) || lclose(&l);
}

static int examined(bool repair) { return lexamine("f", repair) & 0xff; }

static int check(void *arg)
{
	(void)arg;
	return examined(false);
}

static int repair(void *arg)
{
	(void)arg;
	return examined(true);
}

static int (*work)(void *arg);

static int work_and_die(void *arg)
{
	calls_intercept();
	on_call = die_at_last;
	return work(arg);
}

/* Returns whether the work came to its end. */
static bool at_call(long nr, const char *saved)
{
	int status;

	scratch_put_back(saved);
	calls_left = nr;
	status = in_child(work_and_die, NULL);
	cr_assert(!status || status == 256 + SIGKILL, "call %ld: %d", nr, status);
	cr_assert_eq(in_child(look, NULL), 0, "call %ld", nr);
	cr_assert_eq(in_child(check, NULL), 0, "call %ld: check", nr);
	cr_assert_leq(in_child(work, NULL), 1, "call %ld: the next one", nr);
	/* a void index that a repair leaves harms nobody */
	cr_assert(work == repair || !count_files("index.two"), "call %ld", nr);
	cr_assert_eq(in_child(look, NULL), 0, "call %ld, and gone on with", nr);
	return !status;
}

/* ---- the host begins to write meanwhile ---- */

static int clock_later(clockid_t clock, struct timespec *now)
{
	int ret = calls_real.clock_gettime(clock, now);

	now->tv_sec += 100; /* the file is so old that a purge could have taken something */
	return ret;
}

static int write_and_stop(void *arg)
{
	struct job j = { "two", 0 };

	(void)arg;
	calls_intercept();
	sys.clock_gettime = clock_later;
	on_call = stop_at_last;
	return write_as(&j);
}

static bool beside_call(long nr, const char *saved)
{
	int status, compacted;
	pid_t pid;

	scratch_put_back(saved);
	calls_left = nr;
	pid = start_child(write_and_stop, NULL);
	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	if (WIFSTOPPED(status)) {
		compacted = in_child(compact, NULL);
		cr_assert(compacted <= 1 || compacted == 100, "call %ld: %d", nr, compacted);
		kill(pid, SIGCONT);
		cr_assert_eq(wait_child(pid), 0, "call %ld", nr);
	}
	cr_assert_eq(in_child(look, NULL), 0, "call %ld", nr);
	cr_assert_eq(in_child(check, NULL), 0, "call %ld: check", nr);
	return WIFEXITED(status);
}

/* ---- all ---- */

static void at_each_call(bool (*at)(long nr, const char *saved), int (*fn)(void *arg))
{
	struct turn turn = turn_begin(7);
	char saved[80];

	work = fn;
	scratch_in_memory = true;
	scratch_setup();
	make_file();
	cr_assert_eq(in_child(look, NULL), 0);
	snprintf(saved, sizeof(saved), "%s.saved", scratch);
	shell("cp -a %s %s", scratch, saved);
	while (!at(turn.nr, saved))
		turn.nr += turn.step;
	cr_assert_gt(turn.nr, 50);
	cr_log_info("%ld calls\n", turn.nr);
	shell("rm -rf %s", saved);
	scratch_remove();
}

Test(crash_hosts, of_which_a_compact_takes_the_last_are_not_missed_whichever_call_was_the_last)
{
	at_each_call(at_call, compact);
}

Test(crash_hosts, of_which_a_repair_takes_the_last_are_not_missed_whichever_call_was_the_last)
{
	at_each_call(at_call, repair);
}

Test(crash_hosts, that_begin_to_write_while_a_compact_takes_their_last_have_lost_nothing)
{
	at_each_call(beside_call, NULL);
}
