/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looking again and again, with pauses that grow, until a time is over (--wait, --timeout).
 */
#ifndef PLFS_TOOL_WAITING_H
#define PLFS_TOOL_WAITING_H

#include "options.h"

struct waiting {
	bool waits;
	bool ends;         /* there is a timeout */
	unsigned timeout_s;
	uint64_t until_ns; /* by CLOCK_MONOTONIC; 0: no end */
	unsigned pause_ms; /* the next */
};

/* Take OPT_WAIT and OPT_TIMEOUT. */
void waiting_take(struct waiting *w, const struct verb *v, int option);

/* The time begins. TOOL_OK; else an exit code, and a line. */
int waiting_begin(struct waiting *w, const struct verb *v);

/* Something has changed: the next pause is short again. */
void waiting_restart(struct waiting *w);

/* Pause. False: there is no waiting, or the time is over. */
bool waiting_pause(struct waiting *w);

#endif
