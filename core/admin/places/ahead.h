/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Killed processes whose logs were near, on a host whose clock is ahead of the backend's.
 */
#ifndef PLFS_AHEAD_H
#define PLFS_AHEAD_H

#include "core/backend/container.h"
#include "core/backend/stub.h"

/*
 * Logs of killed processes of this host are at home now, and in the node index. If stamps in them are later
 * than the time that the backend's file system has given the index for that, set "clocks" in @stub, which is
 * that of the file @fd: else what another host writes next could count as earlier. A close says it itself.
 */
void ahead_tell(const struct container *c, int fd, struct stub *stub);

#endif
