/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a container has in other backends (spread.h), for its removal: found before it is removed at home, and
 * removed afterwards.
 */
#ifndef PLFS_SPREAD_TOPS_H
#define PLFS_SPREAD_TOPS_H

#include "core/backend/place.h"

struct spread_tops;

/* Find where the container @path, ".plfs/XX/ID" in @s, has logs. NULL: nowhere else, or no memory. */
struct spread_tops *spread_tops_open(struct store *s, const char *path);

/*
 * With @known remove what is there, as far as this user may; plfs gc --places finds the rest. @known NULL: it
 * stays. @t may be NULL.
 */
void spread_tops_close(struct spread_tops *t, const char *path, dirs_known *known);

#endif
