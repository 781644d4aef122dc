/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A set of 64-bit digests, which tells at once that something is not among a million others. What may be
 * among them has to be compared. (A table of uthash would take eight times the memory.)
 */
#ifndef PLFS_DIGESTS_H
#define PLFS_DIGESTS_H

#include "core/base/base.h"

#define DIGESTS_MAX (1 << 20) /* 16 MiB; of a set that is full everything may be among them */

/* All zeros to begin with. */
struct digests {
	uint64_t *slots; /* 0: free; mem_alloc()ed */
	size_t nr, cap;  /* cap: a power of 2 */
};

/* The digest of @len bytes, which is not 0. */
uint64_t digest_of(const void *p, size_t len);

/* @digest is not 0. 0; -ENOMEM. */
int digests_add(struct digests *d, uint64_t digest);

/* False: what has this digest was not added. */
bool digests_have(const struct digests *d, uint64_t digest);

void digests_free(struct digests *d);

#endif
