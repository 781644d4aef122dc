/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Giving back what was overwritten: all records up to a generation become void by one store to the header, as
 * by a truncation to 0, but nothing that is visible is among them. Then the logs that have nothing else go
 * (core/gather/void_logs.h).
 *
 * F is a stamp that this process has taken. Steps:
 *   R1  take F with the container's lock, and wait until the floor of all stamps of this host
 *       (core/dropping/lease.h) is behind it
 *   R2  list the live files: none, or only of processes that are dead
 *   R3  load the maps
 *   R4  unless the visible bytes all have stamps behind those of all logs that are to go: copy them to a new
 *       log, whose records have the stamp F; sync it before it gets records, and these before R5
 *   R5  with the container's lock, and no truncation under way: sync the stub, enter the hosts that have
 *       something later than G for that generation (reclaim_hosts.h), store the generation G into the header,
 *       sync that. G is below F and below all visible stamps
 *   R6  revoke the kept map, notify readers, remove logs, then blocks, and raise the generation once more: so
 *       a kept map that somebody made of the older indexes meanwhile is not taken for one of the present
 *
 * Why no byte can be wrong. A record of this host with a stamp up to F is in a log whose live file was made
 * before the stamp was taken, so before R2. There it has no live file any more, or that of a dead process:
 * the map of R3 has it. So all records that R5 voids are known, and so are all over which the copy wins. Any
 * other is later than F: it wins over the copy, and is not void. What is copied while others write may be
 * newer than F, but it is then below the record that it is a copy of.
 *   Writers that begin after R2 go on all the time; who writes at R2 is not waited for: -EBUSY.
 *   Readers with maps of before read the old logs, by handles or names; a name that has gone makes them load
 *   anew. Readers that load between any two steps find the same bytes: the old records, the old ones below
 *   the copy, or the copy. The generation is read before the indexes and compared afterwards (acquire.c), and
 *   the copy is in an index before R5: so no reader has the new generation and lacks the copy.
 *   Truncations and moves into the body exclude R1 and R5 by the lock. One that comes between the two has a
 *   stamp behind F: it hides the copy. Before R1 or after R5 they do what they did.
 *   A truncate record becomes void with what it hides. The body was cut then, and is synced before R5.
 *   Another reclaim at the same time: both copies have right bytes, and the header keeps the later
 *   generation. Killed before R5: a log with a copy of visible bytes, and perhaps its live file, as of any
 *   writer. Killed after R5: void logs. The next reclaim, or a repair, goes on with either.
 *   Power failure: a copy has no record before its bytes are synced; nothing goes before the header is
 *   synced. Other hosts: their stamps have no common floor, and their readers get no notice. So where hosts
 *   share the store, the caller has locked all others out (stub_lock_alone()).
 *   A copy of the stub keeps its older generation, and reads the copied log, which wins over all that is
 *   void. A stub that is itself a copy is refused: the logs may be another's.
 */
#ifndef PLFS_RECLAIM_H
#define PLFS_RECLAIM_H

#include "core/file/reclaim_look.h"

/* Have a new log for the copy, which counts nothing yet. 0; -errno. */
int reclaim_begin_copy(struct reclaim *rc);

/*
 * The end of R4: sync the log, add @records, and close it. With @ret, an error so far, remove it instead. 0;
 * -errno.
 */
int reclaim_end_copy(struct reclaim *rc, struct index_record *records, size_t nr, int ret);

/* Put the logs that are visible, all indexes, and the names of both on stable storage. 0; -errno. */
int reclaim_sync(struct reclaim *rc);

/* R5 and R6. *@nr_left: logs that could not be removed, and go the next time. 0; -errno. */
int reclaim_commit(struct reclaim *rc, uint64_t *nr_left);

#endif
