/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The codec of the live file's header: what it takes, and what it refuses.
 */
#include "core/base/crc32c.h"
#include "core/dropping/live_layout.h"

#include <criterion/criterion.h>

static const uint8_t id[STUB_ID_LEN] = "0123456789abcdef";

static struct live_header some_header(void)
{
	struct live_header lh = { .records_off = 4096,
				  .records_cap = 512,
				  .chunks_off = 40960,
				  .chunks_cap = 2048,
				  .stage_off = 49152,
				  .stage_cap = 524288,
				  .log_name = "data.host.17.3",
				  .unmapped = 1,
				  .boot = 0xabcdef01 };

	memcpy(lh.id, id, sizeof(id));
	return lh;
}

static void fix_crc(uint8_t *p)
{
	put_le32(p + LIVE_OFF_CRC, 0);
	put_le32(p + LIVE_OFF_CRC, crc32c(0, p, LIVE_FIXED_LEN));
}

/* What the decoder says of a header that is right but for @lh. */
static int decode_as(struct live_header lh)
{
	uint8_t p[LIVE_FIXED_LEN];

	live_header_encode(&lh, p);
	return live_header_decode(&lh, p, id);
}

Test(live_header, is_read_as_it_was_written)
{
	struct live_header in = some_header(), out;
	uint8_t p[LIVE_FIXED_LEN], again[LIVE_FIXED_LEN];

	live_header_encode(&in, p);
	cr_assert_eq(live_header_decode(&out, p, id), 0);
	cr_assert_arr_eq(out.id, id, sizeof(id));
	cr_assert_eq(out.records_off, 4096);
	cr_assert_eq(out.records_cap, 512);
	cr_assert_eq(out.chunks_off, 40960);
	cr_assert_eq(out.chunks_cap, 2048);
	cr_assert_eq(out.stage_off, 49152);
	cr_assert_eq(out.stage_cap, 524288);
	cr_assert_str_eq(out.log_name, "data.host.17.3");
	cr_assert_eq(out.unmapped, 1);
	cr_assert_eq(out.boot, 0xabcdef01);
	live_header_encode(&out, again);
	cr_assert_arr_eq(p, again, sizeof(p));
}

