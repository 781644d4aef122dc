/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mappings of files that others can cut, and that lie on file systems that can fill up, go read-only or vanish: then
 * touching them raises SIGBUS. The handler of that signal asks here; if the address is in such a mapping, memory that
 * belongs to no file takes its place, all of it at once, and the mapping is *broken*: it reads as zeros, and what is
 * stored there goes nowhere. What the file has is as it was before the first store that could not be made.
 *
 * So who uses a mapping asks afterwards whether it is broken, before he believes what he read, or says that he has stored.
 */
#ifndef PLFS_MAPPING_H
#define PLFS_MAPPING_H

#include "base.h"

/* How many are broken and not removed yet: zero, almost always. */
extern unsigned mapping_nr_broken;

/* [p, p + len) is such a mapping from here on, up to mapping_remove(), which comes before munmap(). False: no memory. */
bool mapping_add(void *p, size_t len);
void mapping_remove(void *p);

/* Whether the mapping that begins at @p is broken; *@at, unless NULL: the offset in it at which it broke. */
bool mapping_find_broken(const void *p, size_t *at);

/* The same for the price of a load while none is. @p may be NULL. */
static inline bool mapping_is_broken(const void *p)
{
	return unlikely(__atomic_load_n(&mapping_nr_broken, __ATOMIC_RELAXED)) && p && mapping_find_broken(p, NULL);
}

/* In a handler of SIGBUS: if @addr is in a mapping, see to it that the instruction succeeds, and return true. */
bool mapping_fault(const void *addr);

/* A handler that does that, for programs that have none of their own: the tools and the tests. */
void mapping_guard(void);

/* Around a fork, in which another thread may be in here. */
void mapping_freeze(void);
void mapping_thaw(void);

#endif
