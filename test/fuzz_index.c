/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Strangers' bytes for everything in index/ that reads bytes: records, blocks, images of maps, and the merge
 * of whatever records come out. With -fsanitize=fuzzer a libFuzzer target; otherwise a program that
 * mutates valid inputs: fuzz_index [ITERATIONS [SEED]].
 *
 * The first byte of an input says what it is for; its bit 7 asks for checksums to be made right first,
 * without which hardly a mutation would get beyond them.
 */
#include "../core/alloc.h"
#include "../core/bytes.h"
#include "../core/crc32c.h"
#include "../index/block.h"
#include "../index/chunks.h"
#include "../index/image.h"
#include "../index/merge.h"
#include "../index/run.h"

#include <stdio.h>
#include <stdlib.h>

enum { FUZZ_RECORD, FUZZ_BLOCK, FUZZ_CHUNKS, FUZZ_MAP, FUZZ_MERGE, NR_FUZZ };

#define NR_LOOKUPS 48

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "fuzz_index: broken promise: %s\n", what);
	abort();
}

static void fix_crc(uint8_t *p, size_t field, size_t len)
{
	put_le32(p + field, 0);
	put_le32(p + field, crc32c(0, p, len));
}

static void fix_record(uint8_t *p, size_t len)
{
	if (len >= 8 && p[1] > 0 && (size_t)p[1] * 8 <= len)
		fix_crc(p, 4, (size_t)p[1] * 8);
}

static void fuzz_record(const uint8_t *p, size_t len)
{
	struct index_record rec, grown;
	int ret = index_record_decode(&rec, p, len);

	must(ret == -EBADMSG || (ret >= 8 && (size_t)ret <= len), "length of a record");
	if (ret < 0 || (rec.type != INDEX_WRITE && rec.type != INDEX_TRUNCATE))
		return;
	must(index_record_valid(&rec) && index_record_end(&rec) <= INT64_MAX, "a decoded record is possible");
	grown = rec;
	index_run_grow(&grown, get_le64(p + 40), get_le64(p + 16));
	index_run_fold(&grown, &rec);
	must(index_record_valid(&grown), "a grown record is possible");
}

static void fix_block(uint8_t *p, size_t len)
{
	while (len >= INDEX_BLOCK_HEADER_LEN) {
		size_t header_len = get_le16(p + 12), block_len = get_le32(p + 20);

		if (header_len < 16 || header_len > block_len || block_len > len)
			return;
		put_le32(p + 16, crc32c(0, p + header_len, block_len - header_len));
		fix_crc(p, 8, header_len);
		p += block_len;
		len -= block_len;
	}
}

static void fuzz_block(const uint8_t *p, size_t len)
{
	size_t at = 0;

	while (at < len) {
		struct index_cursor cur = { 0 };
		struct index_block block;
		struct index_record rec;
		ssize_t used = index_block_parse(&block, p + at, len - at);

		must(used == -EBADMSG || used == -ENODATA || used == -EPROTONOSUPPORT ||
			     (used > 0 && (size_t)used <= len - at),
		     "length of a block");
		if (used > 0) {
			must(used % 8 == 0, "shape of a block");
			while (index_block_record(&block, &cur, &rec) > 0)
				must(index_record_valid(&rec), "a block's record is possible");
			must(cur.pos <= block.encoded_len, "records are in their block");
		} else {
			used = (ssize_t)index_block_skip(p + at, len - at);
			must(used > 0 && (size_t)used <= len - at, "length of a skip");
		}
		at += (size_t)used;
	}
}

static void fix_chunks(uint8_t *p, size_t len)
{
	size_t whole = len >= INDEX_CHUNKS_HEADER_LEN ? index_chunks_len(get_le32(p + 12)) : SIZE_MAX;

	if (whole <= len)
		fix_crc(p, 8, whole);
}

static void fuzz_chunks(const uint8_t *p, size_t len)
{
	struct index_chunks chunks;
	ssize_t used = index_chunks_parse(&chunks, p, len);
	uint32_t sum = 0;

	must(used == -EBADMSG || used == -ENODATA || (used > 0 && (size_t)used <= len), "length of a table");
	for (uint32_t i = 0; used > 0 && i < chunks.nr_chunks; i++)
		sum += get_le32(chunks.chunk_crc + (size_t)i * 4);
	must(used <= 0 || (chunks.first_chunk + chunks.nr_chunks) * INDEX_CHUNK_LEN + (sum & 0) <= INT64_MAX, "chunks that can be");
}

