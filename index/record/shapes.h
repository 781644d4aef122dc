/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The latest shapes of a stream of writes, and the shape to expect next: stretches written piece by piece,
 * elements at a stride, rows of these. Only the last three are kept, and nothing is searched. A wrong guess
 * costs time and nothing else. No I/O.
 */
#ifndef PLFS_SHAPES_H
#define PLFS_SHAPES_H

#include "index/record/pattern.h"

#define INDEX_SHAPES 3

/* Zeros to begin with. */
struct index_shapes {
	struct index_pattern s[INDEX_SHAPES]; /* rows or ranges, the latest first */
	unsigned nr;
};

/* A write of @len bytes at @off has come. */
void index_shapes_add(struct index_shapes *sh, uint64_t off, uint64_t len);

/* The latest shape has grown by @count elements, or by @length bytes. */
void index_shapes_grow(struct index_shapes *sh, uint64_t count, uint64_t length);

/*
 * Before a write of @len bytes at @off. True: *@p, which begins there, is what this write and those after it
 * will most likely touch; false: nothing is to be expected.
 */
bool index_shapes_expect(const struct index_shapes *sh, uint64_t off, uint64_t len, struct index_pattern *p);

#endif
