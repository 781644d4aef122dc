/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What acts.c does, written down in shared memory outside of the file system that will lose its power: disk.c
 * notes when that is, and look.c says what may be found then. One counter orders the beginnings and ends of
 * all actions, and the failures.
 */
#ifndef TEST_POWER_STORY_H
#define TEST_POWER_STORY_H

#include "../lib/job.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define STORY_MAX (1 << 19)
#define STORY_FILE_MAX (6 << 20) /* bytes of a file */
#define STORY_FAILURES 256

enum act { CREATE, WRITE, APPEND, TRUNCATE, SYNC, SYNC_DIR, RENAME, UNLINK, COVER };

struct action {
	enum act act;
	int file;            /* a number; its name is "f" and that, until RENAME has given it the name "c" */
	uint64_t begin, end; /* end 0: it has not come to it */
	long off, len;       /* WRITE, APPEND (off is known at its end); TRUNCATE: len is the size */
	bool synced;         /* WRITE, APPEND: with O_DSYNC */
};

struct failure {
	uint64_t at, syncs;
	/* what the disk had been asked, had not flushed, and kept of that */
	int requests, nr_pending, nr_kept;
};

struct story {
	uint64_t clock;
	int nr, gate[2], enough, nr_failures;
	bool mapped; /* under the library */
	struct failure failures[STORY_FAILURES];
	struct action actions[STORY_MAX];
};

static inline struct story *story_open(const char *path, bool anew)
{
	int fd = open(path, O_RDWR | (anew ? O_CREAT | O_TRUNC : 0), 0600);
	struct story *s;

	if (fd < 0 || (anew && ftruncate(fd, sizeof(*s))))
		die("%s", path);
	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (s == MAP_FAILED)
		die("%s", path);
	close(fd);
	return s;
}

static inline uint64_t story_tick(struct story *s)
{
	return __atomic_add_fetch(&s->clock, 1, __ATOMIC_SEQ_CST);
}

static inline bool story_over(const struct story *s)
{
	return __atomic_load_n(&s->enough, __ATOMIC_RELAXED);
}

#endif
