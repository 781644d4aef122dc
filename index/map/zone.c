/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In a zone the same runs are active from end to end, and the same extent is the newest. It becomes one of:
 *
 *   plain    the extent is newer than the runs, or the zone has so few elements that they are
 *            written out singly: the ragged ends of interleaved runs, what lies around a small overwrite
 *   strided  all runs that matter have one stride: a table of one row, shared by all zones with the same
 *            runs, whatever interrupts them
 *   nested   one box of nested runs (grid.h) and nothing else
 *   mixed    none of these: the runs of the whole region (a stretch without a gap between runs) are
 *            listed once, and lookups search them
 *
 * Tables and single elements could take more space than the records: R runs that begin one after the other
 * make R sets of up to R runs. So each beginning and each end earns credit, and rows cost it. A zone that the
 * credit does not pay becomes mixed. The image and the time to build it stay linear in records (times a
 * logarithm).
 */
#include "index/map/zone.h"

#include "index/map/grid.h"

#include "core/base/alloc.h"

#define MANY ((int64_t)1 << 48) /* of elements, or more */
#define BIG_ZONE 64 /* a zone with this many elements for each run may have a table on debt */

static bool run_hidden(const struct sweep *sw, uint32_t idx, const struct overlay_piece *by)
{
	struct overlay_piece run = sweep_run_piece(sw, idx);

	return by && overlay_newer(by, &run);
}

static int emit_extent(void *arg, const struct overlay_piece *visible)
{
	return image_add_extent(arg, visible);
}

static int emit_phase(void *arg, const struct overlay_piece *visible)
{
	return image_add_phase(arg, visible);
}

/*
 * Add the elements of run @idx in [x, y) to the pieces; stop after @limit. Returns their number, or -ENOMEM.
 */
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
 * Write the visible elements of the zone one by one. A key of the heap is the earliest place of a run's next
 * element; it is corrected when it comes up. 0; 1: the credit does not pay for the work; -errno.
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
	sw->credit -= (int64_t)work;
	sw->spent += (int64_t)work;
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
	struct overlay_piece piece = sweep_run_piece(sw, idx);
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

/* A table of what is seen of the pieces; *@full: all of the row. */
static int add_table(struct sweep *sw, uint64_t x, uint64_t stride, bool *full)
{
	int ret = image_add_table(sw->img, x, stride);

	if (!ret)
		ret = overlay_resolve(&sw->overlay, &sw->pieces, emit_phase, sw->img);
	*full = !ret && image_table_covers(sw->img) == stride;
	return ret;
}

/*
 * Make the table @t for the zone. Returns 0, or 1 if it cannot be described by one stride. It can if the
 * newest runs have one stride and older ones of another are not seen through them.
 */
static int tabulate(struct sweep *sw, uint64_t x, const struct overlay_piece *extent, struct zone_table *t)
{
	uint64_t stride = sw->runs[overlay_heap_top(&sw->top_run, x)->step].stride;
	struct overlay_piece other, row;
	bool others = false;
	int ret = 0;

	for (size_t i = 0; i < sw->nr_active; i++) {
		struct overlay_piece run = sweep_run_piece(sw, sw->active[i]);

		if (sw->runs[sw->active[i]].stride == stride || run_hidden(sw, sw->active[i], extent))
			continue;
		if (!others || overlay_newer(&run, &other))
			other = run;
		others = true;
	}
	sw->pieces.n = 0;
	t->oldest = sweep_run_piece(sw, (uint32_t)sw->top_run.v[0].step);
	for (size_t i = 0; i < sw->nr_active && !ret; i++) {
		struct overlay_piece run = sweep_run_piece(sw, sw->active[i]);

		if (sw->runs[sw->active[i]].stride != stride || run_hidden(sw, sw->active[i],
									   others ? &other : extent))
			continue;
		ret = add_phases(sw, sw->active[i], x);
		if (overlay_newer(&t->oldest, &run))
			t->oldest = run;
	}
	if (!ret)
		ret = add_table(sw, x, stride, &t->full);
	if (!ret && !t->full && (others || extent)) {
		image_drop_table(sw->img);
		if (others)
			return 1;
		row = overlay_cut(extent, x, extent->hi);
		row.lo = 0;
		row.hi = row.step = stride;
		ret = overlay_list_add(&sw->pieces, &row);
		if (!ret)
			ret = add_table(sw, x, stride, &t->full);
		t->full = false; /* not without this extent */
	} else if (t->full) {
		t->seq = UINT64_MAX; /* whatever is below */
		t->extent_lo = 0;
	}
	t->table = image_nr_tables(sw->img) - 1;
	return ret;
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
		if (last && last->hi == x && last->seq == layer.seq &&
		    last->log_off + last->length == layer.log_off) {
			last->length += layer.length;
			last->hi = y;
		} else if (sweep_add_layer(&sw->layers, &sw->nr_layers, &sw->cap_layers, &layer)) {
			return -ENOMEM;
		}
	}
	return image_add_mixed(sw->img, x, y);
}

