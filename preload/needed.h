/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The libraries that the dynamic loader opens by itself, past every wrapper.
 */
#ifndef PLFS_NEEDED_H
#define PLFS_NEEDED_H

#include "shim.h"

/*
 * The ELF object @path is about to be executed or loaded. Make its needed libraries plain files where they
 * are logical. Searches its RPATH, its RUNPATH, and the LD_LIBRARY_PATH of @envp. Errors are left to the
 * loader, which reports them.
 */
void needed_by_file(const char *path, char *const envp[]);

/* The same for the library @name, which the object around the address @caller is about to load. */
void needed_by_caller(const char *name, const void *caller);

/* Whether @envp's LD_LIBRARY_PATH leads below a mount. */
bool needed_from_env(char *const envp[]);

#endif
