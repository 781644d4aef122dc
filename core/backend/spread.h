/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several backends of one mapping, over which data logs and their live files are spread (spread=). The first
 * is *home*: stubs, locks, containers and node indexes are there. Each of the others holds logs in the tree
 * of a place (place.h). But all hosts share it: nothing is moved from there.
 *
 *   BACKEND/.plfs/XX/ID/hostdir.K/spread.N.HOST     at home: backend N of the host's logs of this file
 *   OTHER/plfs.UID/BACKEND-ID/XX/ID/hostdir.K/
 *       spread.N.HOST                               the same bytes as at home (near_host.h)
 *       data.*, live.*                              logs and live files with spread=file
 *       own.HOST/                                   those of one host with spread=host
 *       own.HOST.PID/                               those of one process with spread=process
 *
 * N is 1 to 7. The lowest three bits of a log's SEQ are its N, or 0 at home. That is a hint, which says where
 * to look first. What spread.N.HOST at home says counts, and not the mapping: that may change.
 */
#ifndef PLFS_SPREAD_H
#define PLFS_SPREAD_H

#include "core/backend/option.h"
#include "core/backend/place.h"

#define SPREAD_SLOTS (CONFIG_BACKENDS_MAX - 1) /* the highest N */

/* What a mapping with several backends says (struct store's @spread). */
struct spread_settings {
	unsigned rule; /* enum spread_rule */
	unsigned nr;   /* of backends besides home */
	struct place_settings others[SPREAD_SLOTS];
};

/* Fill in @ss from the paths of the backends: @home, and @others up to a NULL. */
void spread_setup(struct spread_settings *ss, unsigned rule, const char *home, char *const *others);

#endif
