/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parts become lines of the stats file. One process at a time does so, under a lock on that file: appends of
 * several hosts are not atomic everywhere. A part is removed after its lines are in the file. A process
 * killed in between leaves it, and its lines are added a second time: they have the part's number, by which
 * readers know them.
 *
 * A process that ends does not wait for the lock. Whoever holds it looks again after he has let it go, and a
 * process says that it has ended before it tries: so the last one's part is not forgotten. On each host only
 * the last process to end adds anything, one block for all of them.
 */
#ifndef PLFS_JOIN_H
#define PLFS_JOIN_H

#include "core/base/base.h"

struct joined {
	unsigned parts;	  /* that became lines */
	unsigned alive;	  /* whose processes run */
	unsigned newer;	  /* of another version of the library */
	unsigned damaged; /* older than a minute, and not to be read */
};

/*
 * Take the parts of the stats file @file into it. @all: those of all hosts, and the lock is waited for, up
 * to 10 s; else those of this host, if none of its processes runs any more, and if nobody has the lock. 0;
 * -EBUSY: somebody has it; -errno: nothing was added but whole parts.
 */
int join_parts(const char *file, bool all, struct joined *j);

#endif
