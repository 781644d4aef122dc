/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Power failures of one story: so many at random, one after each sync, and one after each removal.
 *
 * PLFS_TEST_TREES: how many at random (120). PLFS_TEST_SEED: their seed, which a failed test names.
 * PLFS_TEST_KEEP: the tree that was found wrong stays.
 */
#ifndef TEST_POWER_TRY_H
#define TEST_POWER_TRY_H

#include "test/lib/power_steps.h"

/* @story adds the steps (add_steps()). They are played and failed on both kinds of file system. */
void fail_anywhere_in(void (*story)(void));

#endif
