/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks of a host that close a file at once, on a store that hosts share: few of them publish
 * (core/dropping/published.h), and for other hosts it is as if each did.
 */
#include "test/lib/calls.h"
#include "test/lib/scratch.h"

#include "core/backend/mount.h"
#include "core/base/sys.h"
#include "core/file/file.h"

#include <criterion/criterion.h>

#include <sys/mman.h>
#include <unistd.h>

#define RANKS 6
#define LEN 100000

static struct {
	int ready, go, waiting;
	int released[RANKS]; /* pieces of each */
	int published; /* how often the stub's time, or its length, was set by a close */
	bool fails;
} *shared;

static void setup(void)
{
	char path[PATH_MAX];

	scratch_setup();
	lpath("f", path)->store.remote = true;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

TestSuite(released, .init = setup, .fini = scratch_remove, .timeout = 60);

static struct sys_table real;
static bool closing, leads, waits;

static void wait_until(const int *number, int at_least)
{
	while (__atomic_load_n(number, __ATOMIC_SEQ_CST) < at_least)
		usleep(1000);
}

/* The first publication takes until all others wait. */
static int publishes(void)
{
	if (!closing)
		return 0;
	__atomic_add_fetch(&shared->published, 1, __ATOMIC_SEQ_CST);
	if (leads)
		wait_until(&shared->waiting, RANKS - 1);
	errno = EIO;
	return leads && shared->fails ? -1 : 0;
}

/* A sync that marks the stub sets its time back to what it was. */
static int futimens_of_rank(int fd, const struct timespec ts[2])
{
	return ts && ts[1].tv_nsec == UTIME_NOW && publishes() ? -1 : real.futimens(fd, ts);
}

static int fallocate_of_rank(int fd, int mode, off_t off, off_t len)
{
	return !(mode & FALLOC_FL_KEEP_SIZE) && off && publishes() ? -1 : real.fallocate(fd, mode, off, len);
}

static int nanosleep_of_rank(const struct timespec *want, struct timespec *left)
{
	if (closing && !waits)
		__atomic_add_fetch(&shared->waiting, 1, __ATOMIC_SEQ_CST);
	waits |= closing;
	return real.nanosleep(want, left);
}

struct rank {
	int me;
	int (*release)(struct lfile *l);
};

static int lclose_of_failing(struct lfile *l)
{
	int ret = lclose(l);

	return leads ? 0 : ret;
}

static int sync_it(struct lfile *l)
{
	int ret = plfs_sync(l->f);

	closing = false;
	return lclose(l) ? 1 : ret;
}

static int rank(void *arg)
{
	const struct rank *r = arg;
	struct lfile l = lopen("f", O_RDWR);
	int ret;

	real = sys;
	sys.futimens = futimens_of_rank;
	sys.fallocate = fallocate_of_rank;
	sys.nanosleep = nanosleep_of_rank;
	if (lfill(&l, (off_t)r->me * LEN, LEN, (unsigned)r->me) != LEN)
		return 1;
	/* whose bytes end last, unless it fails */
	leads = r->me == (shared->fails ? 0 : RANKS - 1);
	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_SEQ_CST);
	wait_until(&shared->go, 1);
	if (!leads)
		wait_until(&shared->published, 1);
	closing = true;
	ret = r->release(&l);
	closing = false;
	return ret ? 2 : 0;
}

static void all_release(int (*release)(struct lfile *l))
{
	struct lfile l = made("f");
	struct rank ranks[RANKS];
	struct timespec before;
	pid_t pids[RANKS];
	struct stat st;

	cr_assert_eq(lclose(&l), 0);
	for (int i = 0; i < RANKS; i++) {
		ranks[i] = (struct rank){ i, release };
		pids[i] = start_child(rank, &ranks[i]);
	}
	wait_until(&shared->ready, RANKS);
	clock_gettime(CLOCK_REALTIME_COARSE, &before);
	__atomic_store_n(&shared->go, 1, __ATOMIC_SEQ_CST);
	for (int i = 0; i < RANKS; i++)
		cr_assert_eq(wait_child(pids[i]), 0, "rank %d", i);
	cr_assert_eq(stat_size("f"), RANKS * LEN);
	l = lopen("f", O_RDONLY);
	cr_assert_eq(fstat(l.fd, &st), 0);
	cr_assert(st.st_mtim.tv_sec > before.tv_sec ||
		  (st.st_mtim.tv_sec == before.tv_sec && st.st_mtim.tv_nsec >= before.tv_nsec));
	for (int i = 0; i < RANKS; i++)
		cr_assert_eq(lcheck(&l, (off_t)i * LEN, LEN, (unsigned)i), 0);
	cr_assert_eq(lclose(&l), 0);
}

/* The second one publishes what was released during the first: for all that wait. */
Test(released, by_a_close_with_two_publications)
{
	all_release(lclose);
	cr_assert_eq(shared->published, 2, "%d", shared->published);
}

/* What the others wait for comes to nothing, and each publishes its end, unless a later one is there. */
Test(released, also_if_the_first_fails)
{
	shared->fails = true;
	all_release(lclose_of_failing);
	cr_assert_geq(shared->published, 2);
}

