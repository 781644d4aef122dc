/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes images; the byte tables are in image.h. What is decided here is only how stretches join: an
 * extent that continues the last one in file and log makes it longer, a panel that continues the
 * last one in kind and table does too.
 */
#include "index/map/image.h"

#include "core/base/alloc.h"
#include "core/base/bytes.h"
#include "core/base/crc32c.h"

/* Memory of its own for the entries, so many more than there are. */
static int own_entries(struct image *img, size_t more)
{
	struct image_rows *to = &img->entries;
	size_t cap = to->len + 4096 + more * IMAGE_ENTRY_LEN;
	uint8_t *v = mem_alloc(cap);

	if (!v)
		return -ENOMEM;
	if (img->over && to->len > IMAGE_HEADER_LEN)
		memcpy(v, to->v, to->len);
	img->over = NULL;
	to->v = v;
	to->cap = cap;
	return 0;
}

int image_init(struct image *img, struct extents *extents, bool over)
{
	*img = (struct image){ .entries.len = IMAGE_HEADER_LEN };
	if (!over)
		return own_entries(img, extents->n);
	img->over = extents;
	img->entries.v = (uint8_t *)extents->v;
	return 0;
}

void image_release(struct image *img)
{
	if (!img->over)
		mem_free(img->entries.v);
	mem_free(img->panels.v);
	mem_free(img->tables.v);
	mem_free(img->phases.v);
	mem_free(img->layers.v);
	mem_free(img->grids.v);
	mem_free(img->bands.v);
	mem_free(img->cells.v);
	memset(img, 0, sizeof(*img));
}

static int rows_reserve(struct image_rows *rows, size_t more)
{
	size_t cap = rows->cap;
	uint8_t *v;

	if (more <= cap - rows->len)
		return 0;
	while (cap - rows->len < more)
		cap = cap ? cap + cap / 2 : 1024;
	v = mem_realloc(rows->v, cap);
	if (!v)
		return -ENOMEM;
	rows->v = v;
	rows->cap = cap;
	return 0;
}

/* A new row of @len bytes, NULL without memory. */
static uint8_t *rows_add(struct image_rows *rows, size_t len)
{
	if (rows_reserve(rows, len))
		return NULL;
	rows->len += len;
	return rows->v + rows->len - len;
}

/* A new entry: in the memory of extents that were taken, where there is enough of it. */
static uint8_t *add_entry(struct image *img)
{
	struct image_rows *to = &img->entries;

	if (img->over && to->len + IMAGE_ENTRY_LEN > to->cap) {
		to->cap = img->over->taken * sizeof(*img->over->v);
		if (to->len + IMAGE_ENTRY_LEN > to->cap && own_entries(img, img->over->n - img->over->taken))
			return NULL;
	}
	return rows_add(to, IMAGE_ENTRY_LEN);
}

static uint8_t *last_panel(struct image *img, enum image_panel_kind kind)
{
	uint8_t *p = img->panels.v;

	if (img->panels.len == 0)
		return NULL;
	p += img->panels.len - IMAGE_PANEL_LEN;
	return get_le32(p + 28) == (uint32_t)kind ? p : NULL;
}

static int add_panel(struct image *img, enum image_panel_kind kind, uint64_t lo, uint64_t hi, uint64_t first)
{
	uint8_t *p = rows_add(&img->panels, IMAGE_PANEL_LEN);

	if (!p)
		return -ENOMEM;
	put_le64(p, lo);
	put_le64(p + 8, hi);
	put_le64(p + 16, first);
	put_le32(p + 24, kind == IMAGE_MIXED ? 0 : 1);
	put_le32(p + 28, (uint32_t)kind);
	return 0;
}

/* Too long for an entry: one row of a table of its own. */
static int add_giant(struct image *img, const struct overlay_piece *piece)
{
	struct overlay_piece row = *piece;
	int ret = image_add_table(img, piece->lo, piece->hi - piece->lo);

	if (ret)
		return ret;
	row.lo = 0;
	row.hi = piece->hi - piece->lo;
	row.step = 0;
	ret = image_add_phase(img, &row);
	if (ret)
		return ret;
	return add_panel(img, IMAGE_STRIDED, piece->lo, piece->hi, image_nr_tables(img) - 1);
}

