/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting for a process that appends to a file, truncates it or moves it into its body.
 */
#ifndef PLFS_END_WAIT_H
#define PLFS_END_WAIT_H

#include "core/backend/container.h"

/*
 * Lock the open lock file @h of @c. One who holds it is soon done, unless it is stopped: then all others wait
 * until it goes on, for it may have taken its place in the file. After plfs_end_patience_ms one line names
 * it. @fd: of the stub, or -1. As store_lock().
 */
int end_wait(const struct container *c, int h, int fd);

extern unsigned plfs_end_patience_ms;

#endif
