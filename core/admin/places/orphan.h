/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Containers in a place whose backend does not have them. Their file was removed where the place could not be
 * seen; or they are of another backend, one that was moved away from the path or is at that path for others.
 */
#ifndef PLFS_ORPHAN_H
#define PLFS_ORPHAN_H

#include "core/store/store.h"

/* A removal was killed, or is at it: it can be ended, whichever backend had it. */
bool orphan_is_being_removed(const char *name);

/*
 * Whether the container @name in the directory @dir, in the place @top (both descriptors), was made for the
 * backend @home. False also if that cannot be told.
 */
bool orphan_is_of(struct store *home, int top, int dir, const char *name);

#endif
