/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Moving home what is near, of one container.
 */
#ifndef PLFS_DRAIN_H
#define PLFS_DRAIN_H

#include "core/backend/container.h"
#include "core/plfs_admin.h"

/* Logs with a live file: of processes that write them, and of these how many have gone. */
struct drain_open {
	uint64_t nr, nr_dead;
};

/*
 * Move all closed logs of @c that are in places on this host, and remove the near.HOSTs of which nothing is
 * left. *@open: logs that have a live file are added. Results are added to @d.
 */
int drain_container(const struct container *c, struct plfs_drain *d, struct drain_open *open);

#endif
