/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Online detection of runs: whether the next write continues the open record. The write is compared with what
 * the open record predicts; past writes are not searched.
 */
#ifndef PLFS_RUN_H
#define PLFS_RUN_H

#include "index/record/record.h"

/*
 * Try to make the open write record @rec cover also a write of @len bytes at @logical_off whose bytes follow
 * rec's in the log. True: @rec has grown in exactly one of these ways. The stride changes before the count,
 * so a concurrent reader of a shared copy sees a true record at any time:
 *   count 1, the write begins where the element ends:  length += len
 *   count 1, same length, beyond the element's end:    stride = distance, count = 2
 *   count n, same length, where element n would begin: count += 1
 * False: @rec, which may be nested, is unchanged and a new record must be begun.
 */
bool index_run_grow(struct index_record *rec, uint64_t logical_off, uint64_t len);

/*
 * Try to fold @last into @prev. @last is a single element or run that directly follows @prev in the log. So
 * elements that are written in several contiguous pieces become one, and runs that are rows of a block become
 * a nested run. True: @prev now covers both, with its stamp, and @last is redundant. Exactly one of these has
 * changed, a count after its stride:
 *   two single contiguous elements:                         length
 *   elements that go on where @prev ends:                   count, and from 1 to more, the stride
 *   a run like @prev, or like those that are nested in it:  outer_count, and from 0 to more, the outer stride
 */
bool index_run_fold(struct index_record *prev, const struct index_record *last);

/*
 * Whether a write at @logical_off may continue where @rec ends. Then it is too early to fold @rec as a run.
 */
bool index_run_goes_on(const struct index_record *rec, uint64_t logical_off);

#endif
