/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What becomes of a log near (core/backend/place.h) when its writer has closed it, by drain= and release= of
 * the mapping.
 */
#ifndef PLFS_ENDED_H
#define PLFS_ENDED_H

#include "core/backend/container.h"

/*
 * The log @path near, relative to the container, is closed: have a helper move it, move it, or leave it
 * there. 0: also if it stays near, which is no error of the program's; with release=home -errno: other hosts
 * cannot read all of it.
 */
int ended_near(const struct container *c, const char *path);

/* The log @path is closed, whose mapping has mirror=: have a helper make copies, make them, or do nothing. */
void ended_copied(const struct container *c, const char *path);

#endif
