/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Extents are handed out in order, all of them, whatever they are; and maps of so many that they are sorted
 * in parts, against a model of the bytes.
 */
#include "test/lib/job.h"

#include "core/base/alloc.h"
#include "index/map/extents.h"
#include "index/map/merge.h"

#include <criterion/criterion.h>

static uint64_t rng_state;

static uint64_t rnd(uint64_t below) { return rnd_below(&rng_state, below); }

/* ---- the order ---- */

/* Number @i of a shape of positions, and lengths. */
static struct overlay_piece piece_of(int shape, uint64_t i, uint64_t nr)
{
	uint64_t lo, len = 1 + rnd(100), log_off = rnd(1 << 30);

	switch (shape) {
	case 0: lo = rnd(nr * 128); break;                                    /* all over */
	case 1: lo = i * 100; break;                                          /* in order */
	case 2: lo = (nr - i) * 100; break;                                   /* in the opposite order */
	case 3: lo = 4711; break;                                             /* all at one place */
	case 4: lo = rnd(2) ? 0 : 1ULL << 61; break;                          /* at two, far apart */
	case 5: lo = 1ULL << rnd(62); break;                                  /* ever fewer */
	case 6: lo = rnd(1000) ? (1ULL << 60) + rnd(1 << 20) : rnd(1ULL << 61); break; /* in a corner */
	case 7: lo = rnd(16) * (1ULL << 58) + i; break;                       /* 16 that go on by turns */
	default:
		lo = rnd(1ULL << 61);
		len = 1 + rnd(rnd(2) ? 1 << 25 : 1ULL << 60);
		log_off = rnd(rnd(2) ? 1ULL << 41 : 1ULL << 61);
	}
	return (struct overlay_piece){ .lo = lo, .hi = lo + len, .log_off = log_off,
				       .stamp_ns = rnd(1ULL << 62), .log_no = (uint32_t)rnd(UINT32_MAX),
				       .seq = (uint32_t)i };
}

/* @nr of them come in order, and each that was added comes once, as it was. */
static void check_order(int shape, uint64_t nr)
{
	struct overlay_piece *added = mem_alloc((nr + 1) * sizeof(*added));
	bool *seen = mem_zalloc(nr + 1);
	struct extents e = { 0 };
	uint64_t lo = 0, n = 0;

	for (uint64_t i = 0; i < nr; i++) {
		added[i] = piece_of(shape, i, nr);
		cr_assert_eq(extents_add(&e, &added[i]), 0);
	}
	for (int again = 0; again < 2; again++, lo = n = 0) {
		memset(seen, 0, nr);
		cr_assert_eq(extents_begin(&e), 0);
		for (; extents_next_lo(&e) != UINT64_MAX; n++) {
			struct overlay_piece p = extents_next(&e), *a = &added[p.seq];

			cr_assert(p.lo == extents_next_lo(&e) && p.lo >= lo, "shape %d of %lu: order", shape,
				  nr);
			cr_assert(!seen[p.seq] && e.taken > n && p.lo == a->lo && p.hi == a->hi &&
					  p.log_off == a->log_off && p.stamp_ns == a->stamp_ns &&
					  p.log_no == a->log_no,
				  "shape %d of %lu: number %u", shape, nr, p.seq);
			lo = p.lo;
			seen[p.seq] = true;
			cr_assert_eq(extents_skip(&e), 0);
		}
		cr_assert_eq(n, nr, "shape %d: %lu of %lu", shape, n, nr);
	}
	extents_release(&e);
	mem_free(added);
	mem_free(seen);
}

Test(extents, come_in_order_and_whole)
{
	static const uint64_t nrs[] = { 0, 1, 2, 31, 32, 33, 1000, 16384, 16385, 50000, 300000 };

	rng_state = 1;
	for (size_t i = 0; i < ARRAY_SIZE(nrs); i++)
		for (int shape = 0; shape < 9; shape++)
			check_order(shape, nrs[i]);
}

Test(extents, one_that_goes_on_where_the_last_ends_makes_it_longer)
{
	struct overlay_piece p = { .lo = 100, .hi = 110, .log_off = 7, .stamp_ns = 5, .log_no = 1, .seq = 9 };
	struct overlay_piece on = { .lo = 110, .hi = 115, .log_off = 17, .stamp_ns = 5, .log_no = 1,
				    .seq = 9 };
	struct overlay_piece other[] = { on, on, on, on, on, on };
	struct extents e = { 0 };

	cr_assert_not(extents_extend(&e, &p));
	cr_assert_eq(extents_add(&e, &p), 0);
	other[0].lo++;
	other[1].log_off++;
	other[2].stamp_ns++;
	other[3].log_no++;
	other[4].seq++;
	other[5].hi = other[5].lo + (1 << 24) - 10; /* longer than an extent can be without help */
	for (size_t i = 0; i < ARRAY_SIZE(other); i++)
		cr_assert_not(extents_extend(&e, &other[i]), "%zu", i);
	cr_assert(extents_extend(&e, &on));
	p = extents_piece(&e, &e.v[0]);
	cr_assert(e.n == 1 && p.lo == 100 && p.hi == 115 && p.log_off == 7);
	extents_release(&e);
}

