/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads images: opening, which checks that the tables lie inside the image, and lookups, which clamp
 * what they read from the tables themselves. So an image that lies can give wrong pieces, but cannot lead a
 * lookup out of the image, divide by zero, or keep it longer than the image is.
 */
#include "index/map/map.h"

#include "index/map/image.h"
#include "index/map/layers.h"

#include "core/base/bytes.h"
#include "core/base/crc32c.h"

/* The table described at @field of the header; NULL if it is not inside the image. */
static const uint8_t *open_table(const struct index_map *map, size_t field, size_t row_len, uint64_t *nr)
{
	uint64_t off = get_le64(map->image + field + 8), len;

	*nr = get_le64(map->image + field);
	if (__builtin_mul_overflow(*nr, (uint64_t)row_len, &len) || off > map->image_len ||
	    len > map->image_len - off)
		return NULL;
	return map->image + off;
}

static bool header_crc_ok(const uint8_t *p, uint32_t header_len)
{
	static const uint8_t zeros[4];
	uint32_t crc = crc32c(0, p, 16);

	crc = crc32c(crc, zeros, sizeof(zeros));
	return crc32c(crc, p + 20, header_len - 20) == get_le32(p + 16);
}

int index_map_open(struct index_map *map, const void *image, size_t len, bool verify)
{
	const uint8_t *p = image;
	uint32_t header_len;

	memset(map, 0, sizeof(*map));
	if (len < IMAGE_HEADER_LEN || memcmp(p, IMAGE_MAGIC, 8) != 0)
		return -EBADMSG;
	header_len = get_le32(p + 12);
	if (header_len < IMAGE_HEADER_LEN || header_len > len || !header_crc_ok(p, header_len))
		return -EBADMSG;
	if (get_le32(p + 8) != IMAGE_VERSION)
		return -EPROTONOSUPPORT;
	if (get_le64(p + 24) != len)
		return -EBADMSG;

	map->image = p;
	map->image_len = len;
	map->end = get_le64(p + 32);
	map->cut = get_le64(p + 40);
	map->max_stamp_ns = get_le64(p + 48);
	map->nr_records = get_le64(p + 56);
	map->panels = open_table(map, 64, IMAGE_PANEL_LEN, &map->nr_panels);
	map->entries = open_table(map, 80, IMAGE_ENTRY_LEN, &map->nr_entries);
	map->tables = open_table(map, 96, IMAGE_TABLE_LEN, &map->nr_tables);
	map->phases = open_table(map, 112, IMAGE_PHASE_LEN, &map->nr_phases);
	map->layers = open_table(map, 128, IMAGE_LAYER_LEN, &map->nr_layers);
	map->grids = open_table(map, 144, IMAGE_GRID_LEN, &map->nr_grids);
	map->bands = open_table(map, 160, IMAGE_BAND_LEN, &map->nr_bands);
	map->cells = open_table(map, 176, IMAGE_CELL_LEN, &map->nr_cells);
	if (!map->panels || !map->entries || !map->tables || !map->phases || !map->layers || !map->grids ||
	    !map->bands || !map->cells)
		return -EBADMSG;
	if (map->end >= INT64_MAX) /* no record's is */
		return -EBADMSG;
	if (verify && crc32c(0, p + header_len, len - header_len) != get_le32(p + 20))
		return -EBADMSG;
	return 0;
}

/*
 * Number of the rows at @v, @nr of them sorted by their first field, whose first field is at most @x.
 * The last of them is where to look for @x, the next where a gap ends.
 */
static uint64_t rows_upto(const uint8_t *v, size_t row_len, uint64_t nr, uint64_t x)
{
	uint64_t base = 0;

	while (nr > 0) {
		uint64_t half = nr / 2;

		if (get_le64(v + (base + half) * row_len) <= x) {
			base += half + 1;
			nr -= half + 1;
		} else {
			nr = half;
		}
	}
	return base;
}

static bool is_upto(const uint8_t *v, size_t row_len, uint64_t nr, uint64_t x, uint64_t i)
{
	return i <= nr && (i == 0 || get_le64(v + (i - 1) * row_len) <= x) &&
	       (i == nr || get_le64(v + i * row_len) > x);
}

/*
 * The same; first where *@hint says, then one further, then at the beginning: rows of a strided table come
 * round again.
 */
static uint64_t rows_upto_near(const uint8_t *v, size_t row_len, uint64_t nr, uint64_t x, uint64_t *hint)
{
	if (is_upto(v, row_len, nr, x, *hint))
		return *hint;
	*hint = is_upto(v, row_len, nr, x, *hint + 1) ? *hint + 1 :
		is_upto(v, row_len, nr, x, 1)	      ? 1 :
							rows_upto(v, row_len, nr, x);
	return *hint;
}

