/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stack of immutable maps (index/map/map.h). The lowest, the base, is of all records at one time. The maps
 * above it are of the records that have come since: each is newer than those below. Not thread-safe.
 */
#ifndef PLFS_LEVELS_H
#define PLFS_LEVELS_H

#include "index/map/layers.h"
#include "index/map/map.h"
#include "index/record/record.h"

#define LEVELS_MAX 40

struct level {
	void *image; /* mem_alloc()ed, unless @mapped */
	size_t image_len;
	bool mapped; /* the base alone: the image is part of a kept map */
	struct index_map map;
	struct index_hint hint;
	/* levels above the base: its records are own[first_own...] up to the next level's */
	size_t first_own;
};

/* A record that has come since the base was made: of this process, or of one that was followed. */
struct own_record {
	struct index_record rec;
	uint32_t log_no;
};

/* All zeros: no map. */
struct levels {
	struct level v[LEVELS_MAX]; /* 0 is the base */
	int nr;
	struct own_record *own; /* mem_alloc()ed */
	size_t nr_own, cap_own;
	uint64_t max_stamp_ns; /* of all records in the maps */
	bool knows_cut;        /* whether the next is known: a kept map does not say */
	uint64_t cut_ns;       /* stamp of the last truncate record in them; 0: none */
};

/* The base is @base, and nothing else. @cut_ns: as in struct levels, unless it is mapped. */
void levels_set_base(struct levels *l, const struct level *base, uint64_t cut_ns);

/* Drop all maps and records. levels_release(): and their memory. */
void levels_drop(struct levels *l);
void levels_release(struct levels *l);

/* Bytes of memory, without that of a kept map. */
size_t levels_size(const struct levels *l);

/*
 * Put @nr records, at least 1, on top, as a new level. They are later than all records in the maps, or fill
 * holes. 0; -errno: the maps lack records now, and are to be dropped.
 */
int levels_put(struct levels *l, const struct own_record *records, size_t nr);

/* The end of the file by the maps, after their truncations. */
uint64_t levels_end(const struct levels *l);

/* The lowest size that a truncation in the maps has set; UINT64_MAX: none has. */
uint64_t levels_cut(const struct levels *l);

/* The piece of the file at @logical_off; as index_map_lookup(). */
void levels_lookup(struct levels *l, uint64_t logical_off, uint64_t len, struct index_piece *piece);

/*
 * From here on to levels_walk_end() lookups go forward, and n pieces take O(n log n) whatever they are. The
 * maps stay as they are meanwhile. @walks: LEVELS_MAX of zeros.
 */
void levels_walk_begin(struct levels *l, struct index_walk *walks);
void levels_walk_end(struct levels *l);

#endif
