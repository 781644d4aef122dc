/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Node indexes of any host, and names for what is kept, for those who put in order what others have left.
 */
#ifndef PLFS_LEFT_INDEX_H
#define PLFS_LEFT_INDEX_H

#include "container.h"

/* Where the node index of the log or live file @path is, both relative to the container; @index: CONTAINER_PATH_LEN. */
void left_index_path(const char *path, char *index);

/*
 * Open and lock the node index @index, relative to the container, in a directory that is there; it is made if it is
 * missing. *@st: of it. Returns a handle, or -errno. Where there are no locks it is not locked.
 */
int left_index_lock(const struct container *c, const char *index, struct stat *st);
void left_index_unlock(const struct container *c, int h);

/*
 * A name beside the dropping @path (relative to the container) that readers ignore, and that is free: *@kept
 * (CONTAINER_PATH_LEN).
 */
int left_kept_name(const struct container *c, const char *path, char *kept);

/* Append a block, whole or not at all, on stable storage. */
int left_index_append(const struct container *c, const char *index, const void *block, size_t len);

#endif
