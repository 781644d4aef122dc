/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sweep goes along the file from left to right and knows which runs and extents have begun and not yet
 * ended. A zone is a stretch in which these stay the same; zone.c writes it to the image.
 */
#include "index/map/sweep.h"

#include "index/map/grid.h"
#include "index/map/zone.h"

#include "core/base/alloc.h"

#define CREDIT_START 256 /* see zone.c */
#define CREDIT_RUN 16    /* for a run's beginning, and again for its end */
#define CREDIT_EXTENT 8

/*
 * A lookup in a mixed panel goes through all layers that reach over it. More than DEEP on average are too
 * many, if as extents they have no more than FEW_ELEMENTS each.
 */
#define DEEP 32
#define FEW_ELEMENTS 64

/* Add run @idx to the name of the set of active runs, or remove it. */
static void toggle(struct sweep *sw, uint32_t idx)
{
	sw->set[0] ^= zone_mix(idx);
	sw->set[1] ^= zone_mix(~(uint64_t)idx);
}

static int activate(struct sweep *sw, uint32_t idx)
{
	struct overlay_piece piece = sweep_run_piece(sw, idx);
	int ret = overlay_heap_push(&sw->top_run, &piece);

	toggle(sw, idx);
	if (sw->runs[idx].box) {
		sw->nr_active_boxes++;
	} else {
		if (!ret)
			ret = overlay_keys_push(&sw->elements, sw->runs[idx].logical_off, idx);
		sw->density += SWEEP_UNIT / sw->runs[idx].stride;
	}
	sw->credit += CREDIT_RUN;
	sw->active_pos[idx] = (uint32_t)sw->nr_active;
	sw->active[sw->nr_active++] = idx;
	return ret;
}

static void deactivate(struct sweep *sw, uint32_t idx)
{
	uint32_t moved = sw->active[--sw->nr_active];

	sw->active[sw->active_pos[idx]] = moved;
	sw->active_pos[moved] = sw->active_pos[idx];
	toggle(sw, idx);
	if (sw->runs[idx].box)
		sw->nr_active_boxes--;
	else
		sw->density -= SWEEP_UNIT / sw->runs[idx].stride;
	sw->credit += CREDIT_RUN;
}

/* The layers of run @idx. */
static int add_layers(struct sweep *sw, uint32_t idx)
{
	const struct image_layer *run = &sw->runs[idx];
	const struct grid_box *box = run->box ? &sw->boxes[run->box - 1] : NULL;
	int ret = 0;

	if (!box)
		return sweep_add_layer(&sw->layers, &sw->nr_layers, &sw->cap_layers, run);
	for (size_t i = 0; i < box->nr && !ret; i++)
		ret = sweep_add_layer(&sw->layers, &sw->nr_layers, &sw->cap_layers,
				      &sw->nested[box->first + i]);
	return ret;
}

/*
 * Whether the layers of this region are better stored as extents. They are random writes, of which three in a
 * row sometimes look like a run.
 */
static bool is_too_deep(const struct sweep *sw)
{
	unsigned __int128 spans = 0, elements = 0;
	uint64_t lo = UINT64_MAX, hi = 0;

	for (size_t i = 0; i < sw->nr_layers; i++) {
		const struct image_layer *layer = &sw->layers[i];

		spans += layer->hi - layer->logical_off;
		elements += (unsigned __int128)layer->count * max_u64(layer->outer_count, 1);
		lo = min_u64(lo, layer->logical_off);
		hi = max_u64(hi, layer->hi);
	}
	return spans >= (unsigned __int128)DEEP * (hi - lo) &&
	       elements <= (unsigned __int128)FEW_ELEMENTS * sw->nr_layers;
}

/* Runs alone: an extent may be the rest of a run that is elsewhere, and long. */
static int note_singles(struct sweep *sw)
{
	if (!sw->single)
		sw->single = mem_zalloc(sw->nr_singles / 8 + 1);
	if (!sw->single)
		return -ENOMEM;
	for (size_t i = 0; i < sw->nr_layers; i++)
		if (sw->layers[i].count > 1)
			sw->single[sw->layers[i].seq / 8] |= (uint8_t)(1 << sw->layers[i].seq % 8);
	return 0;
}

static int end_region(struct sweep *sw)
{
	struct overlay_keys order = { 0 };
	struct image_layer *sorted = NULL;
	size_t first = image_nr_layers(sw->img);
	int ret = 0;

	for (size_t i = sw->first_run; i < sw->next_begin && sw->mixed && !ret; i++)
		ret = add_layers(sw, sw->begins.v[i].idx);
	if (sw->mixed && !ret && sw->nr_singles && is_too_deep(sw))
		ret = note_singles(sw);
	for (size_t i = 0; i < sw->nr_layers && !ret; i++)
		ret = overlay_keys_add(&order, sw->layers[i].logical_off, (uint32_t)i, 0);
	if (sw->mixed && !ret) {
		ret = overlay_keys_sort(&order);
		sorted = mem_alloc(sw->nr_layers * sizeof(*sorted));
		if (!sorted)
			ret = -ENOMEM;
		for (size_t i = 0; i < sw->nr_layers && !ret; i++)
			sorted[i] = sw->layers[order.v[i].idx];
		if (!ret)
			ret = image_add_layers(sw->img, sorted, sw->nr_layers);
		if (!ret)
			image_end_mixed(sw->img, sw->first_panel, first, (uint32_t)sw->nr_layers);
	}
	mem_free(sorted);
	overlay_keys_release(&order);
	sw->elements.n = 0;
	sw->top_run.n = 0;
	sw->nr_layers = 0;
	sw->density = 0;
	sw->mixed = false;
	return ret;
}

