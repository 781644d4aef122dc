/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Histories of writes to one file by processes of one host, in lockstep: a step begins when the step before
 * has returned, as if a barrier lay between them. A model knows each byte after each step. The processes have
 * the file open all along and read it without locks, after some steps and at the end. A process that opens
 * the file anew reads it too, before and after all have closed it. A history that fails is cut down to the
 * steps that it needs, and printed.
 */
#ifndef TEST_ORDER_H
#define TEST_ORDER_H

#include "test/lib/scratch.h"

enum { ORDER_STEPS = 64, ORDER_PLAYERS = 4, ORDER_LEN = 1 << 20 };
enum order_op { OP_WRITE, OP_CUT, OP_RELEASE, OP_REOPEN, OP_PAUSE };

struct step {
	uint8_t op, who;
	uint8_t looks;     /* bit i: process i reads the file afterwards, */
	bool looks_whole;  /* to its end and for its size, which may show more than a read within does */
	uint32_t off, len; /* OP_CUT: to @off; OP_PAUSE: @len milliseconds */
	uint32_t look_off, look_len; /* what it reads, unless @looks_whole */
};

struct history {
	int nr_players, nr;
	struct step step[ORDER_STEPS];
};

/*
 * What came of many histories: how many failed, how many of them not for a new open, and as which process saw
 * it.
 */
struct order_tally {
	unsigned nr, failed, stale, by[ORDER_PLAYERS + 2];
	struct history shortest;
};

/* Start @nr processes for all histories; they end with their parent. */
void order_start(int nr);

/* Play @h once. */
void order_try(struct order_tally *t, const struct history *h);

/* true: none failed; false: some did, and the shortest is printed. */
bool order_all_well(struct order_tally *t);

#endif
