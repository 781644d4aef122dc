/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Zones, the stretches between two stops of the sweep, and the best description of each. Private to sweep.c.
 */
#ifndef PLFS_ZONE_H
#define PLFS_ZONE_H

#include "index/map/sweep_state.h"

#define ZONE_CACHE_LEN 256

/*
 * A table for a set of runs over the extent seq (UINT64_MAX: none) that begins at extent_lo. A full one, with
 * no gap in its row, is right over any extent that is older than the oldest run in it.
 */
struct zone_table {
	uint64_t set[2], seq, extent_lo, table;
	struct overlay_piece oldest;
	bool valid, full;
};

/* A hash of @v. */
static inline uint64_t zone_mix(uint64_t v)
{
	v += 0x9e3779b97f4a7c15;
	v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9;
	v = (v ^ v >> 27) * 0x94d049bb133111eb;
	return v ^ v >> 31;
}

/* Write the visible bytes of the current zone, from @x to @y. Returns 0 or -ENOMEM. */
int zone_write(struct sweep *sw, uint64_t x, uint64_t y);

#endif
