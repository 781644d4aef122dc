/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How fast a drain copies (rate=).
 */
#ifndef PLFS_PACE_H
#define PLFS_PACE_H

#include "core/plfs_admin.h"

/* The bytes to copy at a time: some pauses a second, and whole chunks of a log. 0: as many as you like. */
size_t pace_piece(const struct plfs_drain *d);

/*
 * Whether to copy past the page cache: who gives a rate does not want to feel the copy. Not where that is
 * slower than the rate.
 */
bool pace_is_direct(const struct plfs_drain *d);

/* Whether d->until_ns is over. */
bool pace_is_over(const struct plfs_drain *d);

/* @len bytes were copied: sleep until d->rate allows for more. Time without a copy is not saved up. */
void pace_keep(struct plfs_drain *d, uint64_t len);

/* What a copy under way calls (carry.h): counts, reports, keeps to the rate, and ends in time. */
int pace_copied(void *arg, uint64_t len);

#endif
