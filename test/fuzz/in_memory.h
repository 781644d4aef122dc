/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A container in the store in memory (core/store/memory.h) for the fuzz targets. What they map of it is a
 * copy in a block of its own, as long as was asked for, so that the sanitizer sees who leaves it.
 */
#ifndef TEST_FUZZ_IN_MEMORY_H
#define TEST_FUZZ_IN_MEMORY_H

#include "core/backend/container.h"
#include "core/store/memory.h"

#include <stdlib.h>

#define MEM_MAP_MAX (1 << 20)

static const uint8_t mem_id[STUB_ID_LEN] = { 0x3f, 0xa9, 1, 2, 3 };

static void *mem_map(struct store *s, int h, size_t len, bool writable)
{
	void *p = len <= MEM_MAP_MAX ? calloc(1, len ? len : 1) : NULL;

	(void)writable;
	if (p)
		must(s->ops->pread(s, h, p, len, 0) >= 0, "a file is copied");
	return p;
}

static void mem_unmap(struct store *s, void *p, size_t len)
{
	(void)s, (void)len;
	free(p);
}

/* Make the directories above @path. */
static void mem_parents(struct store *s, char *path)
{
	for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		s->ops->mkdir(s, path, 0755);
		*slash = '/';
	}
}

/* An empty store with a container @c. */
static void mem_container(struct store *s, struct container *c)
{
	static struct store_ops ops;
	char path[CONTAINER_PATH_LEN];

	must(!store_memory_open(s), "a store is made");
	ops = *s->ops;
	ops.map = mem_map;
	ops.unmap = mem_unmap;
	s->ops = &ops;
	container_init(c, s, mem_id, 0644);
	container_path(c, "", path);
	mem_parents(s, path);
}

/*
 * Put a file into it: @rest is its path in the container, @size its length if that is more than @len. Returns
 * its handle.
 */
static int mem_put(const struct container *c, const char *rest, const void *buf, size_t len, uint64_t size)
{
	char path[CONTAINER_PATH_LEN];
	struct store *s = c->store;
	bool made;
	int h;

	container_path(c, rest, path);
	mem_parents(s, path);
	h = store_open_or_make(s, path, O_RDWR | O_TRUNC, 0644, &made);
	must(h >= 0 && s->ops->pwrite(s, h, buf, len, 0) == (ssize_t)len, "a file is made");
	if (size > len)
		must(!s->ops->truncate(s, h, min_u64(size, INT64_MAX)), "a file is made longer");
	return h;
}

#endif
