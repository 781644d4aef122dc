/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Leases: who ends whose, what a process leaves when it is killed; and what they are for: the later of two
 * writes by processes of one host wins, however soon it comes.
 */
#include "test/lib/leases.h"
#include "test/lib/scratch.h"

#include "core/dropping/lease.h"
#include "core/base/stamp.h"
#include "core/store/posix.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <sys/mman.h>

static struct store store;

static void table_setup(void)
{
	scratch_dir();
	guard_handle_faults();
	if (store_posix_open(&store, scratch))
		die("store");
}

TestSuite(lease, .init = table_setup, .fini = scratch_remove, .timeout = 60);
TestSuite(later_write, .init = scratch_setup, .fini = scratch_remove, .timeout = 300);

static uint64_t begin(struct lease *l, uint64_t off, uint64_t first, uint64_t len)
{
	struct index_pattern range = index_pattern_range(off, first), p = index_pattern_range(off, len);

	return lease_begin(l, &range, len ? &p : NULL);
}

Test(lease, ends_when_another_meets_it_and_only_then)
{
	struct lease a, b;

	take_part(&store, &a);
	take_part(&store, &b);
	cr_assert(!lease_is_held(&a) && !lease_is_lost(&a));
	begin(&a, 0, 10, 1000);
	cr_assert(lease_is_held(&a));
	begin(&b, 1000, 10, 1000);
	cr_assert(lease_is_held(&a) && lease_is_held(&b));
	begin(&b, 999, 10, 1000);
	cr_assert(!lease_is_held(&a) && lease_is_lost(&a) && lease_is_held(&b));
	begin(&a, 0, 10, 1000);
	cr_assert(lease_is_held(&a) && !lease_is_held(&b));
	lease_end(&a);
	cr_assert(!lease_is_held(&a) && !lease_is_lost(&a));
	lease_close(&a);
	lease_close(&b);
}

Test(lease, is_ended_by_a_write_that_takes_none)
{
	struct lease a, b;

	take_part(&store, &a);
	take_part(&store, &b);
	begin(&a, 500, 10, 1000);
	begin(&b, 0, 500, 0);
	cr_assert(lease_is_held(&a));
	begin(&b, 0, 501, 0);
	cr_assert(!lease_is_held(&a) && !lease_is_held(&b) && !lease_is_lost(&b));
	lease_close(&a);
	lease_close(&b);
}

static int nr_short; /* so many maps are of a file that ends before its table */

static void *map_of_a_moment(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	void *p;

	if (nr_short-- <= 0)
		return mmap(addr, len, prot, flags, fd, off);
	fd = memfd_create("short", 0);
	cr_assert_eq(ftruncate(fd, LEASE_TABLE_OFF), 0);
	p = mmap(addr, len, prot, flags, fd, off);
	close(fd);
	return p;
}

static int open_when_short(bool remote, int nr)
{
	char path[PATH_MAX];
	struct lease l;
	int fd, ret;

	snprintf(path, sizeof(path), "%s/short", scratch);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	sys.mmap = map_of_a_moment;
	store.remote = remote;
	nr_short = nr;
	ret = lease_open(&l, &store, fd);
	if (!ret) {
		cr_assert(l.map);
		begin(&l, 0, 10, 1000);
		cr_assert(lease_is_held(&l));
		lease_close(&l);
	}
	close(fd);
	return ret;
}

Test(lease, is_had_where_a_client_believes_for_a_moment_that_the_table_has_no_room)
{
	cr_assert_eq(open_when_short(true, 3), 0);
	cr_assert_eq(open_when_short(true, 1000), -ENOSPC);
	cr_assert_eq(open_when_short(false, 1), -ENOSPC);
}

Test(lease, that_is_closed_or_given_back_is_in_nobodys_way)
{
	struct lease a, b, c;

	take_part(&store, &a);
	take_part(&store, &b);
	begin(&a, 0, 10, 1000);
	begin(&b, 5000, 10, 1000);
	cr_assert_eq(lease_next_other(&a, 10), 5000);
	cr_assert_eq(lease_next_other(&a, 5001), UINT64_MAX);
	lease_close(&b);
	cr_assert_eq(lease_next_other(&a, 10), UINT64_MAX);
	take_part(&store, &c);
	begin(&c, 5000, 10, 1000);
	cr_assert(lease_is_held(&a) && lease_is_held(&c), "in the slot that was free");
	lease_close(&a);
	lease_close(&c);
}

