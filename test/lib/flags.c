/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Three functions on a struct in shared memory.
 */
#include "test/lib/flags.h"

#include <sched.h>
#include <sys/mman.h>

struct flags *shared;

void share(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

void await(volatile int *flag)
{
	while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
		sched_yield();
}

void raise_flag(volatile int *flag)
{
	__atomic_store_n(flag, 1, __ATOMIC_RELEASE);
}
