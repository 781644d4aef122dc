/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Node indexes: records, blocks, files of them in a container, which are gathered and merged, and merges of
 * whatever records come out.
 */
#include "fuzz.h"

#include "core/gather/gather.h"
#include "index/map/merge.h"
#include "index/record/run.h"

#include "lookups.h"
#include "in_memory.h"
#include "records.h"

const char fuzz_name[] = "index";

enum { FUZZ_RECORD, FUZZ_BLOCK, FUZZ_FILES, FUZZ_MERGE, NR_FUZZ };

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

/*
 * A container of one or two node indexes. What is in memory at any moment stays in proportion to what is in
 * the files.
 */
static void fuzz_files(const uint8_t *p, size_t len, bool two)
{
	size_t half = two ? len / 16 * 8 : len;
	struct index_inputs in;
	struct container c;
	struct gathered g = { 0 };
	struct store s;
	int ret;

	mem_container(&s, &c);
	mem_put(&c, "hostdir.1/index.a", p, half, 0);
	if (two)
		mem_put(&c, "hostdir.2/index.b", p + half, len - half, 0);
	memory_begin();
	ret = index_inputs_list(&in, &c, NULL);
	must(!ret, "a container that is there can be listed");
	ret = gather(&g, &c, &in, NULL, two ? 3 : 0, 0);
	must_be(ret == 0 || (ret == 1 && g.reason <= GATHER_UNKNOWN_LOG) || ret == -EIO ||
			ret == -EPROTONOSUPPORT,
		ret, "an error that is documented");
	if (!ret) {
		check_lookups(&g.map, g.image_len * 0x9e3779b97f4a7c15);
		check_made(&g.map);
	}
	memory_end((1 << 20) + 128 * len);
	kept_map_close(&g.global, &c);
	if (!g.mapped)
		mem_free(g.image);
	for (uint32_t i = 0; g.logs && i < g.nr_logs; i++)
		mem_free(g.logs[i]);
	mem_free(g.logs);
	mem_free(g.seen);
	index_inputs_release(&in);
	store_memory_close(&s);
}

/* Records of 24 bytes each, cut down to what is possible; the map must keep its promises. */
static void fuzz_merge(const uint8_t *p, size_t len)
{
	struct index_merge merge;
	struct index_map map;
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
			rec.outer_stride = p[22] % 4 < 2 ? (rec.count - 1) * rec.stride + rec.length + p[23] :
							   rec.length + p[23] % 4;
			if (p[0] & 64) { /* very many of them */
				rec.outer_count = 1ull << (p[22] % 48);
				rec.outer_stride = rec.count * rec.stride;
			}
		}
		index_merge_add(&merge, p[21] % 4, &rec);
	}
	must(index_merge_build(&merge, &image, &image_len) == 0, "a map can be built");
	index_merge_release(&merge);
	must(index_map_open(&map, image, image_len, true) == 0, "a map that was built can be opened");
	check_lookups(&map, image_len * 0x9e3779b97f4a7c15);
	check_made(&map);
	mem_free(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *p = copy_behind_head(data, size);
	bool fix = p && data[0] & FIX;
	size_t len = size - 1;

	if (!p)
		return 0;
	fuzz_init();
	switch (data[0] % NR_FUZZ) {
	case FUZZ_RECORD:
		if (fix)
			fix_record(p, len);
		fuzz_record(p, len);
		break;
	case FUZZ_BLOCK:
		if (fix)
			fix_blocks(p, len);
		fuzz_block(p, len);
		break;
	case FUZZ_FILES:
		if (fix)
			fix_blocks(p, len);
		fuzz_files(p, len, data[0] & 0x40);
		break;
	default:
		fuzz_merge(p, len);
	}
	free(p);
	return 0;
}

static size_t fuzz_valid(uint8_t *buf)
{
	int what = (int)rnd(NR_FUZZ);
	struct index_record rec = random_record();
	size_t len = 0;

	buf[0] = (uint8_t)(what | (rnd(2) ? 0x40 : 0) | (rnd(3) ? FIX : 0));
	if (what == FUZZ_RECORD) {
		index_record_encode(&rec, buf + 1);
		return 1 + INDEX_RECORD_LEN;
	}
	if (what == FUZZ_MERGE) {
		len = 24 * rnd(100);
		for (size_t i = 1; i <= len; i++)
			buf[i] = (uint8_t)rnd(256);
		return 1 + len;
	}
	for (uint64_t n = 1 + rnd(4); n > 0; n--)
		len += random_block(buf + 1 + len, (uint32_t)rnd(4));
	return 1 + len;
}
