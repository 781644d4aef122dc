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

/*
 * Read the settings, with the backends of all @names. Call @fn for what each place among them has (@m NULL:
 * its backend is not there), then @file for each file. 0; the first non-zero of these; -errno: something
 * named is not there, as one line reports.
 */
int places_each(char **names, int nr, int (*fn)(void *arg, struct top *top, struct plfs_mount *m),
		int (*file)(void *arg, const char *name, const char *path, struct plfs_mount *m), void *arg);

#endif
