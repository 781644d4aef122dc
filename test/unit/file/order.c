/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The later write wins: of processes of one host that write one file, each when the write before has
 * returned, by default settings. PLFS_TEST_ROUNDS: so many times the random histories; PLFS_TEST_SEED:
 * those of this seed.
 */
#include "test/lib/order.h"

#include <criterion/criterion.h>

enum { A, B, UNIT = 1000 };

static void setup(void)
{
	unsetenv("PLFS_CONSISTENCY");
	scratch_in_memory = true;
	scratch_setup();
}

static void setup_small(void)
{
	unsetenv("PLFS_CONSISTENCY");
	scratch_in_memory = true;
	scratch_setup_small();
}

static void setup_on_disk(void)
{
	unsetenv("PLFS_CONSISTENCY");
	scratch_setup();
}

TestSuite(order, .init = setup, .fini = scratch_remove, .timeout = 600);
TestSuite(order_small, .init = setup_small, .fini = scratch_remove, .timeout = 600);
TestSuite(order_on_disk, .init = setup_on_disk, .fini = scratch_remove, .timeout = 600);

static void add(struct history *h, int who, uint32_t len, int64_t off)
{
	struct step s = { .op = OP_WRITE, .who = (uint8_t)who, .off = (uint32_t)off, .len = len };

	if (h->nr < ORDER_STEPS && off >= 0 && off + len <= ORDER_LEN)
		h->step[h->nr++] = s;
}

/* Nobody reads before the end; all read all after each step; all read what that has written. */
static void try_each(struct order_tally *t, struct history *h)
{
	for (int looks = 0; looks < 3; looks++) {
		for (int i = 0; i < h->nr; i++) {
			struct step *s = &h->step[i];

			s->looks = looks ? (uint8_t)((1u << h->nr_players) - 1) : 0;
			s->looks_whole = looks == 1;
			s->look_off = s->off;
			s->look_len = s->len;
		}
		order_try(t, h);
	}
}

/* ---- the cases that one thinks of ---- */

Test(order, what_is_written_after_a_fill_is_read)
{
	struct order_tally t = { 0 };
	struct history h = { .nr_players = 2 };

	order_start(2);
	add(&h, A, 1000, 4000);
	add(&h, B, 1 << 20, 0);
	add(&h, A, 1000, 5000);
	try_each(&t, &h);
	cr_assert(order_all_well(&t));
}

/* A writes in a row, or again and again at one place; B fills once meanwhile. */
Test(order, a_fill_covers_what_was_before_it_and_nothing_else)
{
	static const int strides[] = { 1000, 2000, 300, 0, -1000, -3000 };
	struct order_tally t = { 0 };

	order_start(2);
	for (size_t s = 0; s < sizeof(strides) / sizeof(strides[0]); s++)
		for (int when = 0; when <= 8; when++) {
			struct history h = { .nr_players = 2 };

			for (int i = 0; i < 9; i++) {
				if (i == when)
					add(&h, B, 60000, 0);
				add(&h, A, 1000, 30000 + i * strides[s]);
			}
			try_each(&t, &h);
		}
	cr_assert(order_all_well(&t));
}

/* Two that each go on as they began, and meet, pass, or run beside each other. */
Test(order, runs_that_cross_are_in_order_where_they_meet)
{
	static const int strides[] = { UNIT, -UNIT, 2 * UNIT, -2 * UNIT, 3 * UNIT, UNIT / 2, 0 };
	static const int starts[] = { 0, UNIT, 3 * UNIT, 5 * UNIT, 5 * UNIT + 300 };
	enum { NR = sizeof(strides) / sizeof(strides[0]), NR_STARTS = sizeof(starts) / sizeof(starts[0]) };
	struct order_tally t = { 0 };

	order_start(2);
	for (int n = 0; n < NR * NR * NR_STARTS; n++) {
		struct history h = { .nr_players = 2 };

		for (int i = 0; i < 6; i++) {
			add(&h, A, UNIT, 20 * UNIT + i * strides[n % NR]);
			add(&h, B, UNIT, 20 * UNIT + starts[n / NR / NR] + i * strides[n / NR % NR]);
		}
		try_each(&t, &h);
	}
	cr_assert(order_all_well(&t));
}