Test(live_header, with_any_one_bit_flipped_is_refused)
{
	struct live_header lh = some_header();
	uint8_t p[LIVE_FIXED_LEN];

	live_header_encode(&lh, p);
	for (size_t bit = 0; bit < 8 * sizeof(p); bit++) {
		p[bit / 8] ^= (uint8_t)(1 << bit % 8);
		cr_assert_eq(live_header_decode(&lh, p, id), -EBADMSG, "bit %zu", bit);
		p[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	cr_assert_eq(live_header_decode(&lh, p, id), 0);
}

Test(live_header, of_zeros_says_nothing_yet)
{
	uint8_t p[LIVE_FIXED_LEN] = { 0 };
	struct live_header lh;

	cr_assert_eq(live_header_decode(&lh, p, id), -ENODATA);
	p[LIVE_OFF_MAGIC + 1] = 'L'; /* its first byte is written last */
	cr_assert_eq(live_header_decode(&lh, p, id), -ENODATA);
}

Test(live_header, of_another_version_is_told_from_damage)
{
	struct live_header lh = some_header();
	uint8_t p[LIVE_FIXED_LEN];

	live_header_encode(&lh, p);
	put_le32(p + LIVE_OFF_VERSION, LIVE_VERSION + 1);
	cr_assert_eq(live_header_decode(&lh, p, id), -EBADMSG);
	fix_crc(p);
	cr_assert_eq(live_header_decode(&lh, p, id), -EPROTONOSUPPORT);
}

Test(live_header, with_an_unknown_feature_is_refused_unless_it_may_be_ignored)
{
	struct live_header lh = some_header();
	uint8_t p[LIVE_FIXED_LEN];

	live_header_encode(&lh, p);
	for (int bit = 0; bit < 32; bit++) {
		put_le32(p + LIVE_OFF_INCOMPAT, 1u << bit);
		fix_crc(p);
		cr_assert_eq(live_header_decode(&lh, p, id), -EPROTONOSUPPORT, "bit %d", bit);
	}
	put_le32(p + LIVE_OFF_INCOMPAT, 0);
	put_le32(p + LIVE_OFF_COMPAT, UINT32_MAX);
	fix_crc(p);
	cr_assert_eq(live_header_decode(&lh, p, id), 0);
}

Test(live_header, of_another_container_or_a_name_that_leads_away_is_refused)
{
	struct live_header lh = some_header();

	lh.id[3] ^= 1;
	cr_assert_eq(decode_as(lh), -EBADMSG);
	lh = some_header();
	strcpy(lh.log_name, "data.x/../../y");
	cr_assert_eq(decode_as(lh), -EBADMSG);
	strcpy(lh.log_name, "index.host");
	cr_assert_eq(decode_as(lh), -EBADMSG);
}

Test(live_header, with_a_number_beyond_its_limit_is_refused)
{
	struct live_header lh = some_header();

	lh.records_cap = 65536;
	lh.stage_cap = 1 << 30;
	lh.records_off = lh.stage_off = 1ULL << 40;
	cr_assert_eq(decode_as(lh), 0);
	lh.records_cap++;
	cr_assert_eq(decode_as(lh), -EBADMSG);
	lh = some_header();
	lh.stage_cap = (1 << 30) + 1;
	cr_assert_eq(decode_as(lh), -EBADMSG);
	lh = some_header();
	lh.records_off = (1ULL << 40) + 1;
	cr_assert_eq(decode_as(lh), -EBADMSG);
	lh = some_header();
	lh.stage_off = UINT64_MAX;
	cr_assert_eq(decode_as(lh), -EBADMSG);
}

Test(live_words, are_read_as_they_were_stored)
{
	uint8_t p[LIVE_WORDS_END] = { 0 };
	struct live_words lw;

	for (size_t i = 0; i < ARRAY_SIZE(LIVE_WORDS); i++)
		put_le64(p + LIVE_WORDS[i], live_word((uint64_t)LIVE_WORDS[i] << 20 | 1));
	put_le32(p + LIVE_OFF_CHUNK_CRC, 0x12345678);
	put_le16(p + LIVE_OFF_CHUNK_LEN, 0x9abc);
	put_le16(p + LIVE_OFF_CHUNK_NO, 0xdef0);
	put_le32(p + LIVE_OFF_LAST_CRC, 0x87654321);
	cr_assert_eq(live_words_decode(&lw, p), 0);
	cr_assert_eq(lw.seq, 512ULL << 20 | 1);
	cr_assert_eq(lw.nr_records, 520ULL << 20 | 1);
	cr_assert_eq(lw.flushed_len, 528ULL << 20 | 1);
	cr_assert_eq(lw.staged_len, 536ULL << 20 | 1);
	cr_assert_eq(lw.first_chunk, 544ULL << 20 | 1);
	cr_assert_eq(lw.nr_chunks, 552ULL << 20 | 1);
	cr_assert_eq(lw.recorded_len, 568ULL << 20 | 1);
	cr_assert_eq(lw.last_trailer, 576ULL << 20 | 1);
	cr_assert_eq(lw.last_table, 584ULL << 20 | 1);
	cr_assert_eq(lw.chunk_crc, 0x12345678);
	cr_assert_eq(lw.chunk_len, 0x9abc);
	cr_assert_eq(lw.chunk_no, 0xdef0);
	cr_assert_eq(lw.last_crc, 0x87654321);
}

Test(live_words, with_any_one_bit_of_a_checked_word_flipped_are_damaged)
{
	uint8_t p[LIVE_WORDS_END] = { 0 };
	struct live_words lw;

	for (size_t i = 0; i < ARRAY_SIZE(LIVE_WORDS); i++)
		put_le64(p + LIVE_WORDS[i], live_word(i * 0x123456789a));
	cr_assert_eq(live_words_decode(&lw, p), 0);
	for (size_t i = 0; i < ARRAY_SIZE(LIVE_WORDS); i++) {
		for (int bit = 0; bit < 64; bit++) {
			p[LIVE_WORDS[i] + bit / 8] ^= (uint8_t)(1 << bit % 8);
			cr_assert_eq(live_words_decode(&lw, p), -EBADMSG, "word %d, bit %d", LIVE_WORDS[i],
				     bit);
			p[LIVE_WORDS[i] + bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
	}
}
