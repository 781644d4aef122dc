/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Zones, the stretches between two stops of the sweep: how each is best described. Private to sweep.c.
 */
#ifndef PLFS_ZONE_H
#define PLFS_ZONE_H

#include "sweep.h"

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

/* A run as a piece, to compare it with others; step is its number. */
static inline struct overlay_piece zone_run(const struct sweep *sw, uint32_t idx)
{
	const struct image_layer *run = &sw->runs[idx];

	return (struct overlay_piece){
		.lo = run->logical_off,
		.hi = run->hi,
		.step = idx,
		.stamp_ns = run->stamp_ns,
		.log_no = run->log_no,
		.seq = run->seq,
	};
}

/* A number for @v that looks like chance. */
static inline uint64_t zone_mix(uint64_t v)
{
	v += 0x9e3779b97f4a7c15;
	v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9;
	v = (v ^ v >> 27) * 0x94d049bb133111eb;
	return v ^ v >> 31;
}

/* Write what is seen from @x to @y, the zone that the sweep is at. Returns 0 or -ENOMEM. */
int zone_write(struct sweep *sw, uint64_t x, uint64_t y);

/* Append @layer to the @n of @v, which grows. Returns 0 or -ENOMEM. */
int zone_add_layer(struct image_layer **v, size_t *n, size_t *cap, const struct image_layer *layer);

#endif
