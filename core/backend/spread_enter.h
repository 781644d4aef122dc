/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The directory in which a log is that lies in another backend (spread.h).
 */
#ifndef PLFS_SPREAD_ENTER_H
#define PLFS_SPREAD_ENTER_H

#include "core/backend/place.h"

#define SPREAD_SLOTS 7 /* the highest N */

/* "data.HOST.PID.SEQ" of "damaged.N.data.HOST.PID.SEQ": it stays where it was. */
const char *spread_undamaged(const char *name);

/* The N at which to look first for the log or live file called @name. */
unsigned spread_slot_of(const char *name);

/*
 * Open the directory in which logs of the name @log would be, by the file @file, "spread.N.HOST", in the
 * hostdir @dir at home. As place_enter().
 */
int spread_enter(struct store *s, const char *dir, const char *file, const char *log, struct place_dir *to);

#endif
