/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What has to happen around a fork.
 */
#ifndef PLFS_PROC_H
#define PLFS_PROC_H

#include "shim.h"

/* Register with the C library, so that every fork() in the process, its own included, comes by. At start. */
void proc_watch_forks(void);

#endif
