/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uthash with the library's own memory, without its exit() when that is used up, and with a hash that cannot
 * be foreseen. The names in a container are a stranger's, and a million of them in one bucket would take
 * hours.
 */
#ifndef PLFS_HASH_H
#define PLFS_HASH_H

#include "core/base/alloc.h"

/* The hash of @len bytes; each process has its own. */
unsigned hash_bytes(const void *p, size_t len);

#define uthash_malloc(len) mem_alloc(len)
#define uthash_free(p, len) mem_free(p)
#define HASH_NONFATAL_OOM 1
#define HASH_FUNCTION(key, len, hash) ((hash) = hash_bytes((key), (len)))

#include <uthash.h>

#endif
