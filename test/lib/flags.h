/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flags in memory that the processes of a test share: one process waits until another raises a flag.
 */
#ifndef TEST_FLAGS_H
#define TEST_FLAGS_H

struct flags {
	volatile int started, claimed, moved, done;
};

extern struct flags *shared;

/* Make @shared, all flags down. Before the fork. */
void share(void);

void await(volatile int *flag);
void raise_flag(volatile int *flag);

#endif
