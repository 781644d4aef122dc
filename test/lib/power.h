/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A disk that loses its power. While processes work in the scratch directory, each change that a call of the
 * sys table makes below it is recorded: pages, sizes and names, and which files and directories were synced.
 * From the recording, trees are built as a power failure may leave them after any of the calls. All that was
 * synced by then is there; of the rest, any part is, page by page and name by name. The caller checks the
 * trees.
 *
 * There are two kinds of file system. One promises no more than POSIX. The other keeps the order of names and
 * sizes, and lets no file grow over bytes that are not on the disk yet (ext4 with ordered data).
 */
#ifndef TEST_POWER_H
#define TEST_POWER_H

#include "test/lib/scratch.h"

#define POWER_PAGE 4096
#define POWER_PAGES 768 /* of a file */
#define POWER_NODES 256
#define POWER_ENTRIES 256
#define POWER_OPS 100000
#define POWER_IMAGES 60000

enum op_kind { OP_PAGE, OP_SIZE, OP_NAME, OP_SYNC, OP_EVENT };

/* A change, a sync, or an event that the caller recorded. */
struct op {
	enum op_kind kind;
	int node;     /* OP_NAME: -1, the name has gone */
	int no;       /* OP_PAGE: which; OP_NAME: its group, which changed at once; OP_EVENT: the caller's */
	int image;    /* OP_PAGE: 0 zeros */
	off_t size, before;   /* OP_SIZE */
	int dir;      /* OP_NAME */
	char name[NAME_MAX + 1];
};

/* A file or directory; what is known of its contents. */
struct node {
	ino_t ino;
	mode_t mode;
	off_t size;
	int image[POWER_PAGES];
};

struct entry {
	int dir, node;
	bool seen;
	char name[NAME_MAX + 1];
};

struct recording {
	int lock;
	int nr_ops, nr_nodes, nr_entries, nr_images, nr_groups;
	struct op ops[POWER_OPS];
	struct node nodes[POWER_NODES];
	struct entry entries[POWER_ENTRIES];
	unsigned char images[POWER_IMAGES][POWER_PAGE];
};

extern struct recording *power;
extern struct sys_table power_real;

/* Record event @no, behind all that was stored through mappings until now. */
void power_event(int no);

/* Record all changes below the scratch directory from here on, in children as well. */
void power_record(void);

/* Begin an empty recording, before power_record(). */
void power_new(void);

/* ---- what a failure leaves ---- */

struct failure {
	int cut;        /* before this operation */
	bool ordered;   /* by a file system that keeps the order of names and sizes */
	unsigned keep;  /* so many of 16 parts of what was not synced, chosen by @salt */
	int only;       /* the contrary for this operation; -2 - N: for group N of names; -1: for none */
	bool names;     /* no name is lost */
	uint64_t salt;
};

/* Build the tree that failure @f leaves, in the empty directory @path. */
void power_fail(const struct failure *f, const char *path);

#endif
