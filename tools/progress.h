/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A progress bar, or a count, on standard error, if that is a terminal; else nothing.
 */
#ifndef PLFS_PROGRESS_H
#define PLFS_PROGRESS_H

#include "../core/base.h"

struct progress {
	bool on;
	const char *name;
	uint64_t total;
	uint64_t begun_ms, shown_ms; /* shown_ms == begun_ms: it is not on the terminal */
};

void progress_begin(struct progress *p, const char *name, uint64_t total);

/* @done bytes of the total; draws a few times a second. */
void progress_show(struct progress *p, uint64_t done);

/* The same for what has no bytes: "1234 files", or "1234 of 2000 files" if @total is known. */
void progress_tally(struct progress *p, const char *what, uint64_t done, uint64_t total);

/* The same where no total is known: @files of them done, with @bytes, and @bad of them not as they should be. */
void progress_count(struct progress *p, uint64_t files, uint64_t bytes, uint64_t bad);

/* Take it off the terminal for a line that is about to be printed; it comes back by itself. */
void progress_hide(struct progress *p);

/* Take the bar off the terminal again. */
void progress_end(struct progress *p);

#endif
