/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Little-endian loads and stores, the only way that a number enters or leaves one of our files. On a
 * little-endian machine each is one instruction. Also here: copying bytes into a mapped file, and zeros.
 */
#ifndef PLFS_BYTES_H
#define PLFS_BYTES_H

#include "core/base/base.h"

#include <endian.h>

static inline uint16_t get_le16(const void *p) { uint16_t v; memcpy(&v, p, sizeof(v)); return le16toh(v); }
static inline uint32_t get_le32(const void *p) { uint32_t v; memcpy(&v, p, sizeof(v)); return le32toh(v); }
static inline uint64_t get_le64(const void *p) { uint64_t v; memcpy(&v, p, sizeof(v)); return le64toh(v); }

static inline void put_le16(void *p, uint16_t v) { v = htole16(v); memcpy(p, &v, sizeof(v)); }
static inline void put_le32(void *p, uint32_t v) { v = htole32(v); memcpy(p, &v, sizeof(v)); }
static inline void put_le64(void *p, uint64_t v) { v = htole64(v); memcpy(p, &v, sizeof(v)); }

/* For a word in a shared mapping that another process reads at the same time. @p is 8-byte aligned. */
static inline uint64_t load_le64(const void *p)
{
	return le64toh(__atomic_load_n((const uint64_t *)p, __ATOMIC_ACQUIRE));
}

static inline void store_le64(void *p, uint64_t v)
{
	__atomic_store_n((uint64_t *)p, htole64(v), __ATOMIC_RELEASE);
}

static inline bool is_zero(const void *p, size_t len)
{
	const char *c = p;

	return !len || (!*c && !memcmp(c, c + 1, len - 1));
}

/*
 * memmove() into a mapped file, or downwards in it, in which no store of the machine reaches into two pages.
 * If the fault of one page makes the file system write out and protect the other, the machine would repeat
 * such a store for ever: btrfs does so when its space or a quota is used up.
 */
static inline void copy_to_pages(void *to, const void *from, size_t len)
{
	uint8_t *t = to;
	const uint8_t *f = from;

	for (size_t left = 4096 - (uintptr_t)t % 4096; unlikely(left < len); left = 4096) {
		memmove(t, f, left);
		t += left;
		f += left;
		len -= left;
	}
	memmove(t, f, len);
}

#endif
