/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Extents: added in any order, sorted where they are, handed out from left to right. There may be very many,
 * and new memory costs as much as the sorting of what is in it; so they take 32 bytes each and are nowhere a
 * second time. Private to the building of maps (merge.c).
 */
#ifndef PLFS_EXTENTS_H
#define PLFS_EXTENTS_H

#include "index/map/overlay.h"

#define EXTENT_LENGTH_BITS 24
#define EXTENT_LENGTH_MASK ((1ull << EXTENT_LENGTH_BITS) - 1)

struct extent {
	uint64_t lo;
	uint64_t place; /* log_off * 2^24 + length; with a length of 0, the number of a wide extent */
	uint64_t stamp_ns;
	uint32_t log_no, seq;
};

/* What has no room in a place. */
struct extent_wide {
	uint64_t log_off, length;
};

/* A stretch of them in parts, part after part; within a part they are in no order yet. */
struct extents_level {
	uint64_t base;
	size_t *end;    /* of each part */
	size_t nr, part;
	unsigned shift; /* a part is 2^shift bytes of the file; 0: it needs no order */
};

#define EXTENTS_LEVELS 10 /* each but the last cuts a part into 128 at least */

/* All zeros to begin with. */
struct extents {
	struct extent *v;
	size_t n, cap;
	struct extent_wide *wide;
	size_t nr_wide, cap_wide;
	uint64_t lowest, highest; /* lo of all */
	bool disorder;

	/* Those that come next, sorted. */
	struct extent *batch;
	size_t nr_batch, next, cap_batch;
	uint64_t *keys; /* scratch space */
	size_t taken; /* so many of v are in the batch, or were: their memory is free */
	struct extents_level level[EXTENTS_LEVELS];
	unsigned nr_levels;
};

/* Make room for @nr more. Returns 0 or -ENOMEM. */
int extents_reserve(struct extents *e, size_t nr);

/* Add @piece, whose step does not count. Returns 0 or -ENOMEM. */
int extents_add(struct extents *e, const struct overlay_piece *piece);

/* Whether @piece continues the one that was added last, in everything; that is longer then. */
bool extents_extend(struct extents *e, const struct overlay_piece *piece);
void extents_release(struct extents *e);

static inline struct overlay_piece extents_piece(const struct extents *e, const struct extent *extent)
{
	uint64_t log_off = extent->place >> EXTENT_LENGTH_BITS;
	uint64_t length = extent->place & EXTENT_LENGTH_MASK;

	if (unlikely(!length)) {
		length = e->wide[log_off].length;
		log_off = e->wide[log_off].log_off;
	}
	return (struct overlay_piece){
		.lo = extent->lo,
		.hi = extent->lo + length,
		.log_off = log_off,
		.stamp_ns = extent->stamp_ns,
		.log_no = extent->log_no,
		.seq = extent->seq,
	};
}

/*
 * Begin to hand them out, in order. From now on they lie in another order, and the memory of those that are
 * taken may be used for something else. Returns 0 or -ENOMEM.
 */
int extents_begin(struct extents *e);

/* Where the next one begins; UINT64_MAX: there is none. */
static inline uint64_t extents_next_lo(const struct extents *e)
{
	return e->next < e->nr_batch ? e->batch[e->next].lo : UINT64_MAX;
}

static inline struct overlay_piece extents_next(const struct extents *e)
{
	return extents_piece(e, &e->batch[e->next]);
}

/* Go on behind the next one. Returns 0 or -ENOMEM. */
int extents_skip(struct extents *e);

#endif
