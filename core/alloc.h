/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory for the library itself. The host program's malloc is never called: it may be in the
 * middle of its own initialisation, or be somebody's debugging aid, when we are entered. The
 * memory comes from a private jemalloc (mallocx and dallocx only), or from mmap when built with
 * JEMALLOC=no. The first allocation sets the jemalloc up and must not race with a fork in another
 * thread: the library makes it when it reads its settings.
 */
#ifndef PLFS_ALLOC_H
#define PLFS_ALLOC_H

#include "base.h"

/* Each returns NULL when there is no memory, and for @len 0 a pointer that can be freed. */
void *mem_alloc(size_t len);
void *mem_zalloc(size_t len);
/* Grow or shrink; NULL leaves @p as it was. mem_realloc(NULL, n) is mem_alloc(n). */
void *mem_realloc(void *p, size_t len);
char *mem_strdup(const char *s);
/* Free what one of the above returned; NULL is ignored. */
void mem_free(void *p);

/* For tests, which let memory be refused: asked before each of the above. NULL: it is not. */
extern bool (*mem_refuses)(void);

#endif
