/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/base/bytes.h"
#include "core/base/crc32c.h"
#include "index/record/record.h"

#include <criterion/criterion.h>

static const struct index_record example = {
	.type = INDEX_WRITE,
	.logical_off = 0x1122334455,
	.length = 4096,
	.stride = 65536,
	.count = 1000,
	.log_off = 0x66778899,
	.stamp_ns = 0x17a0b0c0d0e0f000,
	.outer_stride = 0x10000000,
	.outer_count = 300,
};

static void reseal(uint8_t *buf, size_t len)
{
	put_le32(buf + 4, 0);
	put_le32(buf + 4, crc32c(0, buf, len));
}

static bool same(const struct index_record *a, const struct index_record *b)
{
	return a->type == b->type && a->logical_off == b->logical_off && a->length == b->length &&
	       a->stride == b->stride && a->count == b->count && a->log_off == b->log_off &&
	       a->stamp_ns == b->stamp_ns && a->outer_stride == b->outer_stride &&
	       a->outer_count == b->outer_count;
}

Test(index_record, layout_is_the_byte_table)
{
	uint8_t buf[INDEX_RECORD_LEN];

	index_record_encode(&example, buf);
	cr_assert_eq(buf[0], 1);
	cr_assert_eq(buf[1], 9);
	cr_assert_eq(get_le16(buf + 2), 0);
	cr_assert_eq(get_le64(buf + 8), example.logical_off);
	cr_assert_eq(get_le64(buf + 16), example.length);
	cr_assert_eq(get_le64(buf + 24), example.stride);
	cr_assert_eq(get_le64(buf + 32), example.count);
	cr_assert_eq(get_le64(buf + 40), example.log_off);
	cr_assert_eq(get_le64(buf + 48), example.stamp_ns);
	cr_assert_eq(get_le64(buf + 56), example.outer_stride);
	cr_assert_eq(get_le64(buf + 64), example.outer_count);
}

Test(index_record, decodes_to_what_was_encoded)
{
	struct index_record cut = { .type = INDEX_TRUNCATE, .logical_off = 12345, .stamp_ns = 6 }, rec;
	uint8_t buf[INDEX_RECORD_LEN];

	index_record_encode(&example, buf);
	cr_assert_eq(index_record_decode(&rec, buf, sizeof(buf)), INDEX_RECORD_LEN);
	cr_assert(same(&rec, &example));
	index_record_encode(&cut, buf);
	cr_assert_eq(index_record_decode(&rec, buf, sizeof(buf)), INDEX_RECORD_LEN);
	cr_assert(same(&rec, &cut));
	cr_assert_eq(index_record_end(&rec), 12345);
}

