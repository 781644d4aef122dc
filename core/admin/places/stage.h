/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Staged copies in a place (core/backend/staged.h), for a drain of it.
 */
#ifndef PLFS_STAGE_H
#define PLFS_STAGE_H

#include "core/plfs_admin.h"

/*
 * Remove from @fd, the directory @top, NEAR/plfs.UID/BACKEND-ID, copies of logs that the backend of @m does
 * not have any more. Containers that have gone are added to @d->nr_orphans, or @d->nr_left with a line.
 */
void stage_collect(struct plfs_mount *m, int fd, const char *top, struct plfs_drain *d);

#endif
