/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From droppings to one map: gathering the records of all node indexes and live files, and index.global, the map of
 * closed logs kept for the next reader. It is valid while its inputs, listed in it, are unchanged.
 *
 *   index.global                  (little-endian)
 *   off size field
 *     0   8  magic          "PLFSGLB1"
 *     8   4  version        1
 *    12   4  crc            CRC-32C of bytes 0..127 with this field 0
 *    16  16  container id
 *    32   8  generation_ns  as in the stub when it was made
 *    40   8  inputs_len     bytes of the list of inputs, at 128
 *    48   8  names_len      bytes of the list of logs, behind it
 *    56   8  map_off        where the map (index/map.h) begins, a multiple of 8
 *    64   8  map_len
 *    72   4  nr_logs
 *    76   4  lists_crc      CRC-32C of both lists
 *    80  48  zeros
 *   128      inputs         sorted lines "PATH SIZE\n", a line for each node index
 *     .      logs           "hostdir.K/data...", each followed by a NUL, in the map's numbering
 */
#ifndef PLFS_GLOBALINDEX_H
#define PLFS_GLOBALINDEX_H

#include "../index/map.h"
#include "inputs.h"

struct global_index {
	void *base; /* the mapped file, or NULL */
	size_t len;
};

/* Up to where a live file was read, and its last record as it was then. */
struct live_seen {
	uint64_t nr_records;
	struct index_record last; /* if there is one */
	uint32_t log_no;          /* UINT32_MAX: it has just been made */
};

/* A map made from inputs, and the logs that it numbers. */
struct gathered {
	void *image; /* mem_alloc()ed, or inside @global */
	size_t image_len;
	bool mapped;
	struct index_map map;
	char **logs; /* mem_alloc()ed, as is each */
	uint32_t nr_logs;
	struct global_index global;
	struct live_seen *seen; /* of each live file of the inputs; mem_alloc()ed, or NULL */
	uint64_t nr_records;
	unsigned damaged; /* index blocks passed over */
	char lost[CONTAINER_PATH_LEN]; /* after -ENOMSG: the log in question */
};

/*
 * Make the map of @in and of the live file @own_live (or NULL): from index.global if that is valid, else by
 * merging, and then index.global is written if there is no live file and enough to gain. Records stamped at or before
 * @generation_ns are left out. -EIO: an index is damaged; -EAGAIN: the inputs have changed, list them anew;
 * -ENOMSG: the same, or a log's index is lost.
 */
int gather(struct gathered *g, const struct container *c, const struct index_inputs *in, const char *own_live,
	   uint64_t generation_ns);

void global_index_release(struct global_index *gi);

#endif
