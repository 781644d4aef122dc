/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collects records and prepares them for the sweep (sweep.c) that builds the map: truncations are applied
 * here, for good. A record sees only those newer than itself, and of these only the lowest size counts; so
 * each record is cut short once, and the sweep knows nothing of truncations.
 */
#include "index/map/merge.h"

#include "index/map/sweep.h"

#include "core/base/alloc.h"

/* A run of so few elements is single extents to us: random writes look like runs of two. */
#define SHORT_RUN 4

/*
 * An extent, or, with a length of 0, the first element of run number log_no. Half a cache line: the sweep
 * comes to them in another order than they lie in.
 */
struct index_merge_item {
	uint64_t logical_off, log_off, stamp_ns;
	uint32_t length, log_no;
};

/* Also an extent of a length that an item has no room for: count 1. */
struct index_merge_run {
	uint64_t length, stride, count, outer_stride, outer_count;
	uint32_t log_no;
};

/* nr_items: the items added before it. */
struct index_merge_cut {
	uint64_t size, stamp_ns;
	uint32_t log_no, nr_items;
};

/* Oldest first; limit: the lowest size of this one and all newer. */
struct sorted_cut {
	uint64_t limit, stamp_ns;
	uint32_t log_no, nr_items;
};

void index_merge_init(struct index_merge *m)
{
	memset(m, 0, sizeof(*m));
}

void index_merge_release(struct index_merge *m)
{
	mem_free(m->items);
	mem_free(m->runs);
	mem_free(m->cuts);
	memset(m, 0, sizeof(*m));
}

/* Room for one more of @size; half as much again, for there may be very many. */
static void *grown(void *v, size_t n, size_t *cap, size_t size)
{
	size_t bigger = *cap + *cap / 2 + 64;

	if (n < *cap)
		return v;
	if (n >= UINT32_MAX - 1 || bigger > SIZE_MAX / size)
		return NULL;
	v = mem_realloc(v, bigger * size);
	if (v)
		*cap = bigger;
	return v;
}

int index_merge_reserve(struct index_merge *m, size_t nr)
{
	size_t want = m->nr_items + nr;
	void *items;

	if (want <= m->cap_items)
		return 0;
	if (want >= UINT32_MAX)
		return -ENOMEM;
	items = mem_realloc(m->items, want * sizeof(*m->items));
	if (!items)
		return -ENOMEM;
	m->items = items;
	m->cap_items = want;
	return 0;
}

static int add_cut(struct index_merge *m, uint32_t log_no, const struct index_record *rec)
{
	struct index_merge_cut *cuts = grown(m->cuts, m->nr_cuts, &m->cap_cuts, sizeof(*cuts));

	if (!cuts)
		return -ENOMEM;
	m->cuts = cuts;
	cuts[m->nr_cuts++] = (struct index_merge_cut){ rec->logical_off, rec->stamp_ns, log_no,
						       (uint32_t)m->nr_items };
	return 0;
}

/* Nested runs that are less than that: each run is one extent, or all of them are one run. */
static struct index_record simplified(const struct index_record *rec)
{
	struct index_record simple = *rec;

	if (simple.outer_count && simple.stride == simple.length) {
		simple.length *= simple.count;
		simple.stride = simple.outer_stride;
		simple.count = simple.outer_count;
		simple.outer_count = 0;
	} else if (simple.outer_count && simple.outer_stride == simple.count * simple.stride) {
		simple.count *= simple.outer_count;
		simple.outer_count = 0;
	}
	if (simple.count > 1 && !simple.outer_count && simple.stride == simple.length) {
		simple.length *= simple.count;
		simple.count = 1;
	}
	return simple;
}

/*
 * Whether @rec is no more than the rest of the extent that was added before it. Two bytes of an index block
 * say that.
 */
static bool extend_last(struct index_merge *m, uint32_t log_no, const struct index_record *rec)
{
	struct index_merge_item *last = m->nr_items ? &m->items[m->nr_items - 1] : NULL;

	if (!last || !last->length || last->log_no != log_no || last->stamp_ns != rec->stamp_ns ||
	    (m->nr_cuts && m->cuts[m->nr_cuts - 1].nr_items == m->nr_items) || rec->count != 1 ||
	    last->logical_off + last->length != rec->logical_off ||
	    last->log_off + last->length != rec->log_off || rec->length > UINT32_MAX - last->length)
		return false;
	last->length += (uint32_t)rec->length;
	return true;
}

