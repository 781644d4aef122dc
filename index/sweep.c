/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From left to right along the file. Between two places where something begins or ends (a *zone*) the same
 * runs are active, over the newest extent there, and the zone becomes one of:
 *
 *   plain    the extent is newer than the runs, or the zone has so few elements that they are
 *            written out singly: the ragged ends of interleaved runs, what lies around a small overwrite
 *   strided  all runs that matter have one stride: a table of one row, shared by all zones with the same
 *            runs, whatever interrupts them
 *   mixed    none of these: the runs of the whole region (a stretch without a gap between runs) are
 *            listed once, and lookups search them
 *
 * Tables and single elements could cost more than the records are long: R runs that begin one after the other
 * make R sets of up to R runs. So each beginning and end earns credit, rows cost it, and what cannot be
 * paid becomes mixed. The image, and the time to build it, stay linear in records (times a logarithm).
 */
#include "sweep.h"

#include "../core/alloc.h"

#define CREDIT_START 256
#define CREDIT_RUN 16   /* for a run's beginning, and again for its end */
#define CREDIT_EXTENT 8
#define CACHE_LEN 256
#define BIG_ZONE 64     /* elements for each run from which a table may be bought on debt */

/* A table for a set of runs over the extent seq (UINT64_MAX: none) that begins at extent_lo. */
struct sweep_cached {
	uint64_t set[2], seq, extent_lo, table;
	bool valid;
};

void sweep_init(struct sweep *sw, sweep_load_fn *load, sweep_prefetch_fn *prefetch, const void *arg)
{
	memset(sw, 0, sizeof(*sw));
	sw->load = load;
	sw->prefetch = prefetch;
	sw->arg = arg;
}

void sweep_release(struct sweep *sw)
{
	overlay_keys_release(&sw->extents);
	overlay_keys_release(&sw->begins);
	overlay_keys_release(&sw->ends);
	overlay_keys_release(&sw->elements);
	overlay_list_release(&sw->top);
	overlay_list_release(&sw->top_run);
	overlay_list_release(&sw->pieces);
	overlay_release(&sw->overlay);
	mem_free(sw->runs);
	mem_free(sw->active);
	mem_free(sw->active_pos);
	mem_free(sw->cache);
	mem_free(sw->layers);
}

static int add_layer(struct image_layer **v, size_t *n, size_t *cap, const struct image_layer *layer)
{
	if (*n == *cap) {
		size_t bigger = *cap ? *cap * 2 : 64;
		struct image_layer *p = mem_realloc(*v, bigger * sizeof(*p));

		if (!p)
			return -ENOMEM;
		*v = p;
		*cap = bigger;
	}
	(*v)[(*n)++] = *layer;
	return 0;
}

int sweep_add_run(struct sweep *sw, const struct image_layer *run)
{
	return add_layer(&sw->runs, &sw->nr_runs, &sw->cap_runs, run);
}

/* A run as a piece, to compare it with others; step is its number. */
static struct overlay_piece run_piece(const struct sweep *sw, uint32_t idx)
{
	const struct image_layer *run = &sw->runs[idx];

	return (struct overlay_piece){
		.lo = run->logical_off,
		.hi = run->hi,
		.step = idx,
		.stamp_ns = run->stamp_ns,
		.log_no = run->log_no,
		.seq = run->seq,
	};
}

static bool run_hidden(const struct sweep *sw, uint32_t idx, const struct overlay_piece *by)
{
	struct overlay_piece run = run_piece(sw, idx);

	return by && overlay_newer(by, &run);
}

static uint64_t mix(uint64_t v)
{
	v += 0x9e3779b97f4a7c15;
	v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9;
	v = (v ^ v >> 27) * 0x94d049bb133111eb;
	return v ^ v >> 31;
}

/* Add run @idx to the name of the set, or take it away. */
static void toggle(struct sweep *sw, uint32_t idx)
{
	sw->set[0] ^= mix(idx);
	sw->set[1] ^= mix(~(uint64_t)idx);
}

static int activate(struct sweep *sw, uint32_t idx)
{
	struct overlay_piece piece = run_piece(sw, idx);
	int ret = overlay_heap_push(&sw->top_run, &piece);

	if (!ret)
		ret = overlay_keys_push(&sw->elements, sw->runs[idx].logical_off, idx);
	toggle(sw, idx);
	sw->per_byte += 1.0 / (double)sw->runs[idx].stride;
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
	sw->per_byte -= 1.0 / (double)sw->runs[idx].stride;
	sw->credit += CREDIT_RUN;
}

