/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The image of a map: its byte tables, and the growing image that merge.c fills. map.c reads it.
 *
 *   off size field          (little-endian)
 *     0   8  magic          "PLFSMAP1"
 *     8   4  version        2
 *    12   4  header_len     200 in this version
 *    16   4  header_crc     CRC-32C of header_len bytes with this field 0
 *    20   4  body_crc       CRC-32C of everything after the header
 *    24   8  image_len      bytes of the whole image
 *    32   8  end            \
 *    40   8  cut             | as in struct index_map
 *    48   8  max_stamp_ns    |
 *    56   8  nr_records     /
 *    64   8  nr_panels      then the tables: number of rows, and where in the image they begin
 *    72   8  panels_off
 *    80   8  nr_entries
 *    88   8  entries_off
 *    96   8  nr_tables
 *   104   8  tables_off
 *   112   8  nr_phases
 *   120   8  phases_off
 *   128   8  nr_layers
 *   136   8  layers_off
 *   144   8  nr_grids
 *   152   8  grids_off
 *   160   8  nr_bands
 *   168   8  bands_off
 *   176   8  nr_cells
 *   184   8  cells_off
 *   192   8  zeros
 *
 * A panel says how a range of the logical file is described. Panels are sorted and do not
 * overlap; what lies between them is a gap: a hole, or from the header's cut on, cut off.
 *     0   8  lo
 *     8   8  hi
 *    16   8  first          plain: its first entry; strided: its table; mixed: its first layer; nested: its
 *                           grid
 *    24   4  nr             number of entries or layers; others: 1
 *    28   4  kind           1 plain, 2 strided, 3 mixed, 4 nested; others: a damaged image
 *
 * An entry is one extent, 24 bytes. Sorted, not overlapping, inside the panel:
 *     0   8  logical_off
 *     8   8  log_off
 *    16   4  log_no
 *    20   4  length         longer extents are strided panels of one row
 *
 * A table describes a stretch of runs with one stride. Rows are stride bytes long, the first of them
 * begins at base; all rows look alike. Panels share a table where something else interrupts it:
 *     0   8  base
 *     8   8  stride
 *    16   8  first          its first phase
 *    24   8  nr             number of phases
 *
 * A phase is one visible part of a row. Sorted, not overlapping, inside the stride:
 *     0   8  phase          where in the row it begins
 *     8   8  length
 *    16   8  log_off        of the phase in row 0; row i is at log_off + i * step
 *    24   8  step
 *    32   4  log_no
 *    36   4  zero
 *
 * A grid describes nested runs: planes of stride bytes, the first of which begins at base, that all look
 * alike:
 *     0   8  base
 *     8   8  stride
 *    16   8  first          its first band
 *    24   8  nr             number of bands
 *
 * A band is a part of a plane that has rows, as those of a table. Sorted, not overlapping:
 *     0   8  lo             where in the plane its first row begins
 *     8   8  stride
 *    16   8  count          number of rows
 *    24   8  first          its first cell
 *    32   8  nr             number of cells
 *
 * A cell is one visible part of a band's row. Sorted, not overlapping, inside the stride:
 *     0   8  phase          where in the row it begins
 *     8   8  length
 *    16   8  log_off        in row 0 of plane 0; row i of plane j is at log_off + i * step + j * outer_step
 *    24   8  step
 *    32   8  outer_step
 *    40   4  log_no
 *    44   4  zero
 *
 * A layer is one record of a mixed panel, where runs of different strides lie over each other and each
 * lookup finds the newest itself. Sorted by logical_off, and at the same time a balanced
 * tree: the root of layers [l, r) is the one at l + (r - l) / 2.
 *     0   8  logical_off
 *     8   8  length
 *    16   8  stride         0 if count is 1
 *    24   8  count
 *    32   8  log_off
 *    40   8  stamp_ns
 *    48   8  max_end        largest end of the layers of this subtree
 *    56   4  log_no
 *    60   4  seq            the later added is the higher
 *    64   8  step           in the log from one element to the next
 *    72   8  outer_stride   of nested runs, the larger of the strides; else 0
 *    80   8  outer_count    else 0
 *    88   8  outer_step
 *    96   8  end            what lies behind is cut off
 */
