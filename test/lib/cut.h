/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A change in several steps of a file whose stub has bytes below the logs, and what readers find meanwhile:
 * the file as it was before, or as it is afterwards, size and bytes. No reader finds it as before when
 * another reader has found it as afterwards.
 */
#ifndef TEST_CUT_H
#define TEST_CUT_H

#include "test/lib/scratch.h"

#define FILE_MAX 200000

enum cut_version { OLD, NEW, BOTH, WRONG };
enum change { CUT, OPEN, CLAIM, MOVE }; /* a truncation, one by open(2); the first log; into the body */

struct cut_plan {
	const char *options, *kind; /* of the mapping; "c": cut before, "w": a writer has it open */
	long to;                    /* the size after a truncation */
	enum change change;
	bool stops;                 /* the process that changes it stops at a call, and is not killed there */
};

/* Before and after: OLD, NEW. */
extern unsigned char cut_image[2][FILE_MAX];
extern ssize_t cut_size[2];

extern long cut_to;             /* of the plan */
extern enum change cut_change;
extern enum cut_version *cut_seen; /* the latest that any process has found: OLD or NEW */

/* Make the scratch directory, and set the three for @p. */
void cut_begin(struct cut_plan p);

/* ---- the file ---- */

/* Make it, in_child(). @kind: as in the plan. */
int cut_make_file(void *kind);

/* Make cut_image and cut_size by the same steps. */
void cut_know_file(const char *kind, long to);

/* The size that the stub shows without the library. */
off_t cut_stub_size(void);

/* Whether the header has a truncation that is not finished. */
bool cut_word_is_set(void);

int cut_remove_file(void *arg);

/* ---- the process that changes it ---- */

/* Change it; die or stop at the last of calls_left calls (calls.h). In a child. */
int cut_change_file(void *arg);

/* ---- readers ---- */

/* Which of the two has this size. */
enum cut_version cut_version_of_size(off_t size);

/* Whether finding @v is right; false: one line on what @who found. */
bool cut_found(const char *who, const char *what, enum cut_version v, ssize_t n);

/* Read it by @l: bytes, size, bytes. */
bool cut_look(const char *who, struct lfile *l);

/* stat(), open and read it, in_child(). @arg: not NULL: open it for writing. */
int cut_look_newly(void *arg);

/* A process that has it open all along. */
struct looker {
	pid_t pid;
	int ask[2], answer[2];
	int flags;
	bool writes, ends; /* writes before it looks; and not again before it closes */
};

void start_looker(struct looker *k);

/* It looks now. true: it found what is right. */
bool ask(struct looker *k);

void end_looker(struct looker *k);

#endif
