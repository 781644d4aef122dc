/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPICH over UCX polls without end while it waits: ranks that share a core keep each other from running.
 * Linked into a program, this sleeps for a moment after each poll that found nothing.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
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
