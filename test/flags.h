/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flags in memory that the processes of a test share, by which one of them waits for another.
 */
#ifndef TEST_FLAGS_H
#define TEST_FLAGS_H

#include <sched.h>
#include <sys/mman.h>

static struct {
	volatile int started, claimed, moved, done;
} *shared;

static void share(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static void await(volatile int *flag)
{
	while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void raise_flag(volatile int *flag)
{
	__atomic_store_n(flag, 1, __ATOMIC_RELEASE);
}

#endif
