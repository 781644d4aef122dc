/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Twins: handles of logs of which there is a copy near and one at home (place.h). Both are beginnings of the
 * same bytes, as long as no power failed and nobody changed a file. After that each may lack what the other
 * has: the one near what was synced, for a sync copies home; the one at home what came later.
 *
 * What both have is taken from the preferred one. A caller that finds bytes wrong, by their checksum, can
 * turn to the other one.
 */
#ifndef PLFS_TWIN_H
#define PLFS_TWIN_H

#include "core/store/store.h"

/*
 * A handle of a store with places, for the files @near and @home, which it takes over. @at_home: that one is
 * preferred. Writes go to each of the two that has, or is to have, the place written to. -EMFILE: there are
 * too many, and both are closed; -errno.
 */
int twin_make(struct store *s, int near, int home, bool at_home);

/*
 * The same to read a log that is at home, where it may grow: @copy has the beginning of it, and is preferred.
 * -EMFILE: there are too many, and both stay open.
 */
int twin_make_staged(int copy, int home);

static inline bool twin_is(int h) { return h >= 1 << 30; }

/* Bytes of the file @h that home has too, when it was opened; 0: it has one file alone. */
uint64_t twin_home_len(int h);

/* Whether what both have is taken from home. */
bool twin_prefers_home(int h);

/* Let @h prefer the other one. False: it has one file alone. */
bool twin_turn(struct store *s, int h);

/* Set the functions that take handles, in the table of a store with places, to those that know twins. */
void twin_set_ops(struct store_ops *ops);

#endif
