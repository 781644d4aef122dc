/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Making node indexes anew from what the logs say themselves.
 */
#ifndef PLFS_REBUILD_H
#define PLFS_REBUILD_H

#include "look.h"

/* A node index that is to be made anew. */
struct rebuild {
	char path[CONTAINER_PATH_LEN]; /* relative to the container */
	const struct look_index *old;  /* NULL: it is missing */
	uint32_t nr_blocks, nr_new;    /* that it will have, and those of them that it has not now */
};

/*
 * The next node index, in no order, that lacks something which the logs have or cannot be read: zeros in *@r to begin
 * with. False: there is none. Logs that no index knows, and whose end is lost, are left out unless @partial.
 */
bool rebuild_next(struct look *l, struct rebuild *r, bool partial);

/*
 * Put it in the place of the old one, which is kept under the name *@kept (CONTAINER_PATH_LEN) if there is anything
 * in it that cannot be read; else that is "". -EAGAIN: somebody has changed it since it was looked at. Until it is in
 * its place, all is as before.
 */
int rebuild_index(struct look *l, const struct rebuild *r, bool partial, char *kept);

#endif
