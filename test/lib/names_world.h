/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A model of a directory of three names: their files, what processes hold open, and what each call gives. Of
 * two calls at a time each may be the first: so there are several worlds, of which one must go on to agree.
 */
#ifndef TEST_NAMES_WORLD_H
#define TEST_NAMES_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { WORLD_PROCS = 4, WORLD_NAMES = 3, WORLD_SLOTS = 2, WORLD_LEN = 8000 };

enum world_act {
	OPEN, CLOSE, WRITE, APPEND, READ, CUT, SIZE, SYNC, /* with an open file, but for the first */
	CAT, STAT, UNLINK, RENAME, EXCHANGE, LINK,
	FLATTEN, COMPACT, REPAIR, CHECK, LOOK, DRAIN, DRAIN_KEEP, BRING, STAGE, DROP, GC, KILL, NR_ACTS
};

struct world_order {
	enum world_act act;
	int slot, a, b, flags; /* of open(2) */
	off_t off;
	size_t len;
	unsigned char byte;
	int stop_at;
};

struct world_answer {
	bool stopped;
	long ret; /* of READ and CAT the size */
	unsigned char bytes[WORLD_LEN];
};

/* One world, with no names. */
void world_begin(void);

/* What has been done: whether there is a world in which it gives that. */
bool world_did(int who, const struct world_order *o, const struct world_answer *a);

/* One that was stopped in the midst of its call, and what others did meanwhile, one after the other. */
struct world_done {
	int who;
	struct world_order o;
	struct world_answer a;
};
bool world_did_among(const struct world_done *stopped, const struct world_done *others, int nr);

/* Both at a time. */
bool world_did_both(int who_a, const struct world_order *o, const struct world_answer *a, int who_b,
		    const struct world_order *p, const struct world_answer *b);

/* It was killed on it, which may have been done. */
bool world_killed(int who, const struct world_order *o);

#endif
