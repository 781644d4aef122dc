/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Logs that are begun while a drain ends: it removes near.HOST and the empty directories, and a writer wants
 * them. Thousands of times, at random.
 */
#include "test/lib/near.h"
#include "test/lib/sanitized.h"

#include <criterion/criterion.h>

#include <sys/mman.h>

#define LEN 300
#define WRITERS 2

static int *over; /* shared */

static void setup(void)
{
	scratch_in_memory = true;
	near_setup("");
	over = mmap(NULL, sizeof(*over), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

TestSuite(near_begin, .init = setup, .fini = near_remove, .timeout = 600);

static long nr_turns(void)
{
	const char *scale = getenv("SCALE");

	if (is_sanitized())
		return 300; /* each takes several times as long */
	return 1000 * (scale ? atol(scale) : 1);
}

/* Each time another piece, and each process its own: all that was written stays to be read. */
static int write_often(void *arg)
{
	int me = *(int *)arg;

	for (long i = 0; i < nr_turns(); i++) {
		struct lfile l = lopen("f", O_RDWR | O_CREAT);
		off_t off = (i * WRITERS + me) * LEN;

		if (lfill(&l, off, LEN, 1) != LEN || lcheck(&l, off, LEN, 1) || lclose(&l)) {
			fprintf(stderr, "writer %d, turn %ld\n", me, i);
			return 1;
		}
	}
	return 0;
}

static int drain_often(void *arg)
{
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("f", path);

	(void)arg;
	for (bool last = false; !last;) {
		struct plfs_drain d = { .closed_only = true };
		int ret;

		last = __atomic_load_n(over, __ATOMIC_ACQUIRE);
		ret = plfs_drain_file(m, AT_FDCWD, path, &d);
		if (d.nr_lost || (ret && ret != -ENOENT)) {
			fprintf(stderr, "drain: %s\n", strerror(-ret));
			return 1;
		}
	}
	return 0;
}

Test(near_begin, a_log_that_is_begun_while_a_drain_ends_is_whole)
{
	int who[WRITERS] = { 0, 1 };
	pid_t writers[WRITERS], drains[2];
	struct lfile l;

	for (int i = 0; i < 2; i++)
		drains[i] = start_child(drain_often, NULL);
	for (int i = 0; i < WRITERS; i++)
		writers[i] = start_child(write_often, &who[i]);
	for (int i = 0; i < WRITERS; i++)
		cr_assert_eq(wait_child(writers[i]), 0);
	__atomic_store_n(over, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(wait_child(drains[i]), 0);
	cr_assert_eq(near_count("data."), 0);
	cr_assert_eq(near_count("near."), 0);
	l = lopen("f", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, (size_t)nr_turns() * WRITERS * LEN, 1), 0);
	cr_assert_eq(lclose(&l), 0);
}