Test(lease, stamps_of_all_rise_though_one_has_seen_the_future)
{
	struct lease a, b;
	uint64_t far = stamp_next() + 3600000000000, last = 0;
	int pipes[2];
	pid_t child;

	take_part(&store, &a);
	take_part(&store, &b);
	cr_assert_eq(pipe(pipes), 0);
	child = fork_child();
	if (!child) { /* has seen it, and this process has not */
		uint64_t stamps[10];

		lease_abandon(&a);
		stamp_seen(far);
		for (int i = 0; i < 10; i++)
			stamps[i] = begin(&b, 0, 10, 10);
		_exit(write(pipes[1], stamps, sizeof(stamps)) != sizeof(stamps));
	}
	for (int i = 0; i < 10; i++) {
		uint64_t stamp;

		cr_assert_eq(read(pipes[0], &stamp, sizeof(stamp)), sizeof(stamp));
		cr_assert_gt(stamp, last);
		cr_assert_gt(stamp, far);
		last = stamp;
	}
	cr_assert_eq(wait_child(child), 0);
	cr_assert_gt(begin(&a, 0, 10, 10), last);
	cr_assert_gt(lease_stamp(&a), last);
}

Test(lease, a_child_lets_go_of_its_parents_without_ending_it)
{
	struct lease a;
	pid_t child;

	take_part(&store, &a);
	begin(&a, 0, 10, 1000);
	child = fork_child();
	if (!child) {
		lease_abandon(&a);
		_exit(0);
	}
	cr_assert_eq(wait_child(child), 0);
	cr_assert(lease_is_held(&a));
	lease_close(&a);
}

Test(lease, slots_of_the_dead_are_taken_when_there_are_no_others)
{
	struct lease l[LEASE_SLOTS], a;
	pid_t child = fork_child();

	if (!child) {
		for (int i = 0; i < LEASE_SLOTS - 1; i++) {
			take_part(&store, &l[i]);
			begin(&l[i], 0, 10, 0);
		}
		begin(&l[3], 0, 10, 1000);
		kill(getpid(), SIGKILL);
	}
	cr_assert_eq(wait_child(child), 256 + SIGKILL);
	for (int i = 0; i < LEASE_SLOTS; i++) {
		take_part(&store, &l[i]);
		begin(&l[i], (uint64_t)i * 100, 10, 100);
		cr_assert(lease_is_held(&l[i]), "%d", i);
	}
	take_part(&store, &a); /* and now there is none */
	begin(&a, 0, 150, 1000);
	cr_assert(!lease_is_held(&a) && !lease_is_lost(&a));
	cr_assert(!lease_is_held(&l[0]) && !lease_is_held(&l[1]) && lease_is_held(&l[2]));
	lease_close(&a);
	for (int i = 0; i < LEASE_SLOTS; i++)
		lease_close(&l[i]);
}

Test(lease, is_not_held_when_the_table_was_cut)
{
	struct lease a, b;
	char path[PATH_MAX];

	take_part(&store, &a);
	take_part(&store, &b);
	begin(&a, 0, 10, 1000);
	snprintf(path, sizeof(path), "%s/notice", scratch);
	cr_assert_eq(truncate(path, 0), 0);
	begin(&b, 2000, 10, 1000);
	cr_assert(!lease_is_held(&a));
	begin(&a, 0, 10, 1000);
	cr_assert(!lease_is_held(&a));
	lease_close(&a);
	lease_close(&b);
}

/* Another process has longer waited for its processor than the rest took to fill a page with slots. */
static struct lease meanwhile[LEASE_SLOTS];
static unsigned nr_meanwhile;
static int (*truncate_really)(struct store *s, int h, uint64_t len);

static int truncate_late(struct store *s, int h, uint64_t len)
{
	while (nr_meanwhile < 70)
		take_part(&store, &meanwhile[nr_meanwhile++]);
	return truncate_really(s, h, len);
}

