/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Maps against a model that cannot be wrong: an array with, for each byte of a small file, where it is.
 * Thousands of random sets of records of several shapes, all lookups compared. A failure names the seed.
 * PLFS_TEST_ROUNDS changes the number of rounds, PLFS_TEST_SEED the first seed.
 */
#include "test/lib/job.h"

#include "core/base/alloc.h"
#include "core/base/bytes.h"
#include "index/map/image.h"
#include "index/map/layers.h"
#include "index/map/merge.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define SPACE_MAX 65536
#define NR_RECORDS_MAX 400

struct model_byte {
	uint32_t log_no;
	uint64_t log_off;
};

struct model {
	uint64_t space; /* everything is below */
	uint32_t nr;
	uint32_t log_no[NR_RECORDS_MAX];
	struct index_record rec[NR_RECORDS_MAX];
	struct model_byte byte[SPACE_MAX];
	uint64_t end, cut;
};

static uint64_t rng_state;

static uint64_t rnd(uint64_t below) { return rnd_below(&rng_state, below); }

static int older(const struct model *m, uint32_t a, uint32_t b)
{
	if (m->rec[a].stamp_ns != m->rec[b].stamp_ns)
		return m->rec[a].stamp_ns < m->rec[b].stamp_ns;
	if (m->log_no[a] != m->log_no[b])
		return m->log_no[a] < m->log_no[b];
	return a < b;
}

/* Play all records back, oldest first. */
static void model_play(struct model *m)
{
	uint32_t order[NR_RECORDS_MAX];

	for (uint32_t i = 0; i < m->nr; i++) {
		uint32_t j = i;

		for (; j > 0 && older(m, i, order[j - 1]); j--)
			order[j] = order[j - 1];
		order[j] = i;
	}
	for (uint64_t x = 0; x < m->space; x++)
		m->byte[x].log_no = INDEX_LOG_HOLE;
	m->cut = UINT64_MAX;
	for (uint32_t k = 0; k < m->nr; k++) {
		const struct index_record *r = &m->rec[order[k]];

		if (r->type == INDEX_TRUNCATE) {
			for (uint64_t x = r->logical_off; x < m->space; x++)
				m->byte[x].log_no = INDEX_LOG_CUT;
			m->cut = min_u64(m->cut, r->logical_off);
			continue;
		}
		for (uint64_t i = 0; i < r->count * max_u64(r->outer_count, 1); i++)
			for (uint64_t b = 0; b < r->length; b++) {
				uint64_t x = r->logical_off + i % r->count * r->stride +
					     i / r->count * r->outer_stride + b;

				m->byte[x].log_no = m->log_no[order[k]];
				m->byte[x].log_off = r->log_off + i * r->length + b;
			}
	}
	for (m->end = m->space; m->end > 0 && m->byte[m->end - 1].log_no >= INDEX_LOG_CUT;)
		m->end--;
}

static struct index_record *add(struct model *m, uint64_t lo, uint64_t length, uint64_t stride,
				uint64_t count)
{
	struct index_record *r = &m->rec[m->nr];

	if (m->nr == NR_RECORDS_MAX || lo >= m->space || length == 0)
		return NULL;
	length = min_u64(length, m->space - lo);
	if (count > 1)
		count = min_u64(count, (m->space - lo - length) / stride + 1);
	*r = (struct index_record){ INDEX_WRITE, lo, length, count > 1 ? stride : 0, count, rnd(1 << 20),
				    0,		 0,  0 };
	m->log_no[m->nr++] = (uint32_t)rnd(8);
	return r;
}

static void add_extents(struct model *m, uint64_t n, uint64_t longest)
{
	while (n-- > 0)
		add(m, rnd(m->space), 1 + rnd(longest), 0, 1);
}

/* Runs with nothing in common. */
static void add_wild_runs(struct model *m, uint64_t n)
{
	while (n-- > 0) {
		uint64_t stride = 1 + rnd(rnd(4) ? 64 : m->space / 2);

		add(m, rnd(m->space), 1 + rnd(stride), stride, 2 + rnd(rnd(3) ? 20 : m->space));
	}
}

/*
 * Ranks that take turns, as in a checkpoint: here and there late, early, short, long, wrapping,
 * overlapping.
 */