#ifndef PLFS_IMAGE_H
#define PLFS_IMAGE_H

#include "index/map/extents.h"

#define IMAGE_MAGIC "PLFSMAP1"
#define IMAGE_VERSION 2
#define IMAGE_HEADER_LEN 200
#define IMAGE_PANEL_LEN 32
#define IMAGE_ENTRY_LEN 24
#define IMAGE_TABLE_LEN 32
#define IMAGE_PHASE_LEN 40
#define IMAGE_LAYER_LEN 104
#define IMAGE_GRID_LEN 32
#define IMAGE_BAND_LEN 40
#define IMAGE_CELL_LEN 48

enum image_panel_kind { IMAGE_PLAIN = 1, IMAGE_STRIDED = 2, IMAGE_MIXED = 3, IMAGE_NESTED = 4 };

/* Rows of one kind, already encoded. */
struct image_rows {
	uint8_t *v;
	size_t len, cap; /* bytes */
};

/*
 * A layer that is not encoded yet: an extent is a run of one element. Of nested runs the smaller stride is
 * the inner one, whatever the record says: the steps give the order of the elements in the log.
 */
struct image_layer {
	uint64_t logical_off, length, stride, count, log_off, stamp_ns;
	uint64_t hi; /* its end */
	uint32_t log_no, seq;
	uint64_t step, outer_stride, outer_count, outer_step;
	/* the sweep's: nested runs that are treated as one, their number less 1; 0: it is a run */
	uint32_t box;
};

/* entries begins with room for the header, so that the largest table is never copied. */
struct image {
	struct image_rows entries, panels, tables, phases, layers, grids, bands, cells;
	struct extents *over; /* entries is their memory, as far as it is free; NULL: the image's own */
};

/*
 * An image of @extents, more or less. With @over it is written over those that the sweep has taken, and has
 * their memory in the end.
 */
int image_init(struct image *img, struct extents *extents, bool over);
void image_release(struct image *img);

/* The next stretch, in ascending order: one visible extent, or rows of table number @table. */
int image_add_extent(struct image *img, const struct overlay_piece *piece);
int image_add_strided(struct image *img, uint64_t lo, uint64_t hi, uint64_t table);
/* The same for a mixed one, whose layers come later: image_end_mixed() sets them for all since @panel. */
int image_add_mixed(struct image *img, uint64_t lo, uint64_t hi);
void image_end_mixed(struct image *img, size_t panel, uint64_t first_layer, uint32_t nr_layers);

/* A new table and its phases, in ascending order; a table is used after its last phase. */
int image_add_table(struct image *img, uint64_t base, uint64_t stride);
int image_add_phase(struct image *img, const struct overlay_piece *piece);
void image_drop_table(struct image *img); /* the last one */
/* Bytes of its row that the phases of the last table cover. */
uint64_t image_table_covers(const struct image *img);

/* The next stretch is planes of grid number @grid. */
int image_add_nested(struct image *img, uint64_t lo, uint64_t hi, uint64_t grid);

/*
 * A new grid, its bands and their cells, each in ascending order. @piece: one visible part of a row of the
 * last band.
 */
int image_add_grid(struct image *img, uint64_t base, uint64_t stride);
int image_add_band(struct image *img, uint64_t lo, uint64_t stride, uint64_t count);
int image_add_cell(struct image *img, const struct overlay_piece *piece, uint64_t outer_step);
void image_drop_grid(struct image *img); /* the last one */

/* Append @layers, sorted by logical_off, @n of them. */
int image_add_layers(struct image *img, const struct image_layer *layers, size_t n);

static inline size_t image_nr_panels(const struct image *img) { return img->panels.len / IMAGE_PANEL_LEN; }
static inline size_t image_nr_tables(const struct image *img) { return img->tables.len / IMAGE_TABLE_LEN; }
static inline size_t image_nr_grids(const struct image *img) { return img->grids.len / IMAGE_GRID_LEN; }
static inline size_t image_nr_layers(const struct image *img) { return img->layers.len / IMAGE_LAYER_LEN; }

/* Put all together; *@out is the caller's to mem_free(). @img is empty afterwards. */
int image_finish(struct image *img, uint64_t cut, uint64_t max_stamp_ns, uint64_t nr_records, void **out,
		 size_t *len);

#endif
