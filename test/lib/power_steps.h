/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What happens before the power fails: steps of two processes on two files, carried out while power.h
 * records.
 */
#ifndef TEST_POWER_STEPS_H
#define TEST_POWER_STEPS_H

#include "test/lib/power.h"

#include "core/backend/mount.h"

#define SIZE_MAX_TESTED (3 << 20)
#define BLOCK 64 /* all writes begin and end at multiples of this, unless they are small */

enum action {
	OPEN, OPEN_TRUNC, WRITE, APPEND, READ, TRUNCATE, SYNC, CLOSE, SYNC_DIR, RENAME, UNLINK, FLATTEN, MOVE,
	COMPACT, DRAIN, NR_ACTIONS
};

struct step {
	enum action action;
	int proc;      /* 0 or 1: which process */
	long off, len; /* TRUNCATE: len */
	int file;      /* 0: "f" and what is renamed over it, 1: "t" */
};

extern struct step power_steps[4000];
extern int nr_power_steps;
extern const char *power_options; /* of the mapping */

/*
 * Let the logs be near, in the directory "near" of the scratch directory; @options: more of the mapping. A
 * link leads there, since a tree that a failure leaves has another path.
 */
void power_with_near(const char *options);

/* The link leads to the directory in @tree; it is removed with NULL. Nothing, if nothing is near. */
void power_lead_near(const char *tree);

/*
 * Add steps in words with one space between. "A:" and "B:" choose the process, "f:" and "t:" the file, from
 * there on; it begins with A and f. A step is one of open, rewrite, write OFF LEN, append OFF LEN, read,
 * truncate LEN, sync, close, dir (sync the directory), rename (t to f), unlink, flatten, compact, drain (of
 * f), move (into the body). "each NR OFF LEN APART" stands for NR writes that are APART bytes apart, "irregular NR OFF" for NR
 * writes of BLOCK bytes without an order.
 */
__attribute__((format(printf, 1, 2))) void add_steps(const char *text, ...);

/* Carry them out in a mapped scratch directory, which is then removed, and exit. @ordered: power.h. */
void power_live_through(bool ordered);

#endif