int index_merge_add(struct index_merge *m, uint32_t log_no, const struct index_record *added)
{
	struct index_merge_item *items;
	struct index_merge_run *runs;
	struct index_record rec;
	bool wide;

	if (!index_record_valid(added) || log_no >= INDEX_LOG_CUT)
		return -EBADMSG;
	if (added->type == INDEX_TRUNCATE)
		return add_cut(m, log_no, added);

	rec = simplified(added);
	if (extend_last(m, log_no, &rec))
		return 0;
	items = grown(m->items, m->nr_items, &m->cap_items, sizeof(*items));
	if (!items)
		return -ENOMEM;
	m->items = items;
	wide = rec.count > 1 || rec.length > UINT32_MAX;
	if (wide) {
		runs = grown(m->runs, m->nr_runs, &m->cap_runs, sizeof(*runs));
		if (!runs)
			return -ENOMEM;
		m->runs = runs;
		runs[m->nr_runs++] = (struct index_merge_run){ rec.length,	 rec.stride,	  rec.count,
							       rec.outer_stride, rec.outer_count, log_no };
	}
	items[m->nr_items++] = (struct index_merge_item){
		.logical_off = rec.logical_off,
		.log_off = rec.log_off,
		.stamp_ns = rec.stamp_ns,
		.length = wide ? 0 : (uint32_t)rec.length,
		.log_no = wide ? (uint32_t)(m->nr_runs - 1) : log_no,
	};
	return 0;
}

/* By stamp, then log, then order of adding, which is how they are stored. */
static int sort_cuts(const struct index_merge *m, struct sorted_cut **sorted)
{
	struct overlay_keys keys = { 0 };
	struct sorted_cut *s = mem_alloc(m->nr_cuts * sizeof(*s));
	uint64_t limit = UINT64_MAX;
	int ret = s ? 0 : -ENOMEM;

	for (size_t i = 0; i < m->nr_cuts && !ret; i++)
		ret = overlay_keys_add(&keys, m->cuts[i].log_no, (uint32_t)i, 0);
	if (!ret)
		ret = overlay_keys_sort(&keys);
	for (size_t i = 0; i < keys.n; i++)
		keys.v[i].key = m->cuts[keys.v[i].idx].stamp_ns;
	if (!ret)
		ret = overlay_keys_sort(&keys);
	if (ret) {
		mem_free(s);
	} else {
		for (size_t i = m->nr_cuts; i-- > 0;) {
			const struct index_merge_cut *cut = &m->cuts[keys.v[i].idx];

			limit = min_u64(limit, cut->size);
			s[i] = (struct sorted_cut){ limit, cut->stamp_ns, cut->log_no, cut->nr_items };
		}
		*sorted = s;
	}
	overlay_keys_release(&keys);
	return ret;
}

static const struct index_merge_run *run_of(const struct index_merge *m, const struct index_merge_item *item)
{
	return item->length ? NULL : &m->runs[item->log_no];
}

/* Where item @idx ends because of truncations newer than it. */
static uint64_t item_limit(const struct index_merge *m, const struct sorted_cut *cuts, size_t idx)
{
	const struct index_merge_item *item = &m->items[idx];
	const struct index_merge_run *run = run_of(m, item);
	uint32_t log_no = run ? run->log_no : item->log_no;
	size_t base = 0, n = m->nr_cuts;

	while (n > 0) {
		const struct sorted_cut *cut = &cuts[base + n / 2];
		bool newer = cut->stamp_ns != item->stamp_ns ? cut->stamp_ns > item->stamp_ns :
			     cut->log_no != log_no	     ? cut->log_no > log_no :
							       cut->nr_items > idx;

		if (newer) {
			n /= 2;
		} else {
			base += n / 2 + 1;
			n -= n / 2 + 1;
		}
	}
	return base < m->nr_cuts ? cuts[base].limit : UINT64_MAX;
}

/* Element @sub of item @idx, cut off at @limit. */
static struct overlay_piece element(const struct index_merge *m, size_t idx, uint64_t sub, uint64_t limit)
{
	const struct index_merge_item *item = &m->items[idx];
	const struct index_merge_run *run = run_of(m, item);
	uint64_t lo = item->logical_off, length = run ? run->length : item->length;

