/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All ranks of a host that begin to write a file at once, with near=: one asks home for what all need
 * (core/backend/place_turn.h, struct place_first).
 */
#include "test/lib/near.h"

#include "core/backend/mount.h"
#include "core/backend/origin.h"
#include "core/backend/place_turn.h"
#include "core/base/sys.h"

#include <criterion/criterion.h>

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#define RANKS 4
#define LEN 100000

static struct {
	int ready;
	int refused; /* times that the header's lock, or the notice, was another rank's */
} *shared;

static void setup(void)
{
	near_setup(",drain=none");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

TestSuite(near_turn, .init = setup, .fini = near_remove, .timeout = 60);

static struct sys_table real;

static int counted(int ret, int refusal)
{
	if (ret < 0 && errno == refusal)
		__atomic_add_fetch(&shared->refused, 1, __ATOMIC_RELAXED);
	return ret;
}

static int counted_fcntl(int fd, int cmd, ...)
{
	va_list args;
	void *arg;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	return counted(real.fcntl(fd, cmd, arg), cmd == F_SETLK ? EAGAIN : 0);
}

/* Home takes its time. */
static int slow_mkdirat(int dir, const char *path, mode_t mode)
{
	usleep(20000);
	return real.mkdirat(dir, path, mode);
}

/* Without openat2() this counts none. */
static int counted_openat2(int dir, const char *path, struct open_how *how, size_t size)
{
	bool makes = how->flags & O_EXCL && strstr(path, "/notice.");

	if (makes)
		usleep(20000);
	return counted(real.openat2(dir, path, how, size), makes ? EEXIST : 0);
}

static int rank(void *arg)
{
	int me = *(int *)arg;
	struct lfile l = lopen("f", O_RDWR);

	real = sys;
	sys.fcntl = counted_fcntl;
	sys.mkdirat = slow_mkdirat;
	sys.openat2 = counted_openat2;
	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&shared->ready, __ATOMIC_SEQ_CST) < RANKS)
		usleep(100);
	return lfill(&l, (off_t)me * LEN, LEN, me) == LEN && !lclose(&l) ? 0 : 1;
}

Test(near_turn, one_of_a_host_asks_for_what_all_need)
{
	int who[RANKS];
	pid_t ranks[RANKS];
	struct lfile l = made("g");

	/* The first log of all makes the place: until then all go at once. */
	cr_assert_eq(lfill(&l, 0, LEN, 0), LEN);
	cr_assert_eq(lclose(&l), 0);
	cr_assert_eq(lunlink("g"), 0);
	l = made("f");
	cr_assert_eq(lclose(&l), 0);
	for (int i = 0; i < RANKS; i++) {
		who[i] = i;
		ranks[i] = start_child(rank, &who[i]);
	}
	for (int i = 0; i < RANKS; i++)
		cr_assert_eq(wait_child(ranks[i]), 0);
	/* One: who has made the container takes its notice for missing. */
	cr_assert_leq(shared->refused, 1);
	cr_assert_eq(near_count("data."), RANKS);
	l = lopen("f", O_RDONLY);
	for (int i = 0; i < RANKS; i++)
		cr_assert_eq(lcheck(&l, (off_t)i * LEN, LEN, i), 0);
	cr_assert_eq(lclose(&l), 0);
}

static int drain_it(void *arg)
{
	struct plfs_drain d = { 0 };

	(void)arg;
	return ldrain("f", &d) || !d.nr_logs;
}

static int write_once_more(void *arg)
{
	struct lfile l = lopen("f", O_RDWR);
	ssize_t n = lfill(&l, 0, LEN, 2);

	(void)arg;
	lclose(&l);
	return n == -EIO ? 0 : 1;
}

/* All of it is at home, where somebody removed it: a write is an error, and leaves nothing near. */
Test(near_turn, for_a_file_that_was_purged_nothing_is_made)
{
	char line[PATH_MAX + 100];
	struct lfile l = made("f");

	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	cr_assert_eq(lclose(&l), 0);
	cr_assert_eq(in_child(drain_it, NULL), 0);
	cr_assert_eq(near_count("near."), 0);
	snprintf(line, sizeof(line), "rm -rf %s/.plfs/[0-9a-f]*/*/*", scratch);
	cr_assert_eq(system(line), 0);
	cr_assert_eq(in_child(write_once_more, NULL), 0);
	cr_assert_eq(near_count("near."), 0);
	cr_assert_eq(near_count("data."), 0);
}

static int place_is_of_backend(void *arg, const char *top, const char *path)
{
	int fd = open(top, O_RDONLY | O_DIRECTORY);

	(void)path;
	*(bool *)arg = fd >= 0 && origin_is(&lpath("f", (char[PATH_MAX]){ 0 })->store, fd, ".");
	close(fd);
	return 0;
}

/* Also of a backend that had no file before, whose format file is made by the first. */
Test(near_turn, the_place_says_whose_it_is)
{
	struct lfile l = made("f");
	bool is = false;

	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	cr_assert_eq(lclose(&l), 0);
	cr_assert_eq(plfs_places_in(near_dir, place_is_of_backend, &is), 0);
	cr_assert(is);
}

/* ---- turns ---- */

static struct store *home(void)
{
	char path[PATH_MAX];

	return &lpath("f", path)->store;
}

static int take_and_die(void *arg)
{
	(void)arg;
	if (place_turn_take(home(), 7) < 0)
		return 1;
	raise(SIGKILL);
	return 1;
}

static int take_another(void *arg)
{
	int turn = place_turn_take(home(), 8);

	(void)arg;
	place_turn_end(&turn);
	return 0;
}

static int take_later(void *arg)
{
	int turn;

	(void)arg;
	__atomic_store_n(&shared->ready, 1, __ATOMIC_SEQ_CST);
	turn = place_turn_take(home(), 7);
	__atomic_store_n(&shared->ready, 2, __ATOMIC_SEQ_CST);
	place_turn_end(&turn);
	return turn < 0 ? 0 : 1;
}

static void make_place(void)
{
	struct lfile l = made("f");

	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	cr_assert_eq(lclose(&l), 0);
}

Test(near_turn, who_is_killed_has_ended_his)
{
	int turn;

	make_place();
	cr_assert_eq(in_child(take_and_die, NULL), 256 + SIGKILL);
	turn = place_turn_take(home(), 7);
	cr_assert_geq(turn, 0);
	place_turn_end(&turn);
	cr_assert_lt(turn, 0);
}

Test(near_turn, other_matters_do_not_wait)
{
	int turn;

	make_place();
	turn = place_turn_take(home(), 7);
	cr_assert_geq(turn, 0);
	cr_assert_eq(in_child(take_another, NULL), 0);
	place_turn_end(&turn);
}

Test(near_turn, the_next_waits)
{
	pid_t next;
	int turn;

	make_place();
	turn = place_turn_take(home(), 7);
	next = start_child(take_later, NULL);
	while (!__atomic_load_n(&shared->ready, __ATOMIC_SEQ_CST))
		usleep(1000);
	usleep(20000);
	cr_assert_eq(__atomic_load_n(&shared->ready, __ATOMIC_SEQ_CST), 1);
	place_turn_end(&turn);
	cr_assert_eq(wait_child(next), 0);
	cr_assert_eq(shared->ready, 2);
}
