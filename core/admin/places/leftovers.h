/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What killed copiers have left among the copies of logs (core/backend/spare.h).
 */
#ifndef PLFS_LEFTOVERS_H
#define PLFS_LEFTOVERS_H

#include "core/plfs_admin.h"

/*
 * Remove the temporary files of the container @name in the directory @dir, which is in @top, that nobody has
 * written for a day. d->nr_orphans counts them, also with d->dry, which removes none; d->nr_left those that
 * stay, with a line.
 */
void leftovers_remove(int dir, const char *name, const char *top, struct plfs_drain *d);

#endif
