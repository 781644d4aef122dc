/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Comparing bytes with checksums.
 */
#include "core/dropping/sums.h"

#include "core/base/alloc.h"
#include "core/base/crc32c.h"
#include "core/dropping/datalog.h"

#define CHUNK INDEX_CHUNK_LEN
#define PART_LEN ((uint64_t)4 * CHUNK) /* is read at once, to be in the cache when it is checked */

/* A place in what an iovec says. */
struct cursor {
	const struct iovec *iov;
	size_t off;
};

static void skip(struct cursor *at, uint64_t len)
{
	while (len && len >= at->iov->iov_len - at->off) {
		len -= at->iov->iov_len - at->off;
		at->iov++;
		at->off = 0;
	}
	at->off += len;
}

/* The next @len bytes at once, or as many as lie together. */
static uint8_t *piece(const struct cursor *at, size_t *len)
{
	*len = min_size(*len, at->iov->iov_len - at->off);
	return (uint8_t *)at->iov->iov_base + at->off;
}

static uint32_t crc_at(uint32_t crc, struct cursor at, size_t len)
{
	while (len) {
		size_t n = len;
		const uint8_t *p = piece(&at, &n);

		crc = crc32c(crc, p, n);
		skip(&at, n);
		len -= n;
	}
	return crc;
}

static void copy_to(struct cursor at, const uint8_t *from, size_t len)
{
	while (len) {
		size_t n = len;
		uint8_t *p = piece(&at, &n);

		memcpy(p, from, n);
		skip(&at, n);
		from += n;
		len -= n;
	}
}

/*
 * Chunk @no, of which [from, to) of the log is wanted and begins at @at, by what is read anew. *@scratch is
 * made when it is needed.
 */
static bool check_again(struct store *s, int h, const struct sums_chunk *chunk, uint64_t no, uint64_t from,
			uint64_t to, struct cursor at, uint8_t **scratch)
{
	uint64_t start = no * CHUNK, end = start + chunk->len;

	if (!*scratch)
		*scratch = mem_alloc(CHUNK);
	if (!*scratch || datalog_pread(s, h, *scratch, chunk->len, start) != (ssize_t)chunk->len ||
	    crc32c(0, *scratch, chunk->len) != chunk->crc)
		return false;
	copy_to(at, *scratch + (from - start), (size_t)(min_u64(to, end) - from));
	return true;
}

static bool check_chunk(struct store *s, int h, const struct sums_chunk *chunk, uint64_t no, uint64_t from,
			uint64_t to, struct cursor at, uint8_t **scratch)
{
	uint64_t start = no * CHUNK, end = start + chunk->len;

	if (from >= end || (from == start && to >= end && crc_at(0, at, chunk->len) == chunk->crc))
		return true;
	return check_again(s, h, chunk, no, from, to, at, scratch);
}

static bool check(struct store *s, int h, struct cursor at, uint64_t log_off, uint64_t len,
		  const struct sums_chunk *chunks, uint64_t *bad, uint8_t **scratch)
{
	for (uint64_t off = log_off, end = log_off + len; off < end;) {
		uint64_t no = off / CHUNK, to = min_u64(end, (no + 1) * CHUNK);

		if (!check_chunk(s, h, chunks++, no, off, to, at, scratch)) {
			if (bad)
				*bad = no;
			return false;
		}
		skip(&at, to - off);
		off = to;
	}
	return true;
}

static uint64_t total(const struct iovec *iov, int cnt)
{
	uint64_t len = 0;

	for (int i = 0; i < cnt; i++)
		len += iov[i].iov_len;
	return len;
}

bool sums_check(struct store *s, int h, const struct iovec *iov, int cnt, uint64_t log_off,
		const struct sums_chunk *chunks, uint64_t *bad)
{
	uint8_t *scratch = NULL;
	bool ok = check(s, h, (struct cursor){ .iov = iov }, log_off, total(iov, cnt), chunks, bad, &scratch);

	mem_free(scratch);
	return ok;
}

/* The next @len bytes of @at as an iovec. How many entries. */
static int cut_out(struct cursor at, uint64_t len, struct iovec *part)
{
	int cnt = 0;

	while (len) {
		size_t n = len;
		uint8_t *p = piece(&at, &n);

		part[cnt++] = (struct iovec){ .iov_base = p, .iov_len = n };
		skip(&at, n);
		len -= n;
	}
	return cnt;
}

/*
 * Read [off, to) and check it. So that each chunk is read once, what is in front of it and behind it in its
 * chunks is read in the same call, to @aside, of two chunks.
 */
static bool read_part(struct store *s, int h, struct cursor at, uint64_t off, uint64_t to,
		      const struct sums_chunk *chunks, struct iovec *part, uint8_t *aside, uint8_t **scratch)
{
	uint64_t first = off / CHUNK, last = (to - 1) / CHUNK;
	uint64_t end = max_u64(to, last * CHUNK + chunks[last - first].len);
	uint64_t from = chunks->len ? first * CHUNK : off;
	int cnt = 0;

	if (from < off)
		part[cnt++] = (struct iovec){ .iov_base = aside, .iov_len = (size_t)(off - from) };
	cnt += cut_out(at, to - off, part + cnt);
	if (end > to)
		part[cnt++] = (struct iovec){ .iov_base = aside + CHUNK, .iov_len = (size_t)(end - to) };
	if (datalog_preadv(s, h, part, cnt, from) != (ssize_t)(end - from))
		return false;
	for (uint64_t no = first; no <= last; no++, chunks++) {
		uint64_t start = no * CHUNK, stop = start + chunks->len, a = max_u64(off, start),
			 b = min_u64(to, start + CHUNK);
		uint32_t crc = crc32c(0, aside, a > start && chunks->len ? (size_t)(a - start) : 0);

		if (chunks->len > a - start) {
			crc = crc_at(crc, at, (size_t)(min_u64(b, stop) - a));
			crc = crc32c(crc, aside + CHUNK, stop > b ? (size_t)(stop - b) : 0);
			if (crc != chunks->crc && !check_again(s, h, chunks, no, a, b, at, scratch))
				return false;
		}
		skip(&at, b - a);
	}
	return true;
}

static bool has_ends(uint64_t off, uint64_t end, const struct sums_chunk *chunks)
{
	uint64_t last = (end - 1) / CHUNK;

	return (off % CHUNK && chunks->len) || last * CHUNK + chunks[last - off / CHUNK].len > end;
}

bool sums_read(struct store *s, int h, const struct iovec *iov, int cnt, struct iovec *part, uint64_t log_off,
	       const struct sums_chunk *chunks)
{
	uint64_t end = log_off + total(iov, cnt);
	bool ends = has_ends(log_off, end, chunks);
	uint8_t *scratch = NULL, *aside = ends ? mem_alloc((size_t)2 * CHUNK) : NULL;
	struct cursor at = { .iov = iov };
	bool ok = aside || !ends;

	for (uint64_t off = log_off, to; off < end && ok; off = to) {
		to = off / CHUNK * CHUNK + PART_LEN;
		to = to < end ? to : end;
		ok = read_part(s, h, at, off, to, chunks + (off / CHUNK - log_off / CHUNK), part, aside,
			       &scratch);
		skip(&at, to - off);
	}
	mem_free(aside);
	mem_free(scratch);
	return ok;
}
