/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A radix sort from the top, done when it is needed: extents are put into the parts of the file that they
 * begin in, where they are (McIlroy, Bostic and McIlroy, "Engineering Radix Sort", 1993). A part that fits
 * into the processor's cache is a batch. Its extents are copied out in order, and their memory is free.
 */
#include "index/map/extents.h"

#include "core/base/vec.h"

#define BATCH_BITS 14
#define BATCH ((size_t)1 << BATCH_BITS)
#define PART_BITS_MIN 7 /* a stretch is divided into 2^7 to 2^9 parts */
#define PART_BITS_MAX 9
#define FEW 32          /* that are sorted by insertion */
#define KEY_BITS (64 - BATCH_BITS)
#define COUNTS ((KEY_BITS + 7) / 8)

int extents_reserve(struct extents *e, size_t nr)
{
	size_t cap = e->n + nr;
	struct extent *v;

	if (cap <= e->cap)
		return 0;
	v = cap <= SIZE_MAX / sizeof(*v) ? mem_realloc(e->v, cap * sizeof(*v)) : NULL;
	if (!v)
		return -ENOMEM;
	e->v = v;
	e->cap = cap;
	return 0;
}

/* The first level has no memory of its own. */
static void drop_level(struct extents *e)
{
	if (--e->nr_levels > 0)
		mem_free(e->level[e->nr_levels].end);
}

void extents_release(struct extents *e)
{
	while (e->nr_levels > 0)
		drop_level(e);
	mem_free(e->v);
	mem_free(e->wide);
	mem_free(e->batch);
	mem_free(e->keys);
	memset(e, 0, sizeof(*e));
}

static int add_wide(struct extents *e, uint64_t log_off, uint64_t length, uint64_t *place)
{
	struct extent_wide *wide = vec_room(e->wide, &e->cap_wide, e->nr_wide + 1, sizeof(*wide));

	if (!wide)
		return -ENOMEM;
	e->wide = wide;
	*place = e->nr_wide << EXTENT_LENGTH_BITS;
	wide[e->nr_wide++] = (struct extent_wide){ log_off, length };
	return 0;
}

int extents_add(struct extents *e, const struct overlay_piece *piece)
{
	uint64_t length = piece->hi - piece->lo, place = piece->log_off << EXTENT_LENGTH_BITS | length;
	int ret = 0;

	if (e->n == e->cap)
		ret = extents_reserve(e, e->cap / 2 + 64);
	if (unlikely(piece->log_off >> (64 - EXTENT_LENGTH_BITS) || length >> EXTENT_LENGTH_BITS) && !ret)
		ret = add_wide(e, piece->log_off, length, &place);
	if (ret)
		return ret;
	if (!e->n)
		e->lowest = e->highest = piece->lo;
	e->disorder |= piece->lo < e->highest;
	e->lowest = min_u64(e->lowest, piece->lo);
	e->highest = max_u64(e->highest, piece->lo);
	e->v[e->n++] = (struct extent){ piece->lo, place, piece->stamp_ns, piece->log_no, piece->seq };
	return 0;
}

bool extents_extend(struct extents *e, const struct overlay_piece *piece)
{
	struct extent *last = e->n ? &e->v[e->n - 1] : NULL;
	uint64_t length = last ? last->place & EXTENT_LENGTH_MASK : 0, more = piece->hi - piece->lo;

	if (!length || last->lo + length != piece->lo ||
	    (last->place >> EXTENT_LENGTH_BITS) + length != piece->log_off ||
	    last->stamp_ns != piece->stamp_ns || last->log_no != piece->log_no || last->seq != piece->seq ||
	    more > EXTENT_LENGTH_MASK - length)
		return false;
	last->place += more;
	return true;
}

/* ---- in order ---- */

static unsigned bits_of(uint64_t v) { return v ? 64 - (unsigned)__builtin_clzll(v) : 0; }

/*
 * Bring the extents into their parts: number i begins at @at[i], which becomes its end, @end[i]. Each swap
 * brings one to where it belongs. The next one to swap is beside it, not the one that was displaced: then the
 * processor need not wait for that (Skarupke, "I Wrote a Faster Sorting Algorithm", 2016). A round places
 * half of what is left, or more.
 */
static void permute(struct extent *v, uint64_t base, unsigned shift, size_t *at, const size_t *end, size_t nr)
{
	for (bool again = true; again;) {
		again = false;
		for (size_t i = 0; i < nr; i++) {
			for (size_t k = at[i]; k < end[i]; k++) {
				struct extent *to = &v[at[(v[k].lo - base) >> shift]++], displaced = *to;

				__builtin_prefetch(to + 2, 1);
				*to = v[k];
				v[k] = displaced;
			}
			again |= at[i] < end[i];
		}
	}
}