static int emit_extent(void *arg, const struct overlay_piece *visible)
{
	return image_add_extent(arg, visible);
}

static int emit_phase(void *arg, const struct overlay_piece *visible)
{
	return image_add_phase(arg, visible);
}

/* Put the elements of run @idx in [x, y) among the pieces. Returns how many, or -ENOMEM; stops after @limit. */
static ssize_t add_elements(struct sweep *sw, uint32_t idx, uint64_t x, uint64_t y, size_t limit)
{
	const struct image_layer *run = &sw->runs[idx];
	uint64_t i = x <= run->logical_off ? 0 : (x - run->logical_off) / run->stride;
	uint64_t lo = run->logical_off + i * run->stride, next = 0;
	ssize_t n = 0;

	if (lo + run->length <= x)
		lo = run->logical_off + ++i * run->stride;
	for (; i < run->count && lo < y; i++, lo += run->stride) {
		struct overlay_piece piece = {
			.lo = lo,
			.hi = min_u64(lo + run->length, y),
			.log_off = run->log_off + i * run->length,
			.stamp_ns = run->stamp_ns,
			.log_no = run->log_no,
			.seq = run->seq,
		};

		piece = overlay_cut(&piece, max_u64(lo, x), piece.hi);
		if (overlay_list_add(&sw->pieces, &piece))
			return -ENOMEM;
		if (lo + run->length > y)
			next = y;
		if ((size_t)++n > limit)
			break;
	}
	if (run->hi > y && overlay_keys_push(&sw->elements, next ? next : max_u64(lo, y), idx))
		return -ENOMEM;
	return n;
}

/*
 * Write the visible elements of the zone out singly. Returns 0, or 1 if that is more work than the
 * credit allows. The keys of the heap are where an element may begin at the earliest: a run that has not
 * been looked at for long is corrected when it comes up.
 */
static int expand(struct sweep *sw, uint64_t x, uint64_t y, const struct overlay_piece *extent)
{
	size_t limit = sw->credit > 0 ? (size_t)sw->credit : 0, work = 0;
	struct overlay_piece under;
	int ret = 0;

	sw->pieces.n = 0;
	while (sw->elements.n > 0 && sw->elements.v[0].key < y && work <= limit && !ret) {
		uint32_t idx = sw->elements.v[0].idx;

		overlay_keys_pop(&sw->elements);
		work++;
		if (sw->runs[idx].hi <= x)
			continue;
		if (run_hidden(sw, idx, extent)) {
			ret = overlay_keys_push(&sw->elements, y, idx);
		} else {
			ssize_t n = add_elements(sw, idx, x, y, limit - min_size(work, limit));

			ret = n < 0 ? (int)n : 0;
			work += n < 0 ? 0 : (size_t)n;
		}
	}
	sw->credit -= (double)work;
	sw->spent += (double)work;
	if (ret)
		return ret;
	if (work > limit)
		return 1;
	if (extent) {
		under = overlay_cut(extent, x, y);
		ret = overlay_list_add(&sw->pieces, &under);
	}
	if (!ret)
		ret = overlay_resolve(&sw->overlay, &sw->pieces, emit_extent, sw->img);
	return ret;
}

/* Put the parts of a row that begins at @x that run @idx covers among the pieces: two if an element wraps. */
static int add_phases(struct sweep *sw, uint32_t idx, uint64_t x)
{
	const struct image_layer *run = &sw->runs[idx];
	uint64_t stride = run->stride, behind = (x - run->logical_off) % stride;
	uint64_t phase = behind ? stride - behind : 0;
	uint64_t i = (x + phase - run->logical_off) / stride; /* the element that begins in row 0 */
	struct overlay_piece piece = run_piece(sw, idx);
	int ret;

	piece.lo = phase;
	piece.hi = min_u64(phase + run->length, stride);
	piece.log_off = run->log_off + i * run->length;
	piece.step = run->length;
	ret = overlay_list_add(&sw->pieces, &piece);
	if (!ret && phase + run->length > stride) {
		piece.lo = 0;
		piece.hi = phase + run->length - stride;
		piece.log_off = run->log_off + i * run->length - piece.hi; /* the end of the one before */
		ret = overlay_list_add(&sw->pieces, &piece);
	}
	return ret;
}

/*
 * Make a table for the zone. Returns 0, or 1 if it cannot be described by one stride. It can if the
 * newest runs have one stride and older ones of another are not seen through them.
 */