int image_add_extent(struct image *img, const struct overlay_piece *piece)
{
	uint8_t *panel = last_panel(img, IMAGE_PLAIN), *e;
	uint64_t len = piece->hi - piece->lo;

	if (len > UINT32_MAX)
		return add_giant(img, piece);
	if (panel) {
		uint64_t last_len;

		e = img->entries.v + img->entries.len - IMAGE_ENTRY_LEN;
		last_len = get_le32(e + 20);
		if (get_le64(e) + last_len == piece->lo && get_le64(e + 8) + last_len == piece->log_off &&
		    get_le32(e + 16) == piece->log_no && last_len + len <= UINT32_MAX) {
			put_le32(e + 20, (uint32_t)(last_len + len));
			put_le64(panel + 8, piece->hi);
			return 0;
		}
	}
	e = add_entry(img);
	if (!e)
		return -ENOMEM;
	put_le64(e, piece->lo);
	put_le64(e + 8, piece->log_off);
	put_le32(e + 16, piece->log_no);
	put_le32(e + 20, (uint32_t)len);
	if (panel && get_le32(panel + 24) < UINT32_MAX) {
		put_le64(panel + 8, piece->hi);
		put_le32(panel + 24, get_le32(panel + 24) + 1);
		return 0;
	}
	return add_panel(img, IMAGE_PLAIN, piece->lo, piece->hi,
			 (img->entries.len - IMAGE_HEADER_LEN) / IMAGE_ENTRY_LEN - 1);
}

/* More of table or grid number @first. */
static int add_arithmetic(struct image *img, enum image_panel_kind kind, uint64_t lo, uint64_t hi,
			  uint64_t first)
{
	uint8_t *panel = last_panel(img, kind);

	if (panel && get_le64(panel + 8) == lo && get_le64(panel + 16) == first) {
		put_le64(panel + 8, hi);
		return 0;
	}
	return add_panel(img, kind, lo, hi, first);
}

int image_add_strided(struct image *img, uint64_t lo, uint64_t hi, uint64_t table)
{
	return add_arithmetic(img, IMAGE_STRIDED, lo, hi, table);
}

int image_add_nested(struct image *img, uint64_t lo, uint64_t hi, uint64_t grid)
{
	return add_arithmetic(img, IMAGE_NESTED, lo, hi, grid);
}

int image_add_mixed(struct image *img, uint64_t lo, uint64_t hi)
{
	uint8_t *panel = last_panel(img, IMAGE_MIXED);

	if (panel && get_le64(panel + 8) == lo && get_le32(panel + 24) == 0) {
		put_le64(panel + 8, hi);
		return 0;
	}
	return add_panel(img, IMAGE_MIXED, lo, hi, 0);
}

void image_end_mixed(struct image *img, size_t panel, uint64_t first_layer, uint32_t nr_layers)
{
	for (; panel < image_nr_panels(img); panel++) {
		uint8_t *p = img->panels.v + panel * IMAGE_PANEL_LEN;

		if (get_le32(p + 28) != IMAGE_MIXED)
			continue;
		put_le64(p + 16, first_layer);
		put_le32(p + 24, nr_layers);
	}
}

int image_add_table(struct image *img, uint64_t base, uint64_t stride)
{
	uint8_t *t = rows_add(&img->tables, IMAGE_TABLE_LEN);

	if (!t)
		return -ENOMEM;
	put_le64(t, base);
	put_le64(t + 8, stride);
	put_le64(t + 16, img->phases.len / IMAGE_PHASE_LEN);
	put_le64(t + 24, 0);
	return 0;
}

