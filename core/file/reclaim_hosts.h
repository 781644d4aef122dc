/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hosts in the header (core/backend/stub_hosts.h) through a reclaim. A new generation would have none of
 * them: those with something that counts are entered in it before the header has it. So a reclaim that fails,
 * or is killed, leaves no generation in which a host could lose all it has without being missed. Those of
 * which nothing counts are not entered, or are forgotten before their last files go: so none of them is
 * missed.
 */
#ifndef PLFS_RECLAIM_HOSTS_H
#define PLFS_RECLAIM_HOSTS_H

#include "core/file/reclaim_look.h"

/*
 * The header is about to get @generation_ns. 0; -EIO: a host has lost what it had since the logs were looked
 * at; -errno.
 */
int reclaim_carry_hosts(struct reclaim *rc, uint64_t generation_ns);

/* Forget those of which nothing counts: their last files are about to go. 0; -errno. */
int reclaim_forget_hosts(struct reclaim *rc);

/* Behind all, if the header has got a generation: those that have begun to write meanwhile. */
void reclaim_enter_hosts(struct reclaim *rc);

#endif
