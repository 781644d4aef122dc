/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The codec of tables of chunk checksums; the byte table is in chunks.h.
 */
#include "index/record/chunks.h"

#include "core/base/bytes.h"
#include "core/base/crc32c.h"

void index_chunks_encode(const struct index_chunks *chunks, void *buf)
{
	uint8_t *p = buf;

	memcpy(p, INDEX_CHUNKS_MAGIC, 8);
	put_le32(p + 8, 0);
	put_le32(p + 12, chunks->nr_chunks);
	put_le64(p + 16, chunks->first_chunk);
	memmove(p + INDEX_CHUNKS_HEADER_LEN, chunks->chunk_crc, (size_t)chunks->nr_chunks * 4);
	put_le32(p + 8, crc32c(0, p, index_chunks_len(chunks->nr_chunks)));
}

ssize_t index_chunks_parse(struct index_chunks *chunks, const void *buf, size_t len)
{
	static const uint8_t zeros[4];
	const uint8_t *p = buf;
	uint32_t crc;
	size_t whole;

	if (len < INDEX_CHUNKS_HEADER_LEN)
		return -ENODATA;
	if (memcmp(p, INDEX_CHUNKS_MAGIC, 8) != 0)
		return -EBADMSG;
	chunks->nr_chunks = get_le32(p + 12);
	chunks->first_chunk = get_le64(p + 16);
	chunks->chunk_crc = p + INDEX_CHUNKS_HEADER_LEN;
	whole = index_chunks_len(chunks->nr_chunks);
	if (whole > len)
		return -ENODATA;
	crc = crc32c(crc32c(0, p, 8), zeros, sizeof(zeros));
	if (crc32c(crc, p + 12, whole - 12) != get_le32(p + 8) ||
	    chunks->first_chunk > (uint64_t)INT64_MAX / INDEX_CHUNK_LEN - chunks->nr_chunks)
		return -EBADMSG;
	return (ssize_t)whole;
}
