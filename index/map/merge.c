/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collects records and prepares them for the sweep (sweep.c) that builds the map: truncations are applied
 * here, for good. A record sees only those newer than itself, and of these only the lowest size counts; so
 * each record is cut short once, and the sweep knows nothing of truncations.
 */
#include "index/map/merge.h"

#include "index/map/sweep.h"

#include "core/base/vec.h"

/* A run of so few elements is single extents to us: random writes look like runs of two. */
#define SHORT_RUN 4
#define MANY_RUNS ((size_t)1 << 14)

/* @limit: what lies behind was cut off; before truncations are applied, UINT64_MAX. */
struct index_merge_run {
	struct index_record rec;
	uint64_t limit;
	uint32_t log_no, seq;
};

/* seq: the records of writes that were added before it. */
struct index_merge_cut {
	uint64_t size, stamp_ns;
	uint32_t log_no, seq;
};

/* Oldest first; limit: the lowest size of this one and all newer. */
struct sorted_cut {
	uint64_t limit, stamp_ns;
	uint32_t log_no, seq;
};

void index_merge_init(struct index_merge *m)
{
	memset(m, 0, sizeof(*m));
}

void index_merge_release(struct index_merge *m)
{
	extents_release(&m->extents);
	mem_free(m->runs);
	mem_free(m->cuts);
	memset(m, 0, sizeof(*m));
}

static int reserve_runs(struct index_merge *m, size_t nr)
{
	struct index_merge_run *runs = vec_room(m->runs, &m->cap_runs, m->nr_runs + nr, sizeof(*runs));

	m->runs = runs ? runs : m->runs;
	return runs ? 0 : -ENOMEM;
}

/*
 * What becomes a run, and what an extent or a few, is not known yet. So there is room for all of either, but
 * not for very many runs, which are rare. Room that is not used costs nothing.
 */
int index_merge_reserve(struct index_merge *m, size_t nr)
{
	int ret = extents_reserve(&m->extents, nr + nr / 16);

	return ret ? ret : reserve_runs(m, min_size(nr, MANY_RUNS) + 1);
}

static int add_cut(struct index_merge *m, uint32_t log_no, const struct index_record *rec)
{
	struct index_merge_cut *cuts = vec_room(m->cuts, &m->cap_cuts, m->nr_cuts + 1, sizeof(*cuts));

	if (!cuts)
		return -ENOMEM;
	m->cuts = cuts;
	cuts[m->nr_cuts++] = (struct index_merge_cut){ rec->logical_off, rec->stamp_ns, log_no,
						       m->nr_writes };
	return 0;
}

static int add_run(struct index_merge *m, const struct index_merge_run *run)
{
	if (reserve_runs(m, 1))
		return -ENOMEM;
	m->runs[m->nr_runs++] = *run;
	return 0;
}

/* Element @sub of @run. */
static struct overlay_piece element(const struct index_merge_run *run, uint64_t sub)
{
	const struct index_record *rec = &run->rec;
	uint64_t lo = rec->logical_off;

	if (rec->outer_count)
		lo += sub / rec->count * rec->outer_stride + sub % rec->count * rec->stride;
	else
		lo += sub * rec->stride;
	return (struct overlay_piece){
		.lo = lo,
		.hi = min_u64(lo + rec->length, run->limit),
		.log_off = rec->log_off + sub * rec->length,
		.stamp_ns = rec->stamp_ns,
		.log_no = run->log_no,
		.seq = run->seq,
	};
}

