/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Moving home what is near, of one container.
 */
#ifndef PLFS_DRAINED_H
#define PLFS_DRAINED_H

#include "core/admin/places/listed.h"
#include "core/backend/container.h"
#include "core/plfs_admin.h"

/*
 * Move all closed logs of @c that are in places on this host, and remove the near.HOSTs of which nothing is
 * left. *@open: logs that have a live file are added. Results are added to @d.
 */
int drain_container(const struct container *c, struct plfs_drain *d, struct drain_open *open);

#endif
