/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notes at home of live files in other backends (core/backend/spread_open.h), for a repair.
 */
#ifndef PLFS_NOTES_H
#define PLFS_NOTES_H

#include "core/backend/container.h"

/* Remove those of @c, unless there is a live file. Nobody else has the file open. 0; -errno. */
int notes_drop(const struct container *c);

#endif
