/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lookups in the layers of a mixed panel (image.h). Private to map.c; a caller of lookups in ascending order
 * makes the walk.
 */
#ifndef PLFS_LAYERS_H
#define PLFS_LAYERS_H

#include "index/map/overlay.h"

struct index_piece;

/*
 * What lookups that go forward have in common. Zeros at first; release it. The map must not change meanwhile.
 */
struct index_walk {
	const uint8_t *v; /* the layers; NULL: none yet */
	uint64_t nr, nr_begun;
	uint64_t x;                /* of the last lookup */
	struct overlay_list seen;  /* a heap: elements that may be seen, with some that are over */
	struct overlay_keys next;  /* a heap: where each layer that has begun is looked at again */
	uint64_t nr_looks;         /* at a layer; for tests */
};

void index_walk_release(struct index_walk *w);

/*
 * The piece at @piece->logical_off in the @nr layers at @v, at most @piece->len bytes. False: no layer has
 * it; then its length is that of the gap. The second is for lookups in ascending order: n elements take O(n
 * log n), where each lookup of the first looks at all layers that are over the byte.
 */
bool layers_lookup(const uint8_t *v, uint64_t nr, struct index_piece *piece);
bool layers_walk(struct index_walk *w, const uint8_t *v, uint64_t nr, struct index_piece *piece);

#endif
