/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Turns at publishing: whose publication counts for whom, and what processes that do not end theirs leave.
 * All processes are leases of one here; while one of them waits, the others do what @meanwhile says.
 */
#include "test/lib/leases.h"
#include "test/lib/scratch.h"

#include "core/base/guard.h"
#include "core/base/sys.h"
#include "core/dropping/published.h"
#include "core/store/posix.h"

#include <criterion/criterion.h>

static struct store store;
static struct lease a, b, c;
static void (*meanwhile)(void); /* once, in the first pause of who waits */
static long later_s;

static int nanosleep_meanwhile(const struct timespec *want, struct timespec *left)
{
	void (*fn)(void) = meanwhile;

	(void)want, (void)left;
	meanwhile = NULL;
	if (fn)
		fn();
	return 0;
}

static int (*true_clock)(clockid_t clock, struct timespec *ts);

static int clock_later(clockid_t clock, struct timespec *ts)
{
	int ret = true_clock(clock, ts);

	ts->tv_sec += later_s;
	return ret;
}

static void setup(void)
{
	scratch_dir();
	guard_handle_faults();
	if (store_posix_open(&store, scratch))
		die("store");
	take_part(&store, &a);
	take_part(&store, &b);
	take_part(&store, &c);
	sys.nanosleep = nanosleep_meanwhile;
	true_clock = sys.clock_gettime;
	sys.clock_gettime = clock_later;
}

TestSuite(published, .init = setup, .fini = scratch_remove, .timeout = 60);

static struct published of_a, of_c;

static void end(struct lease *l, struct published *p, uint64_t len, bool done)
{
	p->generation_ns = 7;
	p->len = len;
	p->ctime_ns = 8;
	p->owner = 9;
	published_end(l, p, done);
}

static void a_takes(void)
{
	cr_assert_eq(published_take(&a, false, &of_a), PUBLISHED_BY_CALLER);
}

static void a_fails(void) { end(&a, &of_a, 100, false); }
static void a_ends(void) { end(&a, &of_a, 100, true); }

static void a_and_then_c(void)
{
	a_ends();
	cr_assert_eq(published_take(&c, false, &of_c), PUBLISHED_BY_CALLER);
	end(&c, &of_c, 200, true);
}

Test(published, what_was_released_before_the_turn_is_published)
{
	struct published p;

	a_takes();
	meanwhile = a_and_then_c;
	cr_assert_eq(published_take(&b, true, &p), PUBLISHED_BY_OTHER);
	cr_assert(p.len == 200 && p.generation_ns == 7 && p.ctime_ns == 8 && p.owner == 9);
	/* And that is all: what is released from here on is not. */
	cr_assert_eq(published_take(&b, true, &p), PUBLISHED_BY_CALLER);
}

Test(published, what_is_released_during_the_turn_is_not_published_by_it)
{
	struct published p;

	a_takes();
	meanwhile = a_ends;
	cr_assert_eq(published_take(&b, true, &p), PUBLISHED_BY_CALLER);
}

Test(published, a_turn_that_failed_publishes_nothing)
{
	struct published p;

	a_takes();
	meanwhile = a_fails;
	cr_assert_eq(published_take(&b, true, &p), PUBLISHED_BY_CALLER);
}

Test(published, who_is_in_a_hurry_or_has_waited_long_publishes_for_himself)
{
	struct published p;

	a_takes();
	cr_assert_eq(published_take(&b, false, &p), PUBLISHED_BY_NONE);
	cr_assert_eq(published_take(&b, true, &p), PUBLISHED_BY_NONE);
	a_ends();
	cr_assert_eq(published_take(&b, true, &p), PUBLISHED_BY_CALLER);
}

Test(published, a_killed_process_does_not_keep_the_turn)
{
	struct published p;

	a_takes();
	later_s = 2;
	cr_assert_eq(published_take(&b, true, &p), PUBLISHED_BY_CALLER);
	/* It was not killed, and comes back: what it says does not count. */
	a_ends();
	cr_assert_eq(published_take(&c, false, &of_c), PUBLISHED_BY_NONE);
	end(&b, &p, 300, true);
	cr_assert_eq(published_take(&c, false, &of_c), PUBLISHED_BY_CALLER);
}

/* The machine was started anew, and its clock is behind. */
Test(published, a_turn_of_the_future_is_of_a_killed_process)
{
	struct published p;

	later_s = 1000000;
	a_takes();
	later_s = 0;
	cr_assert_eq(published_take(&b, true, &p), PUBLISHED_BY_CALLER);
}

/* The turn's lowest bit: its owner was killed while it wrote what is published. */
Test(published, nobody_waits_for_an_end_that_is_never_written)
{
	uint64_t *turn = (uint64_t *)((char *)a.map + PUBLISHED_OFF);
	struct published p;

	a_takes();
	*turn |= 1;
	later_s = 2;
	meanwhile = abort;
	cr_assert_eq(published_take(&b, true, &p), PUBLISHED_BY_NONE);
}

static unsigned flipped;

static void and_damage(void)
{
	a_and_then_c();
	((uint8_t *)a.map)[PUBLISHED_OFF + 16 + flipped / 8] ^= (uint8_t)(1 << flipped % 8);
}

Test(published, a_flipped_bit_publishes_nothing)
{
	struct published p;

	for (flipped = 0; flipped < 8 * 48; flipped++) {
		a_takes();
		meanwhile = and_damage;
		cr_assert_eq(published_take(&b, true, &p), PUBLISHED_BY_CALLER, "bit %u", flipped);
		end(&b, &p, 1, true);
	}
}
