/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * execve(2) for programs below a mount, which the kernel cannot run by itself.
 */
#ifndef PLFS_PROGRAM_H
#define PLFS_PROGRAM_H

#include "shim.h"

/*
 * Run (@dirfd, @path), with the AT_ flags of execveat(2). The caller has committed its files and shared its
 * offsets. Returns only on failure: -errno; 0: the flags only asked whether it would run.
 */
int program_run(int dirfd, const char *path, int at_flags, char *const argv[], char *const envp[]);

/* The same for the file open at @fd. */
int program_run_fd(int fd, int at_flags, char *const argv[], char *const envp[]);

/*
 * The same for @file, searched in PATH unless it has a slash. @shell: a shell runs what is neither binary nor
 * script.
 */
int program_search_and_run(const char *file, bool shell, char *const argv[], char *const envp[]);

/*
 * Whether program_run() (@search: program_search_and_run()) would do more than the kernel does. Asked by
 * callers that otherwise leave the exec to the C library.
 */
bool program_is_ours(const char *file, bool search, char *const envp[]);

#endif