Test(released, by_a_sync_with_two_publications)
{
	all_release(sync_it);
	cr_assert_eq(shared->published, 2, "%d", shared->published);
}

/* ---- a release in the midst of another ---- */

static int write_and_stop(void *arg)
{
	struct lfile l = lopen("f", O_RDWR);

	if (lfill(&l, 0, LEN, 1) != LEN)
		return 1;
	calls_intercept();
	calls_left = *(long *)arg;
	on_call = stop_at_last;
	return lclose(&l) ? 2 : 0;
}

static int write_more(void *arg)
{
	struct lfile l = lopen("f", O_RDWR);

	(void)arg;
	return lfill(&l, LEN, LEN, 2) == LEN && !lclose(&l) ? 0 : 1;
}

/* On another host. @arg: not NULL: the first one's bytes are there as well. */
static int look(void *arg)
{
	struct lfile l;
	int ret;

	be_host("elsewhere");
	l = lopen("f", O_RDONLY);
	ret = stat_size("f") != 2 * LEN || lcheck(&l, LEN, LEN, 2) || (arg && lcheck(&l, 0, LEN, 1));
	return lclose(&l) || ret;
}

static bool is_touched_since(const struct timespec *then)
{
	char path[PATH_MAX];
	struct stat st;

	lpath("f", path);
	cr_assert_eq(stat(path, &st), 0);
	return st.st_mtim.tv_sec > then->tv_sec ||
	       (st.st_mtim.tv_sec == then->tv_sec && st.st_mtim.tv_nsec >= then->tv_nsec);
}

Test(released, is_seen_elsewhere_at_whichever_call_of_another_release)
{
	struct timespec before;
	bool stopped = true;
	int status;
	pid_t pid;

	for (long nr = 1; stopped; nr++) {
		struct lfile l = made("f");

		cr_assert_eq(lclose(&l), 0);
		pid = start_child(write_and_stop, &nr);
		cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
		stopped = WIFSTOPPED(status);
		clock_gettime(CLOCK_REALTIME_COARSE, &before);
		cr_assert_eq(in_child(write_more, NULL), 0);
		cr_assert_eq(in_child(look, NULL), 0, "call %ld", nr);
		cr_assert(is_touched_since(&before), "call %ld", nr);
		if (stopped) {
			kill(pid, SIGCONT);
			cr_assert_eq(wait_child(pid), 0);
		}
		cr_assert_eq(in_child(look, &nr), 0, "call %ld", nr);
		cr_assert_eq(lunlink("f"), 0);
	}
}

/* ---- releases beside each other ---- */

#define PIECES 60
#define PIECE_LEN 5000

static off_t off_of(int rank, int piece) { return ((off_t)piece * RANKS + rank) * PIECE_LEN; }

/* Piece by piece, each released by a close or by a sync. */
static int release_often(void *arg)
{
	int me = *(int *)arg;
	struct lfile l = { .fd = -1 };

	for (int i = 0; i < PIECES; i++) {
		bool closes = (i + me) % 3 == 0;

		if (l.fd < 0)
			l = lopen("f", O_RDWR);
		if (lfill(&l, off_of(me, i), PIECE_LEN, (unsigned)me) != PIECE_LEN ||
		    (closes ? lclose(&l) : plfs_sync(l.f)))
			return 1;
		if (closes)
			l.fd = -1;
		__atomic_store_n(&shared->released[me], i + 1, __ATOMIC_SEQ_CST);
	}
	return l.fd >= 0 && lclose(&l) ? 2 : 0;
}

/* What each has released before the file is opened is there, and the file is as long. */
static int look_often(void *arg)
{
	int nr[RANKS], last = 0;

	(void)arg;
	be_host("elsewhere");
	while (last < RANKS * PIECES) {
		struct lfile l;
		off_t end = 0;

		last = 0;
		for (int r = 0; r < RANKS; r++) {
			nr[r] = __atomic_load_n(&shared->released[r], __ATOMIC_SEQ_CST);
			last += nr[r];
			if (nr[r] && off_of(r, nr[r] - 1) + PIECE_LEN > end)
				end = off_of(r, nr[r] - 1) + PIECE_LEN;
		}
		l = lopen("f", O_RDONLY);
		if (stat_size("f") < end)
			return 1;
		for (int r = 0; r < RANKS; r++)
			for (int i = nr[r] > 3 ? nr[r] - 3 : 0; i < nr[r]; i++)
				if (lcheck(&l, off_of(r, i), PIECE_LEN, (unsigned)r))
					return 2;
		if (lclose(&l))
			return 3;
	}
	return 0;
}

Test(released, by_many_at_once_is_seen_elsewhere)
{
	struct lfile l = made("f");
	pid_t pids[RANKS], looks;
	int who[RANKS];

	cr_assert_eq(lclose(&l), 0);
	looks = start_child(look_often, NULL);
	for (int i = 0; i < RANKS; i++) {
		who[i] = i;
		pids[i] = start_child(release_often, &who[i]);
	}
	for (int i = 0; i < RANKS; i++)
		cr_assert_eq(wait_child(pids[i]), 0, "rank %d", i);
	cr_assert_eq(wait_child(looks), 0);
}