/* Divide the @n extents that are next, all in the 2^@bits bytes from @base on, into parts: a new level. */
static int divide(struct extents *e, size_t n, uint64_t base, unsigned bits)
{
	unsigned into = bits_of(2 * n / BATCH);
	struct extents_level *l = &e->level[e->nr_levels];
	size_t *at;

	into = into < PART_BITS_MIN ? PART_BITS_MIN : into > PART_BITS_MAX ? PART_BITS_MAX : into;
	into = into < bits ? into : bits;
	*l = (struct extents_level){ .base = base, .nr = (size_t)1 << into, .shift = bits - into };
	l->end = mem_zalloc(2 * l->nr * sizeof(*l->end));
	if (!l->end)
		return -ENOMEM;
	e->nr_levels++;
	at = l->end + l->nr;
	for (size_t i = e->taken; i < e->taken + n; i++)
		l->end[(e->v[i].lo - base) >> l->shift]++;
	for (size_t i = 0, sum = e->taken; i < l->nr; i++) {
		at[i] = sum;
		sum += l->end[i];
		l->end[i] = sum;
	}
	permute(e->v, base, l->shift, at, l->end, l->nr);
	return 0;
}

/*
 * Sort @keys by the @bits above BATCH_BITS, least significant byte first; those below stay with them. @tmp:
 * room for as many. Returns the one of both that they are in.
 */
static uint64_t *sort_keys(uint64_t *keys, uint64_t *tmp, size_t n, unsigned bits, uint32_t (*counts)[256])
{
	unsigned nr = (bits + 7) / 8;

	memset(counts, 0, nr * sizeof(*counts));
	for (size_t i = 0; i < n; i++)
		for (unsigned d = 0; d < nr; d++)
			counts[d][keys[i] >> (BATCH_BITS + 8 * d) & 255]++;
	for (unsigned d = 0; d < nr; d++) {
		uint64_t *sorted = tmp;

		for (uint32_t b = 0, sum = 0, count; b < 256; b++, sum += count) {
			count = counts[d][b];
			counts[d][b] = sum;
		}
		for (size_t i = 0; i < n; i++)
			sorted[counts[d][keys[i] >> (BATCH_BITS + 8 * d) & 255]++] = keys[i];
		tmp = keys;
		keys = sorted;
	}
	return keys;
}

/* Copy the @n at @v to the batch, sorted. They begin in 2^@bits bytes from @base on; 0 bits: as they are. */
static void sort_batch(struct extents *e, const struct extent *v, size_t n, uint64_t base, unsigned bits)
{
	uint64_t *keys = e->keys, *tmp;

	if (!bits) {
		memcpy(e->batch, v, n * sizeof(*v));
		return;
	}
	if (n <= FEW) {
		for (size_t i = 0, k; i < n; i++) {
			for (k = i; k > 0 && e->batch[k - 1].lo > v[i].lo; k--)
				e->batch[k] = e->batch[k - 1];
			e->batch[k] = v[i];
		}
		return;
	}
	tmp = keys + e->cap_batch;
	for (size_t i = 0; i < n; i++)
		keys[i] = (v[i].lo - base) << BATCH_BITS | i;
	keys = sort_keys(keys, tmp, n, bits, (uint32_t(*)[256])(tmp + e->cap_batch));
	for (size_t i = 0; i < n; i++)
		e->batch[i] = v[keys[i] & (BATCH - 1)];
}

/* The next batch. A part that is too long for one is divided first. */
static int next_batch(struct extents *e)
{
	e->next = e->nr_batch = 0;
	while (e->nr_levels > 0) {
		struct extents_level *l = &e->level[e->nr_levels - 1];
		uint64_t base;
		size_t n;

		while (l->part < l->nr && l->end[l->part] == e->taken)
			l->part++;
		if (l->part == l->nr) {
			drop_level(e);
			continue;
		}
		n = l->end[l->part] - e->taken;
		base = l->base + (l->part << l->shift);
		if (l->shift && (n > BATCH || (n > FEW && l->shift > KEY_BITS))) {
			if (divide(e, n, base, l->shift))
				return -ENOMEM;
			continue;
		}
		e->nr_batch = min_size(n, BATCH);
		sort_batch(e, &e->v[e->taken], e->nr_batch, base, l->shift);
		e->taken += e->nr_batch;
		break;
	}
	return 0;
}

/* Room for batches, and for their keys twice, and the counts behind those. */
static int make_room(struct extents *e)
{
	size_t cap = min_size(e->n, BATCH);
	struct extent *batch = mem_realloc(e->batch, cap * sizeof(*batch));
	uint64_t *keys;

	if (!batch)
		return -ENOMEM;
	e->batch = batch;
	e->cap_batch = cap;
	if (!e->disorder || e->n <= FEW)
		return 0;
	keys = mem_realloc(e->keys, 2 * cap * sizeof(*keys) + COUNTS * 256 * sizeof(uint32_t));
	if (!keys)
		return -ENOMEM;
	e->keys = keys;
	return 0;
}

int extents_begin(struct extents *e)
{
	while (e->nr_levels > 0)
		drop_level(e);
	e->taken = e->next = e->nr_batch = 0;
	if (!e->n)
		return 0;
	if (make_room(e))
		return -ENOMEM;
	e->level[0] = (struct extents_level){ .base = e->lowest, .end = &e->n, .nr = 1 };
	if (e->disorder)
		e->level[0].shift = bits_of(e->highest - e->lowest);
	e->nr_levels = 1;
	return next_batch(e);
}

int extents_skip(struct extents *e)
{
	return ++e->next < e->nr_batch ? 0 : next_batch(e);
}
