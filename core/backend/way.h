/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way to the files in a place (place.h) on stable storage: names of directories.
 */
#ifndef PLFS_WAY_H
#define PLFS_WAY_H

#include "core/base/base.h"

/* What is in plfs.UID and NEAR of @top, NEAR/plfs.UID/BACKEND-ID. 0; -errno. */
int way_sync_above(const char *top);

/* The same, and what is in all directories from @top to @below in it. 0; -errno. */
int way_sync(const char *top, const char *below);

#endif
