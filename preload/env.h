/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The environment of the next image: a program that gives its child an environment of its own
 * making must not lose the library on the way, or the child reads and writes stubs.
 */
#ifndef PLFS_ENV_H
#define PLFS_ENV_H

#include "shim.h"

struct env {
	char *const *vars; /* for exec */
	void *map;         /* behind it, if it is ours */
	size_t map_len;
};

/* Remember our own settings as they are now. At start. */
void env_remember(void);

/*
 * Fill @e with @vars, and those of our settings that it lacks. One that is there, be it empty, stays as it
 * is. Allocates with mmap alone: the caller may be the child of a fork of many threads. 0 or -ENOMEM.
 */
int env_complete(struct env *e, char *const vars[]);
void env_release(struct env *e);

#endif
