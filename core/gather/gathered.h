/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A map with the logs that it numbers: what gathering makes, and what readers keep.
 */
#ifndef PLFS_GATHERED_H
#define PLFS_GATHERED_H

#include "index/map/map.h"
#include "index/record/record.h"
#include "core/gather/kept_map.h"

/* How far a live file was read, and its last record at that moment. */
struct live_seen {
	uint64_t seq, nr_records; /* seq counts only while there are no records */
	struct index_record last; /* of the nr_records */
	uint32_t log_no;          /* UINT32_MAX: the file has just been made */
	uint64_t index_off;       /* so far the node index was read since, for its blocks; 0: as listed */
};

/* Why a map does not have all that there is at one moment. */
enum gather_reason {
	GATHER_CHANGED,     /* inputs have come, gone or changed since they were listed */
	GATHER_UNKNOWN_LOG, /* no index knows a log: it was closed meanwhile, or the index is lost */
	GATHER_NO_HANDLES,  /* too many files were open; the caller has closed some */
};

/* The records that count: those stamped behind @after_ns, the generation, and up to @until_ns. */
struct gather_span {
	uint64_t after_ns, until_ns;
};

/* A map made from inputs, and the logs that it numbers. */
struct gathered {
	void *image; /* mem_alloc()ed, or @mapped: inside @global */
	size_t image_len;
	bool mapped;
	struct index_map map;
	char **logs; /* mem_alloc()ed, as is each */
	uint32_t nr_logs;
	struct kept_map global;
	struct live_seen *seen; /* of each live file of the inputs; mem_alloc()ed, or NULL */
	uint64_t nr_records;
	uint64_t cut_ns; /* stamp of the last truncate record; 0: there is none, or the map was kept */
	/* After gather() returned 1: why, and with GATHER_UNKNOWN_LOG which one. */
	enum gather_reason reason;
	char unknown[CONTAINER_PATH_LEN];
};

/* What gather() returns then. */
static inline int gathered_is_outdated(struct gathered *g)
{
	g->reason = GATHER_CHANGED;
	return 1;
}

/* @log: relative to the container, at most CONTAINER_REST_MAX bytes */
static inline int gathered_lacks_log(struct gathered *g, const char *log)
{
	g->reason = GATHER_UNKNOWN_LOG;
	memcpy(g->unknown, log, strlen(log) + 1);
	return 1;
}

#endif
