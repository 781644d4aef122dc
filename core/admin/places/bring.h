/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Moving the logs of a container from other backends home (spread=).
 */
#ifndef PLFS_BRING_H
#define PLFS_BRING_H

#include "core/admin/places/listed.h"
#include "core/backend/container.h"
#include "core/plfs_admin.h"

/*
 * Move all closed logs of @c that are in other backends home, and remove the spread.N.HOSTs of which nothing
 * is left. As drain_container() (drain.h).
 */
int bring_container(const struct container *c, struct plfs_drain *d, struct drain_open *open);

#endif