static void add_interleaved(struct model *m, uint64_t messy)
{
	uint64_t ranks = 1 + rnd(24), block = 1 + rnd(16), stride = ranks * block, lo = rnd(m->space / 2);
	uint64_t rows = 1 + rnd((m->space - lo) / stride + 1);

	for (uint64_t i = 0; i < ranks; i++) {
		uint64_t at = lo + i * block, length = block, count = rows;

		if (messy && rnd(4) == 0)
			at += rnd(4) * stride;
		if (messy && rnd(4) == 0)
			length = 1 + rnd(stride);
		if (messy && rnd(4) == 0)
			at += rnd(block);
		if (messy && rnd(3) == 0)
			count = 1 + rnd(rows);
		add(m, at, length, stride, count);
	}
}

/* Nest a run that was just added, as often as fits: runs one after the other, or interleaved. */
static void nest(struct model *m, struct index_record *r, uint64_t outer_stride, uint64_t outer_count)
{
	uint64_t room;

	if (!r || r->count < 2 || outer_count < 2)
		return;
	room = m->space - index_record_end(r);
	r->outer_stride = outer_stride;
	r->outer_count = min_u64(outer_count, room / outer_stride + 1);
	while (r->outer_count > 1 && !index_record_valid(r))
		r->outer_count--;
	if (r->outer_count < 2)
		r->outer_stride = r->outer_count = 0;
}

static void add_wild_nested(struct model *m, uint64_t n)
{
	while (n-- > 0) {
		uint64_t length = 1 + rnd(8), stride = length + rnd(64), count = 2 + rnd(8);
		struct index_record *r = add(m, rnd(m->space), length, stride, count);

		if (rnd(3))
			nest(m, r, (count - 1) * stride + length + rnd(rnd(3) ? 40 : 400),
			     2 + rnd(rnd(3) ? 6 : 200));
		else
			nest(m, r, length + rnd(8), 2 + rnd(8));
	}
}

/*
 * Ranks with a block each of an array of three dimensions, several arrays or several times over the same one,
 * here and there in disorder.
 */
static void add_array(struct model *m, uint64_t messy)
{
	uint64_t nx = 1 + rnd(4), ny = 1 + rnd(4), nz = 1 + rnd(3); /* blocks */
	uint64_t len = 1 + rnd(8), rows = 1 + rnd(5), planes = 1 + rnd(5);
	uint64_t row = nx * len + (messy ? rnd(2) : 0), plane = ny * rows * row + (messy ? rnd(3) : 0),
		 lo = rnd(m->space / 2);
	bool by_column = rnd(4) == 0;

	for (uint64_t again = 1 + rnd(3); again-- > 0;) {
		for (uint64_t i = 0; i < nx * ny * nz; i++) {
			uint64_t x = i % nx, y = i / nx % ny, z = i / nx / ny;
			uint64_t at = lo + x * len + y * rows * row + z * planes * plane;
			uint64_t in_plane = messy && rnd(8) == 0 ? 1 + rnd(rows) : rows;
			uint64_t length = messy && rnd(8) == 0 ? min_u64(1 + rnd(2 * len), row) : len;

			if (messy && rnd(8) == 0)
				continue;
			if (by_column)
				nest(m, add(m, at, length, plane, planes), row, in_plane);
			else
				nest(m, add(m, at, length, row, in_plane), plane, planes);
		}
		if (rnd(2))
			lo += nz * planes * plane;
	}
}

static void add_truncates(struct model *m, uint64_t n)
{
	while (n-- > 0 && m->nr < NR_RECORDS_MAX) {
		m->rec[m->nr] = (struct index_record){ .type = INDEX_TRUNCATE, .logical_off = rnd(m->space) };
		m->log_no[m->nr++] = (uint32_t)rnd(8);
	}
}

