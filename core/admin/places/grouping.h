/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Making the parity that a mapping wants (parity=), of one container: which logs form a group, and which
 * groups are of no use any more.
 */
#ifndef PLFS_GROUPING_H
#define PLFS_GROUPING_H

#include "core/backend/parity.h"
#include "core/plfs_admin.h"

/*
 * Have each closed log of @c covered by parity. With d->patient logs that find too few partners wait, and are
 * counted in d->nr_waiting, as long as others may still be closed. Logs that get no parity are counted in
 * d->nr_left; those that are damaged in d->nr_lost; d->nr_parity has the parity files that were made.
 * @void_ns: as of mirror_container(); a log that is missing and has no later record is not missed.
 */
int grouping_container(const struct container *c, uint64_t void_ns, struct plfs_drain *d);

#endif
