/* SPDX-License-Identifier: BSD-3-Clause */
#include "../core/alloc.h"
#include "../core/bytes.h"
#include "../core/crc32c.h"
#include "../index/block.h"

#include <criterion/criterion.h>

static const struct index_record records[3] = {
	{ INDEX_WRITE, 0, 4096, 65536, 100, 0, 500 },
	{ INDEX_TRUNCATE, 70000, 0, 0, 0, 0, 900 },
	{ INDEX_WRITE, 12, 34, 0, 1, 409600, 700 },
};
static const uint32_t chunks[7] = { 11, 22, 33, 44, 55, 66, 77 };

/* A block with room for @extra bytes more behind it. */
static uint8_t *make(uint32_t nr_records, uint32_t nr_chunks, size_t extra, size_t *len)
{
	struct index_block block = {
		.log_name = "data.node17.4711.0",
		.log_len = 409634,
		.first_chunk = 2,
		.nr_records = nr_records,
		.nr_chunks = nr_chunks,
		.records = records,
		.chunk_crc = chunks,
	};
	uint8_t *buf;

	*len = index_block_len(&block);
	buf = mem_zalloc(*len + extra);
	cr_assert(buf);
	index_block_encode(&block, buf);
	return buf;
}

static void reseal(uint8_t *buf)
{
	put_le32(buf + 12, 0);
	put_le32(buf + 12, crc32c(0, buf, get_le32(buf + 8)));
}

Test(index_block, parses_to_what_was_encoded)
{
	for (uint32_t nr_records = 0; nr_records <= 3; nr_records++)
		for (uint32_t nr_chunks = 0; nr_chunks <= 7; nr_chunks++) {
			size_t len, pos = 0;
			uint8_t *buf = make(nr_records, nr_chunks, 0, &len);
			struct index_block block;
			struct index_record rec;

			cr_assert_eq(len % 8, 0);
			cr_assert_eq(index_block_parse(&block, buf, len), (ssize_t)len);
			cr_assert_str_eq(block.log_name, "data.node17.4711.0");
			cr_assert_eq(block.log_len, 409634);
			cr_assert_eq(block.first_chunk, 2);
			cr_assert_eq(block.nr_records, nr_records);
			cr_assert_eq(block.nr_chunks, nr_chunks);
			cr_assert_eq(block.max_stamp_ns, nr_records == 0 ? 0 : nr_records == 1 ? 500 : 900);
			for (uint32_t i = 0; i < nr_records; i++) {
				cr_assert_eq(index_block_record(&block, &pos, &rec), 1);
				cr_assert_eq(rec.logical_off, records[i].logical_off);
				cr_assert_eq(rec.stamp_ns, records[i].stamp_ns);
			}
			cr_assert_eq(index_block_record(&block, &pos, &rec), 0);
			cr_assert_eq(index_block_record(&block, &pos, &rec), 0);
			for (uint32_t i = 0; i < nr_chunks; i++)
				cr_assert_eq(get_le32(block.encoded_chunk_crc + 4 * i), chunks[i]);
			mem_free(buf);
		}
}

Test(index_block, every_torn_beginning_is_told_from_damage)
{
	size_t len;
	uint8_t *buf = make(3, 7, 0, &len);
	struct index_block block;

	cr_assert_eq(index_block_parse(&block, buf, 0), 0);
	for (size_t cut = 1; cut < len; cut++)
		cr_assert_eq(index_block_parse(&block, buf, cut), -ENODATA, "cut at %zu", cut);
	memset(buf, 0, len);
	for (size_t cut = 1; cut <= len; cut++)
		cr_assert_eq(index_block_parse(&block, buf, cut), -ENODATA, "%zu zeros", cut);
	buf[len - 1] = 1;
	cr_assert_eq(index_block_parse(&block, buf, len), -EBADMSG);
	mem_free(buf);
}

