/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A progress bar, or a count, on standard error; nothing if that is no terminal.
 */
#ifndef PLFS_PROGRESS_H
#define PLFS_PROGRESS_H

#include "core/base/base.h"

struct progress {
	bool on;
	char name[100]; /* the end of it, escaped */
	uint64_t total;
	double part; /* done, for progress_count(); 0: not known */
	uint64_t begun_ms, shown_ms; /* equal: nothing is on the terminal */
};

void progress_begin(struct progress *p, const char *name, uint64_t total);

/* Show @done bytes of the total; draws at most ten times a second. */
void progress_show(struct progress *p, uint64_t done);

/* Show a count: "1234 files", or "1234 of 2000 files" (@total 0: not known). */
void progress_tally(struct progress *p, const char *what, uint64_t done, uint64_t total);

/*
 * Show a count: @files, their @bytes, and how many are *@bad (NULL: nothing of that); with p->part also the
 * time left.
 */
void progress_count(struct progress *p, uint64_t files, uint64_t bytes, const uint64_t *bad);

/* Clear it before a line is printed; the next count draws it again. */
void progress_hide(struct progress *p);

/* Clear it for good. */
void progress_end(struct progress *p);

#endif