Test(index_record, any_flipped_bit_is_found)
{
	uint8_t buf[INDEX_RECORD_LEN];
	struct index_record rec;

	index_record_encode(&example, buf);
	for (size_t bit = 0; bit < sizeof(buf) * 8; bit++) {
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
		cr_assert_eq(index_record_decode(&rec, buf, sizeof(buf)), -EBADMSG, "bit %zu", bit);
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

Test(index_record, any_cut_is_found)
{
	uint8_t buf[INDEX_RECORD_LEN];
	struct index_record rec;

	index_record_encode(&example, buf);
	for (size_t len = 0; len < sizeof(buf); len++)
		cr_assert_eq(index_record_decode(&rec, buf, len), -EBADMSG, "%zu bytes", len);
}

Test(index_record, fields_of_later_versions_are_skipped)
{
	uint8_t buf[INDEX_RECORD_LEN + 16] = { 0 };
	struct index_record rec;

	index_record_encode(&example, buf);
	memset(buf + INDEX_RECORD_LEN, 0x5a, 16);
	buf[1] = sizeof(buf) / 8;
	reseal(buf, sizeof(buf));
	cr_assert_eq(index_record_decode(&rec, buf, sizeof(buf)), (int)sizeof(buf));
	cr_assert(same(&rec, &example));
}

Test(index_record, unknown_types_of_any_length_are_skipped)
{
	uint8_t buf[255 * 8] = { 77 };
	struct index_record rec;

	for (int words = 1; words < 256; words++) {
		buf[1] = (uint8_t)words;
		reseal(buf, (size_t)words * 8);
		cr_assert_eq(index_record_decode(&rec, buf, sizeof(buf)), words * 8);
		cr_assert_eq(rec.type, 77);
	}
}

Test(index_record, short_records_of_known_types_and_unknown_flags_are_refused)
{
	uint8_t buf[INDEX_RECORD_LEN];
	struct index_record rec;

	index_record_encode(&example, buf);
	buf[1] = 8;
	reseal(buf, 64);
	cr_assert_eq(index_record_decode(&rec, buf, sizeof(buf)), -EBADMSG);
	buf[1] = 0;
	reseal(buf, sizeof(buf));
	cr_assert_eq(index_record_decode(&rec, buf, sizeof(buf)), -EBADMSG);
	index_record_encode(&example, buf);
	put_le16(buf + 2, 0x8000);
	reseal(buf, sizeof(buf));
	cr_assert_eq(index_record_decode(&rec, buf, sizeof(buf)), -EBADMSG);
}

Test(index_record, impossible_records_are_not_valid)
{
	struct index_record bad[] = {
		{ INDEX_WRITE, 0, 0, 0, 1, 0, 0, 0, 0 },                            /* no bytes */
		{ INDEX_WRITE, 0, 1, 0, 0, 0, 0, 0, 0 },                            /* no elements */
		{ INDEX_WRITE, 0, 10, 9, 2, 0, 0, 0, 0 },                           /* overlapping itself */
		/* past the end of everything */
		{ INDEX_WRITE, INT64_MAX, 1, 0, 1, 0, 0, 0, 0 },
		{ INDEX_WRITE, UINT64_MAX, 1, 0, 1, 0, 0, 0, 0 },
		{ INDEX_WRITE, 0, UINT64_MAX, 0, 1, 0, 0, 0, 0 },
		{ INDEX_WRITE, 0, 1, 0, 1, INT64_MAX, 0, 0, 0 },                    /* in the log */
		{ INDEX_WRITE, 0, 1, 1ull << 62, 3, 0, 0, 0, 0 },                   /* end overflows */
		{ INDEX_WRITE, 0, 1ull << 32, 1ull << 32, 1ull << 33, 0, 0, 0, 0 }, /* bytes overflow */
		{ INDEX_WRITE, 8, 1, UINT64_MAX, 2, 0, 0, 0, 0 },
		/* the second run in the last element */
		{ INDEX_WRITE, 0, 10, 20, 5, 0, 0, 89, 2 },
		/* the third run in the second element */
		{ INDEX_WRITE, 0, 10, 20, 5, 0, 0, 10, 3 },
		/* the second run in the first element */
		{ INDEX_WRITE, 0, 10, 20, 5, 0, 0, 5, 2 },
		{ INDEX_WRITE, 0, 10, 20, 5, 0, 0, 100, 1 },                  /* one run is none */
		{ INDEX_WRITE, 0, 10, 0, 1, 0, 0, 100, 2 },                   /* no runs */
		{ INDEX_WRITE, 0, 10, 20, 5, 0, 0, 1ull << 62, 3 },
		{ INDEX_WRITE, 0, 10, 20, 5, 0, 0, 1ull << 40, 1ull << 60 },
		/* in the log */
		{ INDEX_WRITE, 0, 1ull << 30, 1ull << 30, 1ull << 20, 0, 0, 1ull << 50, 1ull << 13 },
		{ INDEX_TRUNCATE, UINT64_MAX, 0, 0, 0, 0, 0, 0, 0 },
		{ INDEX_TRUNCATE, 0, 1, 0, 1, 0, 0, 0, 0 },
		{ 3, 0, 1, 0, 1, 0, 0, 0, 0 },
	};

	cr_assert(index_record_valid(&example));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		uint8_t buf[INDEX_RECORD_LEN];
		struct index_record rec;

		cr_assert_not(index_record_valid(&bad[i]), "record %zu", i);
		index_record_encode(&bad[i], buf);
		if (bad[i].type != 3)
			cr_assert_eq(index_record_decode(&rec, buf, sizeof(buf)), -EBADMSG, "record %zu", i);
	}
}

Test(index_record, runs_are_nested_one_after_the_other_or_interleaved)
{
	struct index_record good[] = {
		{ INDEX_WRITE, 0, 10, 20, 5, 0, 0, 90, 2 },
		{ INDEX_WRITE, 0, 10, 20, 5, 0, 0, 10, 2 },
		{ INDEX_WRITE, 7, 10, 100, 5, 3, 0, 30, 4 },
		{ INDEX_WRITE, 0, 10, 10, 5, 0, 0, 50, 9 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		cr_assert(index_record_valid(&good[i]), "record %zu", i);
}

Test(index_record, a_stride_that_waits_for_its_count_is_valid)
{
	struct index_record rec = { INDEX_WRITE, 100, 10, UINT64_MAX, 1, 0, 0, 0, 0 };

	cr_assert(index_record_valid(&rec));
	cr_assert_eq(index_record_end(&rec), 110);
	cr_assert_eq(index_record_end(&example),
		     example.logical_off + 999 * 65536 + 299 * 0x10000000ull + 4096);
	cr_assert_eq(index_record_log_end(&example), example.log_off + 300 * 1000 * 4096);
}
