/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exit-wait=SECONDS: the end of a process waits for the helper to move the logs that it has closed.
 */
#ifndef PLFS_EXIT_WAIT_H
#define PLFS_EXIT_WAIT_H

#include "core/backend/container.h"

/*
 * A helper moves the closed log @path near, relative to the container: exit_wait() is to wait for it. Once
 * that has been called, wait now. A process that lacks the memory does not wait.
 */
void exit_wait_for(const struct container *c, const char *path);

/* The process ends: wait until its logs are home, or the time of the mapping is over. */
void exit_wait(void);

/* In the child of a fork, which has closed no log yet. */
void exit_wait_fork_child(void);

#endif
