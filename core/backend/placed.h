/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A store whose data logs and live files may lie near as well as at home (place.h). To all that is above, a
 * log has its path in the container, wherever its bytes are.
 *
 * Logs move from near to home, and each is complete at home before it goes near. So a log is looked for near,
 * then at home, and once more: it may have been made near meanwhile. If both have it, the one near counts.
 */
#ifndef PLFS_PLACED_H
#define PLFS_PLACED_H

#include "core/backend/place.h"
#include "core/backend/spread_store.h"

/*
 * From here on look into places: a stub has the feature "placed", or the mapping has near=. For a store on a
 * directory. Thread-safe.
 *
 * What changes: open(), stat(), unlink(), rename() and list() of logs and live files go to both; open() and
 * stat() give -EREMOTE where neither has it and near.HOST leads to a place that is not on this host;
 * remove_tree() of a container takes along what is near. All that is new is made at home.
 */
void placed_enable(struct store *s);

/* The same, and spread_enable(), as the header @stub says. */
static inline void placed_enable_by(struct store *s, const struct stub *stub)
{
	if (unlikely(stub->spread))
		spread_enable(s);
	if (unlikely(stub->placed))
		placed_enable(s);
}

static inline bool placed_is_enabled(const struct store *s) { return s->under || s->base; }

/*
 * Make the log or live file @path near, to read and write. @gid: the group that it must have; @home_mode: of
 * near.HOST; @hold: of placed_hold() or spread_hold(), or NULL. A handle; -errno: it cannot be made near, and
 * nothing of it is left.
 */
int placed_create(struct store *s, const char *path, mode_t mode, gid_t gid, mode_t home_mode,
		  struct place_dir *hold);

/*
 * A process that makes a log near, and then its live file, holds the lock of the place meanwhile: no mover
 * takes the log for a closed one. @dir: the hostdir; *@hold: to give to placed_release(). @first may be NULL.
 * -errno: it cannot be made near.
 */
int placed_hold(struct store *s, const char *dir, mode_t home_mode, const struct place_first *first,
		struct place_dir *hold);
void placed_release(struct place_dir *hold);

/* Whether some process makes logs where the log @path is, near. True where that cannot be told. */
bool placed_is_held(struct store *s, const char *path);

/*
 * Whether there is a file @path near, on this host: 1; 0: no, without a system call where there are no
 * places; -EREMOTE: the place in which it may be is not on this host, or cannot be looked at; -errno.
 */
int placed_near(struct store *s, const char *path);
static inline bool placed_is_near(struct store *s, const char *path)
{
	return placed_near(s, path) > 0;
}

/* Whether the place that near.HOST at @path leads to is on this host, or all in it has been moved home. */
bool placed_is_here(struct store *s, const char *path);

/* The same store without its places: for what is at home alone. */
struct store placed_home(const struct store *s);

/*
 * Give @len bytes of the log @h near from @off on space, beyond its end. 0; -ENOSPC, -EDQUOT: there is none,
 * or the budget is used up, or, in memory, the job would have too little left.
 */
int placed_reserve(struct store *s, int h, uint64_t off, uint64_t len);

/*
 * Whether another host, or this one before it lost a place, has logs of the hostdir of @path elsewhere; or
 * another backend that is not there may have it (PLACE_SHARED in @p->features).
 */
bool placed_is_elsewhere(struct store *s, const char *path, struct place *p);

#endif