static void model_fill(struct model *m)
{
	uint64_t stamps;

	m->space = 256 << rnd(rnd(20) ? 6 : 9);
	m->nr = 0;
	switch (rnd(12)) {
	case 8: add_array(m, 0); break;
	case 9:
		add_array(m, rnd(2));
		add_extents(m, rnd(20), 60);
		break;
	case 10:
		add_wild_nested(m, 1 + rnd(20));
		add_wild_runs(m, rnd(3));
		add_extents(m, rnd(20), 40);
		break;
	case 11:
		add_array(m, rnd(2));
		add_interleaved(m, rnd(2));
		add_wild_nested(m, rnd(3));
		break;
	case 0: add_extents(m, rnd(200), m->space / 8); break;
	case 1: add_extents(m, rnd(300), 40); break;
	case 2: add_wild_runs(m, 1 + rnd(40)); break;
	case 3: add_interleaved(m, 0); break;
	case 4: add_interleaved(m, 1); break;
	case 5:
		add_interleaved(m, rnd(2));
		add_interleaved(m, rnd(2));
		add_extents(m, rnd(10), m->space);
		break;
	case 6:
		add_interleaved(m, 1);
		add_wild_runs(m, rnd(4));
		add_extents(m, rnd(60), 30);
		break;
	default:
		add_wild_runs(m, rnd(100));
		add_interleaved(m, 1);
		add_extents(m, rnd(30), m->space / 4);
	}
	if (rnd(3) == 0)
		add_truncates(m, 1 + rnd(5));
	/* In order of adding, all different, or many the same. */
	stamps = 1 + rnd(3) * rnd(m->nr + 1);
	for (uint32_t i = 0; i < m->nr; i++)
		m->rec[i].stamp_ns = stamps == 1 ? i : 1 + rnd(stamps);
}

static bool finds_the_same(const struct index_map *map, struct index_hint *hint, const struct index_piece *p,
			   uint64_t len)
{
	struct index_piece near;

	index_map_lookup_near(map, p->logical_off, len, &near, hint);
	return near.logical_off == p->logical_off && near.len == p->len && near.log_no == p->log_no &&
	       near.log_off == p->log_off;
}

/* @forward: for lookups in ascending order. */
static void check_piece(const struct model *m, const struct index_map *map, uint64_t x, uint64_t len,
			struct index_hint *forward, uint64_t seed)
{
	static struct index_hint hint; /* what it says is of other lookups, and of other maps */
	struct index_piece p;

	index_map_lookup(map, x, len, &p);
	if (!finds_the_same(map, &hint, &p, len) || !finds_the_same(map, forward, &p, len))
		cr_assert_fail("seed %lu: the hint changes what is found at %lu", seed, x);
	if (p.logical_off != x || p.len == 0 || p.len > len)
		cr_assert_fail("seed %lu: piece at %lu is not at %lu or not 1 to %lu long", seed,
			       p.logical_off, x, len);
	for (uint64_t i = 0; i < p.len; i++) {
		const struct model_byte *b = &m->byte[x + i];

		if (p.log_no != b->log_no || (p.log_no < INDEX_LOG_CUT && p.log_off + i != b->log_off))
			cr_assert_fail("seed %lu: byte %lu (piece at %lu) is at %u/%lu, should be at %u/%lu",
				       seed, x + i,
				       x, p.log_no, p.log_off + i, b->log_no, b->log_off);
	}
}

static int count_data(void *arg, const struct index_piece *piece)
{
	*(uint64_t *)arg += piece->len;
	return 0;
}

static void count_kinds(const struct index_map *map, uint64_t *kinds)
{
	for (uint64_t i = 0; i < map->nr_panels; i++)
		kinds[get_le32(map->panels + i * IMAGE_PANEL_LEN + 28)]++;
}

