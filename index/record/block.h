/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Index blocks. A node index (index.HOST) is a sequence of them. One block has the records that one process
 * had for one log when it closed, synced or ran out of room. emit.c encodes blocks, parse.c decodes them.
 *
 *   off size field          (little-endian; every block begins at a multiple of 8)
 *     0   8  magic          "PLFSIDX2"
 *     8   4  header_crc     CRC-32C of header_len bytes with this field 0
 *    12   2  header_len     72 in this version: where the records begin
 *    14   2  incompat       features that a reader must know: 0
 *    16   4  body_crc       CRC-32C of everything from header_len to block_len
 *    20   4  block_len      bytes of the whole block, a multiple of 8, at most 2^22
 *    24   4  nr_records
 *    28   4  pid            the log is data.HOST.PID.SEQ, HOST as in the name of the node index
 *    32   4  seq
 *    36   4  compat         features that a reader may ignore: bit 0 synced, the log up to log_len was on
 *                           stable storage before this block was; bit 1 sum, of a synced block without
 *                           records; others 0
 *    40   8  log_len        bytes in the log's data area in front of the block and its table (trailer.h)
 *    48   8  chunks_off     where in the log's data area a table of chunk checksums (chunks.h) is; 0: none
 *    56   8  first_stamp_ns of the first record that is a write; with sum: 4 bytes, the checksum of what the
 *                           chunk (chunks.h) around log_len has in front of it, and 4 zeros
 *    64   8  max_stamp_ns   largest stamp of the records
 *    72   .  records        one after the other; bytes behind the last are ignored, zeros now
 *
 * A record has the differences from what the record before it predicts. It begins with a control word, which
 * gives the width of each number, 0 to 8 bytes.
 *     0   2  control        bits 0-3: bytes of logical, 4-7: of length, 8-11: of stamp;
 *                           bit 12: log_off is given; bit 13: a run; bit 14: 0; bit 15: see below
 *     .   .  logical        logical_off less the end of the write before (at first 0), modulo 2^64, shifted
 *                           left by one and inverted if negative (as a signed number)
 *     .   .  length         none: as that of the write before
 *     .   .  stamp          stamp_ns less that of the write before (at first first_stamp_ns), modulo 2^64
 *     .   8  log_off        else: where the write before ends in the log (at first 0)
 *     .   2  run control    of a run: bits 0-3: bytes of stride, 4-7: of count, 8-11: of outer_stride,
 *                           12-15: of outer_count
 *     .   .  stride
 *     .   .  count
 *     .   .  outer_stride
 *     .   .  outer_count
 * With bit 15 set it is a record of another kind. It changes no prediction for the next write:
 *     0   2  control        0x8000 + kind: 2 truncate; a reader skips others
 *     2   2  kind_len       bytes that follow, 16 for a truncate record; more are further fields, ignored
 *     4   8  truncate: logical_off, the new size
 *    12   8  truncate: stamp_ns
 */
#ifndef PLFS_BLOCK_H
#define PLFS_BLOCK_H

#include "index/record/record.h"

#define INDEX_BLOCK_MAGIC "PLFSIDX2"
#define INDEX_BLOCK_HEADER_LEN 72
#define INDEX_BLOCK_MAX (1u << 22) /* a longer one is damaged; writers make 40 KiB at most */
#define INDEX_LOG_NAME_LEN 128

struct index_block {
	uint32_t pid, seq;
	uint64_t log_len;
	uint64_t chunks_off;
	bool synced;
	bool has_sum; /* if synced and without records */
	uint32_t sum;
	uint64_t first_stamp_ns, max_stamp_ns; /* parse only */
	uint32_t nr_records;
	const struct index_record *records;    /* emit only */
	const uint8_t *encoded;                /* parse only: the records, inside the parsed buffer */
	size_t encoded_len;
};

/* Where an iteration is. Zeros to begin with. */
struct index_cursor {
	size_t pos;
	uint32_t nr; /* records that have been returned */
	uint64_t logical_end, log_end, length, stamp_ns;
};

/* Bytes that @block takes at most when encoded. */
size_t index_block_max_len(const struct index_block *block);

/* Encode @block to the index_block_max_len() bytes at @buf. Returns its length, a multiple of 8. */
size_t index_block_encode(const struct index_block *block, void *buf);

/*
 * Parse the block at @buf, of which @len bytes exist. > 0: the bytes it takes up, at most @len; 0: @len is 0;
 * -ENODATA: the torn beginning of a block (shorter than its header says, or all zeros); -EBADMSG: damaged, or
 * no block; -EPROTONOSUPPORT: a block of another version, or with unknown features.
 */
ssize_t index_block_parse(struct index_block *block, const void *buf, size_t len);

/*
 * Where to go on after a torn or damaged block: the distance from @buf to the next magic, a multiple of 8 and
 * at least 8; @len: there is none.
 */
size_t index_block_skip(const void *buf, size_t len);

/*
 * The length of the block by its header at @buf; the length of a header if that is damaged or torn. If
 * another block begins within so many bytes, this block was torn, and a later append followed it. A block
 * that was written in full is never overlapped.
 */
size_t index_block_claims(const void *buf, size_t len);

/*
 * Whether the block at @buf, which cannot be parsed, is the part of an append that a killed process wrote,
 * with later blocks behind it. The append never returned, so the log still has its live file.
 */
static inline bool index_block_is_torn(const void *buf, size_t len)
{
	size_t next = index_block_skip(buf, len);

	return next < len && next < index_block_claims(buf, len);
}

/*
 * The next record. 1: it is in @rec; 0: the end; -EBADMSG: an impossible record, which ends the iteration.
 * Records of unknown kinds are skipped.
 */
int index_block_record(const struct index_block *block, struct index_cursor *cur, struct index_record *rec);

#endif
