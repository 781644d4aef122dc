/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The helper of mirror=: plfs drain --copies, as the library starts it.
 */
#ifndef PLFS_TOOL_COPYING_H
#define PLFS_TOOL_COPYING_H

#include "core/plfs_admin.h"

/*
 * Make the copies of logs that are wanted in the queue of the backend @backend, until there is nothing left
 * to do, or nothing could be done for @patience_s. One process of a host and user does; another returns at
 * once. An exit code of plfs drain. @limits: the rate and the writers.
 */
int copying_run(const char *backend, unsigned patience_s, const struct plfs_drain *limits);

#endif
