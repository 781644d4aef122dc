/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hooks in the sys table, where all calls go that pass through the library, and all that it makes itself.
 * They are there only in a process that counts: nothing else knows of them.
 *
 * A call made outside of critical sections is the program's, on a plain file; it is counted if the file is
 * one to count. A call inside of them is the library's own: its time is added to what libplfs did for the
 * file whose call this thread is in.
 */
#ifndef PLFS_HOOKS_H
#define PLFS_HOOKS_H

#include "core/base/base.h"

/* @all: plain files anywhere are counted, but for those of the system; else those below a mapping. */
void hooks_install(bool all);

/* @fd has just been opened in one of the library's calls, and is a plain file below a mapping. */
void hooks_opened(int fd, uint64_t begin_ns);

/* How far streams that are still open have moved. */
void hooks_exit(void);

#endif
