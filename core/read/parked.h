/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The maps of files that this process has closed: a process that opens, writes and closes a file again and
 * again reads its index once, not each time. Of n closes there are n index blocks, which n opens would read
 * n * n / 2 times.
 *
 * Parked maps have what their inputs had. Others may write, truncate or remove the file meanwhile. So whoever
 * takes them lists the container first, as for maps that were in use all the time (reader_reload()).
 */
#ifndef PLFS_PARKED_H
#define PLFS_PARKED_H

#include "core/gather/inputs.h"
#include "core/read/levels.h"

/* Bytes in all maps that are parked: of some half a million appends, each with its own open and close. */
#define PARKED_MAX ((size_t)64 << 20)

struct parked {
	const struct store *store;
	uint8_t id[STUB_ID_LEN];
	uint64_t generation_ns; /* records up to this are left out */
	struct levels levels; /* no level is mapped */
	struct index_inputs inputs; /* what they were made from; no live files */
	char **logs; /* as the maps number them; mem_alloc()ed, as is each */
	uint32_t nr_logs;
	size_t size; /* private */
	struct parked *next;
};

/* All zeros but for what says whose they are; NULL without memory. */
struct parked *parked_new(const struct container *c, uint64_t generation_ns);
void parked_free(struct parked *p);

/*
 * Park @p, which is taken over. What was parked of the same container before is dropped, and in time what was
 * of others.
 */
void parked_put(struct parked *p);

/* Take what is parked of @c, if it is of @generation_ns; end with parked_free(). NULL: there is nothing. */
struct parked *parked_take(const struct container *c, uint64_t generation_ns);

#endif