static void check_lookup(const struct index_map *map, uint64_t x, uint64_t len)
{
	struct index_piece piece;

	index_map_lookup(map, x, len, &piece);
	must(piece.logical_off == x && piece.len > 0 && piece.len <= len,
	     "a piece begins and ends where it may");
}

static void check_lookups(const struct index_map *map, uint64_t seed)
{
	for (int i = 0; i < NR_LOOKUPS; i++) {
		uint64_t x = seed >> (i % 64);

		if (map->nr_panels > 0 && i % 4) {
			const uint8_t *panel = map->panels + seed % map->nr_panels * IMAGE_PANEL_LEN;

			x = get_le64(panel + (i % 8 < 4 ? 0 : 8)) + (i % 3) - 1 + (i % 5 ? 0 : seed >> 44);
		}
		check_lookup(map, x, 1 + (seed >> (i % 60)));
		seed = seed * 6364136223846793005 + 1442695040888963407;
	}
}

static void fuzz_map(uint8_t *p, size_t len, bool fix)
{
	struct index_map map;

	if (fix && len >= IMAGE_HEADER_LEN) {
		put_le64(p + 24, len);
		if (get_le32(p + 12) >= IMAGE_HEADER_LEN && get_le32(p + 12) <= len)
			fix_crc(p, 16, get_le32(p + 12));
	}
	if (index_map_open(&map, p, len, !fix) == 0)
		check_lookups(&map, crc32c(0, p, len) * 0x9e3779b97f4a7c15);
}

/* Records of 32 bytes or so each, cut down to what is possible; the map must keep its promises. */
static void fuzz_merge(const uint8_t *p, size_t len)
{
	struct index_merge merge;
	struct index_map map;
	struct index_piece piece;
	uint64_t x = 0;
	size_t image_len;
	void *image;

	index_merge_init(&merge);
	for (; len >= 24; p += 24, len -= 24) {
		int shift = p[1] % 60;
		struct index_record rec = {
			.type = p[0] % 8 ? INDEX_WRITE : INDEX_TRUNCATE,
			.logical_off = get_le64(p + 2) >> shift,
			.length = p[0] % 8 ? get_le32(p + 10) >> (shift / 2) : 0,
			.stride = get_le64(p + 8) >> shift,
			.count = p[0] % 8 ? (p[0] % 3 ? 1 + (get_le16(p + 14) >> (shift / 4)) : 1) : 0,
			.log_off = get_le32(p + 16),
			.stamp_ns = p[20] % 16,
		};

		if (rec.count > 1 && p[22] % 2) {
			rec.outer_count = 2 + p[22] / 8;
			rec.outer_stride = p[22] % 4 < 2 ? (rec.count - 1) * rec.stride + rec.length + p[23] : rec.length + p[23] % 4;
		}

		index_merge_add(&merge, p[21] % 4, &rec);
	}
	must(index_merge_build(&merge, &image, &image_len) == 0, "a map can be built");
	index_merge_release(&merge);
	must(index_map_open(&map, image, image_len, true) == 0, "a map that was built can be opened");
	check_lookups(&map, image_len * 0x9e3779b97f4a7c15);
	for (int i = 0; i < 2000 && x < map.end; i++, x += piece.len)
		index_map_lookup(&map, x, map.end - x, &piece);
	if (map.end > 0) {
		index_map_lookup(&map, map.end - 1, 2, &piece);
		must(piece.log_no < INDEX_LOG_CUT && piece.len == 1, "the last byte is data");
	}
	mem_free(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *p;
	size_t len;
	bool fix;

	if (size == 0)
		return 0;
	fix = data[0] & 0x80;
	len = size - 1;
	p = malloc(len ? len : 1); /* of its own, so that the sanitizer sees where it ends */
	if (!p)
		return 0;
	memcpy(p, data + 1, len);
	switch (data[0] % NR_FUZZ) {
	case FUZZ_RECORD:
		if (fix)
			fix_record(p, len);
		fuzz_record(p, len);
		break;
	case FUZZ_BLOCK:
		if (fix)
			fix_block(p, len);
		fuzz_block(p, len);
		break;
	case FUZZ_CHUNKS:
		if (fix)
			fix_chunks(p, len);
		fuzz_chunks(p, len);
		break;
	case FUZZ_MAP:
		fuzz_map(p, len, fix);
		break;
	default:
		fuzz_merge(p, len);
	}
	free(p);
	return 0;
}

static uint64_t rng_state;

static uint64_t rnd(uint64_t below)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return (rng_state * 0x2545f4914f6cdd1d >> 16) % below;
}

static struct index_record random_record(void)
{
	uint64_t stride = 1 + rnd(1 << rnd(16));
	struct index_record rec;