int image_add_phase(struct image *img, const struct overlay_piece *piece)
{
	uint8_t *t = img->tables.v + img->tables.len - IMAGE_TABLE_LEN, *e;
	uint64_t nr = get_le64(t + 24), len = piece->hi - piece->lo;

	if (nr > 0) {
		uint64_t last_len;

		e = img->phases.v + img->phases.len - IMAGE_PHASE_LEN;
		last_len = get_le64(e + 8);
		if (get_le64(e) + last_len == piece->lo && get_le64(e + 16) + last_len == piece->log_off &&
		    get_le64(e + 24) == piece->step && get_le32(e + 32) == piece->log_no) {
			put_le64(e + 8, last_len + len);
			return 0;
		}
	}
	e = rows_add(&img->phases, IMAGE_PHASE_LEN);
	if (!e)
		return -ENOMEM;
	put_le64(e, piece->lo);
	put_le64(e + 8, len);
	put_le64(e + 16, piece->log_off);
	put_le64(e + 24, piece->step);
	put_le32(e + 32, piece->log_no);
	put_le32(e + 36, 0);
	put_le64(t + 24, nr + 1);
	return 0;
}

void image_drop_table(struct image *img)
{
	const uint8_t *t = img->tables.v + img->tables.len - IMAGE_TABLE_LEN;

	img->phases.len -= get_le64(t + 24) * IMAGE_PHASE_LEN;
	img->tables.len -= IMAGE_TABLE_LEN;
}

uint64_t image_table_covers(const struct image *img)
{
	const uint8_t *t = img->tables.v + img->tables.len - IMAGE_TABLE_LEN;
	uint64_t covered = 0;

	for (uint64_t i = get_le64(t + 16); i < img->phases.len / IMAGE_PHASE_LEN; i++)
		covered += get_le64(img->phases.v + i * IMAGE_PHASE_LEN + 8);
	return covered;
}

int image_add_grid(struct image *img, uint64_t base, uint64_t stride)
{
	uint8_t *g = rows_add(&img->grids, IMAGE_GRID_LEN);

	if (!g)
		return -ENOMEM;
	put_le64(g, base);
	put_le64(g + 8, stride);
	put_le64(g + 16, img->bands.len / IMAGE_BAND_LEN);
	put_le64(g + 24, 0);
	return 0;
}

int image_add_band(struct image *img, uint64_t lo, uint64_t stride, uint64_t count)
{
	uint8_t *g = img->grids.v + img->grids.len - IMAGE_GRID_LEN,
		*b = rows_add(&img->bands, IMAGE_BAND_LEN);

	if (!b)
		return -ENOMEM;
	put_le64(b, lo);
	put_le64(b + 8, stride);
	put_le64(b + 16, count);
	put_le64(b + 24, img->cells.len / IMAGE_CELL_LEN);
	put_le64(b + 32, 0);
	put_le64(g + 24, get_le64(g + 24) + 1);
	return 0;
}

int image_add_cell(struct image *img, const struct overlay_piece *piece, uint64_t outer_step)
{
	uint8_t *b = img->bands.v + img->bands.len - IMAGE_BAND_LEN,
		*c = rows_add(&img->cells, IMAGE_CELL_LEN);

	if (!c)
		return -ENOMEM;
	put_le64(c, piece->lo);
	put_le64(c + 8, piece->hi - piece->lo);
	put_le64(c + 16, piece->log_off);
	put_le64(c + 24, piece->step);
	put_le64(c + 32, outer_step);
	put_le32(c + 40, piece->log_no);
	put_le32(c + 44, 0);
	put_le64(b + 32, get_le64(b + 32) + 1);
	return 0;
}

void image_drop_grid(struct image *img)
{
	const uint8_t *g = img->grids.v + img->grids.len - IMAGE_GRID_LEN, *b;

	if (get_le64(g + 24) > 0) {
		b = img->bands.v + get_le64(g + 16) * IMAGE_BAND_LEN;
		img->cells.len = get_le64(b + 24) * IMAGE_CELL_LEN;
	}
	img->bands.len = get_le64(g + 16) * IMAGE_BAND_LEN;
	img->grids.len -= IMAGE_GRID_LEN;
}

