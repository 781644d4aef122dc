/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether this process has one thread. The C library says it since glibc 2.32; before, the kernel is asked,
 * which takes a system call: for what costs some anyway. Hot paths ask __libc_single_threaded, which is 0
 * there (newer.h).
 */
#ifndef PLFS_SINGLE_H
#define PLFS_SINGLE_H

#include "core/base/base.h"
#include "core/base/newer.h"

#ifndef __libc_single_threaded
static inline bool is_single_threaded(void) { return __libc_single_threaded; }
#else
/* False also where that cannot be known, and from the first time on that it was, in children of fork too. */
bool is_single_threaded(void);

/* Atomic. 1: others were seen; 0: not yet; -1: none, whatever the kernel says (for tests). */
extern signed char threads_seen;
#endif

#endif
