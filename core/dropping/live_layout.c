/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The codec of the live file's header. The bytes that are decoded are a stranger's.
 */
#include "core/dropping/live_layout.h"

#include "core/backend/names.h"
#include "core/base/crc32c.h"

#include <stdio.h>

/* The largest numbers that a header may have. */
#define RECORDS_CAP_MAX (1 << 16)
#define STAGE_CAP_MAX (1 << 30)
#define OFF_MAX ((uint64_t)1 << 40)

void live_header_encode(const struct live_header *lh, uint8_t *p)
{
	memset(p, 0, LIVE_FIXED_LEN);
	memcpy(p + LIVE_OFF_MAGIC, LIVE_MAGIC, 8);
	put_le32(p + LIVE_OFF_VERSION, LIVE_VERSION);
	memcpy(p + LIVE_OFF_ID, lh->id, STUB_ID_LEN);
	put_le64(p + LIVE_OFF_RECORDS_OFF, lh->records_off);
	put_le64(p + LIVE_OFF_RECORDS_CAP, lh->records_cap);
	put_le64(p + LIVE_OFF_CHUNKS_OFF, lh->chunks_off);
	put_le64(p + LIVE_OFF_CHUNKS_CAP, lh->chunks_cap);
	put_le64(p + LIVE_OFF_STAGE_OFF, lh->stage_off);
	put_le64(p + LIVE_OFF_STAGE_CAP, lh->stage_cap);
	snprintf((char *)p + LIVE_OFF_LOG_NAME, INDEX_LOG_NAME_LEN, "%s", lh->log_name);
	put_le32(p + LIVE_OFF_UNMAPPED, lh->unmapped);
	put_le32(p + LIVE_OFF_BOOT, lh->boot);
	put_le32(p + LIVE_OFF_COMPAT, 0);
	put_le32(p + LIVE_OFF_INCOMPAT, 0);
	put_le32(p + LIVE_OFF_CRC, crc32c(0, p, LIVE_FIXED_LEN));
}

/* One that ends, and leads to no other directory. */
static bool is_log_name(const void *name)
{
	return memchr(name, 0, INDEX_LOG_NAME_LEN) && name_is_log(name);
}

static bool has_right_crc(const uint8_t *p)
{
	uint8_t copy[LIVE_FIXED_LEN];

	memcpy(copy, p, sizeof(copy));
	put_le32(copy + LIVE_OFF_CRC, 0);
	return crc32c(0, copy, sizeof(copy)) == get_le32(p + LIVE_OFF_CRC);
}

int live_header_decode(struct live_header *lh, const uint8_t *p, const uint8_t *id)
{
	if (!*p)
		return -ENODATA;
	if (memcmp(p + LIVE_OFF_MAGIC, LIVE_MAGIC, 8) || !has_right_crc(p))
		return -EBADMSG;
	if (get_le32(p + LIVE_OFF_VERSION) != LIVE_VERSION ||
	    get_le32(p + LIVE_OFF_INCOMPAT) & ~LIVE_INCOMPAT_KNOWN)
		return -EPROTONOSUPPORT;
	if (memcmp(p + LIVE_OFF_ID, id, STUB_ID_LEN) || !is_log_name(p + LIVE_OFF_LOG_NAME))
		return -EBADMSG;
	memcpy(lh->id, p + LIVE_OFF_ID, STUB_ID_LEN);
	lh->records_off = get_le64(p + LIVE_OFF_RECORDS_OFF);
	lh->records_cap = get_le64(p + LIVE_OFF_RECORDS_CAP);
	lh->chunks_off = get_le64(p + LIVE_OFF_CHUNKS_OFF);
	lh->chunks_cap = get_le64(p + LIVE_OFF_CHUNKS_CAP);
	lh->stage_off = get_le64(p + LIVE_OFF_STAGE_OFF);
	lh->stage_cap = get_le64(p + LIVE_OFF_STAGE_CAP);
	memcpy(lh->log_name, p + LIVE_OFF_LOG_NAME, INDEX_LOG_NAME_LEN);
	lh->unmapped = get_le32(p + LIVE_OFF_UNMAPPED);
	lh->boot = get_le32(p + LIVE_OFF_BOOT);
	return lh->records_off <= OFF_MAX && lh->records_cap <= RECORDS_CAP_MAX && lh->stage_off <= OFF_MAX &&
	       lh->stage_cap <= STAGE_CAP_MAX ? 0 : -EBADMSG;
}

static uint64_t take_number(const uint8_t *p, bool *damaged)
{
	uint64_t word = get_le64(p);

	*damaged |= live_word(live_number(word)) != word;
	return live_number(word);
}

int live_words_decode(struct live_words *lw, const uint8_t *p)
{
	bool damaged = false;

	lw->seq = take_number(p + LIVE_OFF_SEQ, &damaged);
	lw->nr_records = take_number(p + LIVE_OFF_NR_RECORDS, &damaged);
	lw->flushed_len = take_number(p + LIVE_OFF_FLUSHED_LEN, &damaged);
	lw->staged_len = take_number(p + LIVE_OFF_STAGED_LEN, &damaged);
	lw->first_chunk = take_number(p + LIVE_OFF_FIRST_CHUNK, &damaged);
	lw->nr_chunks = take_number(p + LIVE_OFF_NR_CHUNKS, &damaged);
	lw->chunk_crc = get_le32(p + LIVE_OFF_CHUNK_CRC);
	lw->chunk_len = get_le16(p + LIVE_OFF_CHUNK_LEN);
	lw->chunk_no = get_le16(p + LIVE_OFF_CHUNK_NO);
	lw->recorded_len = take_number(p + LIVE_OFF_RECORDED_LEN, &damaged);
	lw->last_trailer = take_number(p + LIVE_OFF_LAST_TRAILER, &damaged);
	lw->last_table = take_number(p + LIVE_OFF_LAST_TABLE, &damaged);
	lw->last_crc = get_le32(p + LIVE_OFF_LAST_CRC);
	return damaged ? -EBADMSG : 0;
}