static struct zone_table *cache_slot(struct sweep *sw, const struct zone_table *t)
{
	return &sw->cache[(t->set[0] ^ zone_mix(t->seq)) % ZONE_CACHE_LEN];
}

/* The table for the active runs over @extent; NULL if there is none, then @want is what to make. */
static const struct zone_table *cached_table(struct sweep *sw, const struct overlay_piece *extent,
					     struct zone_table *want)
{
	const struct zone_table *t;

	*want = (struct zone_table){ .set = { sw->set[0], sw->set[1] }, .seq = UINT64_MAX, .valid = true };
	for (int over = 0; over < (extent ? 2 : 1); over++) {
		if (over) {
			want->seq = extent->seq;
			want->extent_lo = extent->lo;
		}
		t = cache_slot(sw, want);
		if (t->valid && t->set[0] == want->set[0] && t->set[1] == want->set[1] &&
		    t->seq == want->seq &&
		    t->extent_lo == want->extent_lo &&
		    (over || !extent || (t->full && overlay_newer(&t->oldest, extent))))
			return t;
	}
	return NULL;
}

/* Half of the credit is kept for big zones, which may also run into debt, but not far. */
static bool affordable(const struct sweep *sw, int64_t rows, int64_t elements)
{
	return rows <= sw->credit / 2 ||
	       (elements >= BIG_ZONE * rows && sw->credit - rows >= -4 * (int64_t)sw->nr_runs);
}

/* Of active runs in [x, y), about. */
static int64_t count_elements(const struct sweep *sw, uint64_t x, uint64_t y)
{
	unsigned __int128 elements = (unsigned __int128)(y - x) * sw->density / SWEEP_UNIT;

	return elements < MANY ? (int64_t)elements : MANY;
}

int zone_write(struct sweep *sw, uint64_t x, uint64_t y)
{
	const struct overlay_piece *extent = overlay_heap_top(&sw->top, x);
	int64_t rows = (int64_t)sw->nr_active, elements = count_elements(sw, x, y);
	const struct zone_table *cached;
	struct zone_table made;
	int ret = 1;

	if (sw->nr_active == 0 || (extent && overlay_newer(extent, overlay_heap_top(&sw->top_run, x)))) {
		struct overlay_piece visible = overlay_cut(extent, x, y);

		return image_add_extent(sw->img, &visible);
	}
	if (sw->nr_active_boxes > 0) {
		if (sw->nr_active == 1 && !extent)
			ret = grid_write(sw, &sw->boxes[sw->runs[sw->active[0]].box - 1], x, y);
		return ret == 1 ? add_mixed(sw, x, y, extent) : ret;
	}
	cached = cached_table(sw, extent, &made);
	if (cached)
		return image_add_strided(sw->img, x, y, cached->table);

	if (sw->spent_set[0] != sw->set[0] || sw->spent_set[1] != sw->set[1]) {
		memcpy(sw->spent_set, sw->set, sizeof(sw->set));
		sw->spent = 0;
	}
	/*
	 * A table over an extent serves one zone; a table without serves all zones of the set, so these count
	 * together.
	 */
	if ((elements + (extent ? 0 : sw->spent)) * IMAGE_ENTRY_LEN <= rows * IMAGE_PHASE_LEN + 128) {
		if (elements <= sw->credit)
			ret = expand(sw, x, y, extent);
	} else {
		if (affordable(sw, rows, elements)) {
			sw->credit -= rows;
			ret = tabulate(sw, x, extent, &made);
			if (ret == 0) {
				*cache_slot(sw, &made) = made;
				return image_add_strided(sw->img, x, y, made.table);
			}
		}
		if (ret == 1 && elements <= sw->credit / 2)
			ret = expand(sw, x, y, extent);
	}
	return ret == 1 ? add_mixed(sw, x, y, extent) : ret;
}
