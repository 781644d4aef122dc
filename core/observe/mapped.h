/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file of the observer's, mapped shared and guarded.
 */
#ifndef PLFS_MAPPED_H
#define PLFS_MAPPED_H

#include "core/base/guard.h"
#include "core/base/sys.h"

/* Map @len bytes of @fd. MAP_FAILED and errno. */
static inline void *mapped_shared(int fd, size_t len)
{
	void *map = sys.mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED || guard_add(map, len))
		return map;
	sys.munmap(map, len);
	errno = ENOMEM;
	return MAP_FAILED;
}

#endif
