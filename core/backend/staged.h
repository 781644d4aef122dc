/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Staged copies: copies of closed logs in a place, for the readers of one node, whose originals stay at home.
 *
 *   NEAR/plfs.UID/BACKEND-ID/staged/XX/ID/hostdir.K/data.HOST.PID.SEQ
 *       data.HOST.PID.SEQ.tmp.N                      a copy under way
 *   NEAR/plfs.UID/BACKEND-ID/staged/lock             locked by the process that copies
 *
 * Nothing at home leads to them: each node has its own, and a reader finds them by the near= of its mapping.
 * A log is only ever appended to, and no two logs of a container have the same name. So a copy is the
 * beginning of its log for ever. A reader opens the log at home in any case, and takes from the copy what the
 * copy has: a log that has gone has no reader, and what was appended since is read at home.
 */
#ifndef PLFS_STAGED_H
#define PLFS_STAGED_H

#include "core/backend/place.h"

#define STAGED_DIR "staged"

/*
 * A reader has opened the log @path of the container at home: @home. Returns the handle to read from, which
 * is @home, or that together with a staged copy (twin.h). No call is made if the mapping has no near=.
 */
int staged_use(struct store *s, const char *path, int home);

/* Whether there is a copy of the log @path of the container on this node, and its length into *@len. */
bool staged_find(struct store *s, const char *path, uint64_t *len);

/*
 * Open the directory for copies of the logs in the hostdir @dir (".plfs/XX/ID/hostdir.K"); it is made. @to:
 * a store whose root it is, for store_close(). -errno.
 */
int staged_enter(struct store *s, const char *dir, struct store *to);

/* Wait until no other process copies. A descriptor for sys_fd_close(), which ends it; -errno. */
int staged_lock(struct store *s);

/* Remove the copies of the container @dir (".plfs/XX/ID"). 0; -ENOENT: there are none; -errno. */
int staged_remove(struct store *s, const char *dir);

#endif
