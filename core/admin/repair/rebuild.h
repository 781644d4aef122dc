/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Building node indexes anew from the copies in the logs.
 */
#ifndef PLFS_REBUILD_H
#define PLFS_REBUILD_H

#include "core/admin/scan/scan.h"

/* A node index to be built. */
struct rebuild {
	char path[CONTAINER_PATH_LEN]; /* relative to the container */
	const struct scan_index *old;  /* NULL: it is missing */
	uint32_t nr_blocks, nr_new;    /* it will have; of these, the old one lacks */
};

/*
 * Find the next node index that is damaged or lacks a block that a log has. @r is all zeros for the first
 * call. Logs that no index knows, and whose end is lost, count only if @partial.
 * False: no more.
 */
bool rebuild_next(struct scan *l, struct rebuild *r, bool partial);

/*
 * Build it and rename it over the old one. If the old one has unreadable parts it is kept under the name
 * *@kept (CONTAINER_PATH_LEN), else that is "". Until the rename nothing has changed for readers.
 * 0; -EAGAIN: the old one has changed since the scan; -errno.
 */
int rebuild_index(struct scan *l, const struct rebuild *r, bool partial, char *kept);

#endif
