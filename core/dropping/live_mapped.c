/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether a live file has changed, by a number of it, and what has come, from a mapping of its index: what is
 * asked at every read.
 */
#include "core/dropping/live_read.h"

#include "core/base/alloc.h"
#include "core/base/crc32c.h"

#define FEW 16 /* records: on the stack */

/*
 * The sequence number covers all but a growing count or length, which is in the last record. The owner stores
 * recorded_len last, and readers believe a growing record up to there. Without it the digest could be that of
 * a write which was not complete when it was loaded.
 */
static uint64_t digest_of(uint64_t seq, uint64_t nr, uint64_t recorded, const uint8_t *last)
{
	return (seq << 40 ^ nr << 32 ^ crc32c(0, last, INDEX_RECORD_LEN)) + recorded * 0xbf58476d1ce4e5b9;
}

int live_digest(const struct container *c, const char *path, uint64_t *digest)
{
	uint8_t last[INDEX_RECORD_LEN] = { 0 };
	struct live_head head;
	bool elsewhere;
	int h = live_open_header(c, path, O_RDONLY, &head, &elsewhere);
	uint64_t nr;

	*digest = 0;
	if (h == -ENODATA)
		return 0;
	if (h < 0)
		return h;
	nr = head.words.nr_records;
	if (nr)
		c->store->ops->pread(c->store, h, last, sizeof(last),
				     head.fixed.records_off + (nr - 1) * INDEX_RECORD_LEN);
	*digest = digest_of(head.words.seq, nr, head.words.recorded_len, last);
	/*
	 * A record that has its checksum is believed when its bytes are in the log, and at the owner's end
	 * there is more to see.
	 */
	if (elsewhere)
		*digest = ~(*digest + head.words.flushed_len * 0x9e3779b97f4a7c15);
	store_close(c->store, &h);
	return 0;
}

bool live_is_whole(struct store *s, int h)
{
	struct stat st;

	return !s->ops->fstat(s, h, &st) && st.st_size >= LIVE_INDEX_LEN;
}

bool live_mapped_is_over(const uint8_t *map)
{
	return !load_le64(map);
}

uint64_t live_mapped_seq(const uint8_t *map)
{
	return live_load_number(map, LIVE_OFF_SEQ);
}

/*
 * A sum of products with odd numbers: another value of any one of them is another sum, by however much it has
 * grown. The last record is looked at too, though its end says enough: a file that was cut there is found by
 * that.
 */
uint64_t live_mapped_digest(const uint8_t *map)
{
	uint64_t nr = live_load_number(map, LIVE_OFF_NR_RECORDS),
		digest = live_load_number(map, LIVE_OFF_SEQ) * 0x9e3779b97f4a7c15 + nr +
			 live_load_number(map, LIVE_OFF_RECORDED_LEN) * 0xd6e8feb86659fd93;

	if (nr && nr <= LIVE_RECORDS_CAP) { /* what grows in the last record */
		const uint8_t *last = map + LIVE_RECORDS_OFF + (nr - 1) * INDEX_RECORD_LEN;

		digest += load_le64(last + REC_LENGTH) * 0xbf58476d1ce4e5b9 +
			  load_le64(last + REC_STRIDE) * 0x94d049bb133111eb +
			  load_le64(last + REC_COUNT) * 0xff51afd7ed558ccd;
	}
	return digest;
}

uint64_t live_mapped_file_digest(const uint8_t *map)
{
	uint64_t nr = live_load_number(map, LIVE_OFF_NR_RECORDS), seq = live_load_number(map, LIVE_OFF_SEQ),
		recorded = live_load_number(map, LIVE_OFF_RECORDED_LEN);
	uint8_t last[INDEX_RECORD_LEN] = { 0 };

	if (nr && nr <= LIVE_RECORDS_CAP)
		memcpy(last, map + LIVE_RECORDS_OFF + (nr - 1) * INDEX_RECORD_LEN, sizeof(last));
	return digest_of(seq, nr, recorded, last);
}

/* Copy the records from @first on, of one moment, to the @max places at @raw. As live_mapped_records(). */
static int copy_records(const uint8_t *map, uint64_t first, uint8_t *raw, unsigned max)
{
	for (int tries = 0; tries < 100; tries++) {
		uint64_t seq = live_load_number(map, LIVE_OFF_SEQ),
			 nr = live_load_number(map, LIVE_OFF_NR_RECORDS);

		if (seq % 2)
			continue;
		if (nr < first || nr > LIVE_RECORDS_CAP)
			return -ENODATA;
		nr -= first;
		if (nr > max)
			return -E2BIG;
		memcpy(raw, map + LIVE_RECORDS_OFF + first * INDEX_RECORD_LEN, nr * INDEX_RECORD_LEN);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (live_load_number(map, LIVE_OFF_SEQ) == seq)
			return (int)nr;
	}
	return -EAGAIN;
}

int live_mapped_records(const uint8_t *map, uint64_t first, struct index_record *records, unsigned max)
{
	uint8_t few[FEW * INDEX_RECORD_LEN], *raw = max > FEW ? mem_alloc(max * INDEX_RECORD_LEN) : few;
	int nr = raw ? copy_records(map, first, raw, max) : -ENOMEM, ret = 0;

	for (int i = 0; i < nr && !ret; i++)
		ret = live_decode(&records[i], raw + (size_t)i * INDEX_RECORD_LEN, i + 1 < nr);
	if (raw != few)
		mem_free(raw);
	return ret ? ret : nr;
}
