/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Making the copies that a mapping wants (mirror=), of one container.
 */
#ifndef PLFS_MIRROR_H
#define PLFS_MIRROR_H

#include "core/admin/places/listed.h"
#include "core/backend/container.h"
#include "core/plfs_admin.h"

/*
 * Have a copy of each closed log of @c at home in each place that its mapping says. Logs that
 * cannot be copied are counted in d->nr_left; those that are damaged in d->nr_lost. @void_ns: the generation
 * of the file, as it is on stable storage; 0: it is not known.
 */
int mirror_container(const struct container *c, uint64_t void_ns, struct plfs_drain *d);

/* Add the logs at home that have a live file, and so get no copy, to *@open. */
int mirror_open(const struct container *c, struct plfs_drain *d, struct drain_open *open);

#endif
