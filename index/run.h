/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Online detection of runs: does the next write continue the record that is open? A comparison
 * with what the open record predicts, no search over past writes.
 */
#ifndef PLFS_RUN_H
#define PLFS_RUN_H

#include "record.h"

/*
 * Try to make the open write record @rec cover also a write of @len bytes at @logical_off whose bytes
 * follow rec's in the log. True: @rec has grown, in exactly one of these ways, so that a
 * concurrent reader of a shared copy that stores stride before count sees a true record at any time:
 *   count 1, the write begins where the element ends:  length += len
 *   count 1, same length, beyond the element's end:    stride = distance, count = 2
 *   count n, same length, where element n would begin: count += 1
 * False: @rec is unchanged and a new record must be begun.
 */
bool index_run_grow(struct index_record *rec, uint64_t logical_off, uint64_t len);

/*
 * Try to fold @last (a single element or run that directly follows @prev in the log) into @prev: the
 * case of elements that are themselves written in several contiguous pieces. True: @prev now covers
 * both (same stamp as before) and @last is redundant. Only the count (and, from 1 to more, the stride) of
 * @prev changes. Two single contiguous records are also folded (length grows).
 */
bool index_run_fold(struct index_record *prev, const struct index_record *last);

#endif