/* A's segment runs into B's, of which B has written some, and B goes on. */
Test(order, a_segment_that_runs_into_the_next_ones_is_in_order_there)
{
	struct order_tally t = { 0 };

	order_start(2);
	for (int ahead = 0; ahead < 8; ahead++)
		for (int len = 1; len <= 100000; len *= 10) {
			struct history h = { .nr_players = 2 };

			for (int i = 0; i < 8; i++) {
				add(&h, A, (uint32_t)len, (int64_t)i * len);
				add(&h, B, (uint32_t)len, (int64_t)(8 - ahead + i) * len);
			}
			try_each(&t, &h);
		}
	cr_assert(order_all_well(&t));
}

/* Each owns every second piece, and writes it with an edge of its neighbours', in turn. */
Test(order, edges_that_two_write_in_turn_are_the_laters)
{
	struct order_tally t = { 0 };

	order_start(2);
	for (int edge = 1; edge <= UNIT; edge = edge * 3 + 1)
		for (int round = 1; round <= 3; round++) {
			struct history h = { .nr_players = 2 };

			for (int i = 0; i < round * 8; i++)
				add(&h, i % 2, (uint32_t)(UNIT + 2 * edge), i % 8 * UNIT + UNIT - edge);
			try_each(&t, &h);
		}
	cr_assert(order_all_well(&t));
}

/* Every history of so many writes by two processes, of all, one or one and a half of some units. */
static void all_of(struct order_tally *t, int nr_writes, int nr_units)
{
	int kinds = 2 * (nr_units + 2), nr = kinds / 2;

	for (int i = 1; i < nr_writes; i++)
		nr *= kinds;
	for (int n = 0; n < nr; n++) { /* the first is by A */
		struct history h = { .nr_players = 2 };

		for (int i = 0, rest = n; i < nr_writes; i++) {
			int nr_kinds = i ? kinds : kinds / 2, kind = rest % nr_kinds;
			int who = kind / (kinds / 2), place = kind % (kinds / 2);

			rest /= nr_kinds;
			if (place < nr_units)
				add(&h, who, UNIT, place * UNIT);
			else if (place == nr_units)
				add(&h, who, (uint32_t)(nr_units * UNIT), 0);
			else
				add(&h, who, UNIT * 3 / 2, UNIT / 2);
		}
		order_try(t, &h);
	}
}

Test(order, all_short_histories)
{
	struct order_tally t = { 0 };

	order_start(2);
	all_of(&t, 3, 5);
	all_of(&t, 4, 2);
	cr_assert(order_all_well(&t));
}

/* ---- random ones ---- */

static uint64_t state;

static uint32_t rnd(uint32_t below)
{
	state = mix64(state);
	return (uint32_t)((state >> 16) % below);
}

/* Any order of magnitude. */
static uint32_t some_len(uint32_t limit)
{
	uint32_t max = limit < 200000 ? limit / 2 : 100000, len = 1;

	while (len < max && rnd(8))
		len = len * 2 + rnd(2);
	return len < max ? len : 1 + rnd(max);
}

/* How a process writes, for a while: in a row, by a stride, downwards, again and again at one place. */
struct walk {
	uint32_t len;
	int64_t off, stride;
};

static void walk_begin(struct walk *w, int who, int nr_players, uint32_t limit)
{
	w->len = some_len(limit);
	w->off = rnd(limit - w->len + 1);
	w->stride = w->len;
	switch (rnd(8)) {
	case 0: w->stride = -(int64_t)w->len; break;
	case 1: w->stride = w->len * (int64_t)nr_players; w->off = w->len * (int64_t)who; break;
	case 2: w->stride = w->len * (int64_t)(1 + rnd(6)) + rnd(w->len); break;
	case 3: w->stride = -(int64_t)w->len * (1 + rnd(6)) - rnd(w->len); break;
	case 4: w->stride = 0; break;
	case 5: w->stride = w->len / 2; break;
	case 6: w->len = limit < 100000 ? limit : 100000; w->off = 0; break;
	}
}

/* A write that touches @last, another's. */
static struct walk over(const struct step *last, uint32_t limit)
{
	int64_t off = last->off, len = last->len;

	switch (rnd(7)) {
	case 0: break;
	case 1: off += len / 2; break;
	case 2: off -= len / 2; break;
	case 3: off += len / 4; len = len / 2 + 1; break;
	case 4: off -= len; len *= 3; break;
	case 5: len = 1; break;
	case 6: off += len - 1; len = 1 + rnd(2 * (uint32_t)len); break;
	}
	if (off < 0)
		off = 0;
	if (len > limit - off)
		len = limit - off;
	return (struct walk){ len > 0 ? (uint32_t)len : 1, off, 0 };
}

/* What may happen in a history besides writes. */
enum { ONLY_WRITES, READS = 1, ALL_ELSE = 2 };

