/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * near=auto: which of some directories of this node is taken for logs. Nothing here makes a system call; what
 * candidates there are is auto_find.h's.
 *
 * The order is: a directory on a disk that a variable of the batch system names; the largest disk; memory.
 */
#ifndef PLFS_AUTO_PLACE_H
#define PLFS_AUTO_PLACE_H

#include "core/backend/option.h"

#define AUTO_DISK_ROOM ((uint64_t)1 << 30)     /* bytes that a disk has at least, besides a tenth of it */
#define AUTO_MEMORY_ROOM ((uint64_t)256 << 20) /* bytes of memory's share at least */
#define AUTO_CANDIDATES_MAX 64

enum auto_medium { AUTO_OTHER, AUTO_DISK, AUTO_MEMORY };

/* One directory, as it was found. */
struct auto_candidate {
	char dir[CONFIG_NEAR_MAX + 1];
	char from[24];   /* the variable that names it; "": none does */
	char fs[24];     /* type of file system */
	char source[64]; /* what is mounted, as "/dev/sda1" */
	bool is_root;    /* on the file system of "/" */
	bool exists, read_only, writable;
	bool may_lose;   /* found by its mount alone, and others could remove what is put there */
	bool is_home;    /* the backend is on the same file system */
	uint64_t size, free; /* bytes, of the file system */
	/* What auto_choose() sets */
	const char *why; /* words: why not; NULL: it could be taken */
	uint64_t max;    /* bytes of the user's logs there at most; 0: no limit */
};

/* What holds the bytes of a file system @fs that is mounted from @source. AUTO_OTHER: that cannot be told. */
enum auto_medium auto_medium(const char *fs, const char *source);

/*
 * Choose one of the candidates, whose order counts among those that variables name, and in memory. Each gets
 * its @why and @max. @memory: bytes of memory that the job has left. The index of one; -1: none can be taken.
 */
int auto_choose(struct auto_candidate *c, int nr, uint64_t memory);

#endif
