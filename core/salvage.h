/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a data log says of itself, for who reads a container whose node index is damaged, or lost some of its end with
 * the power.
 */
#ifndef PLFS_SALVAGE_H
#define PLFS_SALVAGE_H

#include "dropping.h"

/*
 * The index blocks that the log @path (relative to the container) has trailers of, as a node index in memory;
 * node_index_close(). Walks back from the end of the log, or where that is lost reads all of it. *@whole: the log is
 * empty or ends with a trailer, so that nothing behind is missing. -errno; a log whose header is damaged has none.
 */
int salvage_log(struct node_index *idx, const struct container *c, const char *path, bool *whole);

#endif
