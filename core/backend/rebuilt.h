/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles of logs that are not read but made anew: the exclusive or of a parity file and the other logs of
 * its group (parity.h). Such a handle can be read, asked for its length, and closed. What it gives is not
 * proved: that is the caller's, by the log's own checksums.
 */
#ifndef PLFS_REBUILT_H
#define PLFS_REBUILT_H

#include "core/backend/parity.h"
#include "core/store/store.h"

/*
 * A handle of a store with several backends. @h: of the parity file and then of the @nr - 1 other logs, which
 * it takes over; @lens: how many bytes of each count; @len and @mode: of the log. -EMFILE: there are too
 * many, and all are closed.
 */
int rebuilt_make(struct store *s, const int *h, const uint64_t *lens, unsigned nr, uint64_t len, mode_t mode);

static inline bool rebuilt_is(int h) { return h >= 1 << 29 && h < 1 << 30; }

/* As struct store_ops says of keep(). */
void rebuilt_keep(int *h);

/* Set the functions that take handles, in the table of a store with several backends. */
void rebuilt_set_ops(struct store_ops *ops);

#endif
