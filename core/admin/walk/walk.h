/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Visits every file below a backend, with several threads: for plfs gc and plfs check -r. The walk follows no
 * symbolic link, enters no other file system, whatever happens to the directories meanwhile, and skips the
 * container directory.
 */
#ifndef PLFS_WALK_H
#define PLFS_WALK_H

#include "core/admin/walk/deep.h"
#include "core/backend/mount.h"

/* A regular file, plain or logical. */
struct walk_entry {
	const char *path; /* relative to the backend: "run7/ckpt.0040"; with "..." for what is too long */
	const char *name; /* its last component, in the directory @dirfd */
	int dirfd;
};

/*
 * Run @fn in @nr threads, the caller's included, or in as many as can be made. Returns when all have
 * returned.
 */
void threads_run(unsigned nr, void *(*fn)(void *arg), void *arg);

/* All threads call these functions at once. Their arguments are valid until they return. */
struct walk {
	struct plfs_mount *m;
	unsigned nr_threads; /* 0: one */

	/*
	 * The walk is about to list a directory (@path "": the backend's root); @st is from before that.
	 * False: skip it.
	 * NULL: list all.
	 */
	bool (*dir)(void *arg, const char *path, const struct stat *st);
	/*
	 * A directory below the root is itself a backend. False: skip it. NULL: list all, but no container
	 * directory.
	 */
	bool (*backend)(void *arg, const char *path);
	void (*file)(void *arg, const struct walk_entry *e);
	/* The sum of all below the directory @path that is too deep for a path. NULL: not wanted. */
	void (*deep)(void *arg, const char *path, const struct deep_sum *sum);
	/*
	 * @path could not be read, nor anything below it: -EACCES, -EIO, -ENOMEM ...; -EXDEV: something is
	 * mounted there and hides what is beneath. Names that are removed meanwhile are not reported.
	 */
	void (*trouble)(void *arg, const char *path, int err);
	void *arg;
};

/* Walk the directories @starts (relative to the backend; "": its root) and everything below them. */
void walk_run(const struct walk *w, const char *const *starts, size_t nr_starts);

/* That sum of the directory @path, open at @fd, without visiting any file. Only with walk.trouble. */
void walk_sum_deep(const struct walk *w, int fd, const char *path, struct deep_sum *sum);

/*
 * Open a directory below the backend ("": its root) for listing. The caller closes it.
 * -EXDEV: as above; -ELOOP: a symbolic link is on the way.
 */
int walk_open_dir(const struct plfs_mount *m, const char *path);

/*
 * Open the file for reading, without waiting and, where the kernel allows it, without changing its access
 * time. The caller closes it.
 */
int walk_open(const struct walk_entry *e);

#endif
