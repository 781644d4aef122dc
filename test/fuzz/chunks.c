/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What stands in data logs beside data: tables of chunk checksums, and trailers, which lead from one to the
 * other.
 */
#include "fuzz.h"

#include "index/record/chunks.h"
#include "index/record/trailer.h"

const char fuzz_name[] = "chunks";

#define TRAILER 1 /* in the first byte */

static const uint8_t id[16] = { 0x3f, 0xa9, 1, 2, 3 };

static void fuzz_table(uint8_t *p, size_t len, bool fix)
{
	struct index_chunks chunks;
	uint32_t sum = 0;
	ssize_t used;

	if (fix && len >= INDEX_CHUNKS_HEADER_LEN && index_chunks_len(get_le32(p + 12)) <= len)
		fix_crc(p, 8, index_chunks_len(get_le32(p + 12)));
	used = index_chunks_parse(&chunks, p, len);
	must(used == -EBADMSG || used == -ENODATA || (used > 0 && (size_t)used <= len), "length of a table");
	for (uint32_t i = 0; used > 0 && i < chunks.nr_chunks; i++)
		sum += get_le32(chunks.chunk_crc + (size_t)i * 4);
	must(used <= 0 || (chunks.first_chunk + chunks.nr_chunks) * INDEX_CHUNK_LEN + (sum & 0) <= INT64_MAX,
	     "chunks that can be");
}

/* Trailers one after the other lead backwards, never round and round. */
static void fuzz_trailer(uint8_t *p, size_t len, bool fix)
{
	struct index_trailer trailer;
	uint64_t self = len >= 40 ? get_le64(p + 32) : 0;
	int ret;

	if (len < INDEX_TRAILER_LEN)
		return;
	if (fix) {
		memcpy(p, INDEX_TRAILER_MAGIC, 8);
		memcpy(p + 16, id, sizeof(id));
		fix_crc(p, 8, INDEX_TRAILER_LEN);
	}
	ret = index_trailer_parse(&trailer, id, self, p);
	must_be(!ret || ret == -EBADMSG || ret == -EPROTONOSUPPORT, ret, "an error that is documented");
	if (ret)
		return;
	must(trailer.self == self && trailer.block_len <= self &&
		     trailer.block_len <= INDEX_TRAILER_BLOCK_MAX,
	     "a block lies in front");
	must(trailer.prev < self && trailer.prev_table <= trailer.prev, "trailers lead backwards");
	must(index_trailer_parse(&trailer, id, self + 8, p) == -EBADMSG,
	     "a trailer in another place is none");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *p = copy_behind_head(data, size);

	if (!p)
		return 0;
	if (data[0] & TRAILER)
		fuzz_trailer(p, size - 1, data[0] & FIX);
	else
		fuzz_table(p, size - 1, data[0] & FIX);
	free(p);
	return 0;
}

static size_t fuzz_valid(uint8_t *buf)
{
	uint8_t crcs[32] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	struct index_chunks chunks = { rnd(1000), (uint32_t)rnd(sizeof(crcs) / 4), crcs };
	struct index_trailer trailer = { .self = 8 * (20000 + rnd(1ull << rnd(40))),
					 .block_len = 8 * (9 + (uint32_t)rnd(1000)) };

	buf[0] = (uint8_t)((rnd(3) ? FIX : 0) | rnd(2));
	if (buf[0] & TRAILER) {
		trailer.prev = rnd(2) * 8 * rnd(10000);
		trailer.prev_table = trailer.prev ? rnd(2) * 8 * rnd(trailer.prev / 8 + 1) : 0;
		index_trailer_encode(&trailer, id, buf + 1);
		return 1 + INDEX_TRAILER_LEN;
	}
	index_chunks_encode(&chunks, buf + 1);
	return 1 + index_chunks_len(chunks.nr_chunks);
}