/* ---- maps of very many ---- */

enum { SPACE = 1 << 20, NR_LOGS = 4 };

struct byte {
	uint64_t log_off, stamp_ns;
	uint32_t log_no, seq;
};

static bool is_newer(const struct byte *a, const struct byte *b)
{
	if (a->stamp_ns != b->stamp_ns)
		return a->stamp_ns > b->stamp_ns;
	return a->log_no != b->log_no ? a->log_no > b->log_no : a->seq > b->seq;
}

/* Write the record into the model of the bytes; stamp 0: nobody has yet. */
static void play(struct byte *bytes, const struct index_record *r, uint32_t log_no, uint32_t seq)
{
	struct byte b = { .stamp_ns = r->stamp_ns, .log_no = log_no, .seq = seq };

	for (uint64_t i = 0; i < r->count; i++)
		for (uint64_t k = 0; k < r->length; k++) {
			struct byte *at = &bytes[r->logical_off + i * r->stride + k];

			b.log_off = r->log_off + i * r->length + k;
			if (is_newer(&b, at))
				*at = b;
		}
}

/*
 * @nr records of up to @longest bytes, of @nr_stamps stamps; with @runs, some of them in runs, long ones or
 * none but short ones; with @big, first the whole space, which all others cut into pieces; with @cut, in the
 * end a truncation that is older than some.
 */
static void check_map(uint64_t nr, uint64_t longest, uint64_t nr_stamps, uint64_t runs, bool big, bool cut)
{
	struct byte *bytes = mem_zalloc(SPACE * sizeof(*bytes));
	uint64_t end = 0, size = SPACE / 3, stamp = 1 + nr_stamps / 2;
	struct index_merge merge;
	struct index_piece p;
	struct index_map map;
	void *image;
	size_t len;

	index_merge_init(&merge);
	for (uint64_t i = 0; i < nr; i++) {
		struct index_record r = { .type = INDEX_WRITE, .logical_off = rnd(SPACE - 60 * longest),
					  .length = 1 + rnd(longest), .count = 1, .log_off = rnd(1 << 30),
					  .stamp_ns = 2 + rnd(nr_stamps) };
		uint32_t log_no = (uint32_t)rnd(NR_LOGS);

		if (big && !i)
			r = (struct index_record){ .type = INDEX_WRITE, .length = SPACE, .count = 1,
						   .stamp_ns = 1 };
		else if (runs && !rnd(20))
			r.count = 2 + rnd(runs), r.stride = r.length + 1 + rnd(10);
		cr_assert_eq(index_merge_add(&merge, log_no, &r), 0);
		play(bytes, &r, log_no, (uint32_t)i);
	}
	if (cut) {
		struct index_record r = { .type = INDEX_TRUNCATE, .logical_off = size, .stamp_ns = stamp };

		cr_assert_eq(index_merge_add(&merge, NR_LOGS, &r), 0);
		for (uint64_t x = size; x < SPACE; x++)
			if (bytes[x].stamp_ns <= stamp)
				bytes[x].stamp_ns = 0;
	}
	for (uint64_t x = 0; x < SPACE; x++)
		end = bytes[x].stamp_ns ? x + 1 : end;
	cr_assert_eq(index_merge_build(&merge, &image, &len), 0);
	index_merge_release(&merge);
	cr_assert_eq(index_map_open(&map, image, len, true), 0);
	cr_assert_eq(map.end, end);
	for (uint64_t x = 0; x < SPACE; x += p.len) {
		index_map_lookup(&map, x, SPACE - x, &p);
		for (uint64_t k = 0; k < p.len; k++) {
			const struct byte *b = &bytes[x + k];

			if (b->stamp_ns ? p.log_no != b->log_no || p.log_off + k != b->log_off :
					  p.log_no < INDEX_LOG_CUT)
				cr_assert_fail("byte %lu is at %u/%lu, should be at %u/%lu", x + k, p.log_no,
					       p.log_off + k, b->stamp_ns ? b->log_no : INDEX_LOG_HOLE,
					       b->log_off);
		}
	}
	mem_free(image);
	mem_free(bytes);
}

Test(extents, maps_of_many_agree_with_a_model_byte_by_byte, .timeout = 300)
{
	rng_state = 7;
	for (uint64_t nr = 100; nr <= 200000; nr = nr * 2 + 1) {
		check_map(nr, 10, nr, 0, false, false);
		check_map(nr, 300, nr, 0, false, true);
		check_map(nr, 40, 3, 0, false, false); /* nearly all stamps are equal */
		check_map(nr, 4, nr, 0, true, false);  /* more pieces than there are extents */
		check_map(nr, 30, nr, 3, true, true);
		check_map(nr, 30, nr, 50, false, true);
	}
}
