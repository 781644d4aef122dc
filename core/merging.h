/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From droppings to one map, each time anew; when that is needed, and whether it was all, globalindex.c finds out.
 */
#ifndef PLFS_MERGING_H
#define PLFS_MERGING_H

#include "globalindex.h"

/*
 * The part of gather() that reads and merges: fills @g (all zeros before) but for what is kept. *@ask_logs comes back
 * true if the logs were asked, since an index is damaged. Errors as gather(); @g is the caller's to release then too.
 */
int gather_merged(struct gathered *g, const struct container *c, const struct index_inputs *in, const char *own_live,
		  uint64_t generation_ns, bool *ask_logs);

#endif
