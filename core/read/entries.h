/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The directories of a container, as they were when it was listed: whether a file in them has been made,
 * renamed or removed since. Each process of any host that begins to write makes a live file first. So as long
 * as the directories rest, the container has the same writers, whether these announce themselves or not.
 *
 * What changes inside of files is not noticed: watch.h.
 */
#ifndef PLFS_ENTRIES_H
#define PLFS_ENTRIES_H

#include "core/backend/container.h"

#define ENTRIES_DIRS_MAX 4 /* the container and its hostdirs; of more nothing is known */

struct entries {
	bool known; /* else the handles are left over */
	unsigned nr;
	struct entries_dir {
		int h;
		struct timespec changed;
	} dirs[ENTRIES_DIRS_MAX];
};

/* The moment before a listing begins, to entries_note(). */
struct timespec entries_now(void);

/*
 * The container has been listed, which began at @began. Remember its directories, if they had rested before:
 * their times are no finer than the ticks of the kernel, so a change in the same tick could not be seen.
 */
void entries_note(struct entries *e, const struct container *c, const struct timespec *began);

/* Whether they are known, and nothing has been made, renamed or removed in them since. */
bool entries_rest(const struct entries *e, const struct container *c);

void entries_forget(struct entries *e, const struct container *c);

#endif
