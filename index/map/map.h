/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The map: an immutable answer to "which log holds byte X?", built by merge.h from any number of records. It
 * is one position-independent block of bytes, an *image*: it can be written to a file and mapped, and needs
 * no parsing. Runs stay runs, so memory is proportional to records, not to elements. A lookup is logarithmic
 * in records, and arithmetic inside a run. The byte tables are in image.h.
 */
#ifndef PLFS_MAP_H
#define PLFS_MAP_H

#include "index/map/piece.h"
#include "index/record/record.h"

/* A validated view of an image; the image must outlive it. Free to copy. */
struct index_map {
	const uint8_t *image;
	size_t image_len;
	/* decoded from the image's header; the rest is private to map.c and merge.c */
	uint64_t end;          /* first byte after the last data byte, 0 if there is none */
	uint64_t cut;          /* lowest size any truncation in this map set (UINT64_MAX: none): older
	                          maps have nothing at or after it */
	uint64_t max_stamp_ns; /* largest stamp of any record in it, 0 if there is none */
	uint64_t nr_records;   /* records it was built from */
	/* tables: image.h */
	uint64_t nr_panels, nr_entries, nr_tables, nr_phases, nr_layers, nr_grids, nr_bands, nr_cells;
	const uint8_t *panels, *entries, *tables, *phases, *layers, *grids, *bands, *cells;
};

/*
 * The end of the last lookup, where the next one most likely begins. Zeros at first; a wrong hint costs time
 * and nothing else.
 */
struct index_hint {
	uint64_t panel, row;
	struct index_walk *walk; /* layers.h; NULL: lookups may go backward */
};

/*
 * Make @map a view of the @len bytes at @image. Checks the header's checksum, and that every table lies
 * inside the image: no lookup can leave it, whatever the bytes are. @verify also checks the checksum of the
 * whole. 0; -EBADMSG: a damaged image; -EPROTONOSUPPORT: a later version.
 */
int index_map_open(struct index_map *map, const void *image, size_t len, bool verify);

/*
 * The piece that begins at @logical_off, at most @len bytes (> 0). The next piece may continue it. Holes and
 * cuts are pieces too. Thread-safe. An image of unknown origin may have any log_no: check it before use (no
 * map has INDEX_LOG_BAD). log_off + len is at most INT64_MAX.
 */
void index_map_lookup(const struct index_map *map, uint64_t logical_off, uint64_t len,
		      struct index_piece *piece);

/*
 * The same for a caller that looks up piece after piece, in order or the same part of each row. @hint is the
 * caller's.
 */
void index_map_lookup_near(const struct index_map *map, uint64_t logical_off, uint64_t len,
			   struct index_piece *piece, struct index_hint *hint);

/*
 * Call @fn for every piece of [0, end) in ascending order, without the holes. Stops at the first non-zero
 * return and returns it. Runs are expanded: meant for people and tests.
 */
int index_map_each(const struct index_map *map, int (*fn)(void *arg, const struct index_piece *piece),
		   void *arg);

#endif