static int tabulate(struct sweep *sw, uint64_t x, const struct overlay_piece *extent, uint64_t *table)
{
	uint64_t stride = sw->runs[overlay_heap_top(&sw->top_run, x)->step].stride, covered;
	struct overlay_piece other = { 0 };
	bool others = false;
	int ret = 0;

	for (size_t i = 0; i < sw->nr_active; i++) {
		struct overlay_piece run = run_piece(sw, sw->active[i]);

		if (sw->runs[sw->active[i]].stride == stride || run_hidden(sw, sw->active[i], extent))
			continue;
		if (!others || overlay_newer(&run, &other))
			other = run;
		others = true;
	}
	sw->pieces.n = 0;
	for (size_t i = 0; i < sw->nr_active && !ret; i++)
		if (sw->runs[sw->active[i]].stride == stride &&
		    !run_hidden(sw, sw->active[i], others ? &other : extent))
			ret = add_phases(sw, sw->active[i], x);
	if (extent && !others && !ret) {
		struct overlay_piece row = *extent;

		row.log_off += x - row.lo;
		row.lo = 0;
		row.hi = row.step = stride;
		ret = overlay_list_add(&sw->pieces, &row);
	}
	if (!ret)
		ret = image_add_table(sw->img, x, stride);
	if (!ret)
		ret = overlay_resolve(&sw->overlay, &sw->pieces, emit_phase, sw->img);
	if (ret)
		return ret;
	*table = image_nr_tables(sw->img) - 1;
	if (!others)
		return 0;
	covered = image_table_covers(sw->img);
	if (covered == stride)
		return 0;
	image_drop_table(sw->img);
	return 1;
}

/* A mixed zone: its extent becomes a layer, the runs follow when the region ends. */
static int add_mixed(struct sweep *sw, uint64_t x, uint64_t y, const struct overlay_piece *extent)
{
	struct image_layer *last = sw->nr_layers ? &sw->layers[sw->nr_layers - 1] : NULL;
	struct image_layer layer;

	sw->mixed = true;
	if (extent) {
		layer = (struct image_layer){
			.logical_off = x,
			.length = y - x,
			.count = 1,
			.log_off = extent->log_off + (x - extent->lo),
			.stamp_ns = extent->stamp_ns,
			.hi = y,
			.log_no = extent->log_no,
			.seq = extent->seq,
		};
		if (last && last->hi == x && last->seq == layer.seq && last->log_off + last->length == layer.log_off) {
			last->length += layer.length;
			last->hi = y;
		} else if (add_layer(&sw->layers, &sw->nr_layers, &sw->cap_layers, &layer)) {
			return -ENOMEM;
		}
	}
	return image_add_mixed(sw->img, x, y);
}

static int end_region(struct sweep *sw)
{
	struct overlay_keys order = { 0 };
	struct image_layer *sorted = NULL;
	size_t first = image_nr_layers(sw->img);
	int ret = 0;

	for (size_t i = sw->first_run; i < sw->next_begin && sw->mixed && !ret; i++)
		ret = add_layer(&sw->layers, &sw->nr_layers, &sw->cap_layers, &sw->runs[sw->begins.v[i].idx]);
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
	sw->per_byte = 0; /* and no rounding error is carried on */
	sw->mixed = false;
	return ret;
}

/* The place in the cache for the active runs over @extent; @key is how they are called. */
static struct sweep_cached *cache_slot(struct sweep *sw, const struct overlay_piece *extent, struct sweep_cached *key)
{
	*key = (struct sweep_cached){
		.set = { sw->set[0], sw->set[1] },
		.seq = extent ? extent->seq : UINT64_MAX,
		.extent_lo = extent ? extent->lo : 0,
	};
	return &sw->cache[(key->set[0] ^ mix(key->seq)) % CACHE_LEN];
}

static bool cache_hit(const struct sweep_cached *c, const struct sweep_cached *key)
{
	return c->valid && c->set[0] == key->set[0] && c->set[1] == key->set[1] && c->seq == key->seq &&
	       c->extent_lo == key->extent_lo;
}

/* Half of the credit is kept for zones that are worth more; these may run into debt, but not far. */
static bool affordable(const struct sweep *sw, double rows, double elements)
{
	return rows <= sw->credit / 2 ||
	       (elements >= BIG_ZONE * rows && sw->credit - rows >= -4 * (double)sw->nr_runs);
}

