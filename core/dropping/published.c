/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The turn and the last publication, in memory that the processes of a host share.
 */
#include "core/dropping/published.h"

#include "core/base/guard.h"
#include "core/base/pause.h"
#include "core/base/stamp.h"

#define ENDING 1ULL /* in the turn's lowest bit */
#define KEPT_NS 1000000000    /* so long a process that does not end it has the turn */
#define PATIENCE_NS 500000000 /* to publish takes some ms, and a tenth of a second where servers are busy */
#define CHECK 0x3142555053464c50ULL

struct board {
	uint64_t turn, tick;
	uint64_t begun, generation_ns, len, ctime_ns, owner, check, seq;
};

static_assert(PUBLISHED_OFF + sizeof(struct board) <= LEASE_TABLE_OFF, "before the leases");

static struct board *board_of(const struct lease *l)
{
	return l->map && !guard_is_broken(l->map) ? (struct board *)((char *)l->map + PUBLISHED_OFF) : NULL;
}

static uint64_t check_of(const struct published *p)
{
	return p->begun ^ p->generation_ns ^ p->len ^ p->ctime_ns ^ p->owner ^ CHECK;
}

/* False: there is none, it is damaged, or just being written. */
static bool read_last(struct board *b, struct published *p)
{
	uint64_t seq = __atomic_load_n(&b->seq, __ATOMIC_ACQUIRE), check;

	*p = (struct published){ b->begun, b->generation_ns, b->len, b->ctime_ns, b->owner, 0 };
	check = b->check;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return seq % 2 == 0 && __atomic_load_n(&b->seq, __ATOMIC_RELAXED) == seq && check == check_of(p);
}

static void write_last(struct board *b, const struct published *p)
{
	uint64_t seq = b->seq | 1; /* odd already if a process was killed here */

	__atomic_store_n(&b->seq, seq, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	b->begun = p->begun;
	b->generation_ns = p->generation_ns;
	b->len = p->len;
	b->ctime_ns = p->ctime_ns;
	b->owner = p->owner;
	b->check = check_of(p);
	__atomic_store_n(&b->seq, seq + 1, __ATOMIC_RELEASE);
}

/* Its process was killed, or stands still. The clock starts anew with the machine. */
static bool is_old(uint64_t turn)
{
	uint64_t now_ns = stamp_fine_ns();

	return turn > now_ns || now_ns - turn > KEPT_NS;
}

static bool take(struct board *b, uint64_t turn, struct published *p)
{
	p->turn = stamp_fine_ns() & ~ENDING;
	if (!__atomic_compare_exchange_n(&b->turn, &turn, p->turn, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		return false;
	p->begun = __atomic_fetch_add(&b->tick, 1, __ATOMIC_SEQ_CST);
	return true;
}

enum published_by published_take(struct lease *l, bool patient, struct published *p)
{
	struct board *b = board_of(l);
	struct pause pause = { 0 };
	uint64_t now, turn;

	if (!b)
		return PUBLISHED_BY_NONE;
	now = __atomic_load_n(&b->tick, __ATOMIC_SEQ_CST);
	for (;;) {
		if (read_last(b, p) && p->begun >= now)
			return PUBLISHED_BY_OTHER;
		turn = __atomic_load_n(&b->turn, __ATOMIC_SEQ_CST);
		if ((!turn || (!(turn & ENDING) && is_old(turn))) && take(b, turn, p))
			return PUBLISHED_BY_CALLER;
		if (!patient || (turn & ENDING && is_old(turn)) || pause.slept_ns > PATIENCE_NS ||
		    guard_is_broken(b))
			return PUBLISHED_BY_NONE;
		pause_before_asking(&pause);
	}
}

void published_end(struct lease *l, const struct published *p, bool done)
{
	struct board *b = board_of(l);
	uint64_t turn = p->turn;

	/* not if another process has taken the turn meanwhile, as one of a killed process */
	if (!b ||
	    !__atomic_compare_exchange_n(&b->turn, &turn, done ? turn | ENDING : 0, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_RELAXED) ||
	    !done)
		return;
	write_last(b, p);
	__atomic_store_n(&b->turn, 0, __ATOMIC_SEQ_CST);
}
