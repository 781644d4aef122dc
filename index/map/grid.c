/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Boxes and their grids. In a box all nested runs have the same outer stride and count, and none crosses into
 * the next plane. So all planes look alike, and only one is described. Runs of a plane that begin within one
 * row of each other make a band of rows, which shows the newest of them. Each nested run is in one band, so
 * the grid is linear in records. Nested runs that do not fit stay as they are, and each lookup searches them.
 */
#include "index/map/grid.h"

#include "core/base/alloc.h"

/* Bytes from the begin of a run of @r to its end. */
static uint64_t plane_extent(const struct image_layer *r)
{
	return (r->count - 1) * r->stride + r->length;
}

/* Whether all planes of @r are whole. */
static bool is_uncut(const struct image_layer *r)
{
	return r->hi == r->logical_off + (r->outer_count - 1) * r->outer_stride + plane_extent(r);
}

static bool fits(const struct image_layer *first, const struct image_layer *r)
{
	uint64_t behind = r->logical_off - first->logical_off;

	return r->outer_stride == first->outer_stride && r->outer_count == first->outer_count &&
	       is_uncut(r) && behind < r->outer_stride && plane_extent(r) <= r->outer_stride - behind;
}

static int sort_nested(struct sweep *sw)
{
	struct overlay_keys order = { 0 };
	struct image_layer *sorted = mem_alloc(sw->nr_nested * sizeof(*sorted));
	int ret = sorted ? 0 : -ENOMEM;

	for (size_t i = 0; i < sw->nr_nested && !ret; i++)
		ret = overlay_keys_add(&order, sw->nested[i].logical_off, (uint32_t)i, 0);
	if (!ret)
		ret = overlay_keys_sort(&order);
	if (ret) {
		mem_free(sorted);
	} else {
		for (size_t i = 0; i < sw->nr_nested; i++)
			sorted[i] = sw->nested[order.v[i].idx];
		mem_free(sw->nested);
		sw->nested = sorted;
		sw->cap_nested = sw->nr_nested;
	}
	overlay_keys_release(&order);
	return ret;
}

/* Add a run for the box that begins with nested run @first. It has the stamp of the newest run in the box. */
static int add_box(struct sweep *sw, size_t first, size_t *next)
{
	const struct image_layer *nested = &sw->nested[first];
	struct grid_box *box = &sw->boxes[sw->nr_boxes++];
	struct overlay_piece newest = { .stamp_ns = nested->stamp_ns,
					.log_no = nested->log_no,
					.seq = nested->seq };
	struct image_layer run = *nested;
	size_t nr = 1;

	while (is_uncut(nested) && first + nr < sw->nr_nested && fits(nested, &nested[nr])) {
		const struct image_layer *r = &nested[nr++];
		struct overlay_piece piece = { .stamp_ns = r->stamp_ns, .log_no = r->log_no, .seq = r->seq };

		run.hi = max_u64(run.hi, r->hi);
		if (overlay_newer(&piece, &newest))
			newest = piece;
	}
	*box = (struct grid_box){ .first = first,
				  .nr = nr,
				  .grid = is_uncut(nested) ? GRID_NOT_TRIED : GRID_NONE };
	run.stamp_ns = newest.stamp_ns;
	run.log_no = newest.log_no;
	run.seq = newest.seq;
	run.box = (uint32_t)sw->nr_boxes;
	*next = first + nr;
	return sweep_add_run(sw, &run);
}

int grid_make_boxes(struct sweep *sw)
{
	int ret;

	if (sw->nr_nested == 0)
		return 0;
	sw->boxes = mem_alloc(sw->nr_nested * sizeof(*sw->boxes));
	ret = sw->boxes ? sort_nested(sw) : -ENOMEM;
	for (size_t i = 0; i < sw->nr_nested && !ret;)
		ret = add_box(sw, i, &i);
	return ret;
}

/* A visible part of a row. Until here the piece's step is the number of its nested run. */
static int emit_cell(void *arg, const struct overlay_piece *visible)
{
	struct sweep *sw = arg;
	const struct image_layer *r = &sw->nested[visible->step];
	struct overlay_piece piece = *visible;

	piece.step = r->step;
	return image_add_cell(sw->img, &piece, r->outer_step);
}

/*
 * Add the band that begins with nested run *@i; afterwards *@i is that of the next band, and *@hi its end in
 * the plane.
 */
static int add_band(struct sweep *sw, uint64_t base, size_t *i, size_t end, uint64_t *hi)
{
	const struct image_layer *first = &sw->nested[*i];
	int ret = image_add_band(sw->img, first->logical_off - base, first->stride, first->count);

	sw->pieces.n = 0;
	for (; *i < end && !ret; (*i)++) {
		const struct image_layer *r = &sw->nested[*i];
		uint64_t phase = r->logical_off - first->logical_off;
		struct overlay_piece piece = {
			.lo = phase,
			.hi = phase + r->length,
			.log_off = r->log_off,
			.step = *i,
			.stamp_ns = r->stamp_ns,
			.log_no = r->log_no,
			.seq = r->seq,
		};

		if (r->stride != first->stride || r->count != first->count || piece.hi > first->stride)
			break;
		*hi = max_u64(*hi, r->logical_off - base + plane_extent(r));
		ret = overlay_list_add(&sw->pieces, &piece);
	}
	return ret ? ret : overlay_resolve(&sw->overlay, &sw->pieces, emit_cell, sw);
}

/* Add the grid of @box. If bands overlap, it stays GRID_NONE. */
static int add_grid(struct sweep *sw, struct grid_box *box)
{
	uint64_t base = sw->nested[box->first].logical_off, hi = 0;
	size_t i = box->first, end = box->first + box->nr;
	int ret = image_add_grid(sw->img, base, sw->nested[i].outer_stride);

	box->grid = GRID_NONE;
	while (i < end && !ret) {
		if (sw->nested[i].logical_off - base < hi) {
			image_drop_grid(sw->img);
			return 0;
		}
		ret = add_band(sw, base, &i, end, &hi);
	}
	if (!ret)
		box->grid = image_nr_grids(sw->img) - 1;
	return ret;
}

int grid_write(struct sweep *sw, struct grid_box *box, uint64_t x, uint64_t y)
{
	int ret = box->grid == GRID_NOT_TRIED ? add_grid(sw, box) : 0;

	if (ret)
		return ret;
	return box->grid == GRID_NONE ? 1 : image_add_nested(sw->img, x, y, box->grid);
}
