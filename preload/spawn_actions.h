/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What posix_spawn() is to do in the child: the C library's list cannot be read, so the same is kept beside it.
 */
#ifndef PLFS_SPAWN_ACTIONS_H
#define PLFS_SPAWN_ACTIONS_H

#include "shim.h"

/* Whether one of them may lead below a mount: then they have to be done by us. @actions may be NULL. */
bool spawn_actions_are_ours(const posix_spawn_file_actions_t *actions);

/* Do them, in the child. 0 or -errno. */
int spawn_actions_do(const posix_spawn_file_actions_t *actions);

#endif
