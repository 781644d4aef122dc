/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Moving home what is near, of one container.
 */
#ifndef PLFS_DRAIN_H
#define PLFS_DRAIN_H

#include "core/backend/container.h"
#include "core/plfs_admin.h"

/*
 * Move all closed logs of @c that are in places on this host, and remove the near.HOSTs of which nothing is
 * left. *@killed: how many logs have a live file: of a process that writes them, or that was killed. Results
 * are added to @d.
 */
int drain_container(const struct container *c, struct plfs_drain *d, uint64_t *killed);

#endif
