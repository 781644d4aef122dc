/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Directories by way of descriptors: listing, measuring and removing trees that other users may be changing
 * at the same time. No symbolic link is followed anywhere on the way, and nothing that is mounted is entered.
 */
#ifndef PLFS_DIRS_H
#define PLFS_DIRS_H

#include "core/base/base.h"

#include <sys/stat.h>

/*
 * Open the directory @path below @dirfd for listing. A descriptor, not hidden; -ENOTDIR: it is no directory;
 * -ELOOP: a symbolic link is on the way; -EXDEV: something is mounted there; -errno.
 */
int dirs_open(int dirfd, const char *path);

/* The same; one that cannot be listed can be used for its names alone. */
int dirs_open_any(int dirfd, const char *path);

/*
 * The same of the directory that holds @path, to change *@name in it; where it cannot be listed, it cannot be
 * synced either.
 */
int dirs_open_of(int dirfd, const char *path, const char **name);

/*
 * Call @fn for each name in the directory @fd but "." and ".."; @type is that of struct dirent. 0; the first
 * non-zero that @fn returned, which ends the listing; -errno.
 */
int dirs_list(int fd, int (*fn)(void *arg, int fd, const char *name, unsigned char type), void *arg);

/* The same with DIRS_LIST_LEN bytes at @buf, at a multiple of 8. */
#define DIRS_LIST_LEN 4096
int dirs_list_by(int fd, char *buf, int (*fn)(void *arg, int fd, const char *name, unsigned char type),
		 void *arg);

struct dirs_sum {
	uint64_t bytes;      /* allocated */
	uint64_t changed_ns; /* the latest change of anything in it */
	uint64_t nr_files;   /* in it, other than directories */
	uint64_t nr_dirs;    /* itself and those in it */
};

/*
 * Measure @name in @dirfd with what is in it, and in the directories in it. A directory below those counts as
 * a file. 0; -errno.
 */
int dirs_measure(int dirfd, const char *name, struct dirs_sum *sum);

/*
 * Whether an entry of a container may be removed with it. @depth: 0 in the container, 1 in one of its
 * directories. @dir: it is a directory.
 */
typedef bool dirs_known(const char *name, int depth, bool dir);

/*
 * Remove the directory @name with what is in it, and in the directories in it, as far as @known says yes. All
 * else stays, with the way to it, and one line names the first: somebody may have moved there what is not
 * his, and who removes it all may be root. With @empty, remove it only if there is nothing but directories in
 * it, and stop if one gets another entry meanwhile. 0: it is gone, or was before; -ENOTEMPTY; -errno: the
 * first error, after which the rest is removed all the same.
 */
int dirs_remove(int dirfd, const char *name, bool empty, dirs_known *known);

/*
 * Put the names in the directory that holds @path, below @dirfd, on stable storage. Follows links on the way.
 * 0; -errno.
 */
int dirs_sync_parent(int dirfd, const char *path);

static inline uint64_t dirs_time_ns(const struct timespec *ts)
{
	return (uint64_t)ts->tv_sec * 1000000000 + (uint64_t)ts->tv_nsec;
}

/* The time of the last change of the file, its bytes or its attributes. */
static inline uint64_t dirs_changed_ns(const struct stat *st)
{
	return max_u64(dirs_time_ns(&st->st_ctim), dirs_time_ns(&st->st_mtim));
}

#endif
