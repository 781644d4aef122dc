/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles of logs that are not read but made anew, as a sum of parity files and the other logs of their group
 * (parity.h). Such a handle can be read, asked for its length, and closed. What it gives is not proved: that
 * is the caller's, by the log's own checksums.
 */
#ifndef PLFS_REBUILT_H
#define PLFS_REBUILT_H

#include "core/backend/parity.h"
#include "core/store/store.h"

struct rebuilt_part {
	int h;
	uint64_t len;  /* so many bytes of it count */
	uint64_t at;   /* from here on in the file */
	uint8_t times; /* the factor of each byte (gf256.h) */
};

/*
 * A handle of a store with several backends: the sum of @nr parts, at most PARITY_LOGS_MAX, whose handles it
 * takes over. @len and @mode: of the log. -EMFILE: there are too many, and all are closed.
 */
int rebuilt_make(struct store *s, const struct rebuilt_part *parts, unsigned nr, uint64_t len, mode_t mode);

static inline bool rebuilt_is(int h) { return h >= 1 << 29 && h < 1 << 30; }

/* As struct store_ops says of keep(). */
void rebuilt_keep(int *h);

/* Set the functions that take handles, in the table of a store with several backends. */
void rebuilt_set_ops(struct store_ops *ops);

#endif
