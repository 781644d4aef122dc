/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The libraries that the dynamic loader will look for by itself, where nobody sees it.
 */
#ifndef PLFS_NEEDED_H
#define PLFS_NEEDED_H

#include "shim.h"

/*
 * Make plain files of the logical ones that the ELF object @path, about to be executed or loaded, names as needed. Looked for
 * in its RPATH, its RUNPATH, and LD_LIBRARY_PATH as @envp has it. What cannot be done, the loader will tell.
 */
void needed_by_file(const char *path, char *const envp[]);

/* The same for what the object that holds the address @caller asks the loader for by @name. */
void needed_by_caller(const char *name, const void *caller);

/* Whether @envp's LD_LIBRARY_PATH leads below a mount. */
bool needed_from_env(char *const envp[]);

#endif
