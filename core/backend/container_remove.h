/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Removing a container, and the copies of its logs in other backends (spare.h).
 */
#ifndef PLFS_CONTAINER_REMOVE_H
#define PLFS_CONTAINER_REMOVE_H

#include "core/backend/container.h"

/*
 * Remove the container with what containers have in them. -ENOTEMPTY: something else is in it, and stays (one
 * line). 0: it is gone, or was before; -EIO, -EACCES: it is not of this
 * stub and stays (container_check()); -errno.
 */
int container_remove(const struct container *c);

#endif
