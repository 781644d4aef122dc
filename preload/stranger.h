/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that this library does not reach, because they are linked statically, and what they inherit.
 */
#ifndef PLFS_STRANGER_H
#define PLFS_STRANGER_H

#include "shim.h"

/* Whether (@dirfd, @path), a real path, is such a program, and would inherit logical files to read. */
bool stranger_inherits(int dirfd, const char *path);

/*
 * (@dirfd, @path), a real path, is about to be run, and offsets are in the kernel. If it is such a program, the
 * logical files that it inherits to read are moved into their bodies, where its own system calls find the bytes.
 */
void stranger_prepare(int dirfd, const char *path);

#endif