static void check_round(struct model *m, uint64_t seed, uint64_t *kinds)
{
	struct index_walk steps = { 0 }, jumps = { 0 };
	struct index_hint all = { .walk = &steps }, some = { .walk = &jumps };
	struct index_merge merge;
	struct index_map map;
	uint64_t data = 0, in_model = 0;
	void *image;
	size_t len;

	rng_state = seed * 0x9e3779b97f4a7c15 | 1;
	rnd(2);
	model_fill(m);
	model_play(m);
	index_merge_init(&merge);
	for (uint32_t i = 0; i < m->nr; i++)
		cr_assert_eq(index_merge_add(&merge, m->log_no[i], &m->rec[i]), 0, "seed %lu", seed);
	cr_assert_eq(index_merge_build(&merge, &image, &len), 0);
	index_merge_release(&merge);
	cr_assert_eq(index_map_open(&map, image, len, true), 0, "seed %lu", seed);

	cr_assert_eq(map.end, m->end, "seed %lu: end %lu, should be %lu", seed, map.end, m->end);
	cr_assert_eq(map.cut, m->cut, "seed %lu", seed);
	cr_assert_eq(map.nr_records, m->nr, "seed %lu", seed);
	for (uint64_t x = 0; x < m->space; x++) {
		in_model += m->byte[x].log_no < INDEX_LOG_CUT;
		check_piece(m, &map, x, m->space - x, &all, seed);
		check_piece(m, &map, x, 1 + rnd(m->space - x), &all, seed);
	}
	for (uint64_t x = 0; x < m->space; x += 1 + rnd(100))
		check_piece(m, &map, x, m->space - x, &some, seed);
	index_walk_release(&steps);
	index_walk_release(&jumps);
	index_map_each(&map, count_data, &data);
	cr_assert_eq(data, in_model, "seed %lu: %lu bytes of data, should be %lu", seed, data, in_model);
	count_kinds(&map, kinds);
	mem_free(image);
}

Test(index_map, agrees_with_a_model_byte_by_byte, .timeout = 600)
{
	const char *rounds = getenv("PLFS_TEST_ROUNDS"), *first = getenv("PLFS_TEST_SEED");
	uint64_t seed = first ? strtoull(first, NULL, 0) : 1, nr = rounds ? strtoull(rounds, NULL, 0) : 1000;
	struct model *m = mem_alloc(sizeof(*m));
	uint64_t kinds[5] = { 0 };

	for (uint64_t i = 0; i < nr; i++)
		check_round(m, seed + i, kinds);
	mem_free(m);
	if (nr >= 1000)
		cr_assert(kinds[IMAGE_PLAIN] > 100 && kinds[IMAGE_STRIDED] > 100 &&
				  kinds[IMAGE_MIXED] > 100 && kinds[IMAGE_NESTED] > 100,
			  "not all kinds of panels were tried: %lu %lu %lu %lu", kinds[IMAGE_PLAIN],
			  kinds[IMAGE_STRIDED], kinds[IMAGE_MIXED], kinds[IMAGE_NESTED]);
}

/*
 * A walk over @nr runs with nothing in common: how often it looks at one of them. *@elements: how many they
 * have together; *@pieces: of the walk.
 */
static uint64_t looks_of_a_walk(uint64_t nr, uint64_t *elements, uint64_t *pieces)
{
	struct index_walk walk = { 0 };
	struct index_hint hint = { .walk = &walk };
	struct index_merge merge;
	struct index_piece p;
	struct index_map map;
	uint64_t looks;
	void *image;
	size_t len;

	*elements = *pieces = 0;
	index_merge_init(&merge);
	for (uint64_t i = 0; i < nr; i++) {
		struct index_record r = { .type = INDEX_WRITE, .logical_off = i * 10, .length = 5,
					  .stride = nr * 10 + i, .count = 400, .stamp_ns = 1 + rnd(1000) };

		cr_assert_eq(index_merge_add(&merge, (uint32_t)i, &r), 0);
		*elements += r.count;
	}
	cr_assert_eq(index_merge_build(&merge, &image, &len), 0);
	index_merge_release(&merge);
	cr_assert_eq(index_map_open(&map, image, len, true), 0);
	cr_assert_gt(map.nr_layers, nr / 2);
	for (uint64_t x = 0; x < map.end; x += p.len, ++*pieces)
		index_map_lookup_near(&map, x, map.end - x, &p, &hint);
	looks = walk.nr_looks;
	index_walk_release(&walk);
	mem_free(image);
	return looks;
}

/* Two looks an element, where it begins and where it ends; not one at each run for each piece. */
Test(index_map, walk_looks_at_each_element_and_not_at_all_runs)
{
	uint64_t elements, pieces;

	rng_state = 1;
	for (uint64_t nr = 100; nr <= 1600; nr *= 4) {
		uint64_t looks = looks_of_a_walk(nr, &elements, &pieces);

		cr_assert_leq(looks, 2 * elements + nr, "%lu runs: %lu looks", nr, looks);
		cr_assert_gt(pieces, elements / 2);
	}
}