static uint64_t next_key(const struct overlay_keys *keys, size_t next)
{
	return next < keys->n ? keys->v[next].key : UINT64_MAX;
}

/* Bring runs and extents up to date with @x. */
static int arrive(struct sweep *sw, uint64_t x)
{
	int ret = 0;

	while (next_key(&sw->ends, sw->next_end) <= x)
		deactivate(sw, sw->ends.v[sw->next_end++].idx);
	if (sw->nr_active == 0) {
		if (sw->next_begin > sw->first_run)
			ret = end_region(sw);
		sw->first_run = sw->next_begin;
		sw->first_panel = image_nr_panels(sw->img);
	}
	while (next_key(&sw->begins, sw->next_begin) <= x && !ret)
		ret = activate(sw, sw->begins.v[sw->next_begin++].idx);
	while (extents_next_lo(sw->extents) <= x && !ret) {
		struct overlay_piece piece = extents_next(sw->extents);

		ret = overlay_heap_push(&sw->top, &piece);
		if (!ret)
			ret = extents_skip(sw->extents);
		sw->credit += sw->nr_active ? CREDIT_EXTENT : 0;
	}
	return ret;
}

/*
 * Find the end of the zone that begins at @x. An extent that begins below a newer one does not end it: it is
 * dropped, or waits in the heap if it reaches beyond the newer one.
 */
static int zone_end(struct sweep *sw, uint64_t x, uint64_t *end)
{
	const struct overlay_piece *top = overlay_heap_top(&sw->top, x);
	uint64_t y = min_u64(next_key(&sw->begins, sw->next_begin), next_key(&sw->ends, sw->next_end));
	int ret = 0;

	if (top)
		y = min_u64(y, top->hi);
	while (extents_next_lo(sw->extents) < y && !ret) {
		struct overlay_piece piece = extents_next(sw->extents);

		if (!top || overlay_newer(&piece, top)) {
			y = piece.lo;
			break;
		}
		if (piece.hi > top->hi) {
			ret = overlay_heap_push(&sw->top, &piece);
			top = &sw->top.v[0];
		}
		if (!ret)
			ret = extents_skip(sw->extents);
	}
	*end = y;
	return ret;
}

static int prepare(struct sweep *sw)
{
	int ret = grid_make_boxes(sw);

	for (size_t i = 0; i < sw->nr_runs && !ret; i++) {
		ret = overlay_keys_add(&sw->begins, sw->runs[i].logical_off, (uint32_t)i, 0);
		if (!ret)
			ret = overlay_keys_add(&sw->ends, sw->runs[i].hi, (uint32_t)i, 0);
	}
	if (!ret)
		ret = overlay_keys_sort(&sw->begins);
	if (!ret)
		ret = overlay_keys_sort(&sw->ends);
	if (!ret)
		ret = extents_begin(sw->extents);
	if (sw->nr_runs > 0) {
		sw->active = mem_alloc(sw->nr_runs * sizeof(*sw->active));
		sw->active_pos = mem_alloc(sw->nr_runs * sizeof(*sw->active_pos));
		sw->cache = mem_zalloc(ZONE_CACHE_LEN * sizeof(*sw->cache));
		if (!sw->active || !sw->active_pos || !sw->cache)
			ret = -ENOMEM;
	}
	sw->credit = CREDIT_START;
	return ret;
}

/* Nothing reaches over *@x: go on to where something does. Most extents meet no other thing. */
static int pass_lone_extents(struct sweep *sw, uint64_t *x)
{
	uint64_t begin = next_key(&sw->begins, sw->next_begin);
	int ret = 0;

	while ((*x = extents_next_lo(sw->extents)) < begin && !ret) {
		struct overlay_piece piece = extents_next(sw->extents);

		ret = extents_skip(sw->extents);
		if (ret || piece.hi > min_u64(begin, extents_next_lo(sw->extents)))
			return ret ? ret : overlay_heap_push(&sw->top, &piece);
		ret = image_add_extent(sw->img, &piece);
	}
	*x = min_u64(*x, begin);
	return ret;
}

int sweep_run(struct sweep *sw, struct image *img)
{
	uint64_t x = 0, y;
	int ret;

	sw->img = img;
	ret = prepare(sw);
	while (!ret) {
		ret = arrive(sw, x);
		if (ret)
			break;
		if (sw->nr_active == 0 && !overlay_heap_top(&sw->top, x)) {
			ret = pass_lone_extents(sw, &x);
			if (x == UINT64_MAX)
				break;
			continue;
		}
		ret = zone_end(sw, x, &y);
		if (!ret)
			ret = zone_write(sw, x, y);
		x = y;
	}
	return ret;
}