static int zone(struct sweep *sw, uint64_t x, uint64_t y)
{
	const struct overlay_piece *extent = overlay_heap_top(&sw->top, x);
	double rows = (double)sw->nr_active, elements = (double)(y - x) * sw->per_byte;
	struct sweep_cached *cached, key;
	int ret = 1;

	if (sw->nr_active == 0 || (extent && overlay_newer(extent, overlay_heap_top(&sw->top_run, x)))) {
		struct overlay_piece visible = overlay_cut(extent, x, y);

		return image_add_extent(sw->img, &visible);
	}
	cached = cache_slot(sw, extent, &key);
	if (cache_hit(cached, &key))
		return image_add_strided(sw->img, x, y, cached->table);

	if (sw->spent_set[0] != sw->set[0] || sw->spent_set[1] != sw->set[1]) {
		memcpy(sw->spent_set, sw->set, sizeof(sw->set));
		sw->spent = 0;
	}
	if ((sw->spent + elements) * IMAGE_ENTRY_LEN <= rows * IMAGE_PHASE_LEN + 128) {
		if (elements <= sw->credit)
			ret = expand(sw, x, y, extent);
	} else {
		if (affordable(sw, rows, elements)) {
			sw->credit -= rows;
			ret = tabulate(sw, x, extent, &key.table);
			if (ret == 0) {
				key.valid = true;
				*cached = key;
				return image_add_strided(sw->img, x, y, key.table);
			}
		}
		if (ret == 1 && elements <= sw->credit / 2)
			ret = expand(sw, x, y, extent);
	}
	return ret == 1 ? add_mixed(sw, x, y, extent) : ret;
}

static uint64_t next_key(const struct overlay_keys *keys, size_t next)
{
	return next < keys->n ? keys->v[next].key : UINT64_MAX;
}

/* Load the next extent, and have the memory fetched for one after it. */
static struct overlay_piece load_next(struct sweep *sw)
{
	struct overlay_piece piece;

	if (sw->next_extent + 16 < sw->extents.n)
		sw->prefetch(sw->arg, &sw->extents.v[sw->next_extent + 16]);
	sw->load(sw->arg, &sw->extents.v[sw->next_extent], &piece);
	return piece;
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
	while (next_key(&sw->extents, sw->next_extent) <= x && !ret) {
		struct overlay_piece piece = load_next(sw);

		ret = overlay_heap_push(&sw->top, &piece);
		sw->next_extent++;
		sw->credit += sw->nr_active ? CREDIT_EXTENT : 0;
	}
	return ret;
}

/*
 * Where the zone that begins at @x ends. Extents that begin below a newer one are no reason to end
 * it: they are dropped, or wait in the heap if they reach out on the other side.
 */
static int zone_end(struct sweep *sw, uint64_t x, uint64_t *end)
{
	const struct overlay_piece *top = overlay_heap_top(&sw->top, x);
	uint64_t y = min_u64(next_key(&sw->begins, sw->next_begin), next_key(&sw->ends, sw->next_end));
	int ret = 0;

	if (top)
		y = min_u64(y, top->hi);
	while (next_key(&sw->extents, sw->next_extent) < y && !ret) {
		struct overlay_piece piece = load_next(sw);

		if (!top || overlay_newer(&piece, top)) {
			y = piece.lo;
			break;
		}
		if (piece.hi > top->hi) {
			ret = overlay_heap_push(&sw->top, &piece);
			top = &sw->top.v[0];
		}
		sw->next_extent++;
	}
	*end = y;
	return ret;
}

static int prepare(struct sweep *sw)
{
	int ret = 0;

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
		ret = overlay_keys_sort(&sw->extents);
	if (sw->nr_runs > 0) {
		sw->active = mem_alloc(sw->nr_runs * sizeof(*sw->active));
		sw->active_pos = mem_alloc(sw->nr_runs * sizeof(*sw->active_pos));
		sw->cache = mem_zalloc(CACHE_LEN * sizeof(*sw->cache));
		if (!sw->active || !sw->active_pos || !sw->cache)
			ret = -ENOMEM;
	}
	sw->credit = CREDIT_START;
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
			x = min_u64(next_key(&sw->begins, sw->next_begin), next_key(&sw->extents, sw->next_extent));
			if (x == UINT64_MAX)
				break;
			continue;
		}
		ret = zone_end(sw, x, &y);
		if (!ret)
			ret = zone(sw, x, y);
		x = y;
	}
	return ret;
}
