/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What together.c and together_bytes.c share: the model in shared memory of what must be there, and its
 * locks.
 */
#ifndef TEST_TOGETHER_H
#define TEST_TOGETHER_H

#include <pthread.h>
#include <sys/types.h>

#include "../lib/job.h"

enum { NR_NAMES = 6, NR_FILES = 64, FILE_LEN = 200 * 1024, NR_FDS = 6, NR_SLOTS = 64 };
enum { NO_FILE = -1, NOBODY = -1, DEAD = -2 };

/* All bytes from its size on are zeros, in both forms. */
struct file {
	pthread_mutex_t lock;
	int links, users; /* under the names' lock: 0 and 0: free */
	int changing;	  /* NOBODY; the slot of who changes it; DEAD: who did was killed */
	bool cuts;	  /* that change is of the size alone */
	mode_t mode;
	off_t size, next_size; /* before, and after that change */
	unsigned char bytes[FILE_LEN], next[FILE_LEN];
};

struct open_file {
	int fd, file;
	bool append, readable, writable;
};

struct model {
	pthread_mutex_t lock; /* of the names; a file's is taken inside it, never the other way */
	int name[NR_NAMES];   /* which file, or NO_FILE */
	volatile int failed;
	struct file file[NR_FILES];
	struct open_file opened[NR_SLOTS][NR_FDS]; /* of each process, and of a child of each; fd -1: none */
	long nr_ops[NR_SLOTS];
};

extern struct model *model;
extern struct open_file *opened; /* those of this process */
extern int me, nr_processes;
extern bool locks, apart, plain;
extern bool becomes_plain; /* files are mapped and flattened; then they are as plain ones */
extern char what[200]; /* the present operation, for messages */

#define DOING(...) snprintf(what, sizeof(what), __VA_ARGS__)

uint64_t rnd(uint64_t below);
__attribute__((format(printf, 1, 2), noreturn)) void fail(const char *fmt, ...);
void lock(pthread_mutex_t *m);
void unlock(pthread_mutex_t *m);

/* Some call on the bytes of a file that this process has open. */
void at_bytes(void);
/* What can be read, and the size, are the model's. The file's lock is held. */
void compare(struct file *f, int fd);
/* Truncation by name. Both locks are held. */
void cut_by_name(struct file *f, const char *path);

#endif
