/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Takes index blocks apart; the byte table is in block.h. Every byte is a stranger's: nothing
 * is used before the checksum over it has been, and no length is believed beyond the buffer.
 */
#include "index/record/block.h"

#include "core/base/bytes.h"
#include "core/base/crc32c.h"

/*
 * A longer header is damage, not a later version: this way a flipped bit in header_len cannot pass a
 * damaged block in the middle of a node index for a torn one at its end.
 */
#define HEADER_LEN_MAX 4096

#define HAS_LOG_OFF 0x1000
#define IS_RUN 0x2000
#define UNKNOWN 0x4000
#define OTHER_KIND 0x8000

static bool header_crc_ok(const uint8_t *p, size_t header_len)
{
	static const uint8_t zeros[4];
	uint32_t crc = crc32c(0, p, 8);

	crc = crc32c(crc, zeros, sizeof(zeros));
	return crc32c(crc, p + 12, header_len - 12) == get_le32(p + 8);
}

/* The magic of a block of any version but this. */
static bool other_version(const uint8_t *p, size_t len)
{
	return len >= 8 && !memcmp(p, INDEX_BLOCK_MAGIC, 7) && p[7] >= '1' && p[7] <= '9' &&
	       p[7] != INDEX_BLOCK_MAGIC[7];
}

/* The length of the whole header at @p; -errno as index_block_parse(). */
static ssize_t check_header(const uint8_t *p, size_t len)
{
	uint16_t header_len;

	if (memcmp(p, INDEX_BLOCK_MAGIC, min_size(len, 8)) != 0)
		return other_version(p, len) ? -EPROTONOSUPPORT : -EBADMSG;
	if (len < INDEX_BLOCK_HEADER_LEN)
		return -ENODATA;
	header_len = get_le16(p + 12);
	if (header_len < INDEX_BLOCK_HEADER_LEN || header_len > HEADER_LEN_MAX || header_len % 8)
		return -EBADMSG;
	if (header_len > len)
		return -ENODATA;
	return header_crc_ok(p, header_len) ? header_len : -EBADMSG;
}

ssize_t index_block_parse(struct index_block *block, const void *buf, size_t len)
{
	const uint8_t *p = buf;
	ssize_t header_len;
	size_t block_len;

	if (len == 0)
		return 0;
	if (is_zero(p, len))
		return -ENODATA;
	header_len = check_header(p, len);
	if (header_len < 0)
		return header_len;
	if (get_le16(p + 14) != 0)
		return -EPROTONOSUPPORT;

	memset(block, 0, sizeof(*block));
	block_len = get_le32(p + 20);
	block->nr_records = get_le32(p + 24);
	block->pid = get_le32(p + 28);
	block->seq = get_le32(p + 32);
	block->log_len = get_le64(p + 40);
	block->chunks_off = get_le64(p + 48);
	block->synced = get_le32(p + 36) & 1;
	block->has_sum = block->synced && !block->nr_records && get_le32(p + 36) & 2;
	block->sum = block->has_sum ? (uint32_t)get_le64(p + 56) : 0;
	block->first_stamp_ns = block->has_sum ? 0 : get_le64(p + 56);
	block->max_stamp_ns = get_le64(p + 64);
	if (block_len % 8 || block_len > INDEX_BLOCK_MAX || block_len < (size_t)header_len ||
	    (block_len - (size_t)header_len) / 2 < block->nr_records ||
	    block->log_len > INT64_MAX || block->chunks_off > INT64_MAX)
		return -EBADMSG;
	if (block_len > len)
		return -ENODATA;
	block->encoded = p + header_len;
	block->encoded_len = block_len - (size_t)header_len;
	if (crc32c(0, block->encoded, block->encoded_len) != get_le32(p + 16))
		return -EBADMSG;
	return (ssize_t)block_len;
}

/*
 * A header that was torn behind its first 64 bytes, and filled with zeros before the next block. Whole, the
 * last of them is not zero: it is of a stamp. A block without records may have none.
 */
static bool is_filled_up(const uint8_t *p, size_t len)
{
	return len >= INDEX_BLOCK_HEADER_LEN && !memcmp(p, INDEX_BLOCK_MAGIC, 8) && get_le32(p + 24) &&
	       get_le32(p + 20) > INDEX_BLOCK_HEADER_LEN && !p[INDEX_BLOCK_HEADER_LEN - 1];
}

