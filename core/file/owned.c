/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a process has made in a container follows the stub, if that has changed meanwhile.
 */
#include "core/file/owned.h"

#include "core/base/sys.h"
#include "core/dropping/owner.h"

void owned_follow(struct container *c, int fd, struct stat *st)
{
	struct stat now;

	for (int tries = 0; tries < OWNED_TRIES && !sys.fstat(fd, &now); tries++) {
		bool told = c->told;

		if (likely(owned_is_same(&now, st)))
			return;
		c->told = true;
		container_look_at_group(c, fd);
		container_follow(c, st, &now);
		c->told = told;
		*st = now;
	}
}

void owned_heed(struct inode *ino, int fd)
{
	struct container c = ino->c;
	struct stat st;

	if (sys.fstat(fd, &st) || likely(!ino->owner_due && container_is_as(&c, &st)))
		return;
	st.st_uid = c.uid;
	st.st_gid = c.gid;
	st.st_mode = S_IFREG | c.mode; /* without the mark: it differs */
	owned_follow(&c, fd, &st);
	inode_heed_owner(ino, &st);
	container_set_stub(&ino->c, &st);
	ino->c.checked = 0;
	ino->owner_due = false;
}
