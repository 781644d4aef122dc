/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What of a container near could move now, found without a look at the backend: a helper asks every moment.
 */
#ifndef PLFS_READY_H
#define PLFS_READY_H

#include "core/plfs_admin.h"

/*
 * Whether the container @name in the directory @dir, NEAR/plfs.UID/BACKEND-ID/XX, has closed logs, or is left
 * without any. Logs with a live file are added to @d->nr_open; those of processes that are gone to
 * @d->nr_dead as well.
 */
bool ready_look(int dir, const char *name, struct plfs_drain *d);

#endif
