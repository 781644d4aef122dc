/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a container needs to survive a power failure: bytes before the blocks that speak of them, both before the stub
 * is synced. A sync covers what anybody on this host has written, as that of a plain file does.
 *
 *   notice.HOST                   (little-endian; see also watch.h)
 *   off size field
 *     8   8  index_id       of the node index that the next says something of (store_identity)
 *    16   8  index_len      so many bytes of it, and the logs that they speak of, are on stable storage
 *    24   8  check          index_id exclusive-or index_len exclusive-or "PLFSDUR2": else nothing is
 *
 * Live files are for those who share a kernel with their owners: no sync relies on them.
 */
#ifndef PLFS_DURABLE_H
#define PLFS_DURABLE_H

#include "writer.h"

/*
 * Put on stable storage what processes of this host have written to @c and not synced yet: of those that have it open and
 * those that do not. @own, unless NULL: this process's log, flushed, spilled and synced by the caller. 1: so is the way to it,
 * 0: that may have been before, or nobody of this host has written; -errno. What another user's process has staged is left where its
 * log is not ours to write.
 * One process of a host does that at a time. Another is at it: -EBUSY, with nothing done, or with *@insist it is done beside that one, which is as
 * good, but the same work once more. *@insist is false afterwards if nobody else was at it.
 */
int durable_sync(const struct container *c, struct writer *own, bool *insist);

/* Whether another process of the host is at it. */
bool durable_is_busy(const struct container *c);

/*
 * The directories that lead to @c, and what is in its own, without which it counts as emptied: before a stub may name it whose bytes have
 * been synced.
 */
int durable_sync_way(const struct container *c);

#endif
