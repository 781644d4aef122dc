/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stamps, which order overwrites: nanoseconds since 1970, strictly rising within the process, and later than
 * every stamp that the process has seen in anybody's index. So what comes after an open, a lock or a sync is
 * ordered after what it saw, whatever the clocks of the hosts say.
 */
#ifndef PLFS_STAMP_H
#define PLFS_STAMP_H

#include "base.h"

/* The next stamp. Thread-safe. */
uint64_t stamp_next(void);

/*
 * The next one behind *@floor_ns, which processes of one host share. A stamp that is ahead of the clock becomes the
 * floor, and so does one every 10 ms. So the stamps of all these processes rise together, though one has seen a stamp of
 * the future. When the clock is set back, a stamp may be smaller than one of another process from the 10 ms before that.
 */
uint64_t stamp_next_behind(uint64_t *floor_ns);

/* All stamps from now on are to be later than @stamp_ns. */
void stamp_seen(uint64_t stamp_ns);

/* A cheap, coarse clock in nanoseconds, for intervals of milliseconds and more. */
uint64_t stamp_coarse_ns(void);

#endif
