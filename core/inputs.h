/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a map is made from: which node indexes and live files there are, and how they are at one moment. Two lists that are
 * equal make the same map.
 */
#ifndef PLFS_INPUTS_H
#define PLFS_INPUTS_H

#include "container.h"

/* What a map is made from: all node indexes and live files of a container at one moment. */
struct index_inputs {
	char **indexes;  /* paths relative to the container, sorted */
	uint64_t *sizes; /* of the indexes, bytes */
	uint32_t nr_indexes, cap_indexes;
	char **lives;    /* sorted */
	uint64_t *digests;
	uint32_t nr_lives, cap_lives;
	uint64_t logs_digest; /* sum over the data logs of index_log_digest() */
};

/* Of the path of a data log, @len bytes, a number. */
uint64_t index_log_digest(const char *path, size_t len);

/* The size of the node index @path, 0 if it has gone. */
int index_input_size(const struct container *c, const char *path, uint64_t *size);

/* List them. @skip: a live file ("hostdir.K/live...") to leave out, with its log, or NULL. */
int index_inputs_list(struct index_inputs *in, const struct container *c, const char *skip);
bool index_inputs_equal(const struct index_inputs *a, const struct index_inputs *b);
void index_inputs_release(struct index_inputs *in);

/* Whether @path is one of @nr sorted ones; @paths may be NULL if there are none. */
bool path_is_among(const char *path, char *const *paths, uint32_t nr);

#endif
