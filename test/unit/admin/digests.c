/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sets of digests: whatever was added is there, and what was not is hardly ever.
 */
#include "core/admin/scan/digests.h"

#include <criterion/criterion.h>

enum { NR = 100000 };

Test(digests, have_what_was_added_and_nothing_else)
{
	struct digests d = { 0 };
	unsigned others = 0;

	cr_assert(!digests_have(&d, 1));
	for (uint64_t i = 0; i < NR; i++)
		cr_assert_eq(digests_add(&d, digest_of(&i, sizeof(i))), 0);
	cr_assert_leq(d.nr, NR);
	for (uint64_t i = 0; i < NR; i++)
		cr_assert(digests_have(&d, digest_of(&i, sizeof(i))));
	for (uint64_t i = NR; i < 2 * NR; i++)
		others += digests_have(&d, digest_of(&i, sizeof(i)));
	cr_assert_lt(others, 10);
	digests_free(&d);
	cr_assert(!digests_have(&d, 1));
}

/* A stranger's index may have as many as it likes. */
Test(digests, take_no_more_memory_than_they_may)
{
	struct digests d = { 0 };

	for (uint64_t i = 1; i <= 2 * DIGESTS_MAX; i++)
		cr_assert_eq(digests_add(&d, i * 0x9e3779b97f4a7c15), 0);
	cr_assert_leq(d.cap, 2 * DIGESTS_MAX);
	for (uint64_t i = 1; i <= 2 * DIGESTS_MAX; i++)
		cr_assert(digests_have(&d, i * 0x9e3779b97f4a7c15));
	digests_free(&d);
}

/* In a full row of slots each is found, also behind the end of the table. */
Test(digests, that_want_the_same_slot_are_all_found)
{
	struct digests d = { 0 };

	for (uint64_t i = 0; i < 400; i++)
		cr_assert_eq(digests_add(&d, (i << 32) | 0x3ff), 0);
	for (uint64_t i = 0; i < 400; i++)
		cr_assert(digests_have(&d, (i << 32) | 0x3ff));
	cr_assert(!digests_have(&d, (400ULL << 32) | 0x3ff));
	digests_free(&d);
}
