/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Places and files on the command line: a directory is a place, all else a file.
 */
#ifndef PLFS_TOOL_PLACES_H
#define PLFS_TOOL_PLACES_H

#include "core/plfs_admin.h"

/* Exit codes besides TOOL_OK, as batch systems know them: EX_TEMPFAIL for what is to be tried again. */
enum { DRAIN_LOST = 1, DRAIN_LEFT = 75 };

/* What one user has in a place for one backend. */
struct top {
	char *path, *home; /* NEAR/plfs.UID/BACKEND-ID; the backend */
};

/* What is named on the command line, and what is done with it. */
struct places {
	char **names;
	int nr, nr_given; /* the first ones are given by the user, who is told of each that has nothing */
	bool recursive;   /* a directory on a backend stands for all files below it */
	/* @m NULL: the backend of the place is not there. */
	int (*top)(void *arg, struct top *top, struct plfs_mount *m);
	int (*file)(void *arg, const char *name, const char *path, struct plfs_mount *m);
	void *arg;
	bool walks; /* while file() is called for what is below a directory; it may be removed meanwhile */
};

/*
 * Read the settings, with the backends of all names. Call @p->top for what each place among them has, then
 * @p->file for each file. 0; the first non-zero of these; -errno: something named is not there, or is a
 * directory on a backend without @p->recursive, as one line reports.
 */
int places_each(struct places *p);

#endif
