/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The definition of a name that comes behind this library: dlsym(RTLD_NEXT), but for two faults that it has
 * in older C libraries. Before glibc 2.34 the first call of a thread allocates, by the program's calloc(),
 * which may be what called us, and wait for itself. Before 2.36 it takes the oldest of several versions: a
 * realpath() that takes no NULL, or what libattr hides under the name of getxattr(), which calls syscall(),
 * which is ours.
 */
#ifndef PLFS_NEXT_SYMBOL_H
#define PLFS_NEXT_SYMBOL_H

#include "core/base/base.h"

#include <dlfcn.h>

/* NULL: there is none. */
void *next_symbol_by_tables(const char *name);

static inline void *next_symbol(const char *name)
{
#if __GLIBC_PREREQ(2, 36)
	return dlsym(RTLD_NEXT, name);
#else
	return next_symbol_by_tables(name);
#endif
}

#endif
