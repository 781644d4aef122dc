/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs without the library (linked statically, privileged, of another word size), and the logical files
 * that they inherit.
 */
#ifndef PLFS_STRANGER_H
#define PLFS_STRANGER_H

#include "shim.h"

/* Whether the real path (@dirfd, @path) is such a program and would inherit a readable logical file. */
bool stranger_inherits(int dirfd, const char *path);

/*
 * The real path (@dirfd, @path) is about to be run, and all offsets are in the kernel. If it is such a
 * program, move the readable logical files that it inherits into their bodies, where its own system calls
 * find the bytes.
 */
void stranger_prepare(int dirfd, const char *path);

#endif
