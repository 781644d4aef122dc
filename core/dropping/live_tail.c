/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The staged bytes of a live file, and its checksums of the end of the log, read from any process.
 */
#include "core/dropping/live_read.h"

#include "core/base/alloc.h"
#include "core/base/msg.h"
#include "core/dropping/live_stranded.h"

ssize_t live_load_bytes(const struct container *c, const char *path, uint64_t log_off, void *buf, size_t len)
{
	struct store *s = c->store;
	struct live_head head;
	uint8_t again[8];
	bool elsewhere;
	int h = live_open_header(c, path, O_RDONLY, &head, &elsewhere);
	ssize_t ret = 0;

	if (h < 0)
		return h == -ENODATA ? 0 : h;
	if (elsewhere) {
		store_close(s, &h);
		return 0;
	}
	if (head.words_damaged)
		ret = -EBADMSG;
	while (!ret) {
		uint64_t flushed = head.words.flushed_len, staged = head.words.staged_len;

		if (log_off < flushed || log_off >= flushed + staged || staged > head.fixed.stage_cap)
			break;
		if (live_is_stranded(c, &head.fixed))
			break;
		ret = s->ops->pread(s, h, buf, (size_t)min_u64(len, flushed + staged - log_off),
				    head.fixed.stage_off + (log_off - flushed));
		if (ret < 0)
			break;
		if (s->ops->pread(s, h, again, sizeof(again), LIVE_OFF_FLUSHED_LEN) != sizeof(again)) {
			ret = -EIO;
			break;
		}
		if (live_number(get_le64(again)) == flushed)
			break;
		ret = live_read_words(s, h, &head.words); /* what is fixed has been checked, and stays */
	}
	if (ret == -EBADMSG) {
		msg_error("%s/%s: damaged live index", c->dir, path);
		ret = -EIO;
	}
	store_close(s, &h);
	return ret;
}

/*
 * Chunks are counted when their checksums are there, and go, by a change that has its number, when they are
 * in a table.
 */
static int load_sums(struct store *s, int h, const struct live_header *lh, struct live_sums *sums)
{
	uint64_t nr, nr_flushed;
	struct live_words lw;
	uint8_t again[8];
	int ret = live_read_words(s, h, &lw);
	ssize_t n;

	if (ret)
		return ret;
	nr = lw.nr_chunks;
	sums->first_chunk = lw.first_chunk;
	sums->chunk_crc = lw.chunk_crc;
	/* Else the owner is, or was killed, in the middle of it. */
	if (lw.chunk_no == ((lw.first_chunk + nr) & 0xffff))
		sums->chunk_len = lw.chunk_len;
	sums->last_table = lw.last_table;
	if (lw.seq % 2)
		return -EAGAIN;
	if (nr > lh->chunks_cap || nr > 1 << 20 ||
	    sums->first_chunk > (uint64_t)INT64_MAX / INDEX_CHUNK_LEN - nr)
		return -EBADMSG;
	nr_flushed = lw.flushed_len / INDEX_CHUNK_LEN;
	sums->nr_chunks = min_u64(nr, nr_flushed - min_u64(nr_flushed, sums->first_chunk));
	/* killed before it said that these are in the log: chunk_crc is of a later one */
	if (sums->nr_chunks != nr)
		sums->chunk_len = 0;
	sums->crcs = mem_alloc(nr * 4);
	if (!sums->crcs)
		return -ENOMEM;
	n = s->ops->pread(s, h, sums->crcs, nr * 4, lh->chunks_off);
	if (n != (ssize_t)(nr * 4))
		return n < 0 ? (int)n : -EBADMSG;
	n = s->ops->pread(s, h, again, sizeof(again), LIVE_OFF_SEQ);
	return n < 0 ? (int)n : n == sizeof(again) && live_number(get_le64(again)) == lw.seq ? 0 : -EAGAIN;
}

int live_load_sums(const struct container *c, const char *path, struct live_sums *sums)
{
	struct live_head head;
	bool elsewhere;
	int h = live_open_header(c, path, O_RDONLY, &head, &elsewhere);
	int ret = -EAGAIN;

	memset(sums, 0, sizeof(*sums));
	if (h < 0)
		return h == -ENODATA ? -EAGAIN : h;
	for (int tries = 0; !elsewhere && ret == -EAGAIN && tries < 10; tries++) {
		mem_free(sums->crcs);
		sums->crcs = NULL;
		ret = load_sums(c->store, h, &head.fixed, sums);
	}
	if (ret) {
		mem_free(sums->crcs);
		sums->crcs = NULL;
	}
	store_close(c->store, &h);
	return ret;
}

uint64_t live_sure_len(const struct container *c, const char *path, const char *log, uint64_t from)
{
	struct live_head head;
	int h = live_open_header(c, path, O_RDONLY, &head, NULL);
	uint64_t len;

	if (h < 0)
		return from;
	len = head.words_damaged ? from : stranded_check_log(c, h, &head.fixed, &head.words, log, from);
	store_close(c->store, &h);
	return len;
}
