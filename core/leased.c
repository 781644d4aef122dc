/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a writer wants of leases: it guesses from its last writes where it needs the next, and learns from those it lost.
 */
#include "leased.h"

#include "append.h"
#include "stamp.h"

/*
 * Where other hosts write too no record grows for longer: what they write more than 20 ms later has a later stamp. The
 * second is for stores that cannot map files, where no process ends a lease.
 */
#define GROWS_NS 8000000
#define GROWS_ALONE_NS 100000000

/* A lease has paid if it was good for more writes than this. After so many in a row that have not, so many are not tried. */
#define PAYS_WRITES 4
#define BAD_LUCK_MAX 4
#define SKIP 32

/* The shapes have seen the other writes. */
void leased_take_in_growth(struct writer *w)
{
	struct writer_habits *h = &w->habits;

	if (w->last_open)
		index_shapes_grow(&h->shapes, w->last.count - h->seen_count, w->last.length - h->seen_len);
}

/* Others have ended the lease, if there was one: whether it was worth having. */
static void learn(struct writer *w)
{
	struct writer_habits *h = &w->habits;

	if (!lease_is_lost(&w->lease))
		return;
	h->bad_luck = append_log_len(w) - h->leased_at > PAYS_WRITES * h->leased_len ? 0 : h->bad_luck + 1;
	h->crowded = true;
	if (h->bad_luck < BAD_LUCK_MAX)
		return;
	h->bad_luck = BAD_LUCK_MAX / 2;
	h->skip = SKIP;
}

/* Which lease to take for a write at @range, and for what is likely to follow; false: none. */
static bool choose(struct writer *w, const struct index_pattern *range, struct index_pattern *pattern)
{
	struct writer_habits *h = &w->habits;

	if (!h->crowded) {
		*pattern = index_pattern_range(0, INDEX_PATTERN_END);
		return true;
	}
	if (h->skip) {
		h->skip--;
		return false;
	}
	if (!index_shapes_expect(&h->shapes, range->off, range->length, pattern))
		return false;
	if (pattern->count == 1 && pattern->outer_count == 1) { /* segments of a file that others write behind this one */
		uint64_t next = lease_next_other(&w->lease, range->off + range->length);

		pattern->length = min_u64(pattern->length, next - range->off);
	}
	return index_pattern_room(pattern, range->off) >= range->length;
}

uint64_t leased_until_ns(const struct writer *w)
{
	if (w->c->store->remote)
		return stamp_coarse_ns() + GROWS_NS;
	return w->lease.map ? UINT64_MAX : stamp_coarse_ns() + GROWS_ALONE_NS;
}

uint64_t leased_take(struct writer *w, const struct index_pattern *range)
{
	struct index_pattern pattern;
	bool wants;

	learn(w);
	writer_break(w);
	wants = choose(w, range, &pattern);
	w->habits.leased_at = append_log_len(w);
	w->habits.leased_len = range->length;
	return lease_begin(&w->lease, range, wants ? &pattern : NULL);
}

bool leased_has(const struct writer *w, const struct index_pattern *range)
{
	return lease_is_held(&w->lease) && index_pattern_room(&w->lease.pattern, range->off) >= range->length;
}

uint64_t leased_growth_end(const struct writer *w, uint64_t logical_off)
{
	const struct index_pattern *p = &w->lease.pattern;

	if (w->last.count == 1 || p->count == 1)
		return logical_off + index_pattern_room(p, logical_off);
	return w->last.stride == p->stride ? index_pattern_row_end(p, logical_off) : 0;
}
