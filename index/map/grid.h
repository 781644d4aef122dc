/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nested runs for the sweep. Processes that write parts of an array of three dimensions tile it. Nested runs
 * with the same planes are treated as one, a *box*, and described by one grid (image.h). Private to sweep.c.
 */
#ifndef PLFS_GRID_H
#define PLFS_GRID_H

#include "index/map/sweep_state.h"

/* nested[first...] of the sweep, @nr of them. */
struct grid_box {
	size_t first, nr;
	uint64_t grid; /* its number in the image, or one of: */
};

#define GRID_NOT_TRIED UINT64_MAX
#define GRID_NONE (UINT64_MAX - 1) /* no grid can describe it */

/*
 * Sort the sweep's nested runs, group them into boxes, and add a run for each of them. Returns 0 or -ENOMEM.
 */
int grid_make_boxes(struct sweep *sw);

/* Write the visible bytes of @box from @x to @y. 0: done; 1: no grid can describe it; -ENOMEM. */
int grid_write(struct sweep *sw, struct grid_box *box, uint64_t x, uint64_t y);

#endif
