/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is asked of every map, whatever it was made from: pieces that begin and end where they may, in any
 * order of asking.
 */
#ifndef TEST_LOOKUPS_H
#define TEST_LOOKUPS_H

#include "index/map/image.h"
#include "index/map/map.h"

static void check_lookup(const struct index_map *map, uint64_t x, uint64_t len, struct index_hint *hint)
{
	struct index_piece piece;

	index_map_lookup_near(map, x, len, &piece, hint);
	must(piece.logical_off == x && piece.len > 0 && piece.len <= len,
	     "a piece begins and ends where it may");
	if (piece.log_no < INDEX_LOG_BAD)
		must(piece.log_off <= INT64_MAX && piece.len <= INT64_MAX - piece.log_off,
		     "a piece is at a place that a log can have");
}

/* At random places, and around the ends of panels; @seed: any number. */
static void check_lookups(const struct index_map *map, uint64_t seed)
{
	struct index_hint hint = { 0 };

	for (int i = 0; i < 48; i++) {
		uint64_t x = seed >> (i % 64);

		if (map->nr_panels > 0 && i % 4) {
			const uint8_t *panel = map->panels + seed % map->nr_panels * IMAGE_PANEL_LEN;

			x = get_le64(panel + (i % 8 < 4 ? 0 : 8)) + (i % 3) - 1 + (i % 5 ? 0 : seed >> 44);
		}
		check_lookup(map, x, 1 + (seed >> (i % 60)), &hint);
		seed = seed * 6364136223846793005 + 1442695040888963407;
	}
}

/* Of a map that was made here, which keeps more promises. */
__attribute__((unused)) static void check_made(const struct index_map *map)
{
	struct index_hint hint = { 0 };
	struct index_piece piece, same;
	uint64_t x = 0;

	for (int i = 0; i < 2000 && x < map->end; i++, x += piece.len) {
		index_map_lookup_near(map, x, map->end - x, &piece, &hint);
		index_map_lookup(map, x, map->end - x, &same);
		must(piece.len > 0 && piece.len == same.len && piece.log_no == same.log_no &&
			     piece.log_off == same.log_off,
		     "a hint costs time alone");
		must(piece.log_no != INDEX_LOG_BAD, "a map that was made here names logs that there are");
	}
	if (map->end > 0) {
		index_map_lookup(map, map->end - 1, 2, &piece);
		must(piece.log_no < INDEX_LOG_BAD && piece.len == 1, "the last byte is data");
	}
}

#endif