/* Set max_end in the subtree of layers [l, r) at @v and return it; as deep as the logarithm of r - l. */
static uint64_t set_max_end(uint8_t *v, const struct image_layer *layers, size_t l, size_t r)
{
	size_t mid = l + (r - l) / 2;
	uint64_t max_end;

	if (l == r)
		return 0;
	max_end = max_u64(layers[mid].hi, set_max_end(v, layers, l, mid));
	max_end = max_u64(max_end, set_max_end(v, layers, mid + 1, r));
	put_le64(v + mid * IMAGE_LAYER_LEN + 48, max_end);
	return max_end;
}

int image_add_layers(struct image *img, const struct image_layer *layers, size_t n)
{
	uint8_t *v = rows_add(&img->layers, n * IMAGE_LAYER_LEN);

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct image_layer *layer = &layers[i];
		uint8_t *p = v + i * IMAGE_LAYER_LEN;

		put_le64(p, layer->logical_off);
		put_le64(p + 8, layer->length);
		put_le64(p + 16, layer->stride);
		put_le64(p + 24, layer->count);
		put_le64(p + 32, layer->log_off);
		put_le64(p + 40, layer->stamp_ns);
		put_le32(p + 56, layer->log_no);
		put_le32(p + 60, layer->seq);
		put_le64(p + 64, layer->step);
		put_le64(p + 72, layer->outer_stride);
		put_le64(p + 80, layer->outer_count);
		put_le64(p + 88, layer->outer_step);
		put_le64(p + 96, layer->hi);
	}
	set_max_end(v, layers, 0, n);
	return 0;
}

/* Append @rows to the image and note in the header, at @field, how many and where. */
static void append(struct image_rows *to, struct image_rows *rows, size_t row_len, size_t field)
{
	put_le64(to->v + field, rows->len / row_len);
	put_le64(to->v + field + 8, to->len);
	if (rows->len > 0)
		memcpy(to->v + to->len, rows->v, rows->len);
	to->len += rows->len;
}

int image_finish(struct image *img, uint64_t cut, uint64_t max_stamp_ns, uint64_t nr_records, void **out,
		 size_t *len)
{
	struct image_rows *to = &img->entries;
	size_t entries_len = to->len - IMAGE_HEADER_LEN;
	size_t all = to->len + img->panels.len + img->tables.len + img->phases.len + img->layers.len +
		     img->grids.len + img->bands.len + img->cells.len;
	uint64_t end = img->panels.len ? get_le64(img->panels.v + img->panels.len - IMAGE_PANEL_LEN + 8) : 0;
	uint8_t *p = mem_realloc(to->v, all);

	if (!p)
		return -ENOMEM;
	if (img->over)
		img->over->v = NULL;
	img->over = NULL;
	to->v = p;
	to->cap = all;

	memset(p, 0, IMAGE_HEADER_LEN);
	memcpy(p, IMAGE_MAGIC, 8);
	put_le32(p + 8, IMAGE_VERSION);
	put_le32(p + 12, IMAGE_HEADER_LEN);
	put_le64(p + 24, all);
	put_le64(p + 32, end);
	put_le64(p + 40, cut);
	put_le64(p + 48, max_stamp_ns);
	put_le64(p + 56, nr_records);
	put_le64(p + 80, entries_len / IMAGE_ENTRY_LEN);
	put_le64(p + 88, IMAGE_HEADER_LEN);
	append(to, &img->panels, IMAGE_PANEL_LEN, 64);
	append(to, &img->tables, IMAGE_TABLE_LEN, 96);
	append(to, &img->phases, IMAGE_PHASE_LEN, 112);
	append(to, &img->layers, IMAGE_LAYER_LEN, 128);
	append(to, &img->grids, IMAGE_GRID_LEN, 144);
	append(to, &img->bands, IMAGE_BAND_LEN, 160);
	append(to, &img->cells, IMAGE_CELL_LEN, 176);
	put_le32(p + 20, crc32c(0, p + IMAGE_HEADER_LEN, all - IMAGE_HEADER_LEN));
	put_le32(p + 16, crc32c(0, p, IMAGE_HEADER_LEN));

	*out = p;
	*len = all;
	to->v = NULL;
	image_release(img);
	return 0;
}
