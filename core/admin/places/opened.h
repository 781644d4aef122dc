/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The container of a file that has, or had, logs in a place or in another backend.
 */
#ifndef PLFS_OPENED_H
#define PLFS_OPENED_H

#include "core/backend/container.h"
#include "core/plfs_admin.h"

/* 1: *@c; 0: the file is plain, or has never had a log elsewhere; -errno. */
int opened_container(struct plfs_mount *m, int dirfd, const char *path, enum container_use use,
		     struct container *c);

#endif
