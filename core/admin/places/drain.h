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

/*
 * Before that, of a container with logs in the place @top (NEAR/plfs.UID/BACKEND-ID), where they are in @name
 * in the directory @fd: mend the near.HOSTs that should lead there, and do not, since a power failure, say.
 * Where that cannot be done @d says so, and counts what stays.
 */
void drain_mend(const struct container *c, const char *top, int fd, const char *name, struct plfs_drain *d);

/* Report that @path in the directory @dir stays, and why. */
void drain_trouble(struct plfs_drain *d, const char *dir, const char *path, const char *why);

#endif
