/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls added to counters: what is sequential, strided and random, and the short way against the long one.
 */
#include "core/observe/counters.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define S 1000000000ULL

static struct counters c;
static uint64_t now;

/* As a write does: by the short way where it may. */
static void call(uint64_t off, uint64_t len)
{
	struct way *w = &c.ways[WAY_WRITE];

	now += 1000;
	if (way_expects(w, off, len))
		way_again(w);
	else
		counters_call(&c, WAY_WRITE, off, len, now, 100, true);
}

static struct way *folded(void)
{
	counters_fold(&c, now);
	return &c.ways[WAY_WRITE];
}

static void begin(void)
{
	memset(&c, 0, sizeof(c));
	now = 1000 * S;
}

TestSuite(counters, .init = begin);

Test(counters, sequential_calls)
{
	struct way *w;

	for (uint64_t i = 0; i < 1000; i++)
		call(i * 512, 512);
	w = folded();
	cr_assert_eq(w->calls, 1000);
	cr_assert_eq(w->bytes, 512000);
	cr_assert_eq(w->sequential, 999);
	cr_assert_eq(w->random, 1);
	cr_assert_eq(w->sizes[9], 1000);
	cr_assert_eq(c.end, 512000);
	cr_assert_eq(w->common[1].stride, 512); /* the first call has none */
	cr_assert_eq(w->common[0].calls + w->common[1].calls, 1000);
}

Test(counters, strided_calls_both_ways)
{
	struct way *w;

	for (uint64_t i = 0; i < 1000; i++)
		call(i * 4096, 100);
	for (uint64_t i = 1000; i-- > 0;)
		call(i * 4096, 100);
	w = folded();
	cr_assert_eq(w->calls, 2000);
	cr_assert_eq(w->strided, 998 + 998);
	cr_assert_eq(w->random, 4);
	cr_assert_eq(c.end, 999 * 4096 + 100);
}

Test(counters, a_stride_that_equals_the_length_is_sequential)
{
	call(5000, 100);
	call(0, 100);
	call(100, 100);
	call(200, 100);
	cr_assert_eq(folded()->sequential, 2);
	cr_assert_eq(folded()->random, 2);
}

Test(counters, sequential_calls_of_many_lengths)
{
	uint64_t off = 0;

	for (uint64_t i = 1; i <= 100; off += i++)
		call(off, i);
	cr_assert_eq(folded()->sequential, 99);
	cr_assert_eq(folded()->bytes, 5050);
}

/* One call in COUNTERS_MEASURED at least takes the long way, where it is measured. */
Test(counters, a_long_run_is_measured_now_and_then)
{
	unsigned nr = 0;

	for (uint64_t i = 0; i < 10 * COUNTERS_MEASURED; i++) {
		nr += !way_expects(&c.ways[WAY_WRITE], i * 8, 8);
		call(i * 8, 8);
	}
	cr_assert_eq(nr, 10, "%u", nr);
	cr_assert_eq(folded()->ns, 10 * COUNTERS_MEASURED * 100);
}

/* Whatever comes, short and long way together count the same as the long way alone. */
Test(counters, short_and_long_way_agree)
{
	uint64_t off = 0, len = 1;
	struct counters fast, slow;

	srand(1);
	for (int i = 0; i < 20000; i++) {
		if (rand() % 5 == 0)
			len = (uint64_t)(rand() % 3) * 1000 + 1;
		off += rand() % 7 ? len : rand() % 3 ? 9 * len : (uint64_t)(rand() % 100000);
		call(off, len);
	}
	folded();
	fast = c;
	begin();
	srand(1);
	off = 0;
	len = 1;
	for (int i = 0; i < 20000; i++) {
		if (rand() % 5 == 0)
			len = (uint64_t)(rand() % 3) * 1000 + 1;
		off += rand() % 7 ? len : rand() % 3 ? 9 * len : (uint64_t)(rand() % 100000);
		now += 1000;
		counters_call(&c, WAY_WRITE, off, len, now, 100, true);
	}
	slow = c;
	cr_assert_eq(fast.ways[0].calls, slow.ways[0].calls);
	cr_assert_eq(fast.ways[0].bytes, slow.ways[0].bytes);
	cr_assert_eq(fast.ways[0].sequential, slow.ways[0].sequential);
	cr_assert_eq(fast.ways[0].strided, slow.ways[0].strided);
	cr_assert_eq(fast.ways[0].random, slow.ways[0].random);
	cr_assert_arr_eq(fast.ways[0].sizes, slow.ways[0].sizes, sizeof(fast.ways[0].sizes));
	cr_assert_eq(fast.end, slow.end);
}

/* ---- bins ---- */

static uint64_t sum_of_bins(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < COUNTERS_BINS; i++)
		sum += c.bins[WAY_WRITE][i];
	return sum;
}

Test(counters, bins_widen_and_keep_every_byte)
{
	uint64_t from;

	counters_bin(&c, WAY_WRITE, 7, now);
	cr_assert_eq(c.bins_width, COUNTERS_WIDTH_NS);
	for (int i = 1; i <= 1000; i++)
		counters_bin(&c, WAY_WRITE, 1, now + (uint64_t)i * S);
	cr_assert_eq(sum_of_bins(), 1007);
	from = c.bins_from * c.bins_width;
	cr_assert_leq(from, now);
	cr_assert_gt(from + COUNTERS_BINS * c.bins_width, now + 1000 * S);
	cr_assert_eq(c.bins_width, 16 * S);
	cr_assert_geq(c.bins[WAY_WRITE][0], 7);
	counters_bin(&c, WAY_WRITE, 1, now - 100 * S); /* the clock was set back */
	cr_assert_eq(sum_of_bins(), 1008);
}
