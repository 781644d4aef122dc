/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sweep along the file that turns extents and runs into panels. Private to the building of
 * maps (merge.c).
 */
#ifndef PLFS_SWEEP_H
#define PLFS_SWEEP_H

#include "index/map/sweep_state.h"

/* Write everything to @img. Returns 0 or -ENOMEM. To be called once. */
int sweep_run(struct sweep *sw, struct image *img);

#endif
