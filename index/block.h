/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Index blocks, what a node index (index.HOST) is a sequence of: each is all that one
 * process had to say about one log at one time. emit.c makes them, parse.c takes them apart.
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
 *    36   4  flags          bit 0: synced, the log up to log_len has been on stable storage since before this block was; others 0
 *    40   8  log_len        bytes in the log's data area in front of the block and its table (trailer.h)
 *    48   8  chunks_off     where in the log's data area a table of chunk checksums (chunks.h) is; 0: none
 *    56   8  first_stamp_ns of the first record that is a write
 *    64   8  max_stamp_ns   largest stamp of the records
 *    72      records        one after the other; what follows the last is ignored, zeros now
 *
 * A record says what is different from what the one before it predicts. It begins with a control word; each of
 * the numbers has as many bytes as the word says, 0 to 8.
 *     0   2  control        bits 0-3: bytes of logical, 4-7: of length, 8-11: of stamp;
 *                           bit 12: log_off is given; bit 13: a run; bit 14: 0; bit 15: see below
 *     .   .  logical        logical_off less the end of the write before (at first 0), modulo 2^64, shifted left
 *                           by one and inverted if negative (as a signed number)
 *     .   .  length         none: as that of the write before
 *     .   .  stamp          stamp_ns less that of the write before (at first first_stamp_ns), modulo 2^64
 *     .   8  log_off        else: where the write before ends in the log (at first 0)
 *     .   2  run control    of a run: bits 0-3: bytes of stride, 4-7: of count, 8-11: of outer_stride, 12-15: of outer_count
 *     .   .  stride
 *     .   .  count
 *     .   .  outer_stride
 *     .   .  outer_count
 * With bit 15 set it is a record of another kind; nothing about the next write changes by it:
 *     0   2  control        0x8000 + kind: 2 truncate; others are passed over
 *     2   2  kind_len       bytes that follow, 16 for a truncate record; more are further fields, ignored
 *     4   8  truncate: logical_off, the new size
 *    12   8  truncate: stamp_ns
 */
#ifndef PLFS_BLOCK_H
#define PLFS_BLOCK_H

#include "record.h"

#define INDEX_BLOCK_MAGIC "PLFSIDX2"
#define INDEX_BLOCK_HEADER_LEN 72
#define INDEX_BLOCK_MAX (1u << 22) /* a longer one is damaged; those that are written have 40 KiB at most */
#define INDEX_LOG_NAME_LEN 128

struct index_block {
	uint32_t pid, seq;
	uint64_t log_len;
	uint64_t chunks_off;
	bool synced;
	uint64_t first_stamp_ns, max_stamp_ns; /* parse only */
	uint32_t nr_records;
	const struct index_record *records;    /* emit only */
	const uint8_t *encoded;                /* parse only: the records, inside the parsed buffer */
	size_t encoded_len;
};

/* Where an iteration is. Zeros to begin with. */
struct index_cursor {
	size_t pos;
	uint32_t nr; /* records behind us */
	uint64_t logical_end, log_end, length, stamp_ns;
};

/* Bytes that @block takes at most when encoded. */
size_t index_block_max_len(const struct index_block *block);

/* Encode @block to the index_block_max_len() bytes at @buf. Returns its length, a multiple of 8. */
size_t index_block_encode(const struct index_block *block, void *buf);

/*
 * Parse the block at @buf, of which @len bytes exist. Returns the bytes it takes up (> 0, always
 * <= len); 0 when @len is 0; -ENODATA when the bytes are the torn beginning of a block (shorter than it
 * says it is, or all zeros); -EBADMSG when they are not a block or are damaged; -EPROTONOSUPPORT when they are a
 * block of another version, or with features unknown here.
 */
ssize_t index_block_parse(struct index_block *block, const void *buf, size_t len);

/*
 * Distance (>= 8) from @buf to the next place, a multiple of 8 on, that begins with the magic, or @len if
 * there is none: how to go on after a block that was torn or damaged.
 */
size_t index_block_skip(const void *buf, size_t len);

/*
 * Bytes that the whole header at @buf says its block has; of a header that is damaged or not whole, the length of a
 * header. If another block begins within so many bytes, this one was torn and appended to: a block that was
 * written in full is never overlapped.
 */
size_t index_block_claims(const void *buf, size_t len);

/*
 * Whether the block at @buf, which cannot be parsed, is what a killed process left of an append, with later blocks behind
 * it. Such a block was never acknowledged: its log still has its live index.
 */
static inline bool index_block_is_torn(const void *buf, size_t len)
{
	size_t next = index_block_skip(buf, len);

	return next < len && next < index_block_claims(buf, len);
}

/*
 * Iterate. Returns 1 and @rec, 0 at the end, -EBADMSG for a record that cannot be (the iteration is over).
 * Records of a kind unknown here are passed over.
 */
int index_block_record(const struct index_block *block, struct index_cursor *cur, struct index_record *rec);

#endif
