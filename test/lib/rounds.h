/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random histories of a test, each from a seed. PLFS_TEST_ROUNDS changes their number, and takes others each
 * time; PLFS_TEST_SEED: the one of this seed, or so many from there on.
 */
#ifndef TEST_ROUNDS_H
#define TEST_ROUNDS_H

#include <stdbool.h>
#include <stddef.h>

/* A number below @below, of the history that is played. */
size_t rounds_rnd(size_t below);

/* Play @nr histories, or as PLFS_TEST_ROUNDS says, by @share. False: one failed, whose seed is shown. */
bool rounds_play(int nr, int share, bool (*play)(const void *how), const void *how);

#endif
