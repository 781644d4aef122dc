/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether a place, or another backend, is certainly not there: for what gives up on it. place_enter() gives
 * -EREMOTE also where it only cannot be looked at, as with ESTALE or EIO of a network file system.
 */
#ifndef PLFS_PLACE_LOST_H
#define PLFS_PLACE_LOST_H

#include "core/backend/place.h"

/*
 * Of what the file @file, "near.HOST" or "spread.N.HOST", in the hostdir @dir leads to. 0: it is certainly
 * not there: no such directory or file, another one, or @file itself is damaged; -EBUSY: it is there, perhaps
 * for another backend of which this is a copy; another -errno: that cannot be told now.
 */
int place_is_lost(struct store *home, const char *dir, const char *file);

#endif
