/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much a check or a flattening of directories, or a drain of places, has before it: a thread counts while
 * these are at work.
 */
#ifndef PLFS_TOTAL_H
#define PLFS_TOTAL_H

#include "core/base/base.h"

/*
 * Count the logical files in the @nr files and directories @paths, and below them, in a thread of its own, a
 * single one. @paths stays until total_end().
 */
void total_begin(char *const *paths, int nr);

/* The same of the logs in them; their bytes are those on the disk. */
void total_begin_logs(char *const *paths, int nr);

/* False: it is still counting. *@files; *@bytes: of their sizes. */
bool total_known(uint64_t *files, uint64_t *bytes);

/* End the thread. */
void total_end(void);

#endif
