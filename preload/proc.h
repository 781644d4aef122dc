/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The work around a fork.
 */
#ifndef PLFS_PROC_H
#define PLFS_PROC_H

#include "shim.h"

/*
 * Register the handlers of each fork() in the process, those inside the C library included. Called at start.
 */
void proc_watch_forks(void);

/* The same handlers, for a fork past the C library: before it, in the parent, in the child. */
void proc_fork_prepare(void);
void proc_fork_parent(void);
void proc_fork_child(void);

/* In the child: another thread of the parent may have had the lock of wrap_dl.c, or of wrap_fts.c. */
void dl_fork_child(void);
void fts_fork_child(void);

/*
 * Called before the C library makes a child by itself. Commits all writes and gives all offsets to the
 * kernel, where the child finds them.
 */
void proc_share_with_child(void);

#endif
