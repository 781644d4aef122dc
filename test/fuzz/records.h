/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Valid records and blocks for targets to begin from, and what makes mutated ones right again.
 */
#ifndef TEST_RECORDS_H
#define TEST_RECORDS_H

#include "index/record/block.h"
#include "index/record/chunks.h"

__attribute__((unused)) static struct index_record random_record(void)
{
	uint64_t stride = 1 + rnd(1 << rnd(16));
	struct index_record rec;

	if (rnd(12) == 0)
		return (struct index_record){ .type = INDEX_TRUNCATE,
					      .logical_off = rnd(1 << 20),
					      .stamp_ns = rnd(100) };
	rec = (struct index_record){ .type = INDEX_WRITE,
				     .logical_off = rnd(1 << 16),
				     .length = 1 + rnd(stride),
				     .stride = stride,
				     .count = 1 + rnd(2) * rnd(1000),
				     .log_off = rnd(1 << 20),
				     .stamp_ns = 1 + rnd(100) };
	if (rec.count > 1 && rnd(2)) {
		rec.outer_stride = (rec.count - 1) * stride + rec.length + rnd(100);
		rec.outer_count = 2 + rnd(1000);
	}
	if (rnd(8) == 0)
		rec.logical_off += 1ull << rnd(62);
	return index_record_valid(&rec) ?
		       rec :
		       (struct index_record){ .type = INDEX_WRITE, .length = 1, .count = 1, .stamp_ns = 5 };
}

/* A block of some records; returns its length, of at most 5000 bytes. */
__attribute__((unused)) static size_t random_block(uint8_t *buf, uint32_t pid)
{
	struct index_record recs[32];
	struct index_block block = {
		.pid = pid, .seq = (uint32_t)rnd(3), .log_len = 1 << 19, .records = recs
	};

	block.nr_records = 1 + (uint32_t)rnd(ARRAY_SIZE(recs));
	for (uint32_t i = 0; i < block.nr_records; i++)
		recs[i] = random_record();
	return index_block_encode(&block, buf);
}

__attribute__((unused)) static void fix_record(uint8_t *p, size_t len)
{
	if (len >= 8 && p[1] > 0 && (size_t)p[1] * 8 <= len)
		fix_crc(p, 4, (size_t)p[1] * 8);
}

/* Blocks one after the other; a length that cannot be becomes what is left. */
__attribute__((unused)) static void fix_blocks(uint8_t *p, size_t len)
{
	while (len >= INDEX_BLOCK_HEADER_LEN) {
		size_t header_len = get_le16(p + 12), block_len = get_le32(p + 20);

		if (memcmp(p, INDEX_BLOCK_MAGIC, 8)) {
			size_t next = index_block_skip(p, len);

			p += next;
			len -= next;
			continue;
		}
		if (header_len < 16 || header_len > block_len || block_len > len || block_len % 8)
			return;
		put_le32(p + 16, crc32c(0, p + header_len, block_len - header_len));
		fix_crc(p, 8, header_len);
		p += block_len;
		len -= block_len;
	}
}

#endif
