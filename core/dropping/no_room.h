/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The log of a killed process in another backend (core/backend/spread.h) that is full: it cannot be closed
 * there, or take what its process wrote last.
 */
#ifndef PLFS_NO_ROOM_H
#define PLFS_NO_ROOM_H

#include "core/backend/container.h"

/*
 * What helps, to @text of @len bytes, if @err is -ENOSPC or -EDQUOT and the log of the live file @live,
 * relative to the container, is in another backend. False: that is not so.
 */
bool no_room_for(const struct container *c, const char *live, int err, char *text, size_t len);

/* The same of the first live file of @c for which it is so. */
bool no_room_for_any(const struct container *c, int err, char *text, size_t len);

#endif
