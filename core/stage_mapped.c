/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether a live file has changed, by a number of it, and what has come, from a mapping of its index: what is asked
 * at every read.
 */
#include "stage_read.h"

#include "crc32c.h"

#define STAGE_MAPPED_MAX 16 /* records */

/*
 * The sequence number covers all but a growing count or length, which is in the last record. How far of that is recorded comes last of all,
 * and who loads goes by it: a number without it would be that of a write which was not all there when it was loaded.
 */
static uint64_t digest_of(uint64_t seq, uint64_t nr, uint64_t recorded, const uint8_t *last)
{
	return (seq << 40 ^ nr << 32 ^ crc32c(0, last, INDEX_RECORD_LEN)) + recorded * 0xbf58476d1ce4e5b9;
}

int stage_digest(const struct container *c, const char *path, uint64_t *digest)
{
	uint8_t header[HEADER_LEN] = { 0 }, last[INDEX_RECORD_LEN] = { 0 };
	bool elsewhere;
	int h = stage_open_header(c, path, O_RDONLY, header, &elsewhere);
	uint64_t nr;

	*digest = 0;
	if (h == -ENODATA)
		return 0;
	if (h < 0)
		return h;
	nr = stage_number(get_le64(header + OFF_NR_RECORDS));
	if (nr)
		c->store->ops->pread(c->store, h, last, sizeof(last),
				     get_le64(header + 32) + (nr - 1) * INDEX_RECORD_LEN);
	*digest = digest_of(stage_number(get_le64(header + OFF_SEQ)), nr, stage_number(get_le64(header + OFF_RECORDED)), last);
	/*
	 * A record that has its checksum is believed when its bytes are in the log, and at the owner's end there is
	 * more to see.
	 */
	if (elsewhere)
		*digest = ~(*digest + stage_number(get_le64(header + OFF_FLUSHED)) * 0x9e3779b97f4a7c15);
	store_close(c->store, &h);
	return 0;
}

bool stage_is_whole(struct store *s, int h)
{
	struct stat st;

	return !s->ops->fstat(s, h, &st) && st.st_size >= STAGE_INDEX_LEN;
}

bool stage_mapped_is_over(const uint8_t *map)
{
	return !load_le64(map);
}

uint64_t stage_mapped_seq(const uint8_t *map)
{
	return stage_load_number(map, OFF_SEQ);
}

/*
 * A sum of products with odd numbers: another value of any one of them is another sum, by however much it has grown. The last record is
 * looked at too, though its end says enough: a file that was cut there is found by that.
 */
uint64_t stage_mapped_digest(const uint8_t *map)
{
	uint64_t nr = stage_load_number(map, OFF_NR_RECORDS),
		digest = stage_load_number(map, OFF_SEQ) * 0x9e3779b97f4a7c15 + nr +
			 stage_load_number(map, OFF_RECORDED) * 0xd6e8feb86659fd93;

	if (nr && nr <= STAGE_RECORDS_CAP) { /* what grows in the last record */
		const uint8_t *last = map + RECORDS_OFF + (nr - 1) * INDEX_RECORD_LEN;

		digest += load_le64(last + REC_LENGTH) * 0xbf58476d1ce4e5b9 + load_le64(last + REC_STRIDE) * 0x94d049bb133111eb +
			  load_le64(last + REC_COUNT) * 0xff51afd7ed558ccd;
	}
	return digest;
}

uint64_t stage_mapped_file_digest(const uint8_t *map)
{
	uint64_t nr = stage_load_number(map, OFF_NR_RECORDS), seq = stage_load_number(map, OFF_SEQ),
		recorded = stage_load_number(map, OFF_RECORDED);
	uint8_t last[INDEX_RECORD_LEN] = { 0 };

	if (nr && nr <= STAGE_RECORDS_CAP)
		memcpy(last, map + RECORDS_OFF + (nr - 1) * INDEX_RECORD_LEN, sizeof(last));
	return digest_of(seq, nr, recorded, last);
}

int stage_mapped_records(const uint8_t *map, uint64_t first, struct index_record *records, unsigned max)
{
	uint8_t raw[STAGE_MAPPED_MAX * INDEX_RECORD_LEN];
	int ret = 0;

	for (int tries = 0; tries < 100; tries++) {
		uint64_t seq = stage_load_number(map, OFF_SEQ), nr = stage_load_number(map, OFF_NR_RECORDS);

		if (seq % 2)
			continue;
		if (nr < first || nr > STAGE_RECORDS_CAP)
			return -ENODATA;
		nr -= first;
		if (nr > max || nr > STAGE_MAPPED_MAX)
			return -E2BIG;
		memcpy(raw, map + RECORDS_OFF + first * INDEX_RECORD_LEN, nr * INDEX_RECORD_LEN);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (stage_load_number(map, OFF_SEQ) != seq)
			continue;
		for (uint64_t i = 0; i < nr && !ret; i++)
			ret = stage_decode(&records[i], raw + i * INDEX_RECORD_LEN, i + 1 < nr);
		return ret ? ret : (int)nr;
	}
	return -EAGAIN;
}
