/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From droppings to one map: gathering the records of all node indexes and live files.
 */
#ifndef PLFS_GLOBALINDEX_H
#define PLFS_GLOBALINDEX_H

#include "../index/map.h"
#include "globalcache.h"

/* Up to where a live file was read, and its last record as it was then. */
struct live_seen {
	uint64_t seq, nr_records; /* seq: while there are no records */
	struct index_record last; /* if there is one */
	uint32_t log_no;          /* UINT32_MAX: it has just been made */
};

/* A map made from inputs, and the logs that it numbers. */
struct gathered {
	void *image; /* mem_alloc()ed, or @mapped: inside @global */
	size_t image_len;
	bool mapped;
	struct index_map map;
	char **logs; /* mem_alloc()ed, as is each */
	uint32_t nr_logs;
	struct global_index global;
	struct live_seen *seen; /* of each live file of the inputs; mem_alloc()ed, or NULL */
	uint64_t nr_records;
	uint64_t cut_ns; /* stamp of the last truncate record; 0: there is none, or the map was kept */
	char lost[CONTAINER_PATH_LEN]; /* after -ENOMSG: the log in question */
};

/*
 * The kept map, if it is confirmed (globalcache.h): it has all that was written until this was called, and no process
 * has a live file that says anything. -ENOENT, -EAGAIN: there is none; any other error means no more than that.
 */
int gather_confirmed(struct gathered *g, const struct container *c, uint64_t generation_ns);

/*
 * Make the map of @in and of the live file @own_live (or NULL): from index.global if that was made from them, else by
 * merging, and then index.global is written if there is no live file and enough to gain. Records stamped at or before
 * @generation_ns are left out. Where an index is damaged, or GATHER_LOGS, the logs say themselves what is in them
 * (salvage.h). GATHER_ANEW: no kept map is used or made, since one does not say cut_ns. -EAGAIN: the inputs have
 * changed, list them anew; -ENOMSG: the same, or a log's index is lost, and, with GATHER_LOGS, it says nothing itself.
 */
#define GATHER_LOGS 1
#define GATHER_ANEW 2
int gather(struct gathered *g, const struct container *c, const struct index_inputs *in, const char *own_live,
	   uint64_t generation_ns, unsigned how);

#endif
