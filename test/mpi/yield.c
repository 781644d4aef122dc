/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What waits in MPI polls without end: ranks that share a core keep each other, and other tests, from
 * running. Linked into a program, this sleeps for a moment after each poll that found nothing: of MPICH over
 * UCX, and of Open MPI, which then calls sched_yield() (mpi_yield_when_idle).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdint.h>
#include <time.h>

unsigned ucp_worker_progress(void *worker);

#define SHORTEST_NS 20000
#define LONGEST_NS 1000000

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

/* Polls that follow each other are of one wait: the longer that takes, the longer the sleep. */
static void sleep_longer(void)
{
	static __thread int64_t last_ns, sleep_ns;
	struct timespec moment = { 0 };

	sleep_ns = now_ns() - last_ns > 100000 ? SHORTEST_NS : sleep_ns * 5 / 4;
	if (sleep_ns > LONGEST_NS)
		sleep_ns = LONGEST_NS;
	moment.tv_nsec = (long)sleep_ns;
	nanosleep(&moment, NULL);
	last_ns = now_ns();
}

unsigned ucp_worker_progress(void *worker)
{
	static unsigned (*real)(void *worker);
	unsigned nr_events;

	if (!real)
		real = dlsym(RTLD_NEXT, "ucp_worker_progress");
	nr_events = real(worker);
	if (!nr_events)
		sleep_longer();
	return nr_events;
}

int sched_yield(void)
{
	sleep_longer();
	return 0;
}
