/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/base/alloc.h"
#include "core/base/bytes.h"
#include "core/base/crc32c.h"
#include "index/record/block.h"
#include "index/record/chunks.h"

#include <criterion/criterion.h>

static const struct index_record records[4] = {
	{ INDEX_WRITE, 0, 4096, 65536, 100, 0, 500, 0, 0 },
	{ INDEX_TRUNCATE, 70000, 0, 0, 0, 0, 900, 0, 0 },
	{ INDEX_WRITE, 12, 34, 0, 1, 409600, 700, 0, 0 },
	{ INDEX_WRITE, 46, 34, 0, 1, 77, 800, 0, 0 },
};

/* A block with room for @extra bytes more behind it. */
static uint8_t *make(uint32_t nr_records, size_t extra, size_t *len)
{
	struct index_block block = {
		.pid = 4711,
		.seq = 12,
		.log_len = 409634,
		.chunks_off = 409635,
		.nr_records = nr_records,
		.records = records,
	};
	uint8_t *buf = mem_zalloc(index_block_max_len(&block) + extra);

	cr_assert(buf);
	*len = index_block_encode(&block, buf);
	cr_assert_leq(*len, index_block_max_len(&block));
	return buf;
}

static void reseal(uint8_t *buf, size_t len)
{
	put_le32(buf + 16, crc32c(0, buf + INDEX_BLOCK_HEADER_LEN, len - INDEX_BLOCK_HEADER_LEN));
	put_le32(buf + 8, 0);
	put_le32(buf + 8, crc32c(0, buf, get_le16(buf + 12)));
}

static bool same(const struct index_record *a, const struct index_record *b)
{
	return a->type == b->type && a->logical_off == b->logical_off && a->length == b->length &&
	       a->stride == b->stride && a->count == b->count && a->log_off == b->log_off &&
	       a->stamp_ns == b->stamp_ns && a->outer_stride == b->outer_stride &&
	       a->outer_count == b->outer_count;
}

Test(index_block, parses_to_what_was_encoded)
{
	for (uint32_t nr_records = 0; nr_records <= 4; nr_records++) {
		size_t len;
		uint8_t *buf = make(nr_records, 0, &len);
		struct index_cursor cur = { 0 };
		struct index_block block;
		struct index_record rec;

		cr_assert_eq(len % 8, 0);
		cr_assert_eq(index_block_parse(&block, buf, len), (ssize_t)len);
		cr_assert_eq(block.pid, 4711);
		cr_assert_eq(block.seq, 12);
		cr_assert_eq(block.log_len, 409634);
		cr_assert_eq(block.chunks_off, 409635);
		cr_assert_eq(block.nr_records, nr_records);
		cr_assert_eq(block.max_stamp_ns, nr_records == 0 ? 0 : nr_records == 1 ? 500 : 900);
		for (uint32_t i = 0; i < nr_records; i++) {
			cr_assert_eq(index_block_record(&block, &cur, &rec), 1);
			cr_assert(same(&rec, &records[i]), "record %u", i);
		}
		cr_assert_eq(index_block_record(&block, &cur, &rec), 0);
		cr_assert_eq(index_block_record(&block, &cur, &rec), 0);
		mem_free(buf);
	}
}

static uint64_t rng_state = 1;

static uint64_t rnd(void)
{
	rng_state = rng_state * 6364136223846793005 + 1442695040888963407;
	return rng_state >> 33 ^ rng_state << 31;
}

Test(index_block, any_numbers_come_back)
{
	enum { NR = 300 };
	static struct index_record many[NR];
	struct index_block block = { .pid = UINT32_MAX,
				     .seq = UINT32_MAX,
				     .nr_records = NR,
				     .records = many },
			   back;
	uint8_t *buf = mem_alloc(index_block_max_len(&block));

	for (int round = 0; round < 200; round++) {
		struct index_cursor cur = { 0 };
		struct index_record rec;
		size_t len;

		for (int i = 0; i < NR; i++) {
			do {
				many[i] = (struct index_record){ INDEX_WRITE,
								 rnd() >> rnd() % 64,
								 1 + (rnd() >> rnd() % 64),
								 0,
								 1,
								 rnd() >> rnd() % 64,
								 rnd() >> rnd() % 64,
								 0,
								 0 };
				if (rnd() % 3 == 0)
					many[i] = (struct index_record){ .type = INDEX_TRUNCATE,
									 .logical_off = rnd() >> 1,
									 .stamp_ns = rnd() };
				else if (rnd() % 3 == 0) {
					many[i].stride = many[i].length + (rnd() >> rnd() % 64);
					many[i].count = 2 + (rnd() >> rnd() % 64);
					if (rnd() % 2) {
						many[i].outer_stride =
							index_record_end(&many[i]) + (rnd() >> rnd() % 64);
						many[i].outer_count = 2 + (rnd() >> rnd() % 64);
					}
				}
			} while (!index_record_valid(&many[i]));
		}
		len = index_block_encode(&block, buf);
		cr_assert_eq(index_block_parse(&back, buf, len), (ssize_t)len);
		for (int i = 0; i < NR; i++) {
			cr_assert_eq(index_block_record(&back, &cur, &rec), 1, "round %d, record %d", round,
				     i);
			cr_assert(same(&rec, &many[i]), "round %d, record %d", round, i);
		}
		cr_assert_eq(index_block_record(&back, &cur, &rec), 0);
	}
	mem_free(buf);
}