/* Cut @piece, which begins at x, off at @end; an @end that is not beyond x is a lie and ignored. */
static void end_at(struct index_piece *piece, uint64_t end)
{
	if (end > piece->logical_off)
		piece->len = min_u64(piece->len, end - piece->logical_off);
}

/*
 * Cut @piece, which is at @phase of a row, off where the next phase begins; one that is not beyond it is a
 * lie as well.
 */
static void begin_at(struct index_piece *piece, uint64_t next, uint64_t phase)
{
	if (next > phase)
		piece->len = min_u64(piece->len, next - phase);
}

/* A gap: a hole up to the cut, zeros from there. */
static void gap(const struct index_map *map, struct index_piece *piece)
{
	if (piece->logical_off >= map->cut) {
		piece->log_no = INDEX_LOG_CUT;
	} else {
		piece->log_no = INDEX_LOG_HOLE;
		end_at(piece, map->cut);
	}
}

static void lookup_plain(const struct index_map *map, uint64_t first, uint64_t nr, struct index_piece *piece,
			 uint64_t *hint)
{
	uint64_t x = piece->logical_off, i;
	const uint8_t *v, *e;

	first = min_u64(first, map->nr_entries);
	nr = min_u64(nr, map->nr_entries - first);
	v = map->entries + first * IMAGE_ENTRY_LEN;
	i = rows_upto_near(v, IMAGE_ENTRY_LEN, nr, x, hint);
	e = v + i * IMAGE_ENTRY_LEN;
	if (i > 0) {
		const uint8_t *at = e - IMAGE_ENTRY_LEN;
		uint64_t into = x - get_le64(at), len = get_le32(at + 20);

		if (into < len) {
			piece->len = min_u64(piece->len, len - into);
			piece->log_off = get_le64(at + 8) + into;
			piece->log_no = get_le32(at + 16);
			return;
		}
	}
	if (i < nr)
		end_at(piece, get_le64(e));
	gap(map, piece);
}

static void lookup_strided(const struct index_map *map, uint64_t table, struct index_piece *piece,
			   uint64_t *hint)
{
	uint64_t base, stride, first, nr, row, phase, i;
	const uint8_t *t, *v, *e;

	if (table >= map->nr_tables) {
		gap(map, piece);
		return;
	}
	t = map->tables + table * IMAGE_TABLE_LEN;
	base = get_le64(t);
	stride = get_le64(t + 8);
	first = min_u64(get_le64(t + 16), map->nr_phases);
	nr = min_u64(get_le64(t + 24), map->nr_phases - first);
	if (stride == 0 || base > piece->logical_off) {
		gap(map, piece);
		return;
	}
	row = (piece->logical_off - base) / stride;
	phase = (piece->logical_off - base) % stride;
	v = map->phases + first * IMAGE_PHASE_LEN;
	i = rows_upto_near(v, IMAGE_PHASE_LEN, nr, phase, hint);
	e = v + i * IMAGE_PHASE_LEN;
	if (i > 0) {
		const uint8_t *at = e - IMAGE_PHASE_LEN;
		uint64_t into = phase - get_le64(at), len = get_le64(at + 8);

		if (into < len) {
			piece->len = min_u64(piece->len, len - into);
			piece->log_off = get_le64(at + 16) + row * get_le64(at + 24) + into;
			piece->log_no = get_le32(at + 32);
			return;
		}
	}
	/* A gap, to the next phase or to the end of the row. */
	piece->len = min_u64(piece->len, stride - phase);
	if (i < nr)
		begin_at(piece, get_le64(e), phase);
	gap(map, piece);
}

/* A row of @stride bytes of band @b, @phase bytes into it. The gap that may be there ends with the row. */
static void lookup_row(const struct index_map *map, const uint8_t *b, uint64_t plane, uint64_t row,
		       uint64_t stride, uint64_t phase, struct index_piece *piece, uint64_t *hint)
{
	uint64_t first = min_u64(get_le64(b + 24), map->nr_cells),
		 nr = min_u64(get_le64(b + 32), map->nr_cells - first);
	const uint8_t *v = map->cells + first * IMAGE_CELL_LEN;
	uint64_t i = rows_upto_near(v, IMAGE_CELL_LEN, nr, phase, hint);
	const uint8_t *c = v + i * IMAGE_CELL_LEN;

	if (i > 0) {
		const uint8_t *at = c - IMAGE_CELL_LEN;
		uint64_t into = phase - get_le64(at), len = get_le64(at + 8);

		if (into < len) {
			piece->len = min_u64(piece->len, len - into);
			piece->log_off = get_le64(at + 16) + row * get_le64(at + 24) +
					 plane * get_le64(at + 32) + into;
			piece->log_no = get_le32(at + 40);
			return;
		}
	}
	piece->len = min_u64(piece->len, stride - phase);
	if (i < nr)
		begin_at(piece, get_le64(c), phase);
	gap(map, piece);
}

