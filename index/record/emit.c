/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes index blocks; the byte table is in block.h. parse.c takes them apart.
 */
#include "index/record/block.h"

#include "core/base/bytes.h"
#include "core/base/crc32c.h"

/* Two control words and eight numbers; and what put_number() stores too much. */
#define RECORD_MAX_LEN (2 + 2 + 8 * 8)
#define SPARE 8

size_t index_block_max_len(const struct index_block *block)
{
	return INDEX_BLOCK_HEADER_LEN + (size_t)block->nr_records * RECORD_MAX_LEN + SPARE;
}

static unsigned number_len(uint64_t v)
{
	return v ? (71 - (unsigned)__builtin_clzll(v)) / 8 : 0;
}

/* Store @v in @n bytes; whatever is in the rest of 8 is overwritten later. */
static uint8_t *put_number(uint8_t *p, uint64_t v, unsigned n)
{
	put_le64(p, v);
	return p + n;
}

static uint64_t zigzag(uint64_t v)
{
	return v << 1 ^ (v >> 63 ? UINT64_MAX : 0);
}

static uint8_t *put_truncate(uint8_t *p, const struct index_record *rec)
{
	put_le16(p, 0x8000 + INDEX_TRUNCATE);
	put_le16(p + 2, 16);
	put_le64(p + 4, rec->logical_off);
	put_le64(p + 12, rec->stamp_ns);
	return p + 20;
}

static uint8_t *put_write(uint8_t *p, const struct index_record *rec, struct index_cursor *cur)
{
	uint64_t logical = zigzag(rec->logical_off - cur->logical_end);
	uint64_t length = rec->length == cur->length ? 0 : rec->length, stamp = rec->stamp_ns - cur->stamp_ns;
	unsigned nlogical = number_len(logical), nlength = number_len(length), nstamp = number_len(stamp);
	bool log_off = rec->log_off != cur->log_end, run = rec->count > 1;

	put_le16(p, (uint16_t)(nlogical | nlength << 4 | nstamp << 8 | (unsigned)log_off << 12 |
			       (unsigned)run << 13));
	p = put_number(p + 2, logical, nlogical);
	p = put_number(p, length, nlength);
	p = put_number(p, stamp, nstamp);
	if (log_off)
		p = put_number(p, rec->log_off, 8);
	if (run) {
		uint64_t outer_stride = rec->outer_count ? rec->outer_stride : 0;
		unsigned nstride = number_len(rec->stride), ncount = number_len(rec->count);
		unsigned nouter_stride = number_len(outer_stride),
			 nouter_count = number_len(rec->outer_count);

		put_le16(p, (uint16_t)(nstride | ncount << 4 | nouter_stride << 8 | nouter_count << 12));
		p = put_number(p + 2, rec->stride, nstride);
		p = put_number(p, rec->count, ncount);
		p = put_number(p, outer_stride, nouter_stride);
		p = put_number(p, rec->outer_count, nouter_count);
	}
	cur->logical_end = index_record_end(rec);
	cur->log_end = index_record_log_end(rec);
	cur->length = rec->length;
	cur->stamp_ns = rec->stamp_ns;
	return p;
}

size_t index_block_encode(const struct index_block *block, void *buf)
{
	uint8_t *header = buf, *body = header + INDEX_BLOCK_HEADER_LEN, *p = body;
	uint64_t max_stamp_ns = 0, first_stamp_ns = 0;
	struct index_cursor cur = { 0 };
	size_t len;

	for (uint32_t i = block->nr_records; i-- > 0;) {
		max_stamp_ns = max_u64(max_stamp_ns, block->records[i].stamp_ns);
		if (block->records[i].type == INDEX_WRITE)
			first_stamp_ns = block->records[i].stamp_ns;
	}
	cur.stamp_ns = first_stamp_ns;
	for (uint32_t i = 0; i < block->nr_records; i++) {
		if (block->records[i].type == INDEX_WRITE)
			p = put_write(p, &block->records[i], &cur);
		else
			p = put_truncate(p, &block->records[i]);
	}
	memset(p, 0, SPARE);
	len = round_up_u64((uint64_t)(p - header), 8);

	memset(header, 0, INDEX_BLOCK_HEADER_LEN);
	memcpy(header, INDEX_BLOCK_MAGIC, 8);
	put_le16(header + 12, INDEX_BLOCK_HEADER_LEN);
	put_le32(header + 16, crc32c(0, body, len - INDEX_BLOCK_HEADER_LEN));
	put_le32(header + 20, (uint32_t)len);
	put_le32(header + 24, block->nr_records);
	put_le32(header + 28, block->pid);
	put_le32(header + 32, block->seq);
	put_le64(header + 40, block->log_len);
	put_le64(header + 48, block->chunks_off);
	put_le32(header + 36, block->synced | (block->has_sum ? 2u : 0));
	put_le64(header + 56, block->has_sum ? block->sum : first_stamp_ns);
	put_le64(header + 64, max_stamp_ns);
	put_le32(header + 8, crc32c(0, header, INDEX_BLOCK_HEADER_LEN));
	return len;
}
