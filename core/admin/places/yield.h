/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Giving way: a helper that copies while ranks of its node still write their checkpoint takes processors,
 * memory and the backend from them. It waits until they have written, but not for long.
 */
#ifndef PLFS_YIELD_H
#define PLFS_YIELD_H

#include "core/plfs_admin.h"

/*
 * Before a log is copied: with d->yield, wait while processes of this host write logs in the place, unless
 * the place is nearly full. After that has taken as long as it may, none waits for as long again. None looks
 * if one has found nobody just before.
 */
void yield_to_writers(const struct plfs_drain *d);

#endif
