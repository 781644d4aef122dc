/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What has to happen around a fork.
 */
#ifndef PLFS_PROC_H
#define PLFS_PROC_H

#include "shim.h"

/* Register with the C library, so that every fork() in the process, its own included, comes by. At start. */
void proc_watch_forks(void);

/* What happens there, for a fork that the C library does not know about: before it, in the parent, in the child. */
void proc_fork_prepare(void);
void proc_fork_parent(void);
void proc_fork_child(void);

/* Before the C library makes a child: what that finds on its descriptors is everything written so far, at the offsets as they are now. */
void proc_share_with_child(void);

#endif
