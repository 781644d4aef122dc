/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where things are in a live file, for stage*.c, stranded.c and look_live.c alone; the byte table is in stage.h.
 */
#ifndef PLFS_STAGE_LAYOUT_H
#define PLFS_STAGE_LAYOUT_H

#include "stage.h"

#define HEADER_LEN 4096
#define STATIC_LEN 256
#define RECORDS_OFF HEADER_LEN
#define RECORDS_LEN (STAGE_RECORDS_CAP * INDEX_RECORD_LEN)
#define CHUNKS_OFF (RECORDS_OFF + RECORDS_LEN)
#define CHUNKS_LEN (STAGE_CHUNKS_CAP * 4)
#define STAGE_OFF STAGE_BYTES_OFF
#define FILE_LEN (STAGE_OFF + STAGE_CAP)

static_assert(STAGE_OFF % 4096 == 0 && STAGE_OFF >= CHUNKS_OFF + CHUNKS_LEN, "the stage is behind the checksums, on a page");

enum {
	OFF_SEQ = 512,
	OFF_NR_RECORDS = 520,
	OFF_FLUSHED = 528,
	OFF_STAGED = STAGE_STAGED_OFF,
	OFF_FIRST_CHUNK = 544,
	OFF_NR_CHUNKS = 552,
	OFF_CHUNK_CRC = 560,
	OFF_RECORDED = 568,
	OFF_LAST_TRAILER = 576,
	OFF_LAST_TABLE = 584,
	DYNAMIC_END = 592,
	OFF_LAST_CRC = 592,
	OFF_NOTIFY = STAGE_NOTIFY_OFF,
	OFF_ADOPTED = 1032,
};

/* The checked words. */
static const int STAGE_WORDS[] = {
	OFF_SEQ, OFF_NR_RECORDS, OFF_FLUSHED, OFF_STAGED, OFF_FIRST_CHUNK, OFF_NR_CHUNKS, OFF_RECORDED,
	OFF_LAST_TRAILER, OFF_LAST_TABLE,
};

/* Offsets inside a record, for the stores that make it grow in place. */
enum { REC_CRC = 4, REC_LENGTH = 16, REC_STRIDE = 24, REC_COUNT = 32, REC_LOG_OFF = 40, REC_OUTER_STRIDE = 56,
	REC_OUTER_COUNT = 64 };

#endif