/* Its elements from @first on, so many. */
static int add_elements(struct index_merge *m, const struct index_merge_run *run, uint64_t first, uint64_t nr)
{
	int ret = 0;

	for (uint64_t sub = first; sub < first + nr && !ret; sub++) {
		struct overlay_piece piece = element(run, sub);

		if (piece.lo < run->limit)
			ret = extents_add(&m->extents, &piece);
	}
	return ret;
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
 * One extent. If it is no more than the rest of the one that was added before it, as two bytes of an index
 * block can say, both are one.
 */
static int add_extent(struct index_merge *m, uint32_t log_no, const struct index_record *rec)
{
	bool cut_since = m->nr_cuts && m->cuts[m->nr_cuts - 1].seq == m->nr_writes;
	struct overlay_piece piece = {
		.lo = rec->logical_off,
		.hi = rec->logical_off + rec->length,
		.log_off = rec->log_off,
		.stamp_ns = rec->stamp_ns,
		.log_no = log_no,
		.seq = m->nr_writes - 1,
	};
	int ret;

	if (!cut_since && extents_extend(&m->extents, &piece))
		return 0;
	piece.seq = m->nr_writes;
	ret = extents_add(&m->extents, &piece);
	m->nr_writes += !ret;
	return ret;
}

int index_merge_add(struct index_merge *m, uint32_t log_no, const struct index_record *added)
{
	struct index_merge_run run;
	int ret;

	if (!index_record_valid(added) || log_no >= INDEX_LOG_CUT)
		return -EBADMSG;
	if (m->nr_writes == UINT32_MAX)
		return -ENOMEM;
	m->max_stamp_ns = max_u64(m->max_stamp_ns, added->stamp_ns);
	if (added->type == INDEX_TRUNCATE)
		return add_cut(m, log_no, added);
	if (likely(added->count == 1))
		return add_extent(m, log_no, added);

	run = (struct index_merge_run){ simplified(added), UINT64_MAX, log_no, m->nr_writes };
	if (run.rec.count == 1)
		return add_extent(m, log_no, &run.rec);
	ret = run.rec.outer_count || run.rec.count > SHORT_RUN ? add_run(m, &run) :
								 add_elements(m, &run, 0, run.rec.count);
	m->nr_writes += !ret;
	return ret;
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
			s[i] = (struct sorted_cut){ limit, cut->stamp_ns, cut->log_no, cut->seq };
		}
		*sorted = s;
	}
	overlay_keys_release(&keys);
	return ret;
}

/* What newer truncations leave of a record: the bytes before this. */
static uint64_t limit_of(const struct index_merge *m, const struct sorted_cut *cuts, uint64_t stamp_ns,
			 uint32_t log_no, uint32_t seq)
{
	size_t base = 0, n = m->nr_cuts;

	while (n > 0) {
		const struct sorted_cut *cut = &cuts[base + n / 2];
		bool newer = cut->stamp_ns != stamp_ns ? cut->stamp_ns > stamp_ns :
			     cut->log_no != log_no     ? cut->log_no > log_no :
							 cut->seq > seq;

		if (newer) {
			n /= 2;
		} else {
			base += n / 2 + 1;
			n -= n / 2 + 1;
		}
	}
	return base < m->nr_cuts ? cuts[base].limit : UINT64_MAX;
}

static int cut_extents(struct index_merge *m, const struct sorted_cut *cuts)
{
	struct extents *e = &m->extents;
	size_t n = e->n;
	int ret = 0;

	e->n = 0; /* each is added again, or not, and so before the next one */
	for (size_t i = 0; i < n && !ret; i++) {
		struct overlay_piece piece = extents_piece(e, &e->v[i]);

		piece.hi = min_u64(piece.hi, limit_of(m, cuts, piece.stamp_ns, piece.log_no, piece.seq));
		if (piece.lo < piece.hi)
			ret = extents_add(e, &piece);
	}
	return ret;
}

/* Of a run its whole elements remain, if there are enough of them, and extents; nothing: a count of 0. */
static int cut_run(struct index_merge *m, struct index_merge_run *run)
{
	struct index_record *rec = &run->rec;
	uint64_t nr, whole;

	if (run->limit <= rec->logical_off) {
		rec->count = 0;
		return 0;
	}
	if (rec->outer_count)
		return 0;
	nr = min_u64(rec->count, (run->limit - 1 - rec->logical_off) / rec->stride + 1);
	whole = nr - (rec->logical_off + (nr - 1) * rec->stride + rec->length > run->limit);
	rec->count = whole > SHORT_RUN ? whole : 0;
	return add_elements(m, run, rec->count, nr - rec->count);
}

static int apply_cuts(struct index_merge *m)
{
	struct sorted_cut *cuts = NULL;
	int ret = m->nr_cuts ? sort_cuts(m, &cuts) : 0;

	if (!ret && m->nr_cuts)
		ret = cut_extents(m, cuts);
	for (size_t i = 0; i < m->nr_runs && m->nr_cuts && !ret; i++) {
		struct index_merge_run *run = &m->runs[i];

		run->limit = limit_of(m, cuts, run->rec.stamp_ns, run->log_no, run->seq);
		ret = cut_run(m, run);
	}
	mem_free(cuts);
	return ret;
}

