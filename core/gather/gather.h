/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From droppings to one map: the records of all node indexes and live files are gathered.
 */
#ifndef PLFS_GATHER_H
#define PLFS_GATHER_H

#include "core/gather/gathered.h"

/*
 * The kept map, if it is confirmed (kept_map.h): it has all that was written before this call, and no process
 * has a live file with records. -errno: there is none, or it could not be opened; which of these makes no
 * difference.
 */
int gather_confirmed(struct gathered *g, const struct container *c, uint64_t generation_ns);

/*
 * Make the map of @in and of the live file @own_live (or NULL). If index.global was made from them, it is the
 * map. Else they are merged, and index.global is written if there is no live file and enough to gain. Records
 * stamped at or before @generation_ns are left out. Where an index is damaged, the logs themselves are asked
 * (salvage.h). @how: GATHER_LOGS, ask the logs in any case; GATHER_ANEW, neither use nor make a kept map,
 * which does not have cut_ns.
 * 0: done; 1: not complete, @g->reason: list the inputs anew; -errno. After 1 and -errno @g holds nothing to
 * release.
 */
#define GATHER_LOGS 1
#define GATHER_ANEW 2
int gather(struct gathered *g, const struct container *c, const struct index_inputs *in, const char *own_live,
	   uint64_t generation_ns, unsigned how);

/*
 * Make the map of the records in @span alone, from sound indexes: the file as it was at span->until_ns, if
 * all that was written up to then is known. 0: end with gather_drop(); -EAGAIN: something was written or
 * closed meanwhile; -EIO: an index is damaged; -errno.
 */
int gather_until(struct gathered *g, const struct container *c, const struct gather_span *span);
void gather_drop(struct gathered *g, const struct container *c);

#endif
