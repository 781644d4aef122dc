/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stack of maps: few levels, of records that mostly come one by one.
 */
#include "core/read/levels.h"

#include "index/map/merge.h"
#include "core/base/alloc.h"
#include "core/base/vec.h"

static void drop_from(struct levels *l, int from)
{
	while (l->nr > from) {
		struct level *top = &l->v[--l->nr];

		if (!top->mapped)
			mem_free(top->image);
	}
}

void levels_drop(struct levels *l)
{
	drop_from(l, 0);
	l->nr_own = 0;
}

void levels_release(struct levels *l)
{
	levels_drop(l);
	mem_free(l->own);
	l->own = NULL;
	l->cap_own = 0;
}

void levels_set_base(struct levels *l, const struct level *base, uint64_t cut_ns)
{
	levels_drop(l);
	l->v[0] = *base;
	l->nr = 1;
	l->max_stamp_ns = base->map.max_stamp_ns;
	l->knows_cut = !base->mapped;
	l->cut_ns = cut_ns;
}

size_t levels_size(const struct levels *l)
{
	size_t size = l->cap_own * sizeof(*l->own);

	for (int i = 0; i < l->nr; i++)
		size += l->v[i].mapped ? 0 : l->v[i].image_len;
	return size;
}

/* Build the map of own[first...] and put it on top. */
static int push_level(struct levels *l, size_t first)
{
	struct level *top = &l->v[l->nr];
	struct index_merge m;
	int ret = 0;

	index_merge_init(&m);
	for (size_t i = first; i < l->nr_own && !ret; i++)
		ret = index_merge_add(&m, l->own[i].log_no, &l->own[i].rec);
	*top = (struct level){ .first_own = first };
	if (!ret)
		ret = index_merge_build(&m, &top->image, &top->image_len);
	if (!ret)
		ret = index_map_open(&top->map, top->image, top->image_len, false);
	index_merge_release(&m);
	if (ret)
		mem_free(top->image);
	else
		l->nr++;
	return ret;
}

/* Whether @later hides all of @rec, whatever else there is. */
static bool hides(const struct index_record *later, const struct index_record *rec)
{
	return later->type == INDEX_WRITE && rec->type == INDEX_WRITE && later->stamp_ns > rec->stamp_ns &&
	       later->count == 1 && rec->count == 1 && !later->outer_count && !rec->outer_count &&
	       later->logical_off <= rec->logical_off &&
	       later->logical_off + later->length >= rec->logical_off + rec->length;
}

#define HIDING_MAX 8

/*
 * Drop the records from @first on that the latest of the last @nr hides, or one of the very last. So there
 * are few of them where processes write the same bytes in turn, as a counter under a lock.
 */
static void drop_hidden(struct levels *l, size_t first, size_t nr)
{
	struct own_record *own = l->own;
	size_t to = first, from = l->nr_own - min_size(nr, HIDING_MAX);
	struct index_record latest = own[l->nr_own - 1].rec;

	for (size_t i = l->nr_own - nr; i < l->nr_own; i++)
		if (own[i].rec.stamp_ns > latest.stamp_ns)
			latest = own[i].rec;
	for (size_t i = first; i < l->nr_own; i++) {
		bool hidden = hides(&latest, &own[i].rec);

		for (size_t k = max_u64(from, i + 1); k < l->nr_own && !hidden; k++)
			hidden = hides(&own[k].rec, &own[i].rec);
		if (!hidden)
			own[to++] = own[i];
	}
	l->nr_own = to;
}

int levels_put(struct levels *l, const struct own_record *records, size_t nr)
{
	size_t first = l->nr_own;
	struct own_record *own = vec_room(l->own, &l->cap_own, first + nr, sizeof(*own));

	if (!own)
		return -ENOMEM;
	l->own = own;
	for (size_t i = 0; i < nr; i++) {
		l->own[l->nr_own++] = records[i];
		l->max_stamp_ns = max_u64(l->max_stamp_ns, records[i].rec.stamp_ns);
		if (records[i].rec.type == INDEX_TRUNCATE)
			l->cut_ns = max_u64(l->cut_ns, records[i].rec.stamp_ns);
	}
	/*
	 * A level that is less than twice as large as all above it is merged with them. So there are few
	 * levels, and each record is merged a logarithmic number of times.
	 */
	while (l->nr > 1) {
		size_t below = first - l->v[l->nr - 1].first_own;

		if (below >= 2 * (l->nr_own - first) && l->nr < LEVELS_MAX)
			break;
		first = l->v[l->nr - 1].first_own;
		drop_from(l, l->nr - 1);
	}
	drop_hidden(l, first, nr);
	return push_level(l, first);
}

uint64_t levels_end(const struct levels *l)
{
	uint64_t end = 0, cut = UINT64_MAX;

	for (int i = l->nr - 1; i >= 0; i--) {
		end = max_u64(end, min_u64(l->v[i].map.end, cut));
		cut = min_u64(cut, l->v[i].map.cut);
	}
	return end;
}

uint64_t levels_cut(const struct levels *l)
{
	uint64_t cut = UINT64_MAX;

	for (int i = 0; i < l->nr; i++)
		cut = min_u64(cut, l->v[i].map.cut);
	return cut;
}

void levels_lookup(struct levels *l, uint64_t logical_off, uint64_t len, struct index_piece *piece)
{
	for (int i = l->nr - 1; i >= 0; i--) {
		index_map_lookup_near(&l->v[i].map, logical_off, len, piece, &l->v[i].hint);
		if (piece->log_no != INDEX_LOG_HOLE)
			return;
		len = piece->len;
	}
	*piece = (struct index_piece){ .logical_off = logical_off, .len = len, .log_no = INDEX_LOG_HOLE };
}

void levels_walk_begin(struct levels *l, struct index_walk *walks)
{
	for (int i = 0; i < l->nr; i++)
		l->v[i].hint.walk = &walks[i];
}

void levels_walk_end(struct levels *l)
{
	for (int i = 0; i < l->nr; i++) {
		index_walk_release(l->v[i].hint.walk);
		l->v[i].hint.walk = NULL;
	}
}
