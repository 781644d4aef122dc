/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Root works in a user's tree as that user. What the user exchanges for something else meanwhile then gains
 * him nothing: root may do no more there than he.
 */
#ifndef PLFS_AS_OWNER_H
#define PLFS_AS_OWNER_H

#include "core/base/base.h"

#include <sys/types.h>

/* All zeros: nothing has begun. */
struct as_owner {
	bool is;        /* this thread is the owner, for the file system */
	int nr_groups;  /* what it had before */
	gid_t *groups;
	uid_t uid;
	gid_t gid;
};

/*
 * If this process is root's and @uid is not root: from here on the file system takes this thread for user
 * @uid, in the group @gid and no other. The group is that of a file of his, by which he and others read and
 * write what is behind it. Other threads, signals and limits are as before. Descriptors that are open keep
 * their rights. Nothing happens where the ids cannot be changed (a sandbox), and no errno is set.
 */
void as_owner_begin(struct as_owner *a, uid_t uid, gid_t gid);

/* Whom the file system takes this thread for. */
uid_t as_owner_uid(void);

/* As before. May be called again, or without a beginning. */
void as_owner_end(struct as_owner *a);

/*
 * The user alone, for a look: the groups stay. Returns the one from before, for the second call. What
 * as_owner_uid() says then is @uid, if this process may.
 */
uid_t as_owner_set_uid(uid_t uid);

#endif