Test(lease, slots_are_not_cut_off_by_a_process_that_makes_room_late)
{
	struct store_ops ops = *store.ops;
	struct store slow = store;
	struct lease late;
	bool made;
	int h = store_open_or_make(&store, "notice", O_RDWR, 0644, &made);

	truncate_really = ops.truncate;
	ops.truncate = truncate_late;
	slow.ops = &ops;
	cr_assert_eq(lease_open(&late, &slow, h), 0);
	store_close(&store, &h);
	for (unsigned i = 0; i < nr_meanwhile; i++) {
		begin(&meanwhile[i], i * 100, 10, 100);
		cr_assert(lease_is_held(&meanwhile[i]), "%u", i);
	}
	begin(&late, 0, 10000, 0);
	for (unsigned i = 0; i < nr_meanwhile; i++) {
		cr_assert(!lease_is_held(&meanwhile[i]), "%u", i);
		lease_close(&meanwhile[i]);
	}
	lease_close(&late);
}

/* As after a crash of the machine, or by who wants others to divide by zero. */
Test(lease, that_makes_no_sense_is_ended_like_one_that_meets)
{
	static const struct index_pattern nonsense[] = {
		{ .off = 0, .length = 10, .stride = 0, .count = 5, .outer_stride = 0, .outer_count = 1 },
		{ .off = 0, .length = 10, .stride = 0, .count = 0, .outer_stride = 0, .outer_count = 0 },
		{ .off = 0, .length = 10, .stride = 100, .count = 5, .outer_stride = 0, .outer_count = 7 },
		{ .off = 1000,
		  .length = UINT64_MAX,
		  .stride = 0,
		  .count = 1,
		  .outer_stride = 0,
		  .outer_count = 1 },
		{ .off = 5,
		  .length = 1,
		  .stride = UINT64_MAX / 2,
		  .count = UINT64_MAX,
		  .outer_stride = 1,
		  .outer_count = UINT64_MAX },
	};
	struct lease a, b;

	take_part(&store, &a);
	take_part(&store, &b);
	for (size_t i = 0; i < sizeof(nonsense) / sizeof(*nonsense); i++) {
		begin(&a, 5, 10, 1000);
		a.slot->pattern = nonsense[i];
		begin(&b, 7, 10000, 0);
		cr_assert(lease_is_lost(&a), "%zu", i);
		begin(&a, 5, 10, 1000);
		a.slot->pattern = nonsense[i];
		lease_begin(&b,
			    &(struct index_pattern){ .off = 7,
						     .length = 3,
						     .stride = 30,
						     .count = 9,
						     .outer_stride = 600,
						     .outer_count = 4 },
			    NULL);
		cr_assert(lease_is_lost(&a), "%zu", i);
	}
	lease_close(&a);
	lease_close(&b);
}

/* ---- the later write wins ---- */

#define SIZE 4096
#define TURNS 3000

struct ring {
	unsigned turn; /* whose it is: modulo the number of processes */
	unsigned nr, seed;
	unsigned char want[SIZE];
};

static struct ring *ring;

static unsigned any(unsigned *state, unsigned n)
{
	*state = *state * 1103515245 + 12345;
	return (*state >> 8) % n;
}

/*
 * What turn @i writes: runs that go on, patches that cross them, and anything at all; by the process whose
 * turn it is.
 */
static void plan(unsigned i, size_t *off, size_t *len)
{
	unsigned me = i % ring->nr, step = i / ring->nr, state = ring->seed + i / 200;
	unsigned way = any(&state, 6), stride = 1 + any(&state, 60), own = ring->seed * 7919 + i;

	*len = 1 + any(&state, 40);
	switch ((way + me) % 6) {
	case 0: *off = step * stride % SIZE; break;
	case 1: *off = (me * *len + step * (*len * ring->nr)) % SIZE; break;
	case 2: *off = (step * *len) % SIZE; break;
	case 3: *off = SIZE - 1 - step * stride % SIZE; break;
	case 4: *off = any(&own, 8) ? (me * 512 + step * *len) % SIZE : 0, *len = *off ? *len : SIZE; break;
	default: *off = any(&own, SIZE), *len = 1 + any(&own, 200);
	}
	*len = *off + *len > SIZE ? SIZE - *off : *len;
}

