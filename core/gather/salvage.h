/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The index blocks in a data log, for readers of a container whose node index is damaged, or lost its end in
 * a power failure.
 */
#ifndef PLFS_SALVAGE_H
#define PLFS_SALVAGE_H

#include "core/dropping/node_index.h"
#include "core/dropping/datalog.h"

/*
 * The index blocks that the log @path (relative to the container) has trailers of, as a node index in memory,
 * which ends with node_index_close(). They are found from the end of the log backwards; if the end is lost,
 * all of the log is read. *@whole: the log is empty or ends with a trailer, so no block is missing. 0: also
 * for a damaged header, without blocks; -errno.
 */
int salvage_log(struct node_index *idx, const struct container *c, const char *path, bool *whole);

#endif
