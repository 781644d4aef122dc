/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of leases: slots, and what their owners do to each other's. Nothing in it is ever locked.
 */
#include "core/dropping/lease.h"

#include "core/base/guard.h"
#include "core/base/pause.h"
#include "core/base/stamp.h"
#include "core/base/sys.h"

#include <sys/syscall.h>

#define HELD_NEVER UINT64_MAX /* odd: no lease has this turn */
#define BITS 64
#define WORDS ((LEASE_SLOTS + BITS - 1) / BITS)

struct lease_table {
	uint64_t floor_ns;
	uint64_t active[WORDS];
	uint64_t entered;
	uint64_t written;
	uint64_t closed;
	struct lease_slot slots[LEASE_SLOTS];
};

static_assert(sizeof(struct lease_slot) == 64, "a slot fills a line of the cache");
static_assert(offsetof(struct lease_table, slots) == 64, "as does the head");

static_assert(sizeof(struct lease_table) == LEASE_TABLE_LEN, "its length is that of a notice");

#define MOMENT_NS 400000000ULL /* of pauses */
#define MAP_LEN (LEASE_TABLE_OFF + sizeof(struct lease_table))

static struct lease_table *table_of(const struct lease *l)
{
	return (struct lease_table *)((char *)l->map + LEASE_TABLE_OFF);
}

static unsigned number_of(const struct lease *l)
{
	return (unsigned)(l->slot - table_of(l)->slots);
}

/* ---- slots ---- */

static uint32_t pid_space(void)
{
	struct stat st;

	return sys.stat("/proc/self/ns/pid", &st) ? 0 : (uint32_t)st.st_ino;
}

/* Processes of other namespaces cannot be asked for: they count as alive. */
static bool is_dead(uint32_t pid, uint32_t space, uint32_t ours)
{
	return space && space == ours && sys.syscall(SYS_kill, pid, 0) && errno == ESRCH;
}

static void end(struct lease_slot *slot)
{
	__atomic_store_n(&slot->turn, slot->turn | 1, __ATOMIC_RELEASE);
}

/*
 * Give the file room for the whole table. All processes set the same length, so none cuts off a slot of
 * another.
 */
static int make_table(struct store *store, int h)
{
	struct stat st;
	int ret = store->ops->fstat(store, h, &st);

	return !ret && (uint64_t)st.st_size < MAP_LEN ? store->ops->truncate(store, h, MAP_LEN) : ret;
}

/*
 * See to it that the page of @slot has space: one that the file system has no room for breaks the mapping
 * now.
 */
static int make_room(struct lease *l, struct lease_slot *slot)
{
	__atomic_fetch_add(&slot->turn, 0, __ATOMIC_RELAXED);
	return guard_is_broken(l->map) ? -ENOSPC : 0;
}

/*
 * A client of CephFS may believe for a moment that the file ends before its table, which another process has
 * just made room for: then the map breaks as on a full file system.
 */
static bool may_be_of_a_moment(const struct store *store, struct pause *p)
{
	if (!store->remote || p->slept_ns > MOMENT_NS)
		return false;
	pause_before_asking(p);
	return true;
}

/* The table in the open notice @h becomes @l's. 0: l->map is NULL where files cannot be mapped. */
static int map_table(struct lease *l, struct store *store, int h)
{
	struct pause p = { 0 };
	int ret;

	do {
		l->map = store_map(store, h, MAP_LEN, true);
		if (!l->map)
			return 0;
		ret = make_table(store, h);
		if (ret) {
			lease_abandon(l);
			return ret;
		}
		ret = make_room(l, &table_of(l)->slots[0]);
		if (!ret)
			return 0;
		lease_abandon(l);
	} while (may_be_of_a_moment(store, &p));
	return ret;
}

static bool take(struct lease *l, struct lease_slot *slot, uint32_t owner, uint32_t space)
{
	if (!__atomic_compare_exchange_n(&slot->pid, &owner, (uint32_t)sys.getpid(), false, __ATOMIC_SEQ_CST,
					 __ATOMIC_RELAXED))
		return false;
	end(slot); /* a lease of the dead owner ends */
	slot->pid_space = space;
	l->slot = slot;
	return true;
}

