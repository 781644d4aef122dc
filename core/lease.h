/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Leases: they make a later write win over an earlier one of another process of the host, though a record has one
 * stamp for all its writes. A writer holds a lease on a pattern of bytes (index/pattern.h) that it is about to write.
 * While it holds the lease, no other process of the host has written there. So all its writes there may count as
 * written when the lease began. A writer that writes where others hold leases ends these first. A writer that finds its
 * own lease ended takes another, with a new stamp. No process waits for another: a holder looks at one word of its own
 * before each write.
 *
 *   notice.HOST, from byte 4096 on: shared memory of the processes that write the file, in the order of bytes of the host
 *   off size field
 *     0   8  floor_ns       all stamps are taken behind this (stamp.h)
 *     8  32  active         a bit for each slot: its owner may hold a lease
 *    40  24  zeros
 *    64  64* slots          255 of them; a page gets space when one of its slots is used
 *   a slot:
 *     0   4  pid            of its owner, 0: free
 *     4   4  pid_space      inode number of the owner's pid namespace, 0: not known
 *     8   8  turn           even: the owner holds a lease; changes with each one that begins or ends
 *    16  48  pattern        off, length, stride, count, outer_stride, outer_count
 *
 * Why it is right. A lease is published, then its stamp is taken, then the leases of others that meet it are ended. Take
 * two leases that meet, with stamps a < b. The owner of b has seen the lease of a, and has ended it before its own first
 * write returned. The owner of a takes a new stamp for its next write there, which is behind b.
 */
#ifndef PLFS_LEASE_H
#define PLFS_LEASE_H

#include "../index/pattern.h"
#include "container.h"

#define LEASE_TABLE_OFF 4096
#define LEASE_PAGE_LEN 4096
#define LEASE_SLOTS 255

struct lease_slot {
	uint32_t pid, pid_space;
	uint64_t turn;
	struct index_pattern pattern;
};

struct lease {
	struct store *store;
	void *map;               /* of the notice, with the table; NULL: there is none, and nobody is told */
	struct lease_slot *slot; /* never NULL */
	uint64_t turn;           /* that of the slot while the lease is held; else none that it can have */
	struct index_pattern pattern;
	struct lease_slot alone; /* where there is no slot */
};

/*
 * Take a slot in the table that the notice @h has. Where the store cannot map files there is no table: a lease is then
 * held until it is given back. -ENOSPC, -EIO...: there is no room for the table. Ends with lease_close(), or
 * lease_abandon() in the child of a fork.
 */
int lease_open(struct lease *l, struct store *store, int h);
void lease_close(struct lease *l);
void lease_abandon(struct lease *l);

/* Whether the lease is held still: the price of a load. */
static inline bool lease_is_held(const struct lease *l)
{
	return __atomic_load_n(&l->slot->turn, __ATOMIC_ACQUIRE) == l->turn;
}

/* Whether one was begun that somebody has ended since. */
static inline bool lease_is_lost(const struct lease *l) { return l->turn % 2 == 0 && !lease_is_held(l); }

/*
 * Begin a lease on @pattern for a write of @range, which the pattern holds. When this returns, others' leases there have
 * ended. Without a slot, or with @pattern NULL, that is all, and nothing is held. Returns the stamp of that write.
 */
uint64_t lease_begin(struct lease *l, const struct index_pattern *range, const struct index_pattern *pattern);

/* Give it back. */
void lease_end(struct lease *l);

/* The next stamp, for what lies in a lease that is held, or for what needs none. */
uint64_t lease_stamp(struct lease *l);

/*
 * The same for a process that has no lease_open() of the notice @h, which is open for reading and writing. Stamps of this
 * host's writers that were taken before are smaller, those that are taken afterwards are larger.
 */
uint64_t lease_stamp_at(struct store *store, int h);

/* The lowest place at or behind @off at which a lease of another begins, UINT64_MAX: none. */
uint64_t lease_next_other(const struct lease *l, uint64_t off);

#endif