	if (rnd(12) == 0)
		return (struct index_record){ .type = INDEX_TRUNCATE, .logical_off = rnd(1 << 20) };
	rec = (struct index_record){ INDEX_WRITE, rnd(1 << 16), 1 + rnd(stride), stride, 1 + rnd(2) * rnd(1000), rnd(1 << 20), rnd(100),
				     0, 0 };
	if (rec.count > 1 && rnd(2)) {
		rec.outer_stride = (rec.count - 1) * stride + rec.length + rnd(100);
		rec.outer_count = 2 + rnd(1000);
	}
	return rec;
}

/* A valid input for @what; mem_free() it. */
static uint8_t *valid_input(int what, size_t *size)
{
	struct index_record recs[32];
	uint8_t crcs[32] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	struct index_chunks chunks = { rnd(1000), (uint32_t)rnd(sizeof(crcs) / 4), crcs };
	struct index_block block = { .pid = 77, .log_len = 1 << 19, .records = recs };
	struct index_merge merge;
	uint8_t *buf = NULL;
	void *image = NULL;
	size_t len = 0;

	block.nr_records = 1 + (uint32_t)rnd(ARRAY_SIZE(recs));
	for (uint32_t i = 0; i < block.nr_records; i++)
		recs[i] = random_record();
	switch (what) {
	case FUZZ_RECORD:
		len = INDEX_RECORD_LEN;
		break;
	case FUZZ_BLOCK:
		len = index_block_max_len(&block) * 2;
		break;
	case FUZZ_CHUNKS:
		len = index_chunks_len(chunks.nr_chunks);
		break;
	case FUZZ_MAP:
		index_merge_init(&merge);
		for (uint32_t i = 0; i < block.nr_records; i++)
			index_merge_add(&merge, (uint32_t)rnd(4), &recs[i]);
		must(index_merge_build(&merge, &image, &len) == 0, "a map can be built");
		index_merge_release(&merge);
		break;
	default:
		len = 24 * rnd(100);
	}
	buf = mem_alloc(len + 1);
	must(buf != NULL, "there is memory");
	buf[0] = (uint8_t)(what + NR_FUZZ * rnd(8) + (rnd(3) ? 0x80 : 0));
	if (what == FUZZ_RECORD) {
		index_record_encode(&recs[0], buf + 1);
	} else if (what == FUZZ_BLOCK) {
		len = index_block_encode(&block, buf + 1);
		len += index_block_encode(&block, buf + 1 + len);
	} else if (what == FUZZ_CHUNKS) {
		index_chunks_encode(&chunks, buf + 1);
	} else if (what == FUZZ_MAP) {
		memcpy(buf + 1, image, len);
	} else {
		for (size_t i = 1; i <= len; i++)
			buf[i] = (uint8_t)rnd(256);
	}
	mem_free(image);
	*size = len + 1;
	return buf;
}

static void mutate(uint8_t *p, size_t *len)
{
	static const uint64_t odd[] = { 0, 1, 7, 255, UINT32_MAX, INT64_MAX, UINT64_MAX, UINT64_MAX - 1,
					1ull << 32 };

	for (uint64_t n = rnd(6); n > 0 && *len > 1; n--) {
		uint64_t at = 1 + rnd(rnd(2) ? *len - 1 : min_u64(*len - 1, 200)), v =
			odd[rnd(ARRAY_SIZE(odd))];

		switch (rnd(5)) {
		case 0: p[at] ^= (uint8_t)(1 << rnd(8)); break;
		case 1: p[at] = (uint8_t)rnd(256); break;
		case 2:
		case 3:
			at = 1 + (at - 1) / 8 * 8; /* fields are aligned to their size */
			if (at + 8 <= *len)
				put_le64(p + at, rnd(2) ? v : get_le64(p + at) + rnd(17) - 8);
			break;
		default:
			if (rnd(4) == 0)
				*len = at;
		}
	}
}

/* Weak: with -fsanitize=fuzzer libFuzzer's own takes its place. */
__attribute__((weak)) int main(int argc, char **argv)
{
	uint64_t iterations = argc > 1 ? strtoull(argv[1], NULL, 0) : 100000;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;

	for (uint64_t i = 0; i < iterations; i++) {
		uint8_t *buf;
		size_t len;

		rng_state = (seed + i) * 0x9e3779b97f4a7c15 | 1;
		rnd(2);
		buf = valid_input((int)((seed + i) % NR_FUZZ), &len);
		mutate(buf, &len);
		LLVMFuzzerTestOneInput(buf, len);
		mem_free(buf);
	}
	printf("fuzz_index: %lu inputs from seed %lu\n", iterations, seed);
	return 0;
}
