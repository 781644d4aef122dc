/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One scan of the text of a path: its length, and whether a component is more than a name. Every call with a
 * path pays for this, below a mount or not.
 */
#ifndef PLFS_SCAN_H
#define PLFS_SCAN_H

#include "shim.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
	SCAN_UNTIDY = 1, /* ".", ".." or two slashes in a row: the kernel's name of it differs */
	SCAN_UP = 2,     /* ".." */
	SCAN_HIDDEN = 4, /* a component begins with a dot */
};

/* SCAN_* of the component that begins at @name. */
static inline unsigned scan_component(const char *name)
{
	if (*name == '/')
		return SCAN_UNTIDY;
	if (*name != '.')
		return 0;
	if (name[1] == '/' || !name[1])
		return SCAN_HIDDEN | SCAN_UNTIDY;
	if (name[1] == '.' && (name[2] == '/' || !name[2]))
		return SCAN_HIDDEN | SCAN_UNTIDY | SCAN_UP;
	return SCAN_HIDDEN;
}

/*
 * SCAN_* of any path. *@len: its length; PATH_MAX: it is too long for the kernel, and the rest was not read.
 */
static inline unsigned scan_path(const char *path, size_t *len)
{
	unsigned found = *path == '/' ? 0 : scan_component(path);
	size_t n;

	for (n = 0; n < PATH_MAX && path[n]; n++)
		if (path[n] == '/')
			found |= scan_component(path + n + 1);
	*len = n;
	return found;
}

#ifdef __SSE2__

enum { SCAN_STEP = 16 };

/* @bytes four times, made in registers: a constant in memory would have left the cache by the next call. */
static inline __m128i scan_all(unsigned bytes)
{
	__asm__("" : "+r"(bytes));
	return _mm_set1_epi32((int)bytes);
}

/* Whether a component is untidy. Bit N of @slashes: a slash at @p + N, before a component to look at. */
static inline bool scan_is_untidy(const char *p, unsigned slashes)
{
	unsigned found = 0;

	for (; slashes; slashes &= slashes - 1)
		found |= scan_component(p + __builtin_ctz(slashes) + 1);
	return found & SCAN_UNTIDY;
}

/*
 * The length of @path; 0: it is empty or untidy, or a longer scan would be needed. Reads behind the end of
 * @path, but never beyond the page.
 */
static inline __attribute__((no_sanitize_address)) size_t scan_tidy(const char *path)
{
	const __m128i slash = scan_all(0x2f2f2f2f), last_bit = scan_all(0x01010101);
	const char *p;

	if (unlikely(*path == '.' && (scan_component(path) & SCAN_UNTIDY)))
		return 0;
	for (p = path; likely(((uintptr_t)p & 4095) <= 4095 - SCAN_STEP); p += SCAN_STEP) {
		__m128i here = _mm_loadu_si128((const void *)p),
			next = _mm_loadu_si128((const void *)(p + 1));
		unsigned ends = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(here, _mm_setzero_si128()));
		unsigned slashes; /* before a slash or a dot, which differ in the last bit */

		next = _mm_cmpeq_epi8(_mm_or_si128(next, last_bit), slash);
		slashes = (unsigned)_mm_movemask_epi8(_mm_and_si128(next, _mm_cmpeq_epi8(here, slash)));
		slashes &= (ends & -ends) - 1; /* all of them if there is no end */
		if (unlikely(slashes) && scan_is_untidy(p, slashes))
			break;
		if (ends)
			return (size_t)(p - path) + (size_t)__builtin_ctz(ends);
	}
	return 0;
}

#else

static inline size_t scan_tidy(const char *path)
{
	size_t len;

	return scan_path(path, &len) & SCAN_UNTIDY ? 0 : len;
}

#endif

#endif
