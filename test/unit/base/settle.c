/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting for what another process is changing: how long, and how often.
 */
#include "core/base/settle.h"
#include "core/base/sys.h"

#include <criterion/criterion.h>

static time_t clock_s = 1000;
static unsigned long slept_ms;

static int clock_stands(clockid_t id, struct timespec *now)
{
	(void)id;
	*now = (struct timespec){ .tv_sec = clock_s };
	return 0;
}

static int count(const struct timespec *pause, struct timespec *left)
{
	(void)left;
	cr_assert(!pause->tv_sec && pause->tv_nsec > 0 && pause->tv_nsec < 1000000000);
	slept_ms += (unsigned long)pause->tv_nsec / 1000000;
	return 0;
}

/* Of @nr looks at things that stay as they are, with one wait for all. */
static unsigned long waited_for(int nr)
{
	struct settle settle = {};

	slept_ms = 0;
	for (int i = 0; i < nr; i++)
		while (settle_wait(&settle))
			;
	return slept_ms;
}

static void setup(void)
{
	sys.clock_gettime = clock_stands;
	sys.nanosleep = count;
}

TestSuite(settle, .init = setup, .timeout = 60);

Test(settle, waits_half_a_second_then_less_until_ten_seconds_later)
{
	cr_assert_eq(waited_for(1), 511);
	cr_assert_eq(waited_for(1), 15);
	clock_s += 11;
	cr_assert_eq(waited_for(1), 511);
}

/* As a container with many files that are not its own: the sanitizers see how far the pause is shifted. */
Test(settle, does_not_wait_again_for_each_of_many)
{
	cr_assert_eq(waited_for(1000), 511);
	cr_assert_eq(waited_for(1000), 15);
}
