/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which files the processes of this host have open.
 */
#ifndef PLFS_GC_PROC_H
#define PLFS_GC_PROC_H

#include "core/admin/gc/gc_run.h"

/* Mark the containers of files that processes of this host have open, as far as this user may see. */
void gc_scan_processes(struct gc_run *run);

/*
 * Whether the process @pid of this host has the file @name mapped or open; true if this user may not see
 * that.
 */
bool gc_process_has(unsigned long pid, const char *name);

#endif
