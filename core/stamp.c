/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process's clock for overwrites.
 */
#include "stamp.h"

#include "../index/record.h"
#include "sys.h"

static uint64_t last_stamp;

/* What a damaged or hostile index says must not push ours to the end of time: 36 years are kept free. */
#define STAMP_SEEN_MAX (INDEX_STAMP_MAX - (1ULL << 60))

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	sys.clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

uint64_t stamp_next(void)
{
	uint64_t now = clock_ns(CLOCK_REALTIME);
	uint64_t last = __atomic_load_n(&last_stamp, __ATOMIC_RELAXED);
	uint64_t next;

	do {
		next = now > last ? now : last + 1;
	} while (!__atomic_compare_exchange_n(&last_stamp, &last, next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return next;
}

void stamp_seen(uint64_t stamp_ns)
{
	uint64_t last = __atomic_load_n(&last_stamp, __ATOMIC_RELAXED);

	while (stamp_ns > last && stamp_ns < STAMP_SEEN_MAX &&
	       !__atomic_compare_exchange_n(&last_stamp, &last, stamp_ns, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

uint64_t stamp_coarse_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC_COARSE);
}
