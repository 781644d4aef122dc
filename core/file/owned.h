/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owner, group and mode of a file, its container and all in it agree, whoever makes or changes what at the
 * same time. Who makes something in the container, as the stub was when he looked, then looks at the stub
 * once more, by these. Who changes the stub then looks for the container (ownership.c). So one of the two
 * sees what the other did.
 */
#ifndef PLFS_OWNED_H
#define PLFS_OWNED_H

#include "core/file/inode.h"

#define OWNED_TRIES 1000 /* in vain only while others change the stub all the time */

static inline bool owned_is_same(const struct stat *a, const struct stat *b)
{
	return a->st_uid == b->st_uid && a->st_gid == b->st_gid && a->st_mode == b->st_mode;
}

/*
 * This process has made the container @c of the stub @fd, as that was by *@st. If it has changed since, have
 * all that is in it follow. Afterwards both are as the stub is. Best effort: a process of another user than
 * the new owner cannot give away what it has made, and says for whom it is.
 */
void owned_follow(struct container *c, int fd, struct stat *st);

/* The same, of droppings that this process has made in the container of @ino. With its lock held. */
void owned_heed(struct inode *ino, int fd);

#endif
