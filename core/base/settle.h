/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting for a change that another process is in the middle of: what one looks at belongs to neither the
 * state before nor the one after. Or it is damaged, and stays so.
 */
#ifndef PLFS_SETTLE_H
#define PLFS_SETTLE_H

#include "core/base/base.h"

struct settle {
	unsigned waits; /* up to now */
};

/*
 * Pause, for 1, 2, 4 ... ms, before looking once more; false: half a second was in vain, or 15 ms in a
 * process that has waited in vain for anything in the last 10 s, so that not each look at something damaged
 * takes long.
 */
bool settle_wait(struct settle *s);

#endif
