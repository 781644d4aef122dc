/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a live file has beside records, from any process: the staged bytes, and the checksums of the end of its log.
 */
#include "stage_read.h"

#include "alloc.h"
#include "log.h"
#include "stranded.h"

ssize_t stage_load_bytes(const struct container *c, const char *path, uint64_t log_off, void *buf, size_t len)
{
	uint8_t header[HEADER_LEN] = { 0 }, again[8];
	struct store *s = c->store;
	bool elsewhere;
	int h = stage_open_header(c, path, O_RDONLY, header, &elsewhere);
	ssize_t ret;

	if (h < 0)
		return h == -ENODATA ? 0 : h;
	if (elsewhere) {
		store_close(s, &h);
		return 0;
	}
	for (;;) {
		uint64_t flushed, staged;

		ret = stage_take_words(header);
		if (ret) {
			log_error("%s/%s: damaged live index", c->dir, path);
			ret = -EIO;
			break;
		}
		flushed = get_le64(header + OFF_FLUSHED);
		staged = get_le64(header + OFF_STAGED);
		if (log_off < flushed || log_off >= flushed + staged || staged > get_le64(header + 72))
			break;
		if (stage_is_stranded(c, header))
			break;
		ret = s->ops->pread(s, h, buf, (size_t)min_u64(len, flushed + staged - log_off),
				    get_le64(header + 64) + (log_off - flushed));
		if (ret < 0)
			break;
		if (s->ops->pread(s, h, again, sizeof(again), OFF_FLUSHED) != sizeof(again)) {
			ret = -EIO;
			break;
		}
		if (stage_number(get_le64(again)) == flushed)
			break;
		/* What has been checked stays. */
		ret = s->ops->pread(s, h, header + STATIC_LEN, HEADER_LEN - STATIC_LEN, STATIC_LEN);
		if (ret != HEADER_LEN - STATIC_LEN) {
			ret = ret < 0 ? ret : -EIO;
			break;
		}
	}
	store_close(s, &h);
	return ret;
}

/* Chunks are counted when their checksums are there, and go, by a change that has its number, when they are in a table. */
static int load_sums(struct store *s, int h, struct stage_sums *sums)
{
	uint8_t header[HEADER_LEN] = { 0 }, again[8];
	uint64_t nr, nr_flushed;
	ssize_t n = s->ops->pread(s, h, header, sizeof(header), 0);

	if (n != sizeof(header))
		return n < 0 ? (int)n : -EBADMSG;
	if (stage_take_words(header))
		return -EBADMSG;
	nr = get_le64(header + OFF_NR_CHUNKS);
	sums->first_chunk = get_le64(header + OFF_FIRST_CHUNK);
	sums->chunk_crc = get_le32(header + OFF_CHUNK_CRC);
	/* Else the owner is, or was killed, in the middle of it. */
	if (get_le16(header + OFF_CHUNK_CRC + 6) == ((sums->first_chunk + nr) & 0xffff))
		sums->chunk_len = get_le16(header + OFF_CHUNK_CRC + 4);
	sums->last_table = get_le64(header + OFF_LAST_TABLE);
	if (get_le64(header + OFF_SEQ) % 2)
		return -EAGAIN;
	if (nr > get_le64(header + 56) || nr > 1 << 20 || sums->first_chunk > (uint64_t)INT64_MAX / INDEX_CHUNK_LEN - nr)
		return -EBADMSG;
	nr_flushed = get_le64(header + OFF_FLUSHED) / INDEX_CHUNK_LEN;
	sums->nr_chunks = min_u64(nr, nr_flushed - min_u64(nr_flushed, sums->first_chunk));
	if (sums->nr_chunks != nr) /* killed before it said that these are in the log: chunk_crc is of a later one */
		sums->chunk_len = 0;
	sums->crcs = mem_alloc(nr * 4);
	if (!sums->crcs)
		return -ENOMEM;
	n = s->ops->pread(s, h, sums->crcs, nr * 4, get_le64(header + 48));
	if (n != (ssize_t)(nr * 4))
		return n < 0 ? (int)n : -EBADMSG;
	n = s->ops->pread(s, h, again, sizeof(again), OFF_SEQ);
	return n < 0 ? (int)n : n == sizeof(again) &&
	       stage_number(get_le64(again)) == get_le64(header + OFF_SEQ) ? 0 : -EAGAIN;
}

int stage_load_sums(const struct container *c, const char *path, struct stage_sums *sums)
{
	uint8_t header[HEADER_LEN] = { 0 };
	bool elsewhere;
	int h = stage_open_header(c, path, O_RDONLY, header, &elsewhere);
	int ret = -EAGAIN;

	memset(sums, 0, sizeof(*sums));
	if (h < 0)
		return h == -ENODATA ? -EAGAIN : h;
	for (int tries = 0; !elsewhere && ret == -EAGAIN && tries < 10; tries++) {
		mem_free(sums->crcs);
		sums->crcs = NULL;
		ret = load_sums(c->store, h, sums);
	}
	if (ret) {
		mem_free(sums->crcs);
		sums->crcs = NULL;
	}
	store_close(c->store, &h);
	return ret;
}

uint64_t stage_sure_len(const struct container *c, const char *path, const char *log, uint64_t from)
{
	uint8_t header[HEADER_LEN] = { 0 };
	int h = stage_open_header(c, path, O_RDONLY, header, NULL);
	uint64_t len;

	if (h < 0)
		return from;
	len = stage_take_words(header) ? from : stranded_check_log(c, h, header, log, from);
	store_close(c->store, &h);
	return len;
}
