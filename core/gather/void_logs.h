/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Removing closed logs all of whose records are void, one by one, with their blocks in the node indexes. The
 * header has voided them by its generation: a truncation to 0, or a reclaim (core/file/reclaim.h).
 *
 * First all such logs go, then each node index is written anew without the blocks of logs that are gone. A
 * void block that names no log any more harms nobody. A log without a block would seem to have lost it: so
 * the blocks of logs that stay, stay.
 *
 * Others that may need such a log:
 *  - a reader with an older map: it has the log open, or finds that it is missing, reads the header and loads
 *    again. No later log gets the name of one that has gone (datalog_create()).
 *  - a process that goes on with a log of its own (write/resume.h): it holds the node index locked until the
 *    log has a live file. Here the index is locked alone, and a log with a live file stays.
 *  - a process that appends a block: waits for the lock, and finds that the index has lost its name.
 *  - a copy of the stub, whose header has an older generation: what was visible has been written anew, later
 *    than all that is void. So the copy reads the same bytes.
 * A log that does not end as a closed log does stays, unless its host has been restarted, and so does one
 * that has more blocks than the index: its process has written more than is known.
 */
#ifndef PLFS_VOID_LOGS_H
#define PLFS_VOID_LOGS_H

#include "core/backend/container.h"

struct void_logs {
	uint64_t nr_removed;
	uint64_t nr_left; /* logs that could not be removed, and node indexes that could not be locked */
};

/*
 * Whether the log @path ends as a closed log does, and all its blocks are in the node index, whose blocks of
 * it reach to @indexed_len. Where its host has been restarted since, and these were synced before, it may end
 * as it likes: what has no block was never synced, and counts for nothing (README.md).
 */
bool log_is_all_indexed(const struct container *c, const char *path, uint64_t indexed_len);

/*
 * Remove the logs of @c all of whose records are stamped at or before @generation_ns, which is on stable
 * storage in the header. The caller knows that the stub is no copy (stub_is_copy()). 0; -errno: the container
 * cannot be listed. What was not removed harms nobody, and goes the next time.
 */
int void_logs_remove(const struct container *c, uint64_t generation_ns, struct void_logs *out);

#endif
