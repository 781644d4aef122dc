/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kept maps: the image alone, and index.global with its header, lists and image, in a container with the node
 * index it was made from. An image is looked at verified and not: of one that was damaged after it was
 * verified no lookup may do worse than be wrong.
 */
#include "fuzz.h"

#include "core/gather/gather.h"
#include "index/map/merge.h"

#include "droppings.h"
#include "lookups.h"
#include "in_memory.h"
#include "records.h"

const char fuzz_name[] = "map";

enum { FUZZ_IMAGE, FUZZ_GLOBAL, NR_FUZZ };

static void fuzz_image(uint8_t *p, size_t len, bool verify)
{
	struct index_map map;
	int ret = index_map_open(&map, p, len, verify);

	must_be(!ret || ret == -EBADMSG || ret == -EPROTONOSUPPORT, ret, "an error that is documented");
	if (!ret)
		check_lookups(&map, crc32c(0, p, len) * 0x9e3779b97f4a7c15);
}

/* A kept map names logs of its container alone. */
static void check_names(char **logs, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		const char *slash = strchr(logs[i], '/');

		must(!strncmp(logs[i], "hostdir.", 8) && slash && !strchr(slash + 1, '/') &&
			     !strncmp(slash, "/data.", 6) && strlen(logs[i]) < CONTAINER_PATH_LEN,
		     "a kept map names logs of its container");
	}
}

static void drop(struct gathered *g, const struct container *c)
{
	for (uint32_t i = 0; g->logs && i < g->nr_logs; i++)
		mem_free(g->logs[i]);
	mem_free(g->logs);
	mem_free(g->seen);
	if (!g->mapped)
		mem_free(g->image);
	kept_map_close(&g->global, c);
}

static void fuzz_global(const uint8_t *p, size_t len, bool confirm, bool sparse)
{
	struct index_inputs in;
	struct container c;
	struct gathered g;
	struct store_identity id;
	struct store s;
	uint8_t word[8];
	int ret, h;

	mem_container(&s, &c);
	h = mem_put(&c, "index.global", p, len, sparse ? 1ull << 40 : 0);
	if (confirm && len >= 144) {
		must(!store_identify(&s, h, &id), "a file has an identity");
		put_le64(word, id.ino);
		must(s.ops->pwrite(&s, h, word, sizeof(word), 128) == sizeof(word), "it is confirmed");
	}
	mem_put(&c, "hostdir.1/index.a", p, min_size(len, 96), 0);
	memory_begin();
	ret = gather_confirmed(&g, &c, get_le64(len >= 40 ? p + 32 : mem_id));
	if (!ret) {
		check_names(g.logs, g.nr_logs);
		check_lookups(&g.map, crc32c(0, p, len) * 0x9e3779b97f4a7c15);
		kept_map_is_current(&g.global, &c);
		kept_map_logs_digest(&g.global);
		drop(&g, &c);
	}
	memset(&g, 0, sizeof(g));
	must(!index_inputs_list(&in, &c, NULL), "a container that is there can be listed");
	ret = gather(&g, &c, &in, NULL, len >= 40 ? get_le64(p + 32) : 0, 0);
	if (!ret)
		check_names(g.logs, g.nr_logs);
	drop(&g, &c);
	index_inputs_release(&in);
	memory_end((2 << 20) + 64 * len);
	store_memory_close(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *p = copy_behind_head(data, size);
	size_t len = size - 1;

	if (!p)
		return 0;
	fuzz_init();
	if (data[0] % NR_FUZZ == FUZZ_IMAGE) {
		if (data[0] & FIX)
			fix_image(p, len);
		fuzz_image(p, len, data[0] & 0x40);
	} else {
		if (data[0] & FIX)
			fix_global(p, len, mem_id);
		fuzz_global(p, len, data[0] & 0x40, data[0] & 0x20);
	}
	free(p);
	return 0;
}

static size_t valid_global(uint8_t *buf, const void *image, size_t image_len)
{
	char *inputs[] = { (char *)"hostdir.1/index.a" },
	     *logs[] = { (char *)"hostdir.1/data.a.1.0", (char *)"hostdir.1/data.a.2.0" };
	uint64_t size = 96;
	struct index_inputs in = { .indexes = inputs, .sizes = &size, .nr_indexes = (uint32_t)rnd(2) };
	struct kept_map_parts parts = { .inputs = &in,
					.logs = logs,
					.nr_logs = (uint32_t)rnd(3),
					.image = image,
					.image_len = image_len };
	struct container c;
	struct store s;
	ssize_t len;
	int h;

	mem_container(&s, &c);
	h = kept_map_create(&c, &parts);
	must(h >= 0, "a map can be kept");
	len = s.ops->pread(&s, h, buf, INPUT_MAX - 1, 0);
	must(len >= 0, "and read");
	store_memory_close(&s);
	return (size_t)len;
}

static size_t fuzz_valid(uint8_t *buf)
{
	int what = (int)rnd(NR_FUZZ);
	struct index_merge merge;
	size_t len;
	void *image;

	fuzz_init();
	index_merge_init(&merge);
	for (uint64_t n = 1 + rnd(30); n > 0; n--) {
		struct index_record rec = random_record();

		index_merge_add(&merge, (uint32_t)rnd(2), &rec);
	}
	must(index_merge_build(&merge, &image, &len) == 0, "a map can be built");
	index_merge_release(&merge);
	buf[0] = (uint8_t)(what | (rnd(2) ? 0x40 : 0) | (rnd(8) ? 0 : 0x20) | (rnd(3) ? FIX : 0));
	len = min_size(len, INPUT_MAX - 4096);
	if (what == FUZZ_IMAGE)
		memcpy(buf + 1, image, len);
	else
		len = valid_global(buf + 1, image, len);
	mem_free(image);
	return 1 + len;
}