Test(index_block, a_checkpoint_takes_128_bytes)
{
	/* 100,000 ranks, 47001 bytes at a time, and that a thousand times: 1 EiB in all */
	struct index_record rec = {
		INDEX_WRITE,	     99999ull * 47001,		 47001, 100000ull * 47001, 239563, 0,
		1700000000000000000, 239563ull * 100000 * 47001, 1000
	};
	struct index_block block = {
		.pid = 4194303, .seq = 9, .log_len = 47001ull * 239563, .nr_records = 1, .records = &rec
	};
	uint8_t buf[512];

	cr_assert_leq(index_block_encode(&block, buf), 128);
}

/*
 * As full live indexes are: offsets anywhere in 100 GiB, lengths up to 1 MiB, up to 100 ms from one write to
 * the next.
 */
Test(index_block, random_writes_take_16_bytes_each)
{
	enum { NR = 512 };
	static struct index_record many[NR];
	struct index_block block = { .nr_records = NR, .records = many };
	uint8_t *buf = mem_alloc(index_block_max_len(&block));

	for (int kind = 0; kind < 4; kind++) {
		uint64_t log_off = 1 << 20, stamp = 1700000000000000000;

		for (int i = 0; i < NR; i++) {
			uint64_t length = kind & 1 ? 1 + rnd() % (1 << 20) : 4096,
				 off = rnd() % (100ull << 30);

			stamp += rnd() % 100000000;
			many[i] = (struct index_record){ INDEX_WRITE,
							 kind & 2 ? off : off / 4096 * 4096,
							 length,
							 0,
							 1,
							 log_off,
							 stamp,
							 0,
							 0 };
			log_off += length;
		}
		cr_assert_leq(index_block_encode(&block, buf), 16 * NR, "kind %d", kind);
	}
	mem_free(buf);
}

Test(index_block, every_torn_beginning_is_told_from_damage)
{
	size_t len;
	uint8_t *buf = make(3, 0, &len);
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

Test(index_block, no_flipped_bit_goes_unnoticed_or_looks_torn)
{
	size_t len;
	uint8_t *buf = make(2, 0, &len);

	for (size_t bit = 0; bit < len * 8; bit++) {
		struct index_block block;
		ssize_t used;

		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
		used = index_block_parse(&block, buf, len);
		if (bit / 8 == 7) /* the version in the magic */
			cr_assert(used == -EBADMSG || used == -EPROTONOSUPPORT, "bit %zu", bit);
		else if (bit / 8 == 12 || bit / 8 == 13) /* a header longer than all there is */
			cr_assert(used == -EBADMSG || used == -ENODATA, "bit %zu", bit);
		else
			cr_assert_eq(used, -EBADMSG, "bit %zu", bit);
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	mem_free(buf);
}

Test(index_block, unknown_records_are_passed_over)
{
	struct index_cursor cur = { 0 };
	struct index_block block;
	struct index_record rec;
	size_t len;
	uint8_t *buf = make(3, 0, &len), *second = buf + INDEX_BLOCK_HEADER_LEN;

	while (get_le16(second) != 0x8000 + INDEX_TRUNCATE)
		second++;
	put_le16(second, 0x8000 + 77);
	reseal(buf, len);
	cr_assert_gt(index_block_parse(&block, buf, len), 0);
	cr_assert_eq(index_block_record(&block, &cur, &rec), 1);
	cr_assert(same(&rec, &records[0]));
	cr_assert_eq(index_block_record(&block, &cur, &rec), 1);
	cr_assert(same(&rec, &records[2]));
	cr_assert_eq(index_block_record(&block, &cur, &rec), 0);
	mem_free(buf);
}

Test(index_block, longer_headers_and_what_follows_the_records_are_passed_over)
{
	struct index_cursor cur = { 0 };
	struct index_block block;
	struct index_record rec;
	size_t len, more = 24;
	uint8_t *buf = make(3, 2 * more, &len);

	memmove(buf + INDEX_BLOCK_HEADER_LEN + more, buf + INDEX_BLOCK_HEADER_LEN,
		len - INDEX_BLOCK_HEADER_LEN);
	memset(buf + INDEX_BLOCK_HEADER_LEN, 0x5a, more);
	memset(buf + len + more, 0x5a, more);
	len += 2 * more;
	put_le16(buf + 12, (uint16_t)(INDEX_BLOCK_HEADER_LEN + more));
	put_le32(buf + 20, (uint32_t)len);
	put_le32(buf + 16,
		 crc32c(0, buf + INDEX_BLOCK_HEADER_LEN + more, len - INDEX_BLOCK_HEADER_LEN - more));
	put_le32(buf + 8, 0);
	put_le32(buf + 8, crc32c(0, buf, INDEX_BLOCK_HEADER_LEN + more));
	cr_assert_eq(index_block_parse(&block, buf, len), (ssize_t)len);
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(index_block_record(&block, &cur, &rec), 1);
		cr_assert(same(&rec, &records[i]), "record %d", i);
	}
	cr_assert_eq(index_block_record(&block, &cur, &rec), 0);
	mem_free(buf);
}

Test(index_block, another_version_or_an_unknown_feature_is_told_from_damage)
{
	struct index_block block;
	size_t len;
	uint8_t *buf = make(1, 0, &len);

	buf[14] = 1;
	reseal(buf, len);
	cr_assert_eq(index_block_parse(&block, buf, len), -EPROTONOSUPPORT);
	memcpy(buf, "PLFSIDX1", 8);
	cr_assert_eq(index_block_parse(&block, buf, len), -EPROTONOSUPPORT);
	memcpy(buf, "PLFSIDX3", 8);
	cr_assert_eq(index_block_parse(&block, buf, len), -EPROTONOSUPPORT);
	memcpy(buf, "PLFSIDXx", 8);
	cr_assert_eq(index_block_parse(&block, buf, len), -EBADMSG);
	mem_free(buf);
}

Test(index_block, headers_that_cannot_be_are_refused)
{
	static const struct { size_t field; uint32_t value; } bad[] = {
		{ 20, 108 }, { 20, 8 }, { 20, 0 },    /* block_len */
		{ 24, UINT32_MAX }, { 24, 1000 },     /* nr_records */
		{ 44, UINT32_MAX }, { 52, 1u << 31 }, /* log_len, chunks_off */
	};
	struct index_block block;
	size_t len;
	uint8_t *buf = make(3, 0, &len);

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		uint32_t was = get_le32(buf + bad[i].field);

		put_le32(buf + bad[i].field, bad[i].value);
		reseal(buf, len);
		cr_assert_eq(index_block_parse(&block, buf, len), -EBADMSG, "case %zu", i);
		put_le32(buf + bad[i].field, was);
	}
	mem_free(buf);
}

