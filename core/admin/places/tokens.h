/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * writers=N: at most N processes of a user, on all hosts, copy logs to a backend at a time, or from it
 * to others (mirror=).
 *
 *   BACKEND/.plfs/drains.UID
 *
 * A process that copies has one of the first N bytes of this file locked. The lock goes with the process.
 */
#ifndef PLFS_TOKENS_H
#define PLFS_TOKENS_H

#include "core/plfs_admin.h"
#include "core/store/store.h"

/*
 * Before a log is copied: wait for one of @d->writers tokens (0: the mapping's, @writers; none at all if that
 * is 0 as well). >= 0: to give back; -1: none is needed, or the file system has no locks; -ETIME: the time of
 * @d is over.
 */
int token_take(struct store *s, unsigned writers, const struct plfs_drain *d);

void token_give(struct store *s, int token);

#endif
