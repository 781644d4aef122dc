/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uthash, with the library's own memory and without its exit() when there is none.
 */
#ifndef PLFS_HASH_H
#define PLFS_HASH_H

#include "alloc.h"

#define uthash_malloc(len) mem_alloc(len)
#define uthash_free(p, len) mem_free(p)
#define HASH_NONFATAL_OOM 1

#include <uthash.h>

#endif
