/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Running a program, wherever it lies: what execve(2) does, for files that the kernel could not run by itself.
 */
#ifndef PLFS_PROGRAM_H
#define PLFS_PROGRAM_H

#include "shim.h"

/*
 * Run (@dirfd, @path), with AT_ flags as of execveat(2). Comes back with -errno,
 * or 0 if the flags only ask whether it would be run. The caller has handed over what the next image needs.
 */
int program_run(int dirfd, const char *path, int at_flags, char *const argv[], char *const envp[]);

/* The same for the file that is open at @fd. */
int program_run_fd(int fd, int at_flags, char *const argv[], char *const envp[]);

/* A @file without a slash is looked for in PATH. With @shell what is neither binary nor script is given to one. */
int program_search_and_run(const char *file, bool shell, char *const argv[], char *const envp[]);

/*
 * Whether program_run(), or with @search program_search_and_run(), would do more than the kernel does: for those who
 * run it inside the C library.
 */
bool program_is_ours(const char *file, bool search, char *const envp[]);

#endif
