/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The names of a container's logs, taken before something is done with each.
 */
#ifndef PLFS_LISTED_H
#define PLFS_LISTED_H

#include "core/backend/container.h"

struct listed {
	char **v; /* relative to the container; mem_alloc()ed */
	size_t nr, cap;
};

/* 0; -ENOMEM, -errno: @l has some of them. To be released in any case. */
int listed_take(struct listed *l, const struct container *c);

/* The same; but closed logs in a backend that is not there are no error, and are not among them. */
int listed_take_there(struct listed *l, const struct container *c);
int listed_add(struct listed *l, const char *path);
void listed_release(struct listed *l);

/* Whether the log has a live file: it is written, or its process was killed. */
bool listed_has_live(const struct container *c, const char *log);

bool listed_has(const struct listed *l, const char *path);

/* Logs with a live file: of processes that write them, and of these how many have gone. */
struct drain_open {
	uint64_t nr, nr_dead;
	const struct listed *ends; /* NULL, or logs whose ends are lost: no repair closes them */
};

#endif
