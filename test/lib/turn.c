/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers by the seed, the test's name, and how many it has drawn.
 */
#include "test/lib/turn.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

/* Criterion starts the program once more for each test: that one finds the seed in its environment. */
__attribute__((constructor)) static void choose_seed(void)
{
	unsigned short any;
	char text[16];

	if (getenv("PLFS_TEST_TURN") || getrandom(&any, sizeof(any), 0) != sizeof(any))
		return;
	snprintf(text, sizeof(text), "%hu", any);
	setenv("PLFS_TEST_TURN", text, 1);
	fprintf(stderr, "some calls have their turn: PLFS_TEST_TURN=%s repeats which\n", text);
}

static uint64_t mix(uint64_t h, const char *text)
{
	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3;
	return h;
}

/* Below @nr. */
static long draw(long nr)
{
	static uint64_t drawn;
	const char *seed = getenv("PLFS_TEST_TURN");
	uint64_t h = mix(0xcbf29ce484222325 + drawn++, seed ? seed : "");

	h = mix(mix(h, criterion_current_test->category), criterion_current_test->name);
	h = (h ^ h >> 32) * 0x9e3779b97f4a7c15;
	return (long)((h >> 33) % (uint64_t)nr);
}

static long sparse(void)
{
	const char *given = getenv("PLFS_TEST_SPARSE");

	return given && atol(given) > 0 ? atol(given) : 1;
}

struct turn turn_begin(long stride)
{
	const char *given = getenv("PLFS_TEST_STRIDE");
	long step = given ? atol(given) : stride * sparse();

	return (struct turn){ 1 + draw(step > 0 ? step : 1), step > 0 ? step : 1 };
}

long turn_coarse(long *from, long coarse, bool all)
{
	long step = all ? 1 : (1 + (coarse ? *from / coarse : 3 * *from)) * sparse(), nr = *from + draw(step);

	*from += step;
	return nr;
}

bool turn_takes(long nr)
{
	static long offset = -1;

	if (offset < 0)
		offset = draw(sparse());
	return nr % sparse() == offset;
}
