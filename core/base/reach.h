/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that the library does not reach: no LD_PRELOAD gets into them, or they make system calls of their
 * own. Below a mapping they see stubs.
 */
#ifndef PLFS_REACH_H
#define PLFS_REACH_H

#include "core/base/base.h"

enum reach {
	REACH_FULL,        /* or nothing is known of it */
	REACH_STATIC,      /* it has no dynamic linker that would load the library */
	REACH_OTHER_WORDS, /* its pointers have another size */
	REACH_GO,          /* dynamically linked, but programs in Go make system calls by themselves */
	REACH_PRIVILEGED,  /* by set-user-id, set-group-id, capabilities: then LD_PRELOAD is ignored */
};

/*
 * Look at the program (@dirfd, @path), or at the interpreter of the script that it is, as the kernel would
 * run it for this user. @file: PATH_MAX bytes for the name of the one that was looked at, or NULL.
 */
enum reach reach_of(int dirfd, const char *path, char *file);

#endif
