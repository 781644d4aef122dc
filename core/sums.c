/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finding checksums, and comparing bytes with them.
 */
#include "sums.h"

#include "alloc.h"
#include "bytes.h"
#include "crc32c.h"
#include "dropping.h"
#include "log.h"
#include "stage.h"
#include "trailers.h"

#define CHUNK INDEX_CHUNK_LEN
#define TAIL_LEN ((size_t)16384)    /* of a log that is closed: mostly it has table, block and trailer */
#define PIECE_MAX ((size_t)2 << 20) /* a larger one is none of ours */
/* Trailers that are remembered: a log of 1 TiB that is all tables takes 16 MiB, any other 64 KiB. */
#define APART ((uint64_t)512 << 10)
#define PART_LEN ((uint64_t)8 * CHUNK) /* is read at once, to be in the cache when it is checked */

bool sums_verify;

/* Of chunks @first to @first + @nr - 1. Of the last @last_len bytes are covered. */
struct sums_table {
	uint64_t first;
	uint32_t nr, last_len;
	bool known; /* else it is damaged, and here to be looked for no more */
	uint32_t crc[];
};

void sums_release(struct log_sums *sums)
{
	mem_free(sums->latest);
	mem_free(sums->older);
	mem_free(sums->trailers);
	*sums = (struct log_sums){ .warned = sums->warned };
}

static size_t table_len(const struct sums_table *t) { return t ? sizeof(*t) + t->nr * sizeof(*t->crc) : 0; }

size_t sums_held(const struct log_sums *sums)
{
	return table_len(sums->latest) + table_len(sums->older) + sums->cap_trailers * sizeof(*sums->trailers);
}

static void warn(struct log_sums *sums, const struct container *c, const char *path, const char *what)
{
	if (!sums->warned)
		log_error("%s/%s: %s: what it tells of is read unverified; plfs check finds out more", c->dir, path, what);
	sums->warned = true;
}

/* In place of *@slot. */
static struct sums_table *new_table(struct sums_table **slot, uint64_t first, uint32_t nr)
{
	struct sums_table *t = mem_alloc(sizeof(*t) + nr * sizeof(*t->crc));

	if (!t)
		return NULL;
	*t = (struct sums_table){ .first = first, .nr = nr, .last_len = CHUNK, .known = true };
	mem_free(*slot);
	return *slot = t;
}

static bool has_chunk(const struct sums_table *t, uint64_t no)
{
	return t && no >= t->first && no - t->first < t->nr;
}

/* Whether @t says nothing of the first @need bytes of chunk @no, or of what is behind it. */
static bool ends_before(const struct sums_table *t, uint64_t no, uint32_t need)
{
	return !t || no >= t->first + t->nr || (no + 1 == t->first + t->nr && need > t->last_len);
}

static int add_trailer(struct log_sums *sums, uint64_t at)
{
	if (sums->nr_trailers == sums->cap_trailers) {
		uint32_t cap = sums->cap_trailers ? 4 * sums->cap_trailers : 1;
		uint64_t *trailers = mem_realloc(sums->trailers, cap * sizeof(*trailers));

		if (!trailers)
			return -ENOMEM;
		sums->trailers = trailers;
		sums->cap_trailers = cap;
	}
	sums->trailers[sums->nr_trailers++] = at;
	return 0;
}

/* ---- closed logs, and what has been moved to the log of others ---- */

/* What ends with the trailer at @self, from @from on. mem_alloc()ed. */
static int read_from(struct store *s, int h, uint64_t from, uint64_t self, uint8_t **buf)
{
	size_t len = (size_t)(self + INDEX_TRAILER_LEN - from);
	ssize_t n;

	mem_free(*buf);
	*buf = NULL;
	if (len > PIECE_MAX)
		return -EBADMSG;
	*buf = mem_alloc(len);
	if (!*buf)
		return -ENOMEM;
	n = s->ops->pread(s, h, *buf, len, DROPPING_DATA_OFF + from);
	return n == (ssize_t)len ? 0 : n < 0 ? (int)n : -EBADMSG;
}