static bool something_else(struct history *h, int who, uint32_t limit)
{
	struct step *s = &h->step[h->nr];

	*s = (struct step){ .op = OP_CUT, .who = (uint8_t)who };
	switch (rnd(24)) {
	case 0: s->off = rnd(limit + 1); break;
	case 1: break;
	case 2: s->op = OP_RELEASE; break;
	case 3: s->op = OP_REOPEN; break;
	case 4:
		s->op = OP_PAUSE;
		s->len = rnd(20) ? 0 : rnd(120);
		break;
	default: return false;
	}
	h->nr++;
	return true;
}

static void write_somewhere(struct history *h, struct walk *w, int who, uint32_t limit)
{
	const struct step *last = h->nr ? &h->step[h->nr - 1] : NULL;
	struct walk other = { 0 };
	unsigned dice = rnd(8);

	if (last && last->op == OP_WRITE && dice < 2)
		other = over(last, limit);
	else if (dice == 2 || !w->len || w->off < 0 || w->off + w->len > limit)
		walk_begin(w, who, h->nr_players, limit);
	if (other.len) {
		add(h, who, other.len, other.off);
		return;
	}
	add(h, who, w->len, w->off);
	w->off += w->stride;
}

/* All processes read, or some now and then: all of the file, about where this step writes, or elsewhere. */
static void look_somewhere(struct step *s, int nr_players, uint32_t limit, bool all)
{
	s->looks = (uint8_t)(all ? (1u << nr_players) - 1 : rnd(4) ? 0 : rnd(1u << nr_players));
	s->looks_whole = !rnd(3);
	s->look_off = rnd(2) ? s->off : rnd(limit);
	s->look_len = rnd(2) ? s->len : some_len(limit);
}

static void make_history(struct history *h, int nr_players, unsigned what)
{
	static const uint32_t limits[] = { 300, 3000, 20000, 200000, ORDER_LEN };
	uint32_t limit = limits[rnd(5)], turns = 1 + rnd(3);
	struct walk walks[ORDER_PLAYERS] = { 0 };
	int nr = 2 + (int)rnd(rnd(4) ? 12 : ORDER_STEPS - 2), who = 0;
	bool all = rnd(2);

	*h = (struct history){ .nr_players = nr_players };
	for (int tries = 0; h->nr < nr && tries < 200; tries++) {
		if (!rnd(turns))
			who = (who + 1 + (int)rnd((uint32_t)nr_players - 1)) % nr_players;
		if (!(what & ALL_ELSE) || !something_else(h, who, limit))
			write_somewhere(h, &walks[who], who, limit);
	}
	for (int i = 0; what & READS && i < h->nr; i++)
		look_somewhere(&h->step[i], nr_players, limit, all);
}

static bool random_histories(int nr, int nr_players, unsigned what)
{
	const char *rounds = getenv("PLFS_TEST_ROUNDS"), *given = getenv("PLFS_TEST_SEED");
	uint64_t any = mix64((uint64_t)time(NULL) ^ (uint64_t)getpid()) >> 40;
	uint64_t seed = given ? strtoull(given, NULL, 10) : any;
	struct order_tally t = { 0 };

	order_start(nr_players);
	state = mix64(seed);
	for (long i = 0; i < nr * (rounds ? atol(rounds) : 1); i++) {
		struct history h;

		make_history(&h, nr_players, what);
		order_try(&t, &h);
	}
	if (order_all_well(&t))
		return true;
	fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
	return false;
}

Test(order, random_writes_of_two)
{
	cr_assert(random_histories(800, 2, ONLY_WRITES));
}

Test(order, random_writes_of_four)
{
	cr_assert(random_histories(300, 4, ONLY_WRITES));
}

Test(order, random_writes_and_reads_of_two)
{
	cr_assert(random_histories(800, 2, READS));
}

Test(order, random_writes_and_reads_of_three)
{
	cr_assert(random_histories(500, 3, READS));
}

Test(order, random_writes_reads_truncations_releases_and_opens)
{
	cr_assert(random_histories(500, 2, READS | ALL_ELSE));
}

Test(order_small, random_writes)
{
	cr_assert(random_histories(300, 2, ONLY_WRITES));
}

Test(order_small, random_writes_reads_truncations_releases_and_opens)
{
	cr_assert(random_histories(400, 2, READS | ALL_ELSE));
}

Test(order_on_disk, random_writes_and_reads)
{
	cr_assert(random_histories(200, 2, READS));
}
