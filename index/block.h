/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Index blocks, what an index dropping (index.HOST) is a sequence of: each is all that one
 * process had to say about one log at one time. emit.c makes them, parse.c takes them apart.
 *
 *   off size field          (little-endian; every block begins at a multiple of 8)
 *     0   8  magic          "PLFSIDX1"
 *     8   4  header_len     192 in this version: where the records begin
 *    12   4  crc            CRC-32C of header_len bytes with this field 0
 *    16   8  block_len      bytes of the whole block, a multiple of 8
 *    24   4  nr_records
 *    28   4  nr_chunks      chunk checksums that follow the records
 *    32   8  first_chunk    number of the chunk that the first of them is for
 *    40   4  chunk_len      bytes of a chunk (65536)
 *    44   4  chunks_crc     CRC-32C of the array of chunk checksums
 *    48   8  log_len        bytes of data in the log when the block was made; the last chunk is
 *                           cut off there
 *    56   8  max_stamp_ns   largest stamp of the records
 *    64 128  log_name       the data log's file name, NUL-padded
 *   192      records        each as in record.h, with its own checksum
 *     .   4* chunk_crc      nr_chunks of them, CRC-32C of log bytes [i * chunk_len, ...), then
 *                           zeros up to block_len, at most 4 bytes: so they are found from
 *                           the end even if a record is damaged
 */
#ifndef PLFS_BLOCK_H
#define PLFS_BLOCK_H

#include "record.h"

#define INDEX_BLOCK_MAGIC "PLFSIDX1"
#define INDEX_BLOCK_HEADER_LEN 192
#define INDEX_LOG_NAME_LEN 128
#define INDEX_CHUNK_LEN 65536

struct index_block {
	char log_name[INDEX_LOG_NAME_LEN]; /* NUL-terminated; one path component */
	uint64_t log_len;
	uint64_t max_stamp_ns;
	uint64_t first_chunk;
	uint32_t nr_records;
	uint32_t nr_chunks;
	/* emit: set by the caller. parse: points into the parsed buffer, encoded. */
	const struct index_record *records;  /* emit only */
	const uint32_t *chunk_crc;           /* emit only, host order */
	const uint8_t *encoded_records;      /* parse only */
	const uint8_t *encoded_chunk_crc;    /* parse only */
	size_t encoded_records_len;          /* parse only */
};

/* Bytes that @block takes when encoded, a multiple of 8. */
size_t index_block_len(const struct index_block *block);

/*
 * Encode @block (log_name, log_len, records, chunks) to the index_block_len() bytes at @buf;
 * max_stamp_ns is computed.
 */
void index_block_encode(const struct index_block *block, void *buf);

/*
 * Parse the block at @buf, of which @len bytes exist. Returns the bytes it takes up (> 0, always
 * <= len); 0 when @len is 0; -ENODATA when the bytes are the torn beginning of a block (shorter than it
 * says it is, or all zeros); -EBADMSG when they are not a block or its header or chunk array is damaged.
 * Records are checked one by one by index_block_record().
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
 * Iterate: *@pos is 0 at first. Returns 1 and @rec, 0 at the end, -EBADMSG for a damaged
 * record (the iteration is over). Records of a type unknown here are passed over.
 */
int index_block_record(const struct index_block *block, size_t *pos, struct index_record *rec);

#endif
