/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that open, read, write and close a few files, each again and again, beside children that do: the
 * maps of a file are parked and taken by all of them. For the thread sanitizer, as file.c.
 */
#include "test/lib/scratch.h"

#include <pthread.h>

#define NR_THREADS 12
#define NR_FILES 3
#define SLOT_LEN 100

static int rounds = 100;

static void check(bool ok, const char *what, int no)
{
	errno = 0;
	if (!ok)
		die("race_parked: thread %d: %s", no, what);
}

static struct lfile open_one(int i)
{
	char name[8];

	snprintf(name, sizeof(name), "f%d", i % NR_FILES);
	return made(name);
}

/* Each thread has a slot of each file to itself, in which it finds what it wrote last. */
static void *lives(void *arg)
{
	int no = *(int *)arg;
	unsigned last[NR_FILES] = { 0 };

	for (int i = 0; i < rounds; i++) {
		unsigned *round = &last[(i + no) % NR_FILES];
		struct lfile l = open_one(i + no);

		if (*round)
			check(!lcheck(&l, no * SLOT_LEN, SLOT_LEN, *round), "stale", no);
		if (i % 4 != 3) {
			*round = (unsigned)i + 1;
			check(lfill(&l, no * SLOT_LEN, SLOT_LEN, *round) == SLOT_LEN, "short write", no);
			check(i % 7 || !plfs_sync(l.f), "sync", no);
		}
		check(!lclose(&l), "close", no);
	}
	return NULL;
}

static int child(void *arg)
{
	for (int i = 0; i < 10; i++) {
		struct lfile l = open_one(i);
		char c;

		if (plfs_pread(l.f, &c, 1, 0) < 0 ||
		    plfs_pwrite(l.f, "child", 5, *(int *)arg * SLOT_LEN) != 5 || lclose(&l))
			return 1;
	}
	return 0;
}

static void *forks(void *arg)
{
	for (int i = 0; i < 10; i++)
		check(!in_child(child, arg), "a child", *(int *)arg);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[NR_THREADS + 1];
	int no[NR_THREADS + 1];

	if (argc > 1)
		rounds = atoi(argv[1]);
	scratch_setup();
	for (int i = 0; i <= NR_THREADS; i++) {
		no[i] = i;
		check(!pthread_create(&threads[i], NULL, i < NR_THREADS ? lives : forks, &no[i]), "thread",
		      i);
	}
	for (int i = 0; i <= NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	scratch_remove();
	return 0;
}
