/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of a file while calls fail. Whatever fails: a call that could not do its work says so, what was
 * acknowledged is read back by everybody afterwards, what was refused has left no trace, no descriptor is
 * lost, and the file goes on working.
 */
#ifndef TEST_LIFE_H
#define TEST_LIFE_H

#include "test/lib/calls.h"

#define CALL_ALLOC NR_CALLS /* of memory: the allocator's own way (alloc.h) */

/* For the tests of a process. */
extern struct life {
	const char *options; /* of the mapping */
	bool moved;          /* into its body, and used there */
	bool never_noticed;  /* the faults are taken up again */
} life;

void life_map(void); /* the scratch directory, in memory */

/*
 * Lives again and again, and @err (or CALL_SHORT) comes from a later @call each time, or from all of them
 * @from_there_on, until there is none. From the 1st call on, in growing steps, of which one call has its turn
 * (turn.h): the larger the coarser, as of turn_coarse(). With PLFS_FAULTS=all each and every one.
 */
void life_sweep(enum call call, int err, bool from_there_on, long coarse);

/* All of it: with a scratch directory of its own. */
void life_fail_each(enum call call, int err, bool from_there_on);

#endif
