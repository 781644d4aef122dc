/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file actions of posix_spawn(). The C library's list cannot be read, so the wrappers that build it keep
 * a second one.
 */
#ifndef PLFS_SPAWN_ACTIONS_H
#define PLFS_SPAWN_ACTIONS_H

#include "shim.h"

/* Whether an action may lead below a mount; then the library does them all. @actions may be NULL. */
bool spawn_actions_are_ours(const posix_spawn_file_actions_t *actions);

/* Do the actions, in the child. 0; -errno of the first that failed. */
int spawn_actions_do(const posix_spawn_file_actions_t *actions);

#endif