/* A free slot, or else that of a dead process; -EUSERS: all belong to others. */
static int take_slot(struct lease *l)
{
	struct lease_table *t = table_of(l);
	uint32_t space = pid_space();
	int ret;

	for (unsigned i = 0; i < LEASE_SLOTS; i++) {
		if ((i + 1) % (LEASE_PAGE_LEN / sizeof(*t->slots)) == 0) {
			ret = make_room(l, &t->slots[i]);
			if (ret)
				return ret;
		}
		if (!__atomic_load_n(&t->slots[i].pid, __ATOMIC_RELAXED) && take(l, &t->slots[i], 0, space))
			return 0;
	}
	for (unsigned i = 0; i < LEASE_SLOTS; i++) {
		uint32_t owner = __atomic_load_n(&t->slots[i].pid, __ATOMIC_RELAXED);

		if (!is_dead(owner, t->slots[i].pid_space, space))
			continue;
		t->slots[i].pid_space = 0; /* its next owner may be of another namespace; 0 is of none */
		if (take(l, &t->slots[i], owner, space))
			return 0;
	}
	return -EUSERS;
}

int lease_open(struct lease *l, struct store *store, int h)
{
	int ret;

	memset(l, 0, sizeof(*l));
	l->store = store;
	l->slot = &l->alone;
	l->turn = HELD_NEVER;
	ret = map_table(l, store, h);
	if (ret || !l->map)
		return ret;
	ret = take_slot(l);
	if (!ret || ret == -EUSERS) /* then each write has a stamp of its own */
		return 0;
	lease_abandon(l);
	return ret;
}

static void leave(struct lease *l)
{
	if (l->slot != &l->alone) {
		lease_end(l);
		__atomic_fetch_and(&table_of(l)->active[number_of(l) / BITS], ~(1ULL << number_of(l) % BITS),
				   __ATOMIC_RELAXED);
		/*
		 * the next owner may be of another namespace, and must not seem dead before it has set its
		 * own
		 */
		l->slot->pid_space = 0;
		__atomic_store_n(&l->slot->pid, 0, __ATOMIC_SEQ_CST);
	}
}

void lease_close(struct lease *l)
{
	leave(l);
	lease_abandon(l);
}

void lease_abandon(struct lease *l)
{
	if (l->map)
		store_unmap(l->store, l->map, MAP_LEN);
	l->map = NULL;
	l->slot = &l->alone;
	l->turn = HELD_NEVER;
}

/* ---- leases ---- */

uint64_t lease_stamp(struct lease *l)
{
	return l->map ? stamp_next_behind(&table_of(l)->floor_ns) : stamp_next();
}

/* The table in the open notice @h, without a slot. l->map NULL: there is none, and no room for one. */
static void look_at(struct lease *l, struct store *store, int h)
{
	*l = (struct lease){ .store = store };
	map_table(l, store, h);
}