	if (run && run->outer_count)
		lo += sub / run->count * run->outer_stride + sub % run->count * run->stride;
	else if (run)
		lo += sub * run->stride;
	return (struct overlay_piece){
		.lo = lo,
		.hi = min_u64(lo + length, limit),
		.log_off = item->log_off + sub * length,
		.stamp_ns = item->stamp_ns,
		.log_no = run ? run->log_no : item->log_no,
		.seq = (uint32_t)idx,
	};
}

/* Give a run cut off at @limit to the sweep: whole elements as a run, the rest as extents. */
static int add_run(const struct index_merge *m, struct sweep *sw, size_t idx, uint64_t limit)
{
	const struct index_merge_item *item = &m->items[idx];
	const struct index_merge_run *run = run_of(m, item);
	uint64_t nr = min_u64(run->count, (limit - 1 - item->logical_off) / run->stride + 1), whole = nr;
	int ret = 0;

	if (item->logical_off + (nr - 1) * run->stride + run->length > limit)
		whole--;
	if (whole > SHORT_RUN) {
		struct image_layer layer = {
			.logical_off = item->logical_off,
			.length = run->length,
			.stride = run->stride,
			.count = whole,
			.log_off = item->log_off,
			.stamp_ns = item->stamp_ns,
			.log_no = run->log_no,
			.seq = (uint32_t)idx,
			.hi = item->logical_off + (whole - 1) * run->stride + run->length,
			.step = run->length,
		};
		ret = sweep_add_run(sw, &layer);
	} else {
		for (uint64_t sub = 0; sub < whole && !ret; sub++)
			ret = overlay_keys_add(&sw->extents, item->logical_off + sub * run->stride,
					       (uint32_t)idx,
					       (uint32_t)sub);
	}
	if (whole < nr && !ret)
		ret = overlay_keys_add(&sw->extents, item->logical_off + whole * run->stride, (uint32_t)idx,
				       SWEEP_LAST_ELEMENT);
	return ret;
}

/* The same of nested runs: all elements, and where the last one before @limit ends. */
static int add_nested(const struct index_merge *m, struct sweep *sw, size_t idx, uint64_t limit,
		      uint64_t *end)
{
	const struct index_merge_item *item = &m->items[idx];
	const struct index_merge_run *run = run_of(m, item);
	bool swap = run->outer_stride < run->stride;
	struct image_layer layer = {
		.logical_off = item->logical_off,
		.length = run->length,
		.stride = swap ? run->outer_stride : run->stride,
		.count = swap ? run->outer_count : run->count,
		.log_off = item->log_off,
		.stamp_ns = item->stamp_ns,
		.log_no = run->log_no,
		.seq = (uint32_t)idx,
		.step = swap ? run->count * run->length : run->length,
		.outer_stride = swap ? run->stride : run->outer_stride,
		.outer_count = swap ? run->count : run->outer_count,
		.outer_step = swap ? run->length : run->count * run->length,
	};
	uint64_t into = limit - 1 - item->logical_off, i,
		 j = min_u64(into / layer.outer_stride, layer.outer_count - 1);

	into -= j * layer.outer_stride;
	i = min_u64(into / layer.stride, layer.count - 1);
	into -= i * layer.stride;
	layer.hi = item->logical_off + j * layer.outer_stride + i * layer.stride +
		   min_u64(run->length, into + 1);
	*end = layer.hi;
	return sweep_add_nested(sw, &layer);
}

/* All elements of run @idx that begin before @limit, as extents. */
static int add_singly(const struct index_merge *m, struct sweep *sw, size_t idx, uint64_t limit)
{
	const struct index_merge_run *run = run_of(m, &m->items[idx]);
	uint64_t nr = run->count * max_u64(run->outer_count, 1);
	int ret = 0;

	if (!run->outer_count) /* what is cut off may be any number */
		nr = min_u64(nr, (limit - 1 - m->items[idx].logical_off) / max_u64(run->stride, 1) + 1);
	for (uint64_t sub = 0; sub < nr && !ret; sub++) {
		struct overlay_piece piece = element(m, idx, sub, limit);

		if (piece.lo < limit)
			ret = overlay_keys_add(&sw->extents, piece.lo, (uint32_t)idx, (uint32_t)sub);
	}
	return ret;
}