size_t index_block_claims(const void *buf, size_t len)
{
	const uint8_t *p = buf;

	if (check_header(p, len) >= 0)
		return get_le32(p + 20);
	return INDEX_BLOCK_HEADER_LEN + is_filled_up(p, len);
}

size_t index_block_skip(const void *buf, size_t len)
{
	const uint8_t *p = buf;

	for (size_t pos = 8; pos < len && len - pos >= 8; pos += 8)
		if (memcmp(p + pos, INDEX_BLOCK_MAGIC, 8) == 0)
			return pos;
	return len;
}

/* ---- records ---- */

/* What is still to be read of a block. After a number that is too long, or not there, bad is set. */
struct source {
	const uint8_t *p, *end;
	bool bad;
};

/* A number of @n bytes, little-endian. */
static inline uint64_t take_number(struct source *s, unsigned n)
{
	size_t left = (size_t)(s->end - s->p);
	uint64_t v = 0;

	if (unlikely(n > 8 || n > left)) {
		s->bad = true;
		return 0;
	}
	if (likely(left >= 8)) {
		v = n ? get_le64(s->p) & UINT64_MAX >> (64 - 8 * n) : 0;
	} else {
		for (unsigned i = n; i-- > 0;)
			v = v << 8 | s->p[i];
	}
	s->p += n;
	return v;
}

static void take_run(struct source *s, struct index_record *rec)
{
	uint64_t control = take_number(s, 2);

	rec->stride = take_number(s, control & 15);
	rec->count = take_number(s, control >> 4 & 15);
	rec->outer_stride = take_number(s, control >> 8 & 15);
	rec->outer_count = take_number(s, control >> 12 & 15);
	s->bad |= rec->count < 2;
}

static void take_write(struct source *s, uint64_t control, struct index_cursor *cur, struct index_record *rec)
{
	uint64_t logical, length;

	s->bad |= (control & UNKNOWN) != 0;
	logical = take_number(s, control & 15);
	length = take_number(s, control >> 4 & 15);
	*rec = (struct index_record){ .type = INDEX_WRITE, .count = 1 };
	rec->logical_off = cur->logical_end + (logical >> 1 ^ (logical & 1 ? UINT64_MAX : 0));
	rec->length = length ? length : cur->length;
	rec->stamp_ns = cur->stamp_ns + take_number(s, control >> 8 & 15);
	rec->log_off = control & HAS_LOG_OFF ? take_number(s, 8) : cur->log_end;
	cur->logical_end = rec->logical_off + rec->length;
	cur->log_end = rec->log_off + rec->length;
	if (control & IS_RUN) {
		take_run(s, rec);
		cur->logical_end = index_record_end(rec);
		cur->log_end = index_record_log_end(rec);
	}
	cur->length = rec->length;
	cur->stamp_ns = rec->stamp_ns;
}

/* A record of another kind: a truncate record becomes @rec, others leave it without a type. */
static void take_other(struct source *s, uint64_t control, struct index_record *rec)
{
	uint64_t len = take_number(s, 2);

	memset(rec, 0, sizeof(*rec));
	if (s->bad || len > (size_t)(s->end - s->p)) {
		s->bad = true;
		return;
	}
	if ((control & ~(uint64_t)OTHER_KIND) == INDEX_TRUNCATE) {
		s->bad |= len < 16;
		rec->type = INDEX_TRUNCATE;
		rec->logical_off = len < 16 ? 0 : get_le64(s->p);
		rec->stamp_ns = len < 16 ? 0 : get_le64(s->p + 8);
	}
	s->p += len;
}

int index_block_record(const struct index_block *block, struct index_cursor *cur, struct index_record *rec)
{
	struct source s = { block->encoded + cur->pos, block->encoded + block->encoded_len, false };

	if (cur->nr == 0)
		cur->stamp_ns = block->first_stamp_ns;
	while (cur->nr < block->nr_records) {
		uint64_t control = take_number(&s, 2);

		if (control & OTHER_KIND)
			take_other(&s, control, rec);
		else
			take_write(&s, control, cur, rec);
		if (s.bad || (rec->type && !index_record_valid(rec))) {
			cur->nr = UINT32_MAX;
			return -EBADMSG;
		}
		cur->nr++;
		cur->pos = (size_t)(s.p - block->encoded);
		if (rec->type)
			return 1;
	}
	return cur->nr == UINT32_MAX ? -EBADMSG : 0;
}
