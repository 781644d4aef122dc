/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A chunk whose checksum is wrong since its host lost power. The checksum covers all that was written
 * there. If the power failed before all of that was synced, some of it is lost, and the bytes that were
 * synced must be read all the same. The node index says how much of a log was synced, and has a checksum of
 * the part of the chunk that was (index/record/block.h).
 */
#ifndef PLFS_SYNCED_H
#define PLFS_SYNCED_H

#include "core/backend/container.h"

/*
 * Whether the checksum of the first @covered bytes of chunk @no of the log @path of @c, open at @h, may be
 * wrong for that reason: not all of them were synced, and nothing shows that those that were are damaged; or
 * the checksum is @from_live, in a live file, which is never synced. Never of a log of this host since it was
 * started: nothing of that can be lost. Reads the node index. *@len, which may be NULL: so many bytes of the
 * chunk are known to have been synced; it stays as it is if none are.
 */
bool synced_in_part(const struct container *c, const char *path, int h, uint64_t no, size_t covered,
		    bool from_live, size_t *len);

#endif
