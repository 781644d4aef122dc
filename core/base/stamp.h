/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stamps, which order overwrites: nanoseconds since 1970, strictly rising within a process, and later than
 * every stamp that the process has seen in any index. So what follows an open, a lock or a sync has a later
 * stamp than what that has seen, whatever the clocks of the hosts are.
 */
#ifndef PLFS_STAMP_H
#define PLFS_STAMP_H

#include "core/base/base.h"

/*
 * Stamps are below this, which is in the year 2116. A greater one comes from no clock, and would leave no
 * room for later ones.
 */
#define STAMP_MAX (1ULL << 62)

/* The next stamp. Thread-safe. */
uint64_t stamp_next(void);

/*
 * The next stamp, later than *@floor_ns, which the processes of a host share. A stamp ahead of the clock
 * becomes the floor, and so does one every 10 ms. So the stamps of all these processes rise together, also
 * after one has seen a stamp of the future. When the clock is set back, a stamp may be smaller than one of
 * another process from the 10 ms before.
 */
uint64_t stamp_next_behind(uint64_t *floor_ns);

/* All stamps from now on are later than @stamp_ns. */
void stamp_seen(uint64_t stamp_ns);

/* A cheap, coarse clock in nanoseconds, for intervals of milliseconds and more. */
uint64_t stamp_coarse_ns(void);

/* The same clock, exactly. */
uint64_t stamp_fine_ns(void);

#endif