static int take_turns(void *arg)
{
	unsigned me = (unsigned)(size_t)arg;
	struct lfile l = lopen("a", O_RDWR);
	unsigned char buf[SIZE];

	for (unsigned i = me; i < TURNS; i += ring->nr) {
		size_t off, len;

		plan(i, &off, &len);
		memset(buf, (int)(i % 255 + 1), len);
		for (unsigned spins = 0; __atomic_load_n(&ring->turn, __ATOMIC_ACQUIRE) != i; spins++)
			if (spins > 1000)
				sched_yield();
		if (plfs_pwrite(l.f, buf, len, (off_t)off) != (ssize_t)len)
			return 1;
		memset(ring->want + off, (int)(i % 255 + 1), len);
		__atomic_store_n(&ring->turn, i + 1, __ATOMIC_RELEASE);
	}
	return lclose(&l);
}

static void ring_of(unsigned nr, unsigned seed)
{
	unsigned char got[SIZE];
	pid_t pids[8];
	struct lfile l;

	memset(ring, 0, sizeof(*ring));
	ring->nr = nr;
	ring->seed = seed;
	l = made("a");
	cr_assert_eq(plfs_truncate(l.f, SIZE), 0);
	for (unsigned i = 0; i < nr; i++)
		pids[i] = start_child(take_turns, (void *)(size_t)i);
	for (unsigned i = 0; i < nr; i++)
		cr_assert_eq(wait_child(pids[i]), 0);
	cr_assert_eq(plfs_refresh(l.f), 0);
	cr_assert_eq(plfs_pread(l.f, got, SIZE, 0), SIZE);
	for (size_t i = 0; i < SIZE; i++)
		cr_assert_eq(got[i], ring->want[i], "%u processes, seed %u, byte %zu: %u, not %u", nr, seed,
			     i, got[i], ring->want[i]);
	lclose(&l);
	cr_assert_eq(lunlink("a"), 0);
}

/* Nothing lies between two turns but a word in memory: no release, no acquire, some hundred nanoseconds. */
Test(later_write, wins_however_soon_it_comes)
{
	ring = mmap(NULL, sizeof(*ring), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (unsigned seed = 0; seed < 12; seed++)
		ring_of(2 + seed % 3, seed);
}

static int truncate_from_the_future(void *arg)
{
	struct lfile l;

	stamp_seen(stamp_next() + 3600000000000); /* as another file says, from a host whose clock is ahead */
	l = lopen("a", O_RDWR);
	if (plfs_truncate(l.f, (off_t)(size_t)arg))
		return 1;
	return lclose(&l);
}

static int write_from_the_future(void *arg)
{
	struct lfile l;

	(void)arg;
	stamp_seen(stamp_next() + 3600000000000);
	l = lopen("a", O_RDWR);
	if (plfs_pwrite(l.f, "futures", 7, 0) != 7)
		return 1;
	return lclose(&l);
}

static void after_truncation_to(size_t size)
{
	struct lfile l = made("a");
	char got[100];

	cr_assert_eq(plfs_pwrite(l.f, "the first and longer one", 24, 0), 24);
	cr_assert_eq(wait_child(start_child(truncate_from_the_future, (void *)size)), 0);
	cr_assert_eq(plfs_pwrite(l.f, "second", 6, 0), 6);
	cr_assert_eq(plfs_pread(l.f, got, sizeof(got), 0), 6);
	cr_assert_eq(memcmp(got, "second", 6), 0);
	lclose(&l);
	cr_assert_eq(lunlink("a"), 0);
}

Test(later_write, is_later_than_a_truncation_by_a_process_ahead_of_the_clock)
{
	after_truncation_to(3);
	after_truncation_to(0);
}

Test(later_write, is_cut_by_a_later_truncation_though_its_stamp_is_ahead)
{
	struct lfile l = made("a");

	cr_assert_eq(wait_child(start_child(write_from_the_future, NULL)), 0);
	cr_assert_eq(plfs_truncate(l.f, 0), 0);
	cr_assert_eq(plfs_size(l.f), 0);
	cr_assert_eq(plfs_pwrite(l.f, "now", 3, 0), 3);
	cr_assert_eq(plfs_size(l.f), 3);
	lclose(&l);
	l = lopen("a", O_RDWR);
	cr_assert_eq(plfs_size(l.f), 3);
	lclose(&l);
}
