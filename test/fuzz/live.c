/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Live files as readers see them: read, or mapped, of a writer that lives or was killed, on this host or
 * another. An input is what is written in the file: header, the words that change, and records, which are put
 * where the header says.
 */
#include "fuzz.h"

#include "core/dropping/datalog.h"
#include "core/dropping/live.h"
#include "core/gather/gather.h"

#include "droppings.h"
#include "lookups.h"
#include "in_memory.h"
#include "records.h"

const char fuzz_name[] = "live";

static void check_records(const struct index_record *records, uint64_t nr)
{
	for (uint64_t i = 0; i < nr; i++)
		must((records[i].type != INDEX_WRITE && records[i].type != INDEX_TRUNCATE) ||
			     index_record_valid(&records[i]),
		     "a loaded record is possible");
}

static void look_at_mapping(const uint8_t *file, size_t len)
{
	struct index_record records[20];
	uint8_t *map;
	int nr;

	if (len < LIVE_INDEX_LEN)
		return;
	map = malloc(LIVE_INDEX_LEN);
	memcpy(map, file, LIVE_INDEX_LEN);
	live_mapped_digest(map);
	live_mapped_file_digest(map);
	for (uint64_t first = 0; first < 3; first++) {
		nr = live_mapped_records(map, first * get_le64(map + LIVE_OFF_NR_RECORDS) / 2, records,
					 ARRAY_SIZE(records));
		must(nr <= (int)ARRAY_SIZE(records), "no more records than there is room for");
		if (nr > 0)
			check_records(records, (uint64_t)nr);
	}
	free(map);
}

static void gather_all(const struct container *c)
{
	struct gathered g = { 0 };
	struct index_inputs in;
	int ret = index_inputs_list(&in, c, NULL);

	must_be(!ret || ret == -EIO || ret == -EPROTONOSUPPORT, ret, "an error that is documented");
	if (ret)
		return;
	ret = gather(&g, c, &in, NULL, 0, 0);
	must_be(ret == 0 || (ret == 1 && g.reason <= GATHER_UNKNOWN_LOG) || ret == -EIO ||
			ret == -EPROTONOSUPPORT,
		ret, "an error that is documented");
	if (!ret) {
		check_lookups(&g.map, g.image_len * 0x9e3779b97f4a7c15);
		check_made(&g.map);
	}
	for (uint32_t i = 0; g.logs && i < g.nr_logs; i++) {
		must((!strncmp(g.logs[i], "hostdir.1/data.", 15) ||
		      !strncmp(g.logs[i], "hostdir.1/lost.", 15)) &&
			     !strchr(g.logs[i] + 10, '/'),
		     "a live file names a log beside it");
		mem_free(g.logs[i]);
	}
	mem_free(g.logs);
	mem_free(g.seen);
	mem_free(g.image);
	index_inputs_release(&in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char path[] = "hostdir.1/live.host.1.0";
	struct index_record *records;
	struct live_state state;
	struct container c;
	struct store s;
	uint8_t *file, bytes[64];
	uint64_t digest;
	size_t len;
	ssize_t n;
	int ret;

	if (!size)
		return 0;
	fuzz_init();
	file = unpack_live(data + 1, size - 1, data[0] & FIX ? mem_id : NULL, &len);
	mem_container(&s, &c);
	s.remote = data[0] & 1; /* as if its owner lived on another host */
	mem_put(&c, path, file, len, data[0] & 2 ? 1ull << 40 : size % 5 == 4 ? 0 : LIVE_FILE_LEN);
	mem_put(&c, "hostdir.1/data.host.1.0", "", 0, DATALOG_DATA_OFF + (1 << 20));

	memory_begin();
	ret = live_load(&c, path, &state, &records);
	must_be(!ret || ret == -EBADMSG || ret == -EPROTONOSUPPORT, ret, "an error that is documented");
	must(ret || strlen(state.log_name) < INDEX_LOG_NAME_LEN, "the log's name ends");
	if (!ret)
		check_records(records, state.nr_records);
	mem_free(records);
	live_digest(&c, path, &digest);
	live_is_unmapped(&c, path);
	for (int i = 0; i < 4; i++) {
		n = live_load_bytes(&c, path, get_le64(file + LIVE_OFF_FLUSHED_LEN) + (uint64_t)i * 1000,
				    bytes, sizeof(bytes));
		must(n <= (ssize_t)sizeof(bytes), "no more bytes than there is room for");
	}
	look_at_mapping(file, len);
	gather_all(&c);
	memory_end((16 << 20) + 64 * size);
	store_memory_close(&s);
	free(file);
	return 0;
}

static size_t fuzz_valid(uint8_t *buf)
{
	static const uint64_t words[] = { LIVE_RECORDS_OFF, LIVE_RECORDS_CAP, LIVE_CHUNKS_OFF,
					  LIVE_CHUNKS_CAP,  LIVE_STAGE_OFF,   LIVE_CAP };
	uint64_t nr = rnd(20);
	uint8_t *p = buf + 1;

	buf[0] = (uint8_t)((rnd(8) ? FIX : 0) | rnd(4));
	memset(p, 0, PACKED_LEN);
	memcpy(p, LIVE_MAGIC, 8);
	put_le32(p + 8, LIVE_VERSION);
	memcpy(p + 16, mem_id, STUB_ID_LEN);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		put_le64(p + 32 + 8 * i, words[i]);
	strcpy((char *)p + 80, rnd(4) ? "data.host.1.0" : "data.x/../../y");
	fix_crc(p, 12, LIVE_FIXED_LEN);
	p += LIVE_FIXED_LEN;
	put_le64(p, rnd(8) == 0);
	put_le64(p + 8, nr);
	put_le64(p + 16, 1000);
	put_le64(p + 24, rnd(3000));
	for (uint64_t i = 0; i < nr; i++) {
		struct index_record rec = random_record();

		index_record_encode(&rec, buf + 1 + PACKED_LEN + i * INDEX_RECORD_LEN);
	}
	return 1 + PACKED_LEN + (size_t)nr * INDEX_RECORD_LEN + (size_t)rnd(5);
}
