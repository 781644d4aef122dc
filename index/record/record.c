/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The codec of one index record and the rules that make one possible; the byte table is in record.h.
 */
#include "index/record/record.h"

#include "core/base/bytes.h"
#include "core/base/crc32c.h"

#define RECORD_WORDS (INDEX_RECORD_LEN / 8)
#define RECORD_MIN_LEN 8 /* up to and with the checksum: all that a type unknown here must have */

static_assert(RECORD_WORDS * 8 == INDEX_RECORD_LEN, "a record is a whole number of words");

static uint32_t record_crc(const uint8_t *p, size_t len)
{
	static const uint8_t zeros[4];
	uint32_t crc = crc32c(0, p, 4);

	crc = crc32c(crc, zeros, sizeof(zeros));
	return crc32c(crc, p + 8, len - 8);
}

void index_record_encode(const struct index_record *rec, void *buf)
{
	uint8_t *p = buf;

	p[0] = rec->type;
	p[1] = RECORD_WORDS;
	put_le16(p + 2, 0);
	put_le64(p + 8, rec->logical_off);
	put_le64(p + 16, rec->length);
	put_le64(p + 24, rec->stride);
	put_le64(p + 32, rec->count);
	put_le64(p + 40, rec->log_off);
	put_le64(p + 48, rec->stamp_ns);
	put_le64(p + 56, rec->outer_stride);
	put_le64(p + 64, rec->outer_count);
	put_le32(p + 4, record_crc(p, INDEX_RECORD_LEN));
}

int index_record_decode(struct index_record *rec, const void *buf, size_t len)
{
	const uint8_t *p = buf;
	size_t rec_len;

	if (len < RECORD_MIN_LEN)
		return -EBADMSG;
	rec_len = (size_t)p[1] * 8;
	if (rec_len < RECORD_MIN_LEN || rec_len > len)
		return -EBADMSG;
	if (get_le32(p + 4) != record_crc(p, rec_len) || get_le16(p + 2) != 0)
		return -EBADMSG;

	memset(rec, 0, sizeof(*rec));
	rec->type = p[0];
	if (rec->type != INDEX_WRITE && rec->type != INDEX_TRUNCATE)
		return (int)rec_len; /* of a later version: the caller skips it */
	if (rec_len < INDEX_RECORD_LEN)
		return -EBADMSG;
	rec->logical_off = get_le64(p + 8);
	rec->length = get_le64(p + 16);
	rec->stride = get_le64(p + 24);
	rec->count = get_le64(p + 32);
	rec->log_off = get_le64(p + 40);
	rec->stamp_ns = get_le64(p + 48);
	rec->outer_stride = get_le64(p + 56);
	rec->outer_count = get_le64(p + 64);
	return index_record_valid(rec) ? (int)rec_len : -EBADMSG;
}

/* Whether @off + @n * @each stays below INT64_MAX. */
static bool end_fits(uint64_t off, uint64_t n, uint64_t each)
{
	uint64_t end;

	return !__builtin_mul_overflow(n, each, &end) && !__builtin_add_overflow(end, off, &end) &&
	       end < INT64_MAX;
}

/* One run after the other, or all of them interleaved: the two ways in which no element meets another. */
static bool nesting_valid(const struct index_record *rec)
{
	uint64_t run, runs, log_len;

	if (rec->count < 2 || rec->outer_count < 2 || rec->outer_stride < rec->length)
		return false;
	if (__builtin_mul_overflow(rec->count, rec->length, &log_len) ||
	    !end_fits(rec->log_off, rec->outer_count, log_len) ||
	    __builtin_mul_overflow(rec->outer_count - 1, rec->outer_stride, &runs) ||
	    !end_fits(rec->logical_off, 1, runs) ||
	    !end_fits(rec->logical_off + rec->length + runs, rec->count - 1, rec->stride))
		return false;
	run = (rec->count - 1) * rec->stride + rec->length;
	return run <= rec->outer_stride || runs + rec->length <= rec->stride;
}

/*
 * A stride beside a count of 1 is let through, and so is an outer stride beside an outer count of 0: in a
 * growing record that another process reads, the stride is stored first and means nothing until the count is.
 */
bool index_record_valid_at_all(const struct index_record *rec)
{
	if (rec->stamp_ns >= STAMP_MAX)
		return false;
	if (rec->type == INDEX_TRUNCATE)
		return rec->length == 0 && rec->count == 0 && rec->outer_count == 0 &&
		       rec->logical_off < INT64_MAX;
	if (rec->type != INDEX_WRITE || rec->length == 0 || rec->count == 0)
		return false;
	if (!end_fits(rec->log_off, rec->count, rec->length) || !end_fits(rec->logical_off, 1, rec->length))
		return false;
	if (rec->count == 1)
		return rec->outer_count == 0;
	return rec->stride >= rec->length &&
	       end_fits(rec->logical_off + rec->length, rec->count - 1, rec->stride) &&
	       (rec->outer_count == 0 || nesting_valid(rec));
}

uint64_t index_record_end(const struct index_record *rec)
{
	uint64_t end = rec->logical_off + rec->length;

	if (rec->count > 1)
		end += (rec->count - 1) * rec->stride;
	if (rec->outer_count > 1)
		end += (rec->outer_count - 1) * rec->outer_stride;
	return end;
}

uint64_t index_record_log_end(const struct index_record *rec)
{
	return rec->log_off + max_u64(rec->outer_count, 1) * rec->count * rec->length;
}