/* The table of the trailer at @self, of which @hint bytes are read at first. -ENODATA: there is none; -EBADMSG */
static int load_table(struct sums_table **slot, struct store *s, int h, const uint8_t *id, uint64_t self, size_t hint)
{
	uint64_t from = self + INDEX_TRAILER_LEN > hint ? self + INDEX_TRAILER_LEN - hint : 0;
	struct index_trailer t = { 0 };
	struct index_block block = { 0 };
	struct index_chunks chunks = { 0 };
	struct sums_table *table;
	uint8_t *buf = NULL;
	int ret = read_from(s, h, from, self, &buf);

	if (!ret)
		ret = index_trailer_parse(&t, id, self, buf + (self - from));
	if (!ret && self - t.block_len < from)
		ret = read_from(s, h, from = self - t.block_len, self, &buf);
	if (!ret && index_block_parse(&block, buf + (self - t.block_len - from), t.block_len) != (ssize_t)t.block_len)
		ret = -EBADMSG;
	if (!ret && !block.chunks_off)
		ret = block.log_len ? -ENODATA : 0;
	if (!ret && (block.chunks_off || block.log_len)) {
		uint64_t at = block.chunks_off, end = self - t.block_len;

		if (at >= end || block.log_len > at)
			ret = -EBADMSG;
		else if (at < from)
			ret = read_from(s, h, from = at, self, &buf);
		if (!ret && index_chunks_parse(&chunks, buf + (at - from), (size_t)(end - at)) < 0)
			ret = -EBADMSG;
	}
	if (!ret) {
		table = new_table(slot, chunks.first_chunk, chunks.nr_chunks);
		ret = table ? 0 : -ENOMEM;
		for (uint32_t i = 0; table && i < chunks.nr_chunks; i++)
			table->crc[i] = get_le32(chunks.chunk_crc + 4 * i);
		if (table && block.log_len < (chunks.first_chunk + chunks.nr_chunks) * CHUNK)
			table->last_len = (uint32_t)(block.log_len % CHUNK);
	}
	mem_free(buf);
	return ret;
}

static bool is_telling(int ret) { return ret == -EBADMSG || ret == -ENODATA || ret == -EIO; }

/* Of one that has a live file. -ENOENT: it has none any more. */
static int load_live(struct log_sums *sums, const struct container *c, const char *path)
{
	char live[CONTAINER_PATH_LEN];
	struct sums_table *t;
	struct stage_sums ss;
	int ret;

	dropping_live_path(path, live);
	ret = stage_load_sums(c, live, &ss);
	if (ret)
		return ret;
	t = new_table(&sums->latest, ss.first_chunk, (uint32_t)ss.nr_chunks + (ss.chunk_len > 0));
	for (uint32_t i = 0; t && i < ss.nr_chunks; i++)
		t->crc[i] = get_le32(ss.crcs + 4 * i);
	if (t && ss.chunk_len) {
		t->crc[ss.nr_chunks] = ss.chunk_crc;
		t->last_len = ss.chunk_len;
	}
	mem_free(ss.crcs);
	if (!t)
		return -ENOMEM;
	return ss.last_table ? add_trailer(sums, ss.last_table) : 0;
}

/* Of a log that is closed. */
static int load_end(struct log_sums *sums, const struct container *c, const char *path, int h)
{
	struct store *s = c->store;
	struct stat st;
	uint64_t self;
	int ret = s->ops->fstat(s, h, &st);

	if (ret)
		return ret;
	sums->loaded = true;
	if (st.st_size <= DROPPING_DATA_OFF)
		return 0;
	self = (uint64_t)st.st_size - DROPPING_DATA_OFF;
	ret = -EBADMSG;
	if (self % 8 == 0 && self > INDEX_TRAILER_LEN) {
		self -= INDEX_TRAILER_LEN;
		ret = load_table(&sums->latest, s, h, c->id, self, TAIL_LEN);
	}
	if (!ret)
		return add_trailer(sums, self);
	if (!is_telling(ret))
		return ret;
	if (load_live(sums, c, path)) /* else its owner goes on with it */
		warn(sums, c, path, "the data log does not end with its table of checksums");
	return 0;
}

/* What the end of the log tells, as it is now. */
static int load_latest(struct log_sums *sums, const struct container *c, const char *path, int h, bool growing)
{
	int ret;

	sums_release(sums);
	ret = growing ? load_live(sums, c, path) : -ENOENT;
	if (ret == -ENOENT)
		return load_end(sums, c, path, h);
	sums->loaded = ret != -ENOMEM; /* else it is damaged, or of another host */
	sums->live = !ret || ret == -EAGAIN; /* it may tell more the next time */
	return ret == -ENOMEM ? ret : 0;
}

/* Step from *@at to the table before. -ENODATA: there is none. */
static int step(struct log_sums *sums, struct store *s, int h, const uint8_t *id, uint64_t *at)
{
	struct index_trailer t;
	int ret = trailer_at(s, h, id, *at, &t);

	if (!ret && !t.prev_table)
		ret = -ENODATA;
	if (ret)
		return ret;
	*at = t.prev_table;
	return *at + APART <= sums->trailers[sums->nr_trailers - 1] ? add_trailer(sums, *at) : 0;
}

/*
 * The table of chunk @no, in front of the latest one: the first that was made when the chunk was whole. (One made
 * before that tells of a part of it.)
 */
