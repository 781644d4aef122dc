/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Patterns: sets of bytes of a file that a stream of writes may touch, described by arithmetic. A pattern has
 * the shape of a record (record.h) without its place in a log, and often reaches further than any write has
 * got yet. Pure.
 */
#ifndef PLFS_PATTERN_H
#define PLFS_PATTERN_H

#include "core/base/base.h"

/*
 * @count elements of @length bytes each, the first at @off, the next @stride further. With an @outer_count
 * above 1 there are so many of these rows, each @outer_stride behind the one before. stride >= length,
 * outer_stride >= (count - 1) * stride + length. A count is 1 where nothing repeats. No byte is at or above
 * INDEX_PATTERN_END.
 */
struct index_pattern {
	uint64_t off, length, stride, count, outer_stride, outer_count;
};

#define INDEX_PATTERN_END ((uint64_t)INT64_MAX)

/* One range of bytes, cut at INDEX_PATTERN_END. */
struct index_pattern index_pattern_range(uint64_t off, uint64_t length);

/* Elements at a stride; @count 0: up to INDEX_PATTERN_END. */
struct index_pattern index_pattern_run(uint64_t off, uint64_t length, uint64_t stride, uint64_t count);

/* Rows like @row, without end. */
struct index_pattern index_pattern_rows(const struct index_pattern *row, uint64_t outer_stride);

/* Whether @p keeps the rules above, even if another process made it. The functions below require that. */
bool index_pattern_is_sound(const struct index_pattern *p);

/* How many bytes from @off on lie in the same element; 0: @off is not in the pattern. */
uint64_t index_pattern_room(const struct index_pattern *p, uint64_t off);

/* The end of the last element of the row that @off is in or behind. */
uint64_t index_pattern_row_end(const struct index_pattern *p, uint64_t off);

/*
 * Whether two patterns may have a byte in common. False is certain. True is certain for two ranges, for two
 * runs of one stride, and for rows of one outer stride whose runs have one stride. Else patterns may only lie
 * among each other.
 */
bool index_patterns_meet(const struct index_pattern *a, const struct index_pattern *b);

#endif