Test(index_block, records_that_cannot_be_are_refused)
{
	static const uint16_t bad[] = {
		0x0000,          /* no length, ever */
		0x4010,          /* an unknown bit */
		0x0019, 0x00f0,  /* numbers of 9 and 15 bytes */
		0x0888,          /* more than there is */
		0x8002,          /* a truncate record that is cut off */
	};
	struct index_block block;
	struct index_record rec;
	size_t len;
	uint8_t *buf = make(1, 0, &len);

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct index_cursor cur = { 0 };

		memset(buf + INDEX_BLOCK_HEADER_LEN, 0xff, len - INDEX_BLOCK_HEADER_LEN);
		put_le16(buf + INDEX_BLOCK_HEADER_LEN, bad[i]);
		reseal(buf, len);
		cr_assert_eq(index_block_parse(&block, buf, len), (ssize_t)len);
		cr_assert_eq(index_block_record(&block, &cur, &rec), -EBADMSG, "case %zu", i);
		cr_assert_eq(index_block_record(&block, &cur, &rec), -EBADMSG, "case %zu", i);
	}
	mem_free(buf);
}

Test(index_block_skip, finds_the_next_block_after_a_damaged_one)
{
	struct index_block block;
	size_t len;
	uint8_t *buf = make(3, 0, &len), *both = mem_alloc(3 * len);

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

Test(index_chunks, come_back_and_any_flipped_bit_or_cut_is_found)
{
	uint8_t crcs[7 * 4], buf[INDEX_CHUNKS_HEADER_LEN + sizeof(crcs)];
	struct index_chunks chunks = { 99, 7, crcs }, back;

	for (uint32_t i = 0; i < sizeof(crcs); i++)
		crcs[i] = (uint8_t)(i * 3);
	index_chunks_encode(&chunks, buf);
	cr_assert_eq(index_chunks_parse(&back, buf, sizeof(buf)), (ssize_t)sizeof(buf));
	cr_assert_eq(back.first_chunk, 99);
	cr_assert_eq(back.nr_chunks, 7);
	cr_assert_arr_eq(back.chunk_crc, crcs, sizeof(crcs));
	for (size_t len = 0; len < sizeof(buf); len++)
		cr_assert_eq(index_chunks_parse(&back, buf, len), -ENODATA);
	for (size_t bit = 0; bit < sizeof(buf) * 8; bit++) {
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
		cr_assert_lt(index_chunks_parse(&back, buf, sizeof(buf)), 0, "bit %zu", bit);
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}
