/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a sweep finds, and the little that it copies.
 */
#ifndef PLFS_RECLAIM_HIDDEN_H
#define PLFS_RECLAIM_HIDDEN_H

#include "core/file/reclaim_look.h"

/*
 * R1 to R3 of reclaim.h for a sweep (sweep.h), of a file of @size bytes. F is not now, but just before the
 * newest logs were begun, which have most of the bytes of the file. The map of R3 has the records up to F
 * alone: the file as it was. All of them are known, as above, and what they hid is hidden for good, by logs
 * that are synced before R5; the newest ones need not be. What R4 copies (rc->moves) is what was visible
 * then in the few logs that keep others from going: its records have the stamp F, so they win over what
 * they are copies of, and lose against all that is newer. A killed writer's log is not among them: by its
 * live file a stat knows the size. 0; 1: there is nothing that pays; -errno.
 */
int reclaim_begin_hidden(struct reclaim *rc, uint64_t size);

/*
 * The same for many logs of little. F is now: no log counts as new, and all that is visible in those that go
 * is copied, if that is RECLAIM_LITTLE bytes for each of them at most. On a local store killed writers' logs
 * are among them.
 */
int reclaim_begin_little(struct reclaim *rc);
#define RECLAIM_LITTLE ((uint64_t)64 << 10)

/* R4, if rc->moves. */
int reclaim_copy_hidden(struct reclaim *rc);
void reclaim_end_hidden(struct reclaim *rc);

#endif
