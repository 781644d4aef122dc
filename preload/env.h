/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The environment of the next image. A program may give its child an environment without the library's
 * settings. Such a child would read and write stubs, so exec adds what is missing.
 */
#ifndef PLFS_ENV_H
#define PLFS_ENV_H

#include "shim.h"

struct env {
	char *const *vars; /* for exec */
	void *map;         /* the memory of vars; NULL: the caller's own */
	size_t map_len;
};

/*
 * Remember the library's settings as they are now, relative paths in them made absolute; in the environment
 * as well. Called at start.
 */
void env_remember(void);

/*
 * Fill @e with @vars and with each of the library's settings that @vars lacks. A setting that is there stays,
 * even if it is empty; one with relative paths, as it was at start, means the directory of the start.
 * Allocates by mmap() alone: the caller may be a forked child of a process with threads.
 * 0; -ENOMEM.
 */
int env_complete(struct env *e, char *const vars[]);
void env_release(struct env *e);

#endif