struct build {
	const struct index_merge *m;
	const struct sorted_cut *cuts;
	uint64_t end;
};

/* The extent that the sweep knows as @key. */
static void load_extent(const void *arg, const struct overlay_key *key, struct overlay_piece *piece)
{
	const struct build *b = arg;
	uint64_t limit = b->m->nr_cuts ? item_limit(b->m, b->cuts, key->idx) : UINT64_MAX;
	uint64_t sub = key->sub;

	if (key->sub == SWEEP_LAST_ELEMENT) {
		const struct index_merge_item *item = &b->m->items[key->idx];

		sub = (key->key - item->logical_off) / run_of(b->m, item)->stride;
	}
	*piece = element(b->m, key->idx, sub, limit);
}

static void prefetch_extent(const void *arg, const struct overlay_key *key)
{
	const struct build *b = arg;

	__builtin_prefetch(&b->m->items[key->idx]);
}

/* Give all items to the sweep; those marked in @single, unless NULL, element by element. */
static int fill_sweep(struct build *b, struct sweep *sw, const uint8_t *single)
{
	const struct index_merge *m = b->m;
	int ret = overlay_keys_reserve(&sw->extents, m->nr_items);

	for (size_t i = 0; i < m->nr_items && !ret; i++) {
		const struct index_merge_item *item = &m->items[i];
		const struct index_merge_run *run = run_of(m, item);
		uint64_t limit = b->cuts ? item_limit(m, b->cuts, i) : UINT64_MAX;
		uint64_t hi = item->logical_off + (run ? run->length : item->length);

		if (item->logical_off >= limit)
			continue;
		if (run && single && single[i / 8] & 1 << i % 8) {
			ret = add_singly(m, sw, i, limit);
		} else if (run && run->outer_count) {
			ret = add_nested(m, sw, i, limit, &hi);
		} else if (run && run->count > 1) {
			hi += min_u64(run->count - 1, (limit - 1 - item->logical_off) / run->stride) *
			      run->stride;
			ret = add_run(m, sw, i, limit);
		} else {
			ret = overlay_keys_add(&sw->extents, item->logical_off, (uint32_t)i, 0);
		}
		b->end = max_u64(b->end, min_u64(hi, limit));
	}
	return ret;
}

/* *@single: in, as for fill_sweep(); out, marks for another pass, or NULL: none is needed. */
static int sweep_once(struct build *b, struct image *img, uint8_t **single)
{
	struct sweep sw;
	int ret;

	sweep_init(&sw, load_extent, prefetch_extent, b);
	if (!*single)
		sw.nr_singles = b->m->nr_items;
	ret = fill_sweep(b, &sw, *single);
	mem_free(*single);
	if (!ret)
		ret = image_init(img, sw.extents.n);
	if (!ret)
		ret = sweep_run(&sw, img);
	*single = sw.single;
	sweep_release(&sw);
	return ret;
}

int index_merge_build(struct index_merge *m, void **image, size_t *len)
{
	struct sorted_cut *cuts = NULL;
	struct build b = { .m = m };
	struct image img = { 0 };
	uint64_t cut = UINT64_MAX, max_stamp_ns = 0;
	uint8_t *single = NULL;
	int ret = 0;

	if (m->nr_cuts > 0)
		ret = sort_cuts(m, &cuts);
	b.cuts = cuts;
	for (size_t i = 0; i < m->nr_cuts; i++) {
		cut = min_u64(cut, m->cuts[i].size);
		max_stamp_ns = max_u64(max_stamp_ns, m->cuts[i].stamp_ns);
	}
	for (size_t i = 0; i < m->nr_items; i++)
		max_stamp_ns = max_u64(max_stamp_ns, m->items[i].stamp_ns);
	if (!ret)
		ret = sweep_once(&b, &img, &single);
	if (!ret && single) {
		image_release(&img);
		ret = sweep_once(&b, &img, &single);
	}
	mem_free(single);
	if (!ret)
		ret = image_finish(&img, b.end, cut, max_stamp_ns, (uint64_t)m->nr_items + m->nr_cuts, image,
				   len);
	image_release(&img);
	mem_free(cuts);
	return ret;
}
