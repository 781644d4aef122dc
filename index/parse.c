/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Takes index blocks apart; the byte table is in block.h. Every byte is a stranger's: nothing
 * is used before the checksum over it has been, and no length is believed beyond the buffer.
 */
#include "block.h"

#include "../core/bytes.h"
#include "../core/crc32c.h"

/*
 * A longer header is damage, not a later version: this way a flipped bit in header_len cannot pass a
 * damaged block in the middle of a dropping for a torn one at its end.
 */
#define HEADER_LEN_MAX 4096

static bool all_zeros(const uint8_t *p, size_t len)
{
	return len == 0 || (p[0] == 0 && memcmp(p, p + 1, len - 1) == 0);
}

static bool header_crc_ok(const uint8_t *p, size_t header_len)
{
	static const uint8_t zeros[4];
	uint32_t crc = crc32c(0, p, 12);

	crc = crc32c(crc, zeros, sizeof(zeros));
	return crc32c(crc, p + 16, header_len - 16) == get_le32(p + 12);
}

/* A log is opened by this name in a directory: it must not lead out of there. */
static bool log_name_ok(const char *name)
{
	size_t len = strnlen(name, INDEX_LOG_NAME_LEN);

	return len > 0 && len < INDEX_LOG_NAME_LEN && !memchr(name, '/', len) && strcmp(name, ".") != 0 &&
	       strcmp(name, "..") != 0;
}

ssize_t index_block_parse(struct index_block *block, const void *buf, size_t len)
{
	const uint8_t *p = buf;
	uint64_t block_len, chunks_len, body_len;
	uint32_t header_len;

	if (len == 0)
		return 0;
	if (all_zeros(p, len))
		return -ENODATA;
	if (memcmp(p, INDEX_BLOCK_MAGIC, min_size(len, 8)) != 0)
		return -EBADMSG;
	if (len < INDEX_BLOCK_HEADER_LEN)
		return -ENODATA;
	header_len = get_le32(p + 8);
	if (header_len < INDEX_BLOCK_HEADER_LEN || header_len > HEADER_LEN_MAX || header_len % 8)
		return -EBADMSG;
	if (header_len > len)
		return -ENODATA;
	if (!header_crc_ok(p, header_len))
		return -EBADMSG;

	memset(block, 0, sizeof(*block));
	block_len = get_le64(p + 16);
	block->nr_records = get_le32(p + 24);
	block->nr_chunks = get_le32(p + 28);
	block->first_chunk = get_le64(p + 32);
	block->log_len = get_le64(p + 48);
	block->max_stamp_ns = get_le64(p + 56);
	memcpy(block->log_name, p + 64, INDEX_LOG_NAME_LEN);

	chunks_len = round_up_u64((uint64_t)block->nr_chunks * 4, 8);
	if (block_len % 8 || block_len > SSIZE_MAX || block_len < header_len)
		return -EBADMSG;
	body_len = block_len - header_len;
	if (body_len < chunks_len || (body_len - chunks_len) / 8 < block->nr_records)
		return -EBADMSG;
	if (get_le32(p + 40) != INDEX_CHUNK_LEN || block->log_len > INT64_MAX ||
	    block->first_chunk > (uint64_t)INT64_MAX / INDEX_CHUNK_LEN - block->nr_chunks)
		return -EBADMSG;
	if (!log_name_ok(block->log_name))
		return -EBADMSG;
	if (block_len > len)
		return -ENODATA;

	block->encoded_records = p + header_len;
	block->encoded_records_len = body_len - chunks_len;
	block->encoded_chunk_crc = p + block_len - chunks_len;
	if (crc32c(0, block->encoded_chunk_crc, (size_t)block->nr_chunks * 4) != get_le32(p + 44))
		return -EBADMSG;
	return (ssize_t)block_len;
}

size_t index_block_claims(const void *buf, size_t len)
{
	const uint8_t *p = buf;
	uint32_t header_len;

	if (len < INDEX_BLOCK_HEADER_LEN || memcmp(p, INDEX_BLOCK_MAGIC, 8) != 0)
		return INDEX_BLOCK_HEADER_LEN;
	header_len = get_le32(p + 8);
	if (header_len < INDEX_BLOCK_HEADER_LEN || header_len > HEADER_LEN_MAX || header_len > len ||
	    !header_crc_ok(p, header_len))
		return INDEX_BLOCK_HEADER_LEN;
	return (size_t)get_le64(p + 16);
}

size_t index_block_skip(const void *buf, size_t len)
{
	const uint8_t *p = buf;

	for (size_t pos = 8; pos < len && len - pos >= 8; pos += 8)
		if (memcmp(p + pos, INDEX_BLOCK_MAGIC, 8) == 0)
			return pos;
	return len;
}

/* Records of a type unknown here are passed over, as record.h promises their authors. */
int index_block_record(const struct index_block *block, size_t *pos, struct index_record *rec)
{
	while (*pos < block->encoded_records_len) {
		int used = index_record_decode(rec, block->encoded_records + *pos,
					       block->encoded_records_len - *pos);

		if (used < 0)
			return used;
		*pos += (size_t)used;
		if (rec->type == INDEX_WRITE || rec->type == INDEX_TRUNCATE)
			return 1;
	}
	return 0;
}
