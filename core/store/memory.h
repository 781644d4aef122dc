/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A store in the memory of one process: for tests and fuzzers, and the smallest example of a store. It has
 * the twelve calls, rmdir, mappings and locks; no descriptors, no permissions, nothing that is faster in one
 * call. A file holds at most STORE_MEMORY_FILE_MAX bytes (memory_tree.h).
 */
#ifndef PLFS_STORE_MEMORY_H
#define PLFS_STORE_MEMORY_H

#include "core/store/store.h"

/* An empty store. Thread-safe; a child of fork() has a copy of it. -ENOMEM. */
int store_memory_open(struct store *s);

/* Forget all that is in it; what is mapped or open ends with it. */
void store_memory_close(struct store *s);

#endif
