/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The files and directories of a store in memory (memory.h): their paths and their bytes. Handles and the
 * lock are the store's: it calls all of these with the lock held.
 */
#ifndef PLFS_MEMORY_TREE_H
#define PLFS_MEMORY_TREE_H

#include "core/base/base.h"

#include <sys/stat.h>

#define STORE_MEMORY_FILE_MAX (1 << 26) /* bytes of a file; truncate() may set a greater length */

struct memory_node {
	char *path;    /* NULL: it has no name any more */
	mode_t mode;   /* with its type */
	ino_t ino;
	unsigned refs; /* by handles and mappings */
	uint8_t *buf;
	size_t len, cap; /* of the bytes that are held, and the block's */
	uint64_t size;   /* what is behind @len are zeros */
	bool is_area;    /* mapped once: @buf is an area of STORE_MEMORY_FILE_MAX */
	int locked_by;   /* a handle, or 0 */
	struct timespec changed;
};

struct memory_tree {
	struct memory_node **nodes;
	size_t nr_nodes, cap_nodes;
	ino_t last_ino;
};

/*
 * @out: what is at @path, or NULL. 0; -ENOENT, -ENOTDIR: not even the directory for it is there; -EXDEV: it
 * leads out of the store.
 */
int memory_tree_look_up(const struct memory_tree *t, const char *path, struct memory_node **out);

/* @out: a new node at @path, where nothing is. -ENOMEM. */
int memory_tree_add(struct memory_tree *t, const char *path, mode_t mode, struct memory_node **out);

/* @n goes with its name and the last that uses it. */
void memory_tree_put(struct memory_tree *t, struct memory_node *n);
void memory_tree_take_name(struct memory_tree *t, struct memory_node *n);

/* As unlink(2), with @dir rmdir(2), and rename(2). */
int memory_tree_remove(struct memory_tree *t, const char *path, bool dir);
int memory_tree_rename(struct memory_tree *t, const char *from, const char *to);

/*
 * @names: mem_alloc()ed copies of the names in @dir, each with a NUL behind it, *@names_len bytes; both are
 * NULL and 0 before. -ENOMEM: those so far.
 */
int memory_tree_names(const struct memory_tree *t, const struct memory_node *dir, char **names,
		      size_t *names_len);

/* All nodes go, used or not. */
void memory_tree_release(struct memory_tree *t);

/* Hold the first @len bytes of a file, zeros where there were none. -EFBIG; -ENOMEM. */
int memory_node_hold(struct memory_node *n, size_t len);

/* From now on @n->buf is an area that does not move. -ENOMEM. */
int memory_node_make_area(struct memory_node *n);

/* It has changed now. */
void memory_node_touch(struct memory_node *n);

#endif