static struct image_layer layer_of(const struct index_merge_run *run)
{
	const struct index_record *rec = &run->rec;

	return (struct image_layer){
		.logical_off = rec->logical_off,
		.length = rec->length,
		.stride = rec->stride,
		.count = rec->count,
		.log_off = rec->log_off,
		.stamp_ns = rec->stamp_ns,
		.log_no = run->log_no,
		.seq = run->seq,
		.hi = rec->logical_off + (rec->count - 1) * rec->stride + rec->length,
		.step = rec->length,
	};
}

/* Nested runs: all elements, and where the last one before the limit ends. */
static struct image_layer nested_layer_of(const struct index_merge_run *run)
{
	const struct index_record *rec = &run->rec;
	bool swap = rec->outer_stride < rec->stride;
	struct image_layer layer = layer_of(run);
	uint64_t into = run->limit - 1 - rec->logical_off, i, j;

	layer.stride = swap ? rec->outer_stride : rec->stride;
	layer.count = swap ? rec->outer_count : rec->count;
	layer.step = swap ? rec->count * rec->length : rec->length;
	layer.outer_stride = swap ? rec->stride : rec->outer_stride;
	layer.outer_count = swap ? rec->count : rec->outer_count;
	layer.outer_step = swap ? rec->length : rec->count * rec->length;
	j = min_u64(into / layer.outer_stride, layer.outer_count - 1);
	into -= j * layer.outer_stride;
	i = min_u64(into / layer.stride, layer.count - 1);
	into -= i * layer.stride;
	layer.hi = rec->logical_off + j * layer.outer_stride + i * layer.stride +
		   min_u64(rec->length, into + 1);
	return layer;
}

/* Give the runs to the sweep; those marked in @single, unless NULL, become extents. */
static int add_runs(struct index_merge *m, struct sweep *sw, const uint8_t *single)
{
	int ret = m->nr_runs ? sweep_reserve_runs(sw, m->nr_runs) : 0;

	for (size_t i = 0; i < m->nr_runs && !ret; i++) {
		const struct index_merge_run *run = &m->runs[i];
		bool nested = run->rec.outer_count;
		struct image_layer layer;

		if (!run->rec.count)
			continue;
		if (single && single[run->seq / 8] & 1 << run->seq % 8) {
			ret = add_elements(m, run, 0, run->rec.count * max_u64(run->rec.outer_count, 1));
			continue;
		}
		layer = nested ? nested_layer_of(run) : layer_of(run);
		ret = nested ? sweep_add_nested(sw, &layer) : sweep_add_run(sw, &layer);
	}
	return ret;
}

/*
 * *@single: in, as for add_runs(); out, marks for another pass, or NULL: none is needed. Without runs none
 * ever is, and the extents may be given up one by one.
 */
static int sweep_once(struct index_merge *m, struct image *img, uint8_t **single)
{
	struct sweep sw;
	int ret;

	sweep_init(&sw, &m->extents);
	if (!*single)
		sw.nr_singles = m->nr_writes;
	ret = add_runs(m, &sw, *single);
	mem_free(*single);
	if (!ret)
		ret = image_init(img, &m->extents, !sw.nr_runs && !sw.nr_nested);
	if (!ret)
		ret = sweep_run(&sw, img);
	*single = sw.single;
	sweep_release(&sw);
	return ret;
}

int index_merge_build(struct index_merge *m, void **image, size_t *len)
{
	struct image img = { 0 };
	uint64_t cut = UINT64_MAX;
	uint8_t *single = NULL;
	int ret = apply_cuts(m);

	for (size_t i = 0; i < m->nr_cuts; i++)
		cut = min_u64(cut, m->cuts[i].size);
	if (!ret)
		ret = sweep_once(m, &img, &single);
	if (!ret && single) {
		image_release(&img);
		ret = sweep_once(m, &img, &single);
	}
	mem_free(single);
	if (!ret)
		ret = image_finish(&img, cut, m->max_stamp_ns, (uint64_t)m->nr_writes + m->nr_cuts, image,
				   len);
	image_release(&img);
	return ret;
}
