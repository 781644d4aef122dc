/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plans of killed_at.h: steps on a few names, and a model in memory of what they make of the files.
 */
#ifndef TEST_KILLED_PLAN_H
#define TEST_KILLED_PLAN_H

#include "test/lib/scratch.h"

#define SIZE_MAX_TESTED (400 * 1024)

enum action {
	/* on the open file */
	CREATE, OPEN, OPEN_TRUNC, WRITE, APPEND, READ, TRUNCATE, SYNC, COMMIT, CLOSE, MOVE,
	/* on names */
	RENAME, LINK, UNLINK, FLATTEN,
};

enum { F, G, H, NR_NAMES }; /* "f", "g", "h" */

struct step {
	enum action action;
	long off, len; /* TRUNCATE: len */
	int name, to;
};

extern struct step killed_steps[2000];
extern int nr_killed_steps;

/* Add a step on the open file; on a name. */
void add(enum action action, long off, long len);
void add_named(enum action action, int name, int to);

/* What is done, and how it ends. */
struct killing {
	void (*plan)(void);  /* adds the steps */
	long from;           /* begin at this call; 0: elsewhere in each run */
	int stride;          /* of so many calls one has its turn (turn.h) */
	bool torn;           /* in the middle of writes, not at calls */
	bool unshared;       /* nothing can be mapped */
	bool beside;         /* another process has "f" open all along, and has written to it */
	const char *options; /* of the mapping; NULL: there are no small files */
};

extern struct killing killing;

#define BESIDE_OFF 300000
#define BESIDE_LEN 5000

/* ---- the model ---- */

/* Which file each name is of, -1: none; and which file is open. "g" is there from the beginning. */
#define NR_FILES 8
struct model {
	int of[NR_NAMES], open, nr;
	long size[NR_FILES];
	unsigned char *data[NR_FILES]; /* model_data() */
};

/* The state before the first step; model_free() frees it. */
void model_init(struct model *m);
void model_free(struct model *m);

/* Carry out step @i. */
void model_apply(struct model *m, int i);

/* The SIZE_MAX_TESTED bytes of @file. */
unsigned char *model_data(struct model *m, int file);

#endif
