/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that compute, one for each processor: the same work each time, of about a second for each unit.
 * Prints the seconds from the common start to the end of the slowest.
 *
 *     bench_compute UNITS
 */
#include <sys/mman.h>
#include <sys/wait.h>

#include "../lib/job.h"

#define WORDS_A_UNIT 500000000UL

static struct shared {
	int go;
	double end_s[1024];
	uint64_t result;
} *shared;

static void compute(int rank, unsigned long nr)
{
	uint64_t x = (uint64_t)rank;

	while (!__atomic_load_n(&shared->go, __ATOMIC_ACQUIRE))
		usleep(100);
	for (unsigned long i = 0; i < nr; i++)
		x = mix64(x);
	__atomic_xor_fetch(&shared->result, x, __ATOMIC_RELAXED);
	shared->end_s[rank] = now_s();
	_exit(0);
}

int main(int argc, char **argv)
{
	long nr_ranks = sysconf(_SC_NPROCESSORS_ONLN);
	double start, last = 0;

	if (argc != 2 || nr_ranks < 1 || nr_ranks > 1024)
		die("usage: bench_compute UNITS");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		die("mmap");
	for (int r = 0; r < nr_ranks; r++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (!pid)
			compute(r, strtoul(argv[1], NULL, 0) * WORDS_A_UNIT);
	}
	usleep(50000);
	start = now_s();
	__atomic_store_n(&shared->go, 1, __ATOMIC_RELEASE);
	while (wait(NULL) > 0)
		;
	for (int r = 0; r < nr_ranks; r++)
		last = shared->end_s[r] > last ? shared->end_s[r] : last;
	printf("%.3f\n", last - start);
	return 0;
}
