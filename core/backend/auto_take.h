/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * near=auto: one answer for all processes of a job on this node.
 *
 *   /dev/shm/plfs.UID/auto.BACKEND-ID.JOB
 *
 * The first process of a job on a node leaves its choice there: a line with the directory, or "/" for none, a
 * tab and the limit in bytes. The others take it, though a disk may be fuller by then. Without a batch system
 * JOB is "none", and the choice counts for an hour.
 */
#ifndef PLFS_AUTO_TAKE_H
#define PLFS_AUTO_TAKE_H

#include "core/base/base.h"

/*
 * The directory for logs of @backend, into @dir of CONFIG_NEAR_MAX + 1 bytes, and *@max, which is 0 for no
 * limit: as the first process of this job on this node has chosen. False: there is none. A program with the
 * rights of another user has none.
 */
bool auto_take(const char *backend, char *dir, uint64_t *max);

/* The choice that a process of this job has left, as auto_take(); @dir empty: none. False: nobody has. */
bool auto_chosen(const char *backend, char *dir, uint64_t *max);

#endif
