/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hash table with linear probing.
 */
#include "core/admin/scan/digests.h"

#include "core/base/alloc.h"
#include "core/base/crc32c.h"
#include "core/base/hash.h"

#define CAP_MIN 1024

uint64_t digest_of(const void *p, size_t len)
{
	uint64_t digest = (uint64_t)crc32c(0, p, len) << 32 | hash_bytes(p, len);

	return digest ? digest : 1;
}

static void put(struct digests *d, uint64_t digest)
{
	size_t i = digest & (d->cap - 1);

	while (d->slots[i] && d->slots[i] != digest)
		i = (i + 1) & (d->cap - 1);
	d->nr += !d->slots[i];
	d->slots[i] = digest;
}

static int grow(struct digests *d)
{
	struct digests more = { .cap = d->cap ? 2 * d->cap : CAP_MIN };

	more.slots = mem_zalloc(more.cap * sizeof(*more.slots));
	if (!more.slots)
		return -ENOMEM;
	for (size_t i = 0; i < d->cap; i++)
		if (d->slots[i])
			put(&more, d->slots[i]);
	mem_free(d->slots);
	*d = more;
	return 0;
}

static bool is_full(const struct digests *d) { return d->nr == DIGESTS_MAX; }

int digests_add(struct digests *d, uint64_t digest)
{
	if (is_full(d))
		return 0;
	if (d->nr * 2 >= d->cap && grow(d))
		return -ENOMEM;
	put(d, digest);
	return 0;
}

bool digests_have(const struct digests *d, uint64_t digest)
{
	size_t i = digest & (d->cap - 1);

	while (d->cap && d->slots[i] && d->slots[i] != digest)
		i = (i + 1) & (d->cap - 1);
	return is_full(d) || (d->cap && d->slots[i]);
}

void digests_free(struct digests *d)
{
	mem_free(d->slots);
	*d = (struct digests){ 0 };
}
