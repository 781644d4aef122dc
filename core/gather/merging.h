/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From droppings to one map, each time anew. gather.c decides when that is needed, and whether the map is
 * complete.
 */
#ifndef PLFS_MERGING_H
#define PLFS_MERGING_H

#include "core/gather/gathered.h"

/*
 * The part of gather() that reads and merges. Fills @g, all zeros before, except the kept map. *@ask_logs:
 * in, ask the logs in any case; out, they were asked, perhaps since an index is damaged. Returns as gather();
 * the caller releases @g in any case.
 */
int gather_merged(struct gathered *g, const struct container *c, const struct index_inputs *in,
		  const char *own_live, const struct gather_span *span, bool *ask_logs);

#endif
