/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Directories by way of descriptors: for what looks at, or removes, trees that other users may be changing at the
 * same time. No symbolic link is followed, nowhere on the way, and nothing that is mounted is entered. Not for
 * programs: a descriptor is where the kernel puts it.
 */
#ifndef PLFS_TREE_H
#define PLFS_TREE_H

#include "base.h"

#include <sys/stat.h>

/*
 * The directory @path below @dirfd, for listing. -ENOTDIR, -ELOOP: it is none, or a symbolic link is on the way;
 * -EXDEV: something is mounted there. The caller closes it.
 */
int tree_open(int dirfd, const char *path);

/*
 * @fn for each name in the directory @fd but "." and "..", @type as in struct dirent; stops at and returns a
 * non-zero. -errno.
 */
int tree_list(int fd, int (*fn)(void *arg, int fd, const char *name, unsigned char type), void *arg);

struct tree_sum {
	uint64_t bytes;      /* allocated */
	uint64_t changed_ns; /* the latest change of anything in it */
	uint64_t nr_files;   /* in it, other than directories */
};

/* What is in @name in @dirfd, the directory itself included. */
int tree_measure(int dirfd, const char *name, struct tree_sum *sum);

/*
 * Remove @name with all that is in it, or, with @empty, if there are only directories in it: -ENOTEMPTY, not even
 * then, if one gets another entry meanwhile. That it has gone is no error. The first error is returned, the rest is
 * removed all the same.
 */
int tree_remove(int dirfd, const char *name, bool empty);

static inline uint64_t tree_time_ns(const struct timespec *ts)
{
	return (uint64_t)ts->tv_sec * 1000000000 + (uint64_t)ts->tv_nsec;
}

/* When anything about the file was last changed. */
static inline uint64_t tree_changed_ns(const struct stat *st)
{
	return max_u64(tree_time_ns(&st->st_ctim), tree_time_ns(&st->st_mtim));
}

#endif
