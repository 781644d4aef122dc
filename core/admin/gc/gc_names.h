/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which containers the files of a backend lead to.
 */
#ifndef PLFS_GC_NAMES_H
#define PLFS_GC_NAMES_H

#include "core/admin/gc/gc_run.h"

/*
 * Mark the containers to which names below the backend lead. Unless this sets run->blind, there was
 * one moment at which no name led to an unmarked container, but for those of the users in run->restless.
 */
void gc_scan_names(struct gc_run *run);

#endif
