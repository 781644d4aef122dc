/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long ago a container in a shared backend was changed: another host may see its file.
 */
#ifndef PLFS_YOUNG_H
#define PLFS_YOUNG_H

#include "core/base/base.h"

/* Whether anything in @name, in @dir, has changed in the last @age_ns; also if that is not known. */
bool young_tree(int dir, const char *name, uint64_t age_ns);

#endif
