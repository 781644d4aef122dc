/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The codec of trailers; the byte table is in trailer.h.
 */
#include "index/record/trailer.h"

#include "core/base/bytes.h"
#include "core/base/crc32c.h"

#define ID_LEN 16
#define INCOMPAT_KNOWN 0u

void index_trailer_encode(const struct index_trailer *trailer, const uint8_t *id, void *buf)
{
	uint8_t *p = buf;

	memset(p, 0, INDEX_TRAILER_LEN);
	memcpy(p, INDEX_TRAILER_MAGIC, 8);
	put_le32(p + 12, trailer->block_len);
	memcpy(p + 16, id, ID_LEN);
	put_le64(p + 32, trailer->self);
	put_le64(p + 40, trailer->prev);
	put_le64(p + 48, trailer->prev_table);
	put_le32(p + 56, 0); /* compat */
	put_le32(p + 60, 0); /* incompat */
	put_le32(p + 8, crc32c(0, p, INDEX_TRAILER_LEN));
}

/* Whether @len bytes in front of @at are there, or, of no trailer, nothing is to be. */
static bool has_room(uint64_t at, uint64_t len)
{
	return !at || (at % 8 == 0 && at >= len);
}

int index_trailer_parse(struct index_trailer *trailer, const uint8_t *id, uint64_t self, const void *buf)
{
	uint8_t copy[INDEX_TRAILER_LEN];
	const uint8_t *p = buf;

	if (memcmp(p, INDEX_TRAILER_MAGIC, 8) || memcmp(p + 16, id, ID_LEN) || get_le64(p + 32) != self)
		return -EBADMSG;
	memcpy(copy, p, sizeof(copy));
	put_le32(copy + 8, 0);
	if (crc32c(0, copy, sizeof(copy)) != get_le32(p + 8))
		return -EBADMSG;
	if (get_le32(p + 60) & ~INCOMPAT_KNOWN)
		return -EPROTONOSUPPORT;
	*trailer = (struct index_trailer){
		.self = self,
		.prev = get_le64(p + 40),
		.prev_table = get_le64(p + 48),
		.block_len = get_le32(p + 12),
	};
	if (trailer->block_len < INDEX_BLOCK_HEADER_LEN || trailer->block_len % 8 ||
	    trailer->block_len > INDEX_TRAILER_BLOCK_MAX ||
	    trailer->block_len > self || trailer->prev > self - trailer->block_len ||
	    (trailer->prev && self - trailer->block_len - trailer->prev < INDEX_TRAILER_LEN) ||
	    trailer->prev_table > trailer->prev || !has_room(trailer->prev, INDEX_BLOCK_HEADER_LEN) ||
	    !has_room(trailer->prev_table, INDEX_BLOCK_HEADER_LEN))
		return -EBADMSG;
	return 0;
}
