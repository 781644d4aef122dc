/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory for the library itself. The library never calls the program's malloc: that may be in the middle of
 * its own initialisation, or be a debugging aid. The first of it is in the library's data segment (early.h);
 * then it comes from a private jemalloc (mallocx and dallocx only), or from mmap when built with JEMALLOC=no.
 */
#ifndef PLFS_ALLOC_H
#define PLFS_ALLOC_H

#include "core/base/base.h"

/* Each returns NULL: no memory. For @len 0 they return a pointer that can be freed. */
void *mem_alloc(size_t len);
void *mem_zalloc(size_t len);
/* Grow or shrink; NULL leaves @p as it was. mem_realloc(NULL, n) is mem_alloc(n). */
void *mem_realloc(void *p, size_t len);
char *mem_strdup(const char *s);
/* Free what one of the above returned; NULL is ignored. */
void mem_free(void *p);

/*
 * For tests: each of the above asks it first, and returns NULL if it returns true. NULL: memory is not
 * refused.
 */
extern bool (*mem_refuses)(void);

#endif
