/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One scan of a whole container.
 */
#ifndef PLFS_SCAN_CONTAINER_H
#define PLFS_SCAN_CONTAINER_H

#include "core/admin/scan/scan.h"

/*
 * Scan the container @c of the stub @fd, whose header is @stub. Changes nothing and takes no lock: what
 * changes meanwhile looks like damage, which a second scan does not find. The caller calls scan_release() in
 * any case.
 * 0: findings are in @found; -errno: could not be read.
 */
int scan_container(struct scan *l, const struct container *c, int fd, const struct stub *stub,
		   struct plfs_check *check, struct findings *found);

#endif
