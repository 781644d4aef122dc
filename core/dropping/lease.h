/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Leases: of two processes of one host, the later write wins, although a record has one stamp for all its
 * writes. A writer takes a lease on a pattern of bytes (index/record/pattern.h) that it is about to write. As
 * long as the lease is held, no other process of the host has written there. So all writes of its holder
 * there may count as written when the lease began. A writer that meets leases of other processes ends them
 * before it writes. A writer that finds its own lease ended takes another one, with a new stamp. No process
 * waits for another one: a holder reads one word of its own slot before each write.
 *
 *   notice.HOST, from byte 4096 on: shared memory of the processes that write the file, in the order of bytes
 *   of the host
 *   off size field
 *     0   8  floor_ns       all stamps are taken behind this (stamp.h)
 *     8  32  active         a bit for each slot: its owner may hold a lease
 *    40   8  entered        1 + the generation in which the stub's table of hosts got this host
 *    48   8  written        bytes in logs that have been closed since the last sweep, about (file/sweep.h)
 *    56   8  closed         new logs that were closed while nobody else wrote, since the last sweep of these
 *    64  64* slots          255 of them; a page gets space when one of its slots is used
 *   a slot:
 *     0   4  pid            of its owner, 0: free
 *     4   4  pid_space      inode number of the owner's pid namespace, 0: not known
 *     8   8  turn           even: the owner holds a lease; changes with each one that begins or ends
 *    16  48  pattern        off, length, stride, count, outer_stride, outer_count
 *
 * Proof. A writer does three things in this order: it publishes its lease, takes the stamp, and ends all
 * leases of other processes that meet its own. Let A and B be two leases that meet, with stamps a < b. Lease
 * A was published before stamp a was taken, so B's owner finds it published after taking b. It ends lease A
 * before its own first write returns. From then on A's owner finds its lease ended, and takes a stamp above b
 * for its next write there. So a write of A's owner that begins after a write under B has returned has the
 * later stamp. Any write under B has a later stamp than any under A.
 */
#ifndef PLFS_LEASE_H
#define PLFS_LEASE_H

#include "index/record/pattern.h"
#include "core/backend/container.h"

#define LEASE_TABLE_OFF 4096
#define LEASE_TABLE_LEN (64 + 64 * LEASE_SLOTS)
#define LEASE_PAGE_LEN 4096
#define LEASE_SLOTS 255

struct lease_slot {
	uint32_t pid, pid_space;
	uint64_t turn;
	struct index_pattern pattern;
};

struct lease {
	struct store *store;
	void *map;               /* of the notice, with the table; NULL: none, and no process is notified */
	struct lease_slot *slot; /* never NULL */
	/* the slot's turn while the lease is held; else a value that the slot never has */
	uint64_t turn;
	struct index_pattern pattern;
	struct lease_slot alone; /* stands in where the table has no slot for us */
};

/*
 * Take a slot in the table of the notice @h. A store that cannot map files has no table: a lease is then held
 * until its owner ends it. Ends with lease_close(), or lease_abandon() in the child of a fork. 0; -ENOSPC,
 * -EIO ...: there is no room for the table.
 */
int lease_open(struct lease *l, struct store *store, int h);
void lease_close(struct lease *l);
void lease_abandon(struct lease *l);

/* Whether the lease is still held. One load. */
static inline bool lease_is_held(const struct lease *l)
{
	return __atomic_load_n(&l->slot->turn, __ATOMIC_ACQUIRE) == l->turn;
}

/* Whether a lease was begun, and another process has ended it. */
static inline bool lease_is_lost(const struct lease *l) { return l->turn % 2 == 0 && !lease_is_held(l); }

/*
 * Begin a lease on @pattern, which includes @range, for a write of @range. On return the leases of other
 * processes that meet it have ended. With @pattern NULL, or if all slots of the table belong to others, no
 * lease is begun; those that meet @range have ended all the same. Returns the stamp of the write.
 */
uint64_t lease_begin(struct lease *l, const struct index_pattern *range, const struct index_pattern *pattern);

/* End the own lease. */
void lease_end(struct lease *l);

/* The next stamp, for a write inside the held lease, or for a record that needs no lease. */
uint64_t lease_stamp(struct lease *l);

/*
 * The same for a process without lease_open(); the notice @h is open for reading and writing. Stamps that
 * this host's writers took before are smaller, stamps that they take afterwards are larger.
 */
uint64_t lease_stamp_at(struct store *store, int h);

/* The same for a truncation to 0: nothing that was written counts any more. */
uint64_t lease_stamp_of_all(struct store *store, int h);

/*
 * Whether a process of this host has entered it for this generation (stub_hosts.h), and that it has. Without
 * a table: no.
 */
bool lease_host_is_entered(const struct lease *l, uint64_t generation_ns);
void lease_host_entered(struct lease *l, uint64_t generation_ns);

/* The host whose notice @h is, open to write, has been taken out of the stub's table. */
void lease_host_forgotten(struct store *store, int h);

/* What the processes of a host have written since the last sweep. */
struct lease_sums {
	uint64_t written, closed; /* bytes; logs */
};

/*
 * The log that the owner of the slot wrote is closed, with @bytes more than when it was opened; @is_new: it
 * was made for that. Ends as lease_close() does. Returns what the table then has of all logs of this host;
 * no logs unless this one is new; zeros: without a table, or while another process of the host writes. Of
 * processes that do this at once the last one sees what all have written.
 */
struct lease_sums lease_close_log(struct lease *l, uint64_t bytes, bool is_new);

/*
 * If no other process has a slot in the table of the open notice @h, and that has @least bytes written or
 * more, make it @rest: true. Of processes that do this at once one gets true. lease_add_written(): more of
 * them. The same of logs closed.
 */
bool lease_take_written(struct store *store, int h, uint64_t least, uint64_t rest);
void lease_add_written(struct store *store, int h, uint64_t bytes);
bool lease_take_closed(struct store *store, int h, uint64_t least);
void lease_add_closed(struct store *store, int h, uint64_t logs);

/* The lowest position from @off on at which a lease of another process begins; UINT64_MAX: none. */
uint64_t lease_next_other(const struct lease *l, uint64_t off);

#endif
