/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A log that is being looked at, for look_log.c and look_trailers.c alone.
 */
#ifndef PLFS_LOOK_LOG_H
#define PLFS_LOOK_LOG_H

#include "look.h"

struct log_look {
	struct look *l;
	struct look_log *log;
	int h;
	uint8_t *buf; /* READ_LEN bytes */
	uint64_t bad_from, bad_to;       /* chunks in a row that do not match */
	uint64_t next_chunk;             /* all before it are in the tables */
	uint64_t end_chunk;              /* all before it are there whole */
	bool tables_ok;
};

/*
 * Whether the log's end, which is lost, had nothing of the file but what has been synced, as far as is known: its host was started anew since, as
 * when the power has failed.
 */
bool look_ends_synced(const struct log_look *ll);

/* What the log says itself of what is in it. */
int look_at_trailers(struct log_look *ll);

#endif
