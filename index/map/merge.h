/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Builds a map (map.h) from records of many logs, in any order. Where records overlap, the later stamp wins,
 * byte by byte; then the higher log number; then the record that was added later. A truncate record cuts off
 * the bytes behind its size that are older than it.
 */
#ifndef PLFS_MERGE_H
#define PLFS_MERGE_H

#include "index/map/extents.h"
#include "index/map/map.h"

/* All private: single extents, runs, and truncate records. */
struct index_merge {
	struct extents extents;
	struct index_merge_run *runs;
	struct index_merge_cut *cuts;
	size_t nr_runs, cap_runs, nr_cuts, cap_cuts;
	uint32_t nr_writes;
	uint64_t max_stamp_ns;
};

void index_merge_init(struct index_merge *m);
void index_merge_release(struct index_merge *m);

/* Make room for @nr more records at once. Returns 0 or -ENOMEM. */
int index_merge_reserve(struct index_merge *m, size_t nr);

/* Add (a copy of) @rec of log @log_no. Returns 0, -ENOMEM, or -EBADMSG if !index_record_valid(rec). */
int index_merge_add(struct index_merge *m, uint32_t log_no, const struct index_record *rec);

/*
 * Build. *@image is mem_alloc()ed, *@len bytes; the caller frees it with mem_free(). The merge is used up, by
 * an error too: release it. 0; -ENOMEM. A stretch of runs with one stride is described by arithmetic, and no
 * element is expanded. Where runs of different strides overlap, memory stays linear in the records; lookups
 * there may become linear in the records that overlap at that place.
 */
int index_merge_build(struct index_merge *m, void **image, size_t *len);

#endif
