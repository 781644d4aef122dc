/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The helper: a process of its own, `plfs drain --background`, that moves what is near (place.h) home. There
 * is one on a host for each user and backend. Who closes a log near starts it, unless it runs.
 *
 *   NEAR/plfs.UID/BACKEND-ID/helper
 *
 * Its first byte is locked while a helper runs. The file's text is why the last one ended early, or why none
 * could be started.
 *
 * The program sees nothing of it: no child, no signal, no thread. A helper ends when nothing has been left to
 * do for a moment. Before it ends it gives the lock back and looks once more. So of each log that is closed
 * either the helper finds it, or who closed it finds the lock free.
 */
#ifndef PLFS_HELPER_H
#define PLFS_HELPER_H

#include "core/backend/place.h"

#define HELPER_FILE "helper"
#define HELPER_LOCK_FD 3 /* the helper finds the locked file there */

/* From here on helpers are started. In the library alone: the command and tests drain by themselves. */
void helper_enable(void);

/*
 * Start a helper for @ps, unless there is one. False: none runs. If none can be started, one line says so,
 * once an hour and host. Async-signal-unsafe; thread-safe.
 */
bool helper_start(const struct place_settings *ps);

/*
 * Start a helper that takes the queue @h (queue.h) of the backend @ps->home, mapped by @map, unless there is
 * one. If none can be started, one line says so, once a process. Conditions as for the last.
 */
void helper_copy(struct store *home, int h, const struct place_settings *ps, const char *map);

#endif