static void raise_floor(uint64_t *floor_ns, uint64_t stamp_ns)
{
	uint64_t floor = __atomic_load_n(floor_ns, __ATOMIC_RELAXED);

	while (floor < stamp_ns && !__atomic_compare_exchange_n(floor_ns, &floor, stamp_ns, true,
								__ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
}

uint64_t lease_stamp_at(struct store *store, int h)
{
	struct lease l;
	uint64_t stamp_ns;

	look_at(&l, store, h);
	stamp_ns = lease_stamp(&l);
	if (l.map)
		raise_floor(&table_of(&l)->floor_ns, stamp_ns);
	lease_abandon(&l);
	return stamp_ns;
}

uint64_t lease_stamp_of_all(struct store *store, int h)
{
	uint64_t stamp_ns = lease_stamp_at(store, h);
	struct lease l;

	look_at(&l, store, h);
	if (l.map) {
		__atomic_store_n(&table_of(&l)->written, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&table_of(&l)->closed, 0, __ATOMIC_RELAXED);
	}
	lease_abandon(&l);
	return stamp_ns;
}

/* Ends with a fence: a process that takes a stamp from here on sees the lease. */
static void publish(struct lease *l, const struct index_pattern *pattern)
{
	struct lease_slot *slot = l->slot;

	l->pattern = *pattern;
	if (l->map) {
		uint64_t *active = &table_of(l)->active[number_of(l) / BITS],
			 bit = 1ULL << number_of(l) % BITS;

		end(slot);
		__atomic_thread_fence(__ATOMIC_RELEASE);
		slot->pattern = *pattern;
		if (!(__atomic_load_n(active, __ATOMIC_RELAXED) & bit))
			__atomic_fetch_or(active, bit, __ATOMIC_RELAXED);
	}
	l->turn = (slot->turn | 1) + 1;
	__atomic_store_n(&slot->turn, l->turn, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/*
 * End the lease in @slot if it meets @p, or makes no sense. One that begins after the first look has a stamp
 * behind ours, and its owner has yet to look at our lease.
 */
static void end_if_met(struct lease_slot *slot, const struct index_pattern *p)
{
	uint64_t turn = __atomic_load_n(&slot->turn, __ATOMIC_ACQUIRE);
	struct index_pattern other;

	if (turn % 2)
		return;
	other = slot->pattern;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (__atomic_load_n(&slot->turn, __ATOMIC_RELAXED) != turn)
		return;
	if (!index_pattern_is_sound(&other) || index_patterns_meet(p, &other))
		__atomic_compare_exchange_n(&slot->turn, &turn, turn + 1, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED);
}

/*
 * The slot of the lowest bit, of which there is one; any process that may write to the file may have set any
 * bit.
 */
static unsigned slot_number(unsigned word, uint64_t bits)
{
	unsigned number = word * BITS + (unsigned)__builtin_ctzll(bits);

	return number < LEASE_SLOTS ? number : LEASE_SLOTS - 1;
}

/* Which of the slots from @word * BITS on are others', and may hold a lease. */
static uint64_t others(const struct lease *l, unsigned word)
{
	uint64_t bits = __atomic_load_n(&table_of(l)->active[word], __ATOMIC_ACQUIRE);

	if (l->slot != &l->alone && number_of(l) / BITS == word)
		bits &= ~(1ULL << number_of(l) % BITS);
	return bits;
}

static void end_others(struct lease *l, const struct index_pattern *p)
{
	for (unsigned word = 0; word < WORDS; word++)
		for (uint64_t bits = others(l, word); bits; bits &= bits - 1)
			end_if_met(&table_of(l)->slots[slot_number(word, bits)], p);
}

uint64_t lease_begin(struct lease *l, const struct index_pattern *range, const struct index_pattern *pattern)
{
	uint64_t stamp_ns;
	bool holds;

	if (unlikely(guard_is_broken(l->map))) /* the file was cut: no process can be notified through it */
		l->slot = &l->alone;
	holds = pattern && (!l->map || l->slot != &l->alone);
	if (holds)
		publish(l, pattern);
	else
		lease_end(l);
	stamp_ns = lease_stamp(l);
	if (l->map)
		end_others(l, holds ? pattern : range);
	return stamp_ns;
}

void lease_end(struct lease *l)
{
	if (l->turn != HELD_NEVER)
		end(l->slot);
	l->turn = HELD_NEVER;
}

uint64_t lease_next_other(const struct lease *l, uint64_t off)
{
	uint64_t next = UINT64_MAX;

	for (unsigned word = 0; l->map && word < WORDS; word++)
		for (uint64_t bits = others(l, word); bits; bits &= bits - 1) {
			const struct lease_slot *slot = &table_of(l)->slots[slot_number(word, bits)];
			uint64_t at = __atomic_load_n(&slot->pattern.off, __ATOMIC_RELAXED);

			if (__atomic_load_n(&slot->turn, __ATOMIC_RELAXED) % 2 == 0 && at >= off)
				next = min_u64(next, at);
		}
	return next;
}

/* ---- the host ---- */

bool lease_host_is_entered(const struct lease *l, uint64_t generation_ns)
{
	return l->map && __atomic_load_n(&table_of(l)->entered, __ATOMIC_RELAXED) == generation_ns + 1;
}

void lease_host_entered(struct lease *l, uint64_t generation_ns)
{
	if (l->map)
		__atomic_store_n(&table_of(l)->entered, generation_ns + 1, __ATOMIC_RELAXED);
}

/* ---- what was written ---- */

/* Whether a process that runs has the slot. */
static bool is_taken(const struct lease_slot *slot, uint32_t space)
{
	uint32_t pid = __atomic_load_n(&slot->pid, __ATOMIC_SEQ_CST);

	return pid && !is_dead(pid, slot->pid_space, space);
}

/* Whether another process may hold a lease. */
static bool is_shared(const struct lease *l)
{
	for (unsigned word = 0; word < WORDS; word++)
		for (uint64_t bits = others(l, word); bits; bits &= bits - 1)
			if (is_taken(&table_of(l)->slots[slot_number(word, bits)], pid_space()))
				return true;
	return false;
}

struct lease_sums lease_close_log(struct lease *l, uint64_t bytes, bool is_new)
{
	struct lease_table *t = l->map ? table_of(l) : NULL;
	struct lease_sums sums = { 0 };

	if (t)
		__atomic_fetch_add(&t->written, bytes, __ATOMIC_SEQ_CST);
	leave(l);
	l->slot = &l->alone;
	if (t && !is_shared(l)) {
		sums.written = __atomic_load_n(&t->written, __ATOMIC_SEQ_CST);
		sums.closed = is_new ? __atomic_add_fetch(&t->closed, 1, __ATOMIC_SEQ_CST) : 0;
	}
	lease_abandon(l);
	return sums;
}

static bool has_owners(const struct lease_table *t)
{
	uint32_t space = pid_space();

	for (unsigned i = 0; i < LEASE_SLOTS; i++)
		if (is_taken(&t->slots[i], space))
			return true;
	return false;
}

/* The place in the table @t of what is taken or added to. */
typedef uint64_t *sum_of(struct lease_table *t);

static uint64_t *written_of(struct lease_table *t) { return &t->written; }
static uint64_t *closed_of(struct lease_table *t) { return &t->closed; }

static bool take_sum(struct store *store, int h, sum_of *of, uint64_t least, uint64_t rest)
{
	uint64_t sum;
	struct lease l;
	bool taken;

	look_at(&l, store, h);
	if (!l.map)
		return false;
	sum = __atomic_load_n(of(table_of(&l)), __ATOMIC_SEQ_CST);
	taken = sum >= least && !has_owners(table_of(&l)) &&
		__atomic_compare_exchange_n(of(table_of(&l)), &sum, rest, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED);
	lease_abandon(&l);
	return taken;
}

static void add_sum(struct store *store, int h, sum_of *of, uint64_t more)
{
	struct lease l;

	look_at(&l, store, h);
	if (l.map)
		__atomic_fetch_add(of(table_of(&l)), more, __ATOMIC_RELAXED);
	lease_abandon(&l);
}

bool lease_take_written(struct store *store, int h, uint64_t least, uint64_t rest)
{
	return take_sum(store, h, written_of, least, rest);
}

void lease_add_written(struct store *store, int h, uint64_t bytes) { add_sum(store, h, written_of, bytes); }

bool lease_take_closed(struct store *store, int h, uint64_t least)
{
	return take_sum(store, h, closed_of, least, 0);
}

void lease_add_closed(struct store *store, int h, uint64_t logs) { add_sum(store, h, closed_of, logs); }

void lease_host_forgotten(struct store *store, int h)
{
	struct lease l;

	look_at(&l, store, h);
	if (l.map)
		__atomic_store_n(&table_of(&l)->entered, 0, __ATOMIC_RELAXED);
	lease_abandon(&l);
}
