/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which calls of a sweep have their turn. A test that kills, stops or fails at call after call takes one of
 * every few, and begins elsewhere in each run: in time all of them have their turn. PLFS_TEST_TURN is the
 * seed; a program that is not given one takes any, prints it, and leaves it to its tests. With
 * PLFS_TEST_STRIDE=1 each call has its turn. PLFS_TEST_SPARSE: so many times less of them than without it.
 */
#ifndef TEST_TURN_H
#define TEST_TURN_H

#include <stdbool.h>

/* One call of every @stride, or of every PLFS_TEST_STRIDE. */
struct turn {
	long nr;   /* the call whose turn it is: 1 to @step at first */
	long step; /* add it for the next one */
};

struct turn turn_begin(long stride);

/*
 * The calls from @from on, the further the coarser: takes one of the next 1 + @from / @coarse (0:
 * 1 + 3 * @from), and moves @from behind them. @all: one after the other.
 */
long turn_coarse(long *from, long coarse, bool all);

/* Whether number @nr of what is played one by one has its turn: all have, without PLFS_TEST_SPARSE. */
bool turn_takes(long nr);

#endif