static void lookup_nested(const struct index_map *map, uint64_t grid, struct index_piece *piece,
			  uint64_t *hint)
{
	uint64_t base, stride, first, nr, plane, into, i;
	const uint8_t *g, *v, *b;

	if (grid >= map->nr_grids) {
		gap(map, piece);
		return;
	}
	g = map->grids + grid * IMAGE_GRID_LEN;
	base = get_le64(g);
	stride = get_le64(g + 8);
	first = min_u64(get_le64(g + 16), map->nr_bands);
	nr = min_u64(get_le64(g + 24), map->nr_bands - first);
	if (stride == 0 || base > piece->logical_off) {
		gap(map, piece);
		return;
	}
	plane = (piece->logical_off - base) / stride;
	into = (piece->logical_off - base) % stride;
	v = map->bands + first * IMAGE_BAND_LEN;
	i = rows_upto(v, IMAGE_BAND_LEN, nr, into);
	piece->len = min_u64(piece->len, stride - into);
	if (i < nr)
		begin_at(piece, get_le64(v + i * IMAGE_BAND_LEN), into);
	if (i > 0) {
		b = v + (i - 1) * IMAGE_BAND_LEN;
		into -= min_u64(get_le64(b), into);
		stride = get_le64(b + 8);
		if (stride > 0 && into / stride < get_le64(b + 16)) {
			lookup_row(map, b, plane, into / stride, stride, into % stride, piece, hint);
			return;
		}
	}
	gap(map, piece);
}

static void lookup_mixed(const struct index_map *map, uint64_t first, uint64_t nr, struct index_piece *piece,
			 struct index_walk *walk)
{
	const uint8_t *v;

	first = min_u64(first, map->nr_layers);
	nr = min_u64(nr, map->nr_layers - first);
	v = map->layers + first * IMAGE_LAYER_LEN;
	if (!(walk ? layers_walk(walk, v, nr, piece) : layers_lookup(v, nr, piece)))
		gap(map, piece);
}

void index_map_lookup_near(const struct index_map *map, uint64_t logical_off, uint64_t len,
			   struct index_piece *piece, struct index_hint *hint)
{
	uint64_t i = rows_upto_near(map->panels, IMAGE_PANEL_LEN, map->nr_panels, logical_off, &hint->panel),
		 first, nr;
	const uint8_t *next = map->panels + i * IMAGE_PANEL_LEN, *p = i > 0 ? next - IMAGE_PANEL_LEN : NULL;

	piece->logical_off = logical_off;
	piece->len = len;
	piece->log_off = 0;
	if (!p || get_le64(p + 8) <= logical_off) {
		if (i < map->nr_panels)
			end_at(piece, get_le64(next));
		gap(map, piece);
		return;
	}
	end_at(piece, get_le64(p + 8));
	first = get_le64(p + 16);
	nr = get_le32(p + 24);
	switch (get_le32(p + 28)) {
	case IMAGE_PLAIN:
		lookup_plain(map, first, nr, piece, &hint->row);
		break;
	case IMAGE_STRIDED:
		lookup_strided(map, first, piece, &hint->row);
		break;
	case IMAGE_NESTED:
		lookup_nested(map, first, piece, &hint->row);
		break;
	case IMAGE_MIXED:
		lookup_mixed(map, first, nr, piece, hint->walk);
		break;
	default:
		gap(map, piece);
	}
	if (unlikely(piece->len > INT64_MAX || piece->log_off > INT64_MAX - piece->len) &&
	    piece->log_no < INDEX_LOG_BAD)
		piece->log_no = INDEX_LOG_BAD;
}

void index_map_lookup(const struct index_map *map, uint64_t logical_off, uint64_t len,
		      struct index_piece *piece)
{
	struct index_hint hint = { 0 };

	index_map_lookup_near(map, logical_off, len, piece, &hint);
}

int index_map_each(const struct index_map *map, int (*fn)(void *arg, const struct index_piece *piece),
		   void *arg)
{
	struct index_piece piece;
	int ret = 0;

	for (uint64_t x = 0; x < map->end && !ret; x += piece.len) {
		index_map_lookup(map, x, map->end - x, &piece);
		if (piece.log_no != INDEX_LOG_HOLE && piece.log_no != INDEX_LOG_CUT)
			ret = fn(arg, &piece);
	}
	return ret;
}
