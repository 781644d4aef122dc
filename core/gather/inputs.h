/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The inputs of a map: the node indexes and live files of a container, with size or digest. Equal inputs make
 * the same map.
 */
#ifndef PLFS_INPUTS_H
#define PLFS_INPUTS_H

#include "core/backend/container.h"

struct index_inputs {
	char **indexes;  /* paths relative to the container, sorted */
	uint64_t *sizes; /* of the indexes, bytes */
	uint32_t nr_indexes;
	char **lives;    /* sorted */
	uint64_t *digests;
	uint32_t nr_lives;
	size_t cap_indexes, cap_lives; /* the room of these arrays (vec.h) */
	uint64_t logs_digest; /* sum over the data logs of index_log_digest() */
};

/* A number for the path of a data log, @len bytes. */
uint64_t index_log_digest(const char *path, size_t len);

/* The size of the node index @path; 0 if it was removed. */
int index_input_size(const struct container *c, const char *path, uint64_t *size);

/* List the inputs. @skip: a live file ("hostdir.K/live...") to leave out, with its log, or NULL. */
int index_inputs_list(struct index_inputs *in, const struct container *c, const char *skip);

/* The node index @path has grown by @len bytes, or was made with them. 0 or -ENOMEM. */
int index_inputs_grow(struct index_inputs *in, const char *path, uint64_t len);

bool index_inputs_equal(const struct index_inputs *a, const struct index_inputs *b);
void index_inputs_release(struct index_inputs *in);

/* Whether @path is one of @nr sorted ones; @paths may be NULL if there are none. */
bool path_is_among(const char *path, char *const *paths, uint32_t nr);

#endif
