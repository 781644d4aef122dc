/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes index blocks; the byte table is in block.h. parse.c takes them apart.
 */
#include "block.h"

#include "../core/bytes.h"
#include "../core/crc32c.h"

size_t index_block_len(const struct index_block *block)
{
	return INDEX_BLOCK_HEADER_LEN + (size_t)block->nr_records * INDEX_RECORD_LEN +
	       ((size_t)block->nr_chunks * 4 + 7) / 8 * 8;
}

void index_block_encode(const struct index_block *block, void *buf)
{
	uint8_t *p = buf, *records = p + INDEX_BLOCK_HEADER_LEN;
	uint8_t *chunks = records + (size_t)block->nr_records * INDEX_RECORD_LEN;
	uint64_t max_stamp_ns = 0;

	for (uint32_t i = 0; i < block->nr_records; i++) {
		index_record_encode(&block->records[i], records + (size_t)i * INDEX_RECORD_LEN);
		max_stamp_ns = max_u64(max_stamp_ns, block->records[i].stamp_ns);
	}
	for (uint32_t i = 0; i < block->nr_chunks; i++)
		put_le32(chunks + (size_t)i * 4, block->chunk_crc[i]);
	if (block->nr_chunks % 2)
		put_le32(chunks + (size_t)block->nr_chunks * 4, 0);

	memset(p, 0, INDEX_BLOCK_HEADER_LEN);
	memcpy(p, INDEX_BLOCK_MAGIC, 8);
	put_le32(p + 8, INDEX_BLOCK_HEADER_LEN);
	put_le64(p + 16, index_block_len(block));
	put_le32(p + 24, block->nr_records);
	put_le32(p + 28, block->nr_chunks);
	put_le64(p + 32, block->first_chunk);
	put_le32(p + 40, INDEX_CHUNK_LEN);
	put_le32(p + 44, crc32c(0, chunks, (size_t)block->nr_chunks * 4));
	put_le64(p + 48, block->log_len);
	put_le64(p + 56, max_stamp_ns);
	memcpy(p + 64, block->log_name, strnlen(block->log_name, INDEX_LOG_NAME_LEN - 1));
	put_le32(p + 12, crc32c(0, p, INDEX_BLOCK_HEADER_LEN));
}
