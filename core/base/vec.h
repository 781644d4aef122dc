/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An array that grows at its end. Its pointer, the number of its elements and its room stand in the struct of
 * its user:
 *
 *   struct log *p = vec_room(set->logs, &set->cap, set->nr + 1, sizeof(*p));
 *
 *   if (!p)
 *           return -ENOMEM;
 *   set->logs = p;
 *   p[set->nr++] = log;
 */
#ifndef PLFS_VEC_H
#define PLFS_VEC_H

#include "core/base/alloc.h"

#define VEC_MIN 16 /* elements, of a first array */

/*
 * Room for @nr elements, at least 1, of @size bytes each. @array: mem_alloc()ed, with room for *@cap, or NULL
 * and 0. Returns the array, which may have moved, and raises *@cap to at least twice what it was if it was
 * too small; new elements hold anything. NULL: no memory; array and *@cap are as before.
 */
static inline void *vec_room(void *array, size_t *cap, size_t nr, size_t size)
{
	size_t room = *cap ? *cap : VEC_MIN / 2, bytes;
	void *p;

	if (likely(nr <= *cap))
		return array;
	if (__builtin_mul_overflow(room, 2, &room))
		return NULL;
	room = room > nr ? room : nr;
	if (__builtin_mul_overflow(room, size, &bytes))
		return NULL;
	p = mem_realloc(array, bytes);
	if (p)
		*cap = room;
	return p;
}

#endif
