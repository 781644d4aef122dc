/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which leases a writer takes: it guesses from its last writes where it needs the next one, and learns from
 * those that it lost.
 */
#include "core/write/leased.h"

#include "core/base/bytes.h"
#include "core/base/stamp.h"

/*
 * Where other hosts write too no record grows for longer: what they write more than 20 ms later has a later
 * stamp. The second is for stores that cannot map files, where no process ends a lease.
 */
#define GROWS_NS 8000000
#define GROWS_ALONE_NS 100000000

/*
 * A lease has paid if it was good for more writes than this. After so many in a row that have not, so many
 * are not tried.
 */
#define PAYS_WRITES 4
#define BAD_LUCK_MAX 4
#define SKIP 32

/* The shapes have seen the other writes. */
void leased_note_growth(struct leased *l, const struct index_record *last)
{
	index_shapes_grow(&l->shapes, last->count - l->seen_count, last->length - l->seen_len);
}

void leased_note_write(struct leased *l, uint64_t logical_off, uint64_t len, const struct index_record *last)
{
	index_shapes_add(&l->shapes, logical_off, len);
	l->seen_count = last->count;
	l->seen_len = last->length;
}

/* If others have ended the lease: whether it was worth having. */
static void learn(struct leased *l, uint64_t log_len)
{
	if (!lease_is_lost(&l->lease))
		return;
	l->bad_luck = log_len - l->begun_at > PAYS_WRITES * l->begun_len ? 0 : l->bad_luck + 1;
	l->crowded = true;
	if (l->bad_luck < BAD_LUCK_MAX)
		return;
	l->bad_luck = BAD_LUCK_MAX / 2;
	l->skip = SKIP;
}

/* Which lease to take for a write at @range, and for what is likely to follow; false: none. */
static bool choose(struct leased *l, const struct index_pattern *range, struct index_pattern *pattern)
{
	if (!l->crowded) {
		*pattern = index_pattern_range(0, INDEX_PATTERN_END);
		return true;
	}
	if (l->skip) {
		l->skip--;
		return false;
	}
	if (!index_shapes_expect(&l->shapes, range->off, range->length, pattern))
		return false;
	/* segments of a file that others write behind this one */
	if (pattern->count == 1 && pattern->outer_count == 1) {
		uint64_t next = lease_next_other(&l->lease, range->off + range->length);

		pattern->length = min_u64(pattern->length, next - range->off);
	}
	return index_pattern_room(pattern, range->off) >= range->length;
}

uint64_t leased_until_ns(const struct leased *l)
{
	if (l->lease.store->remote)
		return stamp_coarse_ns() + GROWS_NS;
	return l->lease.map ? UINT64_MAX : stamp_coarse_ns() + GROWS_ALONE_NS;
}

uint64_t leased_take(struct leased *l, const struct index_pattern *range, uint64_t log_len)
{
	struct index_pattern pattern;
	bool wants;

	learn(l, log_len);
	wants = choose(l, range, &pattern);
	l->begun_at = log_len;
	l->begun_len = range->length;
	return lease_begin(&l->lease, range, wants ? &pattern : NULL);
}

bool leased_has(const struct leased *l, const struct index_pattern *range)
{
	return lease_is_held(&l->lease) && index_pattern_room(&l->lease.pattern, range->off) >= range->length;
}

uint64_t leased_growth_end(const struct leased *l, const struct index_record *last, uint64_t logical_off)
{
	const struct index_pattern *p = &l->lease.pattern;

	if (last->count == 1 || p->count == 1)
		return logical_off + index_pattern_room(p, logical_off);
	return last->stride == p->stride ? index_pattern_row_end(p, logical_off) : 0;
}
