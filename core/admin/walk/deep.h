/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Visits a tree of any depth, also where no path can name what is in it, without recursion: any user can make
 * a tree so deep.
 */
#ifndef PLFS_DEEP_H
#define PLFS_DEEP_H

#include "core/base/base.h"

/* What changes if the names in any directory of the tree change. */
struct deep_sum {
	uint64_t nr, mix;    /* directories; their numbers and times */
	uint64_t changed_ns; /* the latest change; UINT64_MAX: they were moved meanwhile */
};

struct deep {
	dev_t dev; /* other file systems are not entered */
	unsigned max_open; /* descriptors at a time, at least 2 */
	/* Whether to enter the directory @name in the directory @fd. */
	bool (*enters)(void *arg, int fd, const char *name);
	/* A regular file. NULL: only the sum is wanted. */
	void (*file)(void *arg, int fd, const char *name);
	/* A directory could not be read, nor anything below it: as in walk.h. */
	void (*trouble)(void *arg, int err);
	void *arg;
};

/* Visit the directory @name in the directory @fd and all below it, and add it to @sum. */
void deep_visit(const struct deep *d, int fd, const char *name, struct deep_sum *sum);

#endif
