/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hash of the library's tables: words folded by multiplication (as in Wang Yi's wyhash), begun with what
 * the kernel gave this process as random bytes. Not for what is written anywhere.
 */
#include "core/base/hash.h"

#include "core/base/bytes.h"

#include <sys/auxv.h>

static uint64_t fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

unsigned hash_bytes(const void *p, size_t len)
{
	static uint64_t key[2];
	const uint8_t *at = p, *random = (const uint8_t *)getauxval(AT_RANDOM);
	uint64_t h, last = 0;

	if (unlikely(!__atomic_load_n(&key[1], __ATOMIC_ACQUIRE))) { /* two threads store the same */
		__atomic_store_n(
			&key[0],
			fold((random ? get_le64(random) : 0) ^ 0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9),
			__ATOMIC_RELAXED);
		__atomic_store_n(
			&key[1],
			fold((random ? get_le64(random + 8) : 0) ^ 0x94d049bb133111eb, 0xff51afd7ed558ccd) |
				1,
			__ATOMIC_RELEASE);
	}
	h = key[0] ^ len;
	for (; len >= 8; at += 8, len -= 8)
		h = fold(h ^ get_le64(at), key[1] ^ 0xa0761d6478bd642f);
	memcpy(&last, at, len);
	return (unsigned)fold(h ^ last, key[1] ^ 0xe7037ed1a0b428db);
}
