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
#include "core/backend/spread_store.h"

static_assert(SPREAD_SLOTS == CONFIG_BACKENDS_MAX - 1, "each backend besides home can have a number");

/* What a mapping with several backends says (struct store's @spread). */
struct spread_settings {
	unsigned rule; /* enum spread_rule */
	unsigned nr;   /* of backends besides home */
	struct place_settings others[SPREAD_SLOTS];
};

/* Fill in @ss from the paths of the backends: @home, and @others up to a NULL. */
void spread_setup(struct spread_settings *ss, unsigned rule, const char *home, char *const *others);

/* Which backend the rule picks for a log of @c of this process: 0 is home. */
unsigned spread_pick(const struct container *c);

/*
 * Make ready to make a log of @c in the backend number @backend of the mapping, not home: *@hold is for
 * placed_create(), and placed_release() ends it. 0; -errno: it cannot be made there, and one line has said
 * so unless there is no space.
 */
int spread_hold(const struct container *c, unsigned backend, struct place_dir *hold);

/* The same for a log @path of the store that is there: its directory. -ENOENT: it is at home, or nowhere. */
int spread_hold_of(struct store *s, const char *path, struct place_dir *hold);

/* One line for the backend of the log @path of the store, which is not there. */
void spread_tell_gone_of(struct store *s, const char *path);

/*
 * Put on stable storage what leads to this host's logs in other backends, of the hostdir @dir of @s. 0;
 * -EREMOTE: one of them is not there, and has no live files; -EIO: it may have some (one line); -errno.
 */
int spread_sync_names(struct store *s, const char *dir);

#endif
