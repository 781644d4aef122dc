/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process's clock for overwrites.
 */
#include "core/base/stamp.h"

#include "core/base/sys.h"

static uint64_t last_stamp;

/* What a damaged or hostile index says must not push ours to the end of time: 36 years are kept free. */
#define STAMP_SEEN_MAX (STAMP_MAX - (1ULL << 60))

/*
 * A floor that processes share is moved at least so often: so far back a clock can be set without their
 * noticing.
 */
#define FLOOR_LAG_NS 10000000

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	sys.clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/*
 * The next stamp, behind @floor too; *@now: the clock. The exchange keeps later loads behind the look at the
 * clock.
 */
static uint64_t next_behind(uint64_t floor, uint64_t *now)
{
	uint64_t last = __atomic_load_n(&last_stamp, __ATOMIC_RELAXED), next;

	*now = clock_ns(CLOCK_REALTIME);
	do {
		next = *now > max_u64(last, floor) ? *now : max_u64(last, floor) + 1;
	} while (!__atomic_compare_exchange_n(&last_stamp, &last, next, true, __ATOMIC_SEQ_CST,
					      __ATOMIC_RELAXED));
	return next;
}

uint64_t stamp_next(void)
{
	uint64_t now;

	return next_behind(0, &now);
}

uint64_t stamp_next_behind(uint64_t *floor_ns)
{
	uint64_t now, floor = __atomic_load_n(floor_ns, __ATOMIC_ACQUIRE), next;

	if (unlikely(floor >= STAMP_SEEN_MAX))
		floor = 0;
	next = next_behind(floor, &now);
	while ((next > now || next > floor + FLOOR_LAG_NS) && next > floor &&
	       !__atomic_compare_exchange_n(floor_ns, &floor, next, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
	return next;
}

void stamp_seen(uint64_t stamp_ns)
{
	uint64_t last = __atomic_load_n(&last_stamp, __ATOMIC_RELAXED);

	while (stamp_ns > last && stamp_ns < STAMP_SEEN_MAX &&
	       !__atomic_compare_exchange_n(&last_stamp, &last, stamp_ns, true, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED))
		;
}

uint64_t stamp_coarse_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC_COARSE);
}

uint64_t stamp_fine_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}
