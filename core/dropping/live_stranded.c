/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much of a log can be believed whose live file was left behind by an earlier boot.
 */
#include "core/dropping/live_stranded.h"

#include "core/base/alloc.h"
#include "core/base/bytes.h"
#include "core/base/crc32c.h"
#include "core/dropping/datalog.h"

uint64_t stranded_check_log(const struct container *c, int h, const struct live_header *lh,
			    const struct live_words *lw, const char *log, uint64_t from)
{
	uint64_t flushed = lw->flushed_len,
		 at = max_u64(from / INDEX_CHUNK_LEN, lw->first_chunk) * INDEX_CHUNK_LEN;
	struct store *s = c->store;
	uint8_t *buf = mem_alloc(INDEX_CHUNK_LEN), sum[4];
	int log_h = buf ? datalog_open(c, log, false) : -ENOMEM;

	while (log_h >= 0 && at < flushed) {
		size_t len = (size_t)min_u64(INDEX_CHUNK_LEN, flushed - at);
		uint64_t no = at / INDEX_CHUNK_LEN - lw->first_chunk;
		uint32_t crc = lw->chunk_crc;

		if (len == INDEX_CHUNK_LEN) {
			if (no >= lw->nr_chunks ||
			    s->ops->pread(s, h, sum, sizeof(sum), lh->chunks_off + 4 * no) != sizeof(sum))
				break;
			crc = get_le32(sum);
		}
		if (datalog_pread(s, log_h, buf, len, at) != (ssize_t)len || crc32c(0, buf, len) != crc)
			break;
		at += len;
	}
	if (log_h >= 0)
		store_close(s, &log_h);
	mem_free(buf);
	return log_h == -ENOMEM ? 0 : at;
}

/* Cut *@rec at @log_len of the log; *@rest is what lies beyond. A part without bytes has length 0. */
static void cut(struct index_record *rec, uint64_t log_len, struct index_record *rest)
{
	bool nested = rec->outer_count > 1;
	uint64_t each = nested ? rec->count * rec->length : rec->length,
		 nr = nested ? rec->outer_count : rec->count;
	uint64_t have = log_len > rec->log_off ? log_len - rec->log_off : 0;

	*rest = *rec;
	if (have >= nr * each) {
		rest->length = 0;
		return;
	}
	if (nr == 1) {
		rec->length = have;
		rest->logical_off += have;
		rest->log_off += have;
		rest->length -= have;
		return;
	}
	have /= each;
	rest->logical_off += have * (nested ? rec->outer_stride : rec->stride);
	rest->log_off += have * each;
	*(nested ? &rec->outer_count : &rec->count) = have;
	*(nested ? &rest->outer_count : &rest->count) -= have;
	if (!have)
		rec->length = 0;
}

/* A record that does not go on has no strides. */
static bool tidy(struct index_record *rec)
{
	if (rec->outer_count < 2)
		rec->outer_count = rec->outer_stride = 0;
	if (rec->count < 2)
		rec->stride = 0;
	return rec->length;
}

void stranded_parts(const struct index_record *rec, uint64_t sure_len, struct index_record *sure,
		    bool *has_sure, struct index_record *lost, bool *has_lost)
{
	*sure = *rec;
	*has_sure = rec->type != INDEX_WRITE;
	*has_lost = false;
	if (*has_sure)
		return;
	cut(sure, sure_len, lost);
	*has_sure = tidy(sure);
	*has_lost = tidy(lost);
}