static int load_older(struct log_sums *sums, const struct container *c, const char *path, int h, uint64_t no)
{
	uint64_t end = (no + 1) * CHUNK, at = 0, before, after = 0;
	int ret = sums->nr_trailers ? 0 : -EBADMSG;

	/* From one that is certainly all behind the chunk on to the last that ends there. */
	for (uint32_t i = 0; i < sums->nr_trailers && (!i || sums->trailers[i] > end + 2 * CHUNK); i++)
		at = sums->trailers[i];
	for (before = at; !ret && before > end;) {
		after = at == before ? after : at;
		at = before;
		ret = step(sums, c->store, h, c->id, &before);
	}
	if (!ret || ret == -ENODATA)
		ret = load_table(&sums->older, c->store, h, c->id, at, CHUNK);
	/* What stands around the chunk's end was made before it. */
	if (!ret && after && ends_before(sums->older, no, CHUNK))
		ret = load_table(&sums->older, c->store, h, c->id, after, CHUNK);
	if (!ret && has_chunk(sums->older, no))
		return 0;
	if (ret && !is_telling(ret))
		return ret;
	warn(sums, c, path, "a table of checksums in the data log is damaged");
	if (!new_table(&sums->older, no, 1))
		return -ENOMEM;
	sums->older->known = false;
	return 0;
}

int sums_find(struct log_sums *sums, const struct container *c, const char *path, int h, bool growing, uint64_t no,
	      uint32_t need, struct sums_chunk *chunk)
{
	const struct sums_table *t;
	int ret = 0;

	*chunk = (struct sums_chunk){ 0 };
	if (!sums->loaded || ((sums->live || growing) && ends_before(sums->latest, no, need)))
		ret = load_latest(sums, c, path, h, growing);
	t = sums->latest;
	if (!ret && t && no < t->first) {
		if (!has_chunk(sums->older, no))
			ret = load_older(sums, c, path, h, no);
		t = sums->older;
	}
	if (!ret && has_chunk(t, no) && t->known)
		*chunk = (struct sums_chunk){ t->crc[no - t->first], no + 1 == t->first + t->nr ? t->last_len : CHUNK };
	return ret;
}

struct sums_chunk *sums_find_all(struct log_sums *sums, const struct container *c, const char *path, int h, bool growing,
				 uint64_t log_off, uint64_t len)
{
	uint64_t first = log_off / CHUNK, end = log_off + len, nr = (end + CHUNK - 1) / CHUNK - first;
	struct sums_chunk *chunks = mem_alloc(nr * sizeof(*chunks));

	for (uint64_t i = 0; chunks && i < nr; i++) {
		uint32_t need = (uint32_t)min_u64(end - (first + i) * CHUNK, CHUNK);

		if (sums_find(sums, c, path, h, growing, first + i, need, &chunks[i])) {
			mem_free(chunks);
			return NULL;
		}
	}
	return chunks;
}

/* ---- comparing ---- */

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

static uint32_t crc_at(struct cursor at, size_t len)
{
	uint32_t crc = 0;

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

/* Chunk @no, of which [from, to) of the log is wanted and begins at @at. *@scratch is made when it is needed. */
static bool check_chunk(struct store *s, int h, const struct sums_chunk *chunk, uint64_t no, uint64_t from,
			uint64_t to, struct cursor at, uint8_t **scratch)
{
	uint64_t start = no * CHUNK, end = start + chunk->len;

	if (from >= end)
		return true;
	if (from == start && to >= end && crc_at(at, chunk->len) == chunk->crc)
		return true;
	if (!*scratch)
		*scratch = mem_alloc(CHUNK);
	if (!*scratch || s->ops->pread(s, h, *scratch, chunk->len, DROPPING_DATA_OFF + start) != (ssize_t)chunk->len ||
	    crc32c(0, *scratch, chunk->len) != chunk->crc)
		return false;
	copy_to(at, *scratch + (from - start), (size_t)(min_u64(to, end) - from));
	return true;
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

bool sums_read(struct store *s, int h, const struct iovec *iov, int cnt, struct iovec *part, uint64_t log_off,
	       const struct sums_chunk *chunks)
{
	uint64_t end = log_off + total(iov, cnt);
	struct cursor at = { .iov = iov };
	uint8_t *scratch = NULL;
	bool ok = true;

	for (uint64_t off = log_off, to; off < end && ok; off = to) {
		to = off / CHUNK * CHUNK + PART_LEN;
		to = to < end ? to : end;
		ok = s->ops->preadv(s, h, part, cut_out(at, to - off, part),
				    DROPPING_DATA_OFF + off) == (ssize_t)(to - off) &&
		     check(s, h, at, off, to - off, chunks + (off / CHUNK - log_off / CHUNK), NULL, &scratch);
		skip(&at, to - off);
	}
	mem_free(scratch);
	return ok;
}
