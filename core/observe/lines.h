/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters as lines of a stats file, man/plfs-stats.5.
 */
#ifndef PLFS_LINES_H
#define PLFS_LINES_H

#include "core/observe/part.h"

#define LINES_VERSION 1

/* Text that grows. */
struct text {
	char *p; /* mem_alloc()ed, or NULL */
	size_t len, cap;
	bool failed; /* no memory: it lacks something */
};

/* Add a line for each file of the part @head; @ended: its process has not been killed. */
void lines_add(struct text *t, const struct part_head *head, bool ended);

#endif
