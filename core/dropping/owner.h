/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Modes and owners of what is in a container, which follow those of its stub.
 */
#ifndef PLFS_OWNER_H
#define PLFS_OWNER_H

#include "core/backend/container.h"

/*
 * Change the mode or owner of the container's directories and droppings as those of its stub were changed. @c
 * is that of the stub before. What this user may not change stays as it is, and so does what is no dropping
 * of this container: each is opened, looked at, and changed through that handle. 0; -EPERM: the directory
 * itself had to stay, and is open to users that have lost their permission; -EIO: something else lies there
 * under the name of a dropping (one line names it); -errno.
 */
int container_chmod(struct container *c, mode_t mode);
int container_chown(const struct container *c, uid_t uid, gid_t gid);

/*
 * Before the stub gets the owner and group of @after, and when all has followed: a note says so meanwhile
 * (given.h), so that a change that is killed in between can be finished. By who may make the change; @c: as
 * above. Whether there is one by this call.
 */
bool container_begin_giving(const struct container *c, const struct stat *after);
void container_end_giving(const struct container *c, uid_t uid);

/* Finish what was killed: @stub is as it is to be. 0; -EPERM: this user may not; -errno, as above. */
int container_finish_giving(const struct container *c, const struct stat *stub);

/*
 * The stub's owner, group or mode changed from @before to @now while the container was made, or was changed
 * itself: have all in it follow, whichever of the two it followed up to now. Afterwards @c is that of the
 * stub @now. What neither fits yet is waited for a little: another process is at it. 0; -errno, as above.
 */
int container_follow(struct container *c, const struct stat *before, const struct stat *now);

#endif
