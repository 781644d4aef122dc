/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The files after a power failure: a model in memory of what may be found after a failure in or behind one of
 * the steps of power_steps.h, and a process of another boot that looks, and goes on with the files.
 */
#ifndef TEST_POWER_MODEL_H
#define TEST_POWER_MODEL_H

#include "test/lib/power_steps.h"

/* Where each step begins and ends in the recording; INT_MAX: not yet. */
struct span {
	int begin, end;
};

extern struct span *power_spans;

/* Make power_spans of the recording. */
void power_find_spans(void);

/*
 * Look at what @f has left in @tree, in a process that writes its complaints to @err. @repaired: after a
 * repair. Its exit code; 0: all is as it may be.
 */
int power_look_after(const struct failure *f, const char *tree, bool repaired, FILE *err);

#endif
