/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables of chunk checksums. A table is in the data log itself, at positions that no record covers; an index
 * block has its place (block.h). So opening a file reads nothing that grows with the file's data.
 *
 *   off size field          (little-endian)
 *     0   8  magic          "PLFSCRC1"
 *     8   4  crc            CRC-32C of the whole table with this field 0
 *    12   4  nr_chunks
 *    16   8  first_chunk    number of the chunk that the first of them is for
 *    24   4* chunk_crc      nr_chunks of them: CRC-32C of log bytes [i * 65536, (i + 1) * 65536), up to the
 *                           block's log_len at most
 */
#ifndef PLFS_CHUNKS_H
#define PLFS_CHUNKS_H

#include "core/base/base.h"

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
 * Parse the table at @buf, of which @len bytes exist. > 0: its length; -ENODATA: it is longer than @len;
 * -EBADMSG: damaged, or no table.
 */
ssize_t index_chunks_parse(struct index_chunks *chunks, const void *buf, size_t len);

#endif
