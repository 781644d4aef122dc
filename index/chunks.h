/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables of chunk checksums: they stand in the data log itself, at positions that no record covers, so that opening
 * a file does not read what grows with its data. An index block says where (block.h).
 *
 *   off size field          (little-endian)
 *     0   8  magic          "PLFSCRC1"
 *     8   4  crc            CRC-32C of the whole table with this field 0
 *    12   4  nr_chunks
 *    16   8  first_chunk    number of the chunk that the first of them is for
 *    24   4* chunk_crc      nr_chunks of them: CRC-32C of log bytes [i * 65536, (i + 1) * 65536), up to the block's
 *                           log_len at most
 */
#ifndef PLFS_CHUNKS_H
#define PLFS_CHUNKS_H

#include "../core/base.h"

#define INDEX_CHUNK_LEN 65536
#define INDEX_CHUNKS_MAGIC "PLFSCRC1"
#define INDEX_CHUNKS_HEADER_LEN 24

struct index_chunks {
	uint64_t first_chunk;
	uint32_t nr_chunks;
	const uint8_t *chunk_crc; /* encoded: get_le32() */
};

static inline size_t index_chunks_len(uint64_t nr_chunks)
{
	return INDEX_CHUNKS_HEADER_LEN + (size_t)nr_chunks * 4;
}

/* Encode @chunks to the index_chunks_len() bytes at @buf. */
void index_chunks_encode(const struct index_chunks *chunks, void *buf);

/*
 * Parse the table at @buf, of which @len bytes exist. Returns its length; -ENODATA when it is longer than @len,
 * -EBADMSG when it is none or damaged.
 */
ssize_t index_chunks_parse(struct index_chunks *chunks, const void *buf, size_t len);

#endif
