/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The leases of a writer (lease.h): which it takes, and how far a record may grow in the one it holds. The
 * inode's lock is held for all of them.
 */
#ifndef PLFS_LEASED_H
#define PLFS_LEASED_H

#include "writer.h"

/* Whether the writer holds a lease that has all of @range. */
bool leased_has(const struct writer *w, const struct index_pattern *range);

/*
 * Take a lease for the write of @range, or none. The old one is over, and so is what grew or was folded in it. Returns the
 * stamp of that write.
 */
uint64_t leased_take(struct writer *w, const struct index_pattern *range);

/* Let the next guess know of the writes that made the last record grow without a look. Before each look. */
void leased_take_in_growth(struct writer *w);

/* How far the last record may grow as it does now, with the last write at @logical_off. */
uint64_t leased_growth_end(const struct writer *w, uint64_t logical_off);

/* Until when a record that begins now may grow; coarse. */
uint64_t leased_until_ns(const struct writer *w);

#endif
