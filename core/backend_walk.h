/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A walk over the names below a backend, by several threads: for what looks at all files that there are (plfs gc,
 * plfs check -r). It follows no symbolic link and crosses into no other file system, whatever becomes of the
 * directories meanwhile, and leaves the container directory out.
 */
#ifndef PLFS_BACKEND_WALK_H
#define PLFS_BACKEND_WALK_H

#include "mount.h"

/* A regular file, plain or logical. */
struct walk_entry {
	const char *path; /* below the backend: "run7/ckpt.0040" */
	const char *name; /* the last component of it, in the directory */
	int dirfd;
};

/* Run @fn in @nr threads, of which this is one; fewer, if there cannot be so many. Returns when all have. */
void threads_run(unsigned nr, void *(*fn)(void *arg), void *arg);

/* The functions are called by all threads at once; what they are given lives until they return. */
struct backend_walk {
	struct plfs_mount *m;
	unsigned nr_threads; /* 0: one */

	/*
	 * A directory is about to be listed; @st: as it was before, @path "" the backend's root. False: leave it out.
	 * NULL: all are listed.
	 */
	bool (*dir)(void *arg, const char *path, const struct stat *st);
	/*
	 * A directory below the root is a backend of its own. False: leave it out. NULL: all are listed. What is in
	 * its container directory is left out anyway.
	 */
	bool (*backend)(void *arg, const char *path);
	void (*file)(void *arg, const struct walk_entry *e);
	/*
	 * Something could not be looked at, with all that is below it: -EACCES, -EIO, -ENOMEM ...; -EXDEV: another
	 * file system, or a part of this one, is mounted there, and hides what is beneath. What has gone meanwhile is
	 * no trouble.
	 */
	void (*trouble)(void *arg, const char *path, int err);
	void *arg;
};

/* Walk the directories @starts (paths below the backend, "": its root) and all that is below them. */
void backend_walk(const struct backend_walk *w, const char *const *starts, size_t nr_starts);

/*
 * Open a directory below the backend ("": its root) for listing. -EXDEV as above; -ELOOP: a symbolic link is on the
 * way. The caller closes it.
 */
int backend_open_dir(struct plfs_mount *m, const char *path);

/*
 * Open the file for reading, without waiting and, where that is allowed, without changing its time of access. The
 * caller closes it.
 */
int walk_open(const struct walk_entry *e);

#endif
