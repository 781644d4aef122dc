/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What processes of told.h may read of the file that they keep open: nothing that is older than what they
 * have acquired, and of two writes with a release and an acquire in between the later one. Two calls that are
 * under way at a time count as in either order.
 */
#ifndef TEST_TOLD_MODEL_H
#define TEST_TOLD_MODEL_H

#include "test/lib/told.h"

enum { MODEL_STEPS = 400 }; /* of a history, and its end */

extern bool model_at_once;    /* all hosts see a write as soon as those of its own */
extern bool model_comes_home; /* near: what is released */
extern bool model_is_open[TOLD_ALL], model_only_reads[TOLD_ALL];

/* Backends that are lost (told_lost.h). NULL: there are none. */
struct model_backends {
	void (*begin)(void);
	/* Whether the bytes [@from, @to) may be an error for @who. */
	bool (*may_fail)(int who, size_t from, size_t to);
	/* The step is done; @v: its version, or -1. @ok: what the model says of it. What counts. */
	bool (*done)(int who, const struct told_order *o, int v, long ret, bool ok);
};
extern const struct model_backends *model_backends;

/* Whether @who may read version @v in [@from, @to). */
bool model_may_read(int who, int v, size_t from, size_t to);

/* Versions of closed logs, and of processes that were killed. */
uint64_t model_at_rest(void);
uint64_t model_all(void);
int model_writer(int v);

/* A history of no steps. */
void model_begin(void);

/* Do it, in the model as well. False, and the history is shown: they differ. */
bool model_step(int who, enum told_act act, size_t off, size_t len);

/*
 * @a does its act, and before the system call number @call of that @b does the whole of its own; with the act
 * KILL for @b, @a is killed there.
 */
struct model_act {
	int who;
	enum told_act act;
	size_t off, len;
};
bool model_beside(struct model_act a, int call, struct model_act b);

/*
 * The same, as a process that is stopped and goes on later: others do these @nr acts meanwhile. One that
 * waits for @a ends that; the rest comes behind it.
 */
bool model_stands(struct model_act a, int call, const struct model_act *others, int nr);

/*
 * All close it, and see the same then; with @flattened >= 0, and of that host, the plain file is that. False:
 * as above.
 */
bool model_ends(int flattened);

#endif
