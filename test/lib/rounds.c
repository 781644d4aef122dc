/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/lib/rounds.h"

#include "test/lib/job.h"

static uint64_t state;

size_t rounds_rnd(size_t below)
{
	state = mix64(state + 1);
	return (size_t)(state >> 16) % below;
}

bool rounds_play(int nr, int share, bool (*play)(const void *how), const void *how)
{
	const char *rounds = getenv("PLFS_TEST_ROUNDS"), *given = getenv("PLFS_TEST_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : rounds ? (uint64_t)time(NULL) * 1000 : 1;

	nr = rounds ? atoi(rounds) : given ? 1 : nr;
	for (int i = 0; i < (nr + share - 1) / share; i++, seed++) {
		state = seed * 7919;
		if (play(how))
			continue;
		fprintf(stderr, "PLFS_TEST_SEED=%lu\n", (unsigned long)seed);
		return false;
	}
	return true;
}
