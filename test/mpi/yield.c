/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What waits in MPI polls without end: ranks that share a core keep each other, and other tests, from
 * running. Linked into a program, this sleeps for a moment after each poll that found nothing: of MPICH over
 * UCX, and of Open MPI, which then calls sched_yield() (mpi_yield_when_idle).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <time.h>

unsigned ucp_worker_progress(void *worker);

unsigned ucp_worker_progress(void *worker)
{
	static unsigned (*real)(void *worker);
	const struct timespec moment = { .tv_nsec = 1000 };
	unsigned nr_events;

	if (!real)
		real = dlsym(RTLD_NEXT, "ucp_worker_progress");
	nr_events = real(worker);
	if (!nr_events)
		nanosleep(&moment, NULL);
	return nr_events;
}

int sched_yield(void)
{
	const struct timespec moment = { .tv_nsec = 50000 };

	nanosleep(&moment, NULL);
	return 0;
}
