/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a container survives a power failure: bytes are synced before the blocks that refer to them, and both
 * before the stub. A sync covers the writes of all processes of this host, as the sync of a plain file does.
 * The notice (notice.h) has how far the last sync came.
 *
 * Only processes that share a kernel with its owner can rely on a live file. No sync relies on one.
 */
#ifndef PLFS_DURABLE_H
#define PLFS_DURABLE_H

#include "core/write/writer.h"

/*
 * Put on stable storage all that processes of this host have written to @c, whether they have it open or not.
 * @own, unless NULL: this process's writer, which the caller has flushed, spilled and synced. Staged bytes of
 * another user's process are left out if its log is not writable here. One process of a host syncs at a time.
 * *@insist: sync even beside another one, which is safe, but does the same work twice; false afterwards if
 * there was no other one.
 * 1: done, and the directories that lead to @c too; 0: done, or this host has no writes; -EBUSY: another
 * process is syncing, nothing was done; -errno.
 */
int durable_sync(const struct container *c, struct writer *own, bool *insist);

/*
 * Say in the node index, at home, what live files of other processes of this host say, killed ones too. @own:
 * as above. 0; -errno: not all of it is there.
 */
int durable_adopt(const struct container *c, const struct writer *own);

/*
 * Sync the names of this host's droppings in @c, and that of their directory. 0; -errno.
 */
int durable_sync_names(const struct container *c);

/* Whether another process of the host is syncing. */
bool durable_is_busy(const struct container *c);

/*
 * Sync the directory of @c, and those that lead to it. A container without its entries counts as emptied, so
 * this comes before a stub that is synced names it.
 */
int durable_sync_way(const struct container *c);

#endif
