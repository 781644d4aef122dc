/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A progress bar on standard error, if that is a terminal; else nothing.
 */
#ifndef PLFS_PROGRESS_H
#define PLFS_PROGRESS_H

#include "../core/base.h"

struct progress {
	bool on;
	const char *name;
	uint64_t total;
	uint64_t begun_ms, shown_ms;
};

void progress_begin(struct progress *p, const char *name, uint64_t total);

/* @done bytes of the total; draws a few times a second. */
void progress_show(struct progress *p, uint64_t done);

/* Take the bar off the terminal again. */
void progress_end(struct progress *p);

#endif
