/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first memory of a process: 64 KiB of the library's data segment, in which blocks lie one behind the
 * other as on a stack. Most programs that run under a mapping open no file of ours, or a few one after the
 * other: they never need an allocator, whose first call costs 20 system calls and 60 page faults, and each
 * fork of it 20 more.
 *
 * A block is freed when all above it are. While another thread is at it, nothing is given and frees are
 * noted only, so nobody waits, and a fork in the middle of it does no more harm than to leave the child
 * without. All can be called by any thread at any time.
 */
#ifndef PLFS_EARLY_H
#define PLFS_EARLY_H

#include "core/base/base.h"

#define EARLY_LEN_MAX 16384 /* of one block */

/* NULL: there is no room, or the process has threads. Aligned to 16 bytes. @zero: all its bytes are 0. */
void *early_alloc(size_t len, bool zero);

/* Whether @p is from here; its length. */
bool early_has(const void *p);
size_t early_len(const void *p);

void early_free(void *p);

#endif