Test(index_block, no_flipped_bit_goes_unnoticed)
{
	size_t len;
	uint8_t *buf = make(2, 3, 0, &len);

	for (size_t bit = 0; bit < (len - 4) * 8; bit++) { /* the last 4 bytes are padding */
		struct index_block block;
		struct index_record rec;
		size_t pos = 0;
		ssize_t used;
		int ret = 1;

		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
		used = index_block_parse(&block, buf, len);
		while (used > 0 && ret > 0)
			ret = index_block_record(&block, &pos, &rec);
		cr_assert(used < 0 || ret == -EBADMSG, "bit %zu", bit);
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	mem_free(buf);
}

Test(index_block, a_damaged_record_does_not_hide_the_chunk_checksums)
{
	struct index_block block;
	struct index_record rec;
	size_t len, pos = 0;
	uint8_t *buf = make(3, 5, 0, &len);

	buf[INDEX_BLOCK_HEADER_LEN + INDEX_RECORD_LEN + 1] = 200;
	cr_assert_eq(index_block_parse(&block, buf, len), (ssize_t)len);
	cr_assert_eq(get_le32(block.encoded_chunk_crc), chunks[0]);
	cr_assert_eq(index_block_record(&block, &pos, &rec), 1);
	cr_assert_eq(index_block_record(&block, &pos, &rec), -EBADMSG);
	cr_assert_eq(index_block_record(&block, &pos, &rec), -EBADMSG);
	mem_free(buf);
}

Test(index_block, unknown_records_are_passed_over)
{
	struct index_block block;
	struct index_record rec;
	size_t len, pos = 0;
	uint8_t *buf = make(3, 1, 0, &len), *second = buf + INDEX_BLOCK_HEADER_LEN + INDEX_RECORD_LEN;

	second[0] = 99;
	put_le32(second + 4, 0);
	put_le32(second + 4, crc32c(0, second, INDEX_RECORD_LEN));
	cr_assert_gt(index_block_parse(&block, buf, len), 0);
	cr_assert_eq(index_block_record(&block, &pos, &rec), 1);
	cr_assert_eq(index_block_record(&block, &pos, &rec), 1);
	cr_assert_eq(rec.stamp_ns, 700);
	cr_assert_eq(index_block_record(&block, &pos, &rec), 0);
	mem_free(buf);
}

Test(index_block, headers_that_cannot_be_are_refused)
{
	static const struct { size_t field; uint64_t value; } bad[] = {
		{ 16, 196 }, { 16, 8 }, { 16, UINT64_MAX & ~7ull }, /* block_len */
		{ 32, UINT64_MAX }, { 32, INT64_MAX / 65536 },      /* first_chunk */
		{ 48, UINT64_MAX },                                 /* log_len */
	};
	struct index_block block;
	size_t len;
	uint8_t *buf = make(3, 7, 0, &len);

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		uint64_t was = get_le64(buf + bad[i].field);

		put_le64(buf + bad[i].field, bad[i].value);
		reseal(buf);
		cr_assert_eq(index_block_parse(&block, buf, len), -EBADMSG, "case %zu", i);
		put_le64(buf + bad[i].field, was);
	}
	put_le32(buf + 24, UINT32_MAX);
	reseal(buf);
	cr_assert_eq(index_block_parse(&block, buf, len), -EBADMSG, "nr_records");
	mem_free(buf);
}

Test(index_block, log_names_do_not_lead_out_of_the_directory)
{
	static const char *const bad[] = { "", ".", "..", "../data", "a/b", "/etc/passwd" };
	struct index_block block;
	size_t len;
	uint8_t *buf = make(1, 1, 0, &len);

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		memset(buf + 64, 0, INDEX_LOG_NAME_LEN);
		memcpy(buf + 64, bad[i], strlen(bad[i]));
		reseal(buf);
		cr_assert_eq(index_block_parse(&block, buf, len), -EBADMSG, "%s", bad[i]);
	}
	memset(buf + 64, 'x', INDEX_LOG_NAME_LEN);
	reseal(buf);
	cr_assert_eq(index_block_parse(&block, buf, len), -EBADMSG, "not terminated");
	mem_free(buf);
}

Test(index_block_skip, finds_the_next_block_after_a_damaged_one)
{
	struct index_block block;
	size_t len;
	uint8_t *buf = make(3, 7, 0, &len), *both = mem_alloc(3 * len);

	memcpy(both, buf, len);
	memset(both + len, 0xee, len);
	memcpy(both + 2 * len, buf, len);
	both[20] ^= 1;
	cr_assert_eq(index_block_parse(&block, both, 3 * len), -EBADMSG);
	cr_assert_eq(index_block_skip(both, 3 * len), 2 * len);
	cr_assert_eq(index_block_parse(&block, both + 2 * len, len), (ssize_t)len);
	for (size_t n = 1; n <= 2 * len; n++)
		cr_assert_eq(index_block_skip(both, n), n);
	mem_free(buf);
	mem_free(both);
}
