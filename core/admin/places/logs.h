/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The logs of one container, listed before something is done with each.
 */
#ifndef PLFS_LOGS_H
#define PLFS_LOGS_H

#include "core/backend/container.h"

struct logs {
	char **v; /* relative to the container; mem_alloc()ed */
	size_t nr, cap;
};

/* Zeros to begin with. 0; -ENOENT: there is no container; -errno: some are missing. */
int logs_list(struct logs *logs, const struct container *c);
void logs_release(struct logs *logs);

/* Whether the log has a live file: it is written, or its process was killed. */
bool logs_has_live(const struct container *c, const char *log);

/* Logs with a live file: of processes that write them, and of these how many have gone. */
struct drain_open {
	uint64_t nr, nr_dead;
};

/* Add the log @log, which has a live file, to *@open. */
void logs_note_open(struct drain_open *open, const char *log);

#endif
