/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scanning the trailers of a data log: its own copy of its index.
 */
#ifndef PLFS_SCAN_TRAILERS_H
#define PLFS_SCAN_TRAILERS_H

#include "core/admin/scan/scan.h"

/*
 * Read the copy of its index that @log, open at @h, has itself. Adds the blocks that no node index has,
 * reports damage, sets log->complete. 0; -errno: could not be read.
 */
int scan_trailers(struct scan *l, struct scan_log *log, int h);

/*
 * Whether the lost end of @log had, as far as is known, only bytes that were never synced: its host has been
 * restarted, as after a power failure.
 */
bool scan_ends_synced(const struct scan *l, const struct scan_log *log);

#endif
