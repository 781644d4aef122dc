/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What makes mutated droppings right again, as far as checksums and ids go.
 */
#ifndef TEST_DROPPINGS_H
#define TEST_DROPPINGS_H

#include "core/dropping/datalog.h"
#include "core/dropping/live_layout.h"
#include "index/map/image.h"

#include "records.h"

__attribute__((unused)) static void fix_image(uint8_t *p, size_t len)
{
	uint32_t header_len;

	if (len < IMAGE_HEADER_LEN)
		return;
	header_len = get_le32(p + 12);
	put_le64(p + 24, len);
	if (header_len < IMAGE_HEADER_LEN || header_len > len)
		return;
	put_le32(p + 20, crc32c(0, p + header_len, len - header_len));
	fix_crc(p, 16, header_len);
}

__attribute__((unused)) static void fix_global(uint8_t *p, size_t len, const uint8_t *id)
{
	uint64_t inputs_len, names_len, map_off, map_len;

	if (len < 144)
		return;
	memcpy(p, "PLFSGLB1", 8);
	put_le32(p + 8, 3);
	memcpy(p + 16, id, STUB_ID_LEN);
	inputs_len = get_le64(p + 40);
	names_len = get_le64(p + 48);
	map_off = get_le64(p + 56);
	map_len = get_le64(p + 64);
	if (map_off <= len && map_len <= len - map_off)
		fix_image(p + map_off, map_len);
	if (inputs_len <= len && names_len <= len && 144 + inputs_len + names_len <= len)
		put_le32(p + 76, crc32c(0, p + 144, inputs_len + names_len));
	fix_crc(p, 12, 128);
}

#define PACKED_LEN \
	(LIVE_FIXED_LEN + (LIVE_OFF_LAST_CRC - LIVE_OFF_SEQ)) /* in an input, in front of the records */
#define LIVE_LEN (LIVE_STAGE_OFF + 4096)

/* The last record, which may be growing: in its length if its count is 1, else in its count. */
static void fix_last(uint8_t *file, uint8_t *rec)
{
	int grows = get_le64(rec + REC_COUNT) == 1 ? REC_LENGTH : REC_COUNT;
	uint64_t v = get_le64(rec + grows);

	if (rec + INDEX_RECORD_LEN > file + LIVE_STAGE_OFF)
		return;
	put_le64(file + LIVE_OFF_RECORDED_LEN,
		 (get_le64(rec + REC_LOG_OFF) + get_le64(rec + REC_LENGTH) * get_le64(rec + REC_COUNT)) &
			 LIVE_WORD_MAX);
	put_le64(rec + grows, 0);
	fix_record(rec, INDEX_RECORD_LEN);
	put_le64(rec + grows, v);
}

/*
 * The first LIVE_LEN bytes of the live file that an input says: header, the words that change, and records,
 * which are put where the header says. @id: make what has a checksum right, for that container; or NULL.
 * free() it.
 */
__attribute__((unused)) static uint8_t *unpack_live(const uint8_t *p, size_t len, const uint8_t *id,
						    size_t *file_len)
{
	size_t nr = len > PACKED_LEN ? (len - PACKED_LEN) / INDEX_RECORD_LEN : 0;
	uint8_t *file = calloc(1, LIVE_LEN), packed[PACKED_LEN] = { 0 };
	uint64_t off;

	memcpy(packed, p, min_size(len, PACKED_LEN));
	memcpy(file, packed, LIVE_FIXED_LEN);
	memcpy(file + LIVE_OFF_SEQ, packed + LIVE_FIXED_LEN, PACKED_LEN - LIVE_FIXED_LEN);
	if (id) {
		memcpy(file, LIVE_MAGIC, 8);
		put_le32(file + 8, LIVE_VERSION);
		memcpy(file + 16, id, STUB_ID_LEN);
		fix_crc(file, 12, LIVE_FIXED_LEN);
	}
	off = min_u64(get_le64(file + 32), LIVE_STAGE_OFF - INDEX_RECORD_LEN);
	for (size_t i = 0; i < nr && off + (i + 1) * INDEX_RECORD_LEN <= LIVE_STAGE_OFF; i++) {
		uint8_t *rec = file + off + i * INDEX_RECORD_LEN;

		memcpy(rec, p + PACKED_LEN + i * INDEX_RECORD_LEN, INDEX_RECORD_LEN);
		if (id)
			fix_record(rec, INDEX_RECORD_LEN);
	}
	for (size_t i = 0; id && i < ARRAY_SIZE(LIVE_WORDS); i++)
		put_le64(file + LIVE_WORDS[i], get_le64(file + LIVE_WORDS[i]) & LIVE_WORD_MAX);
	if (id && get_le64(file + LIVE_OFF_NR_RECORDS) && get_le64(file + LIVE_OFF_NR_RECORDS) <= nr)
		fix_last(file, file + off + (get_le64(file + LIVE_OFF_NR_RECORDS) - 1) * INDEX_RECORD_LEN);
	for (size_t i = 0; id && i < ARRAY_SIZE(LIVE_WORDS); i++)
		put_le64(file + LIVE_WORDS[i], live_word(get_le64(file + LIVE_WORDS[i])));
	*file_len = len % 5 == 4 ? min_size(LIVE_HEADER_LEN + len, LIVE_LEN) : LIVE_LEN;
	return file;
}

__attribute__((unused)) static void fix_log(uint8_t *p, size_t len, const uint8_t *id)
{
	if (len < DATALOG_HEADER_LEN)
		return;
	memcpy(p, DATALOG_MAGIC, 8);
	put_le32(p + 8, DATALOG_VERSION);
	memcpy(p + 16, id, STUB_ID_LEN);
	fix_crc(p, 12, DATALOG_HEADER_LEN);
}

#endif
