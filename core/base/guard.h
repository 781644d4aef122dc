/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Guarded mappings. A mapped file may be cut by others, and its file system may fill up, go read-only or
 * vanish: touching the mapping then raises SIGBUS. The handler asks this module. If the address is in a
 * guarded mapping, memory of no file replaces the whole mapping, which is *broken* from then on: it reads as
 * zeros, and stores are lost. The file is as it was before the first store that failed.
 *
 * The user of a mapping asks whether it is broken after touching it: before believing bytes read from it, and
 * before reporting bytes as stored.
 */
#ifndef PLFS_GUARD_H
#define PLFS_GUARD_H

#include "core/base/base.h"

/* The number of broken mappings that are not removed yet; almost always 0. */
extern unsigned guard_nr_broken;

/* Guard the mapping [p, p + len) until guard_remove(), which comes before munmap(). false: no memory. */
bool guard_add(void *p, size_t len);
void guard_remove(void *p);

/* Whether the mapping that begins at @p is broken. *@at, unless @at is NULL: the offset at which it broke. */
bool guard_find_broken(const void *p, size_t *at);

/* The same; one load while no mapping is broken. @p may be NULL. */
static inline bool guard_is_broken(const void *p)
{
	return unlikely(__atomic_load_n(&guard_nr_broken, __ATOMIC_RELAXED)) && p &&
	       guard_find_broken(p, NULL);
}

/*
 * In a handler of SIGBUS. true: @addr is in a guarded mapping, and the instruction will succeed; false: it is
 * not.
 */
bool guard_fault(const void *addr);

/* Install a handler that calls guard_fault(): for the tools and the tests, which have none. */
void guard_handle_faults(void);

/* Called around a fork: another thread may be in this module. */
void guard_freeze(void);
void guard_thaw(void);

#endif
