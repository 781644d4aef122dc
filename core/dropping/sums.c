/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finding checksums. sums_compare.c compares bytes with them.
 */
#include "core/dropping/sums.h"

#include "core/base/bytes.h"
#include "core/base/crc32c.h"
#include "core/backend/names.h"
#include "core/backend/rebuilt.h"
#include "core/dropping/datalog.h"
#include "core/base/msg.h"
#include "core/base/vec.h"
#include "core/dropping/live.h"
#include "core/dropping/trailers.h"

#define CHUNK INDEX_CHUNK_LEN
#define TAIL_LEN ((size_t)16384)    /* the end of a closed log: mostly it has table, block and trailer */
#define PIECE_MAX ((size_t)2 << 20) /* no writer makes a larger one */
/* Trailers that are remembered: a log of 1 TiB that is all tables takes 16 MiB, any other 64 KiB. */
#define APART ((uint64_t)512 << 10)
#define OLDER_MAX 256 /* tables in front of the latest, of 8 KiB mostly; each is of 128 MiB then */

enum sums_verify sums_verify = SUMS_ONCE;

/* The checksums of chunks @first to @first + @nr - 1; that of the last covers @last_len bytes. */
struct sums_table {
	uint64_t first;
	uint32_t nr, last_len;
	bool known; /* else it is damaged, and not searched again */
	uint32_t crc[];
};

void sums_release(struct log_sums *sums)
{
	mem_free(sums->latest);
	for (uint32_t i = 0; i < sums->nr_older; i++)
		mem_free(sums->older[i]);
	mem_free(sums->older);
	mem_free(sums->trailers);
	*sums = (struct log_sums){ .warned = sums->warned, .quiet = sums->quiet,
				     .max_steps = sums->max_steps };
}

static size_t table_len(const struct sums_table *t) { return t ? sizeof(*t) + t->nr * sizeof(*t->crc) : 0; }

size_t sums_held(const struct log_sums *sums)
{
	return table_len(sums->latest) + sums->older_bytes + sums->cap_older * sizeof(*sums->older) +
	       sums->cap_trailers * sizeof(*sums->trailers);
}

static void warn(struct log_sums *sums, const struct container *c, const char *path, const char *what)
{
	if (!sums->warned && !sums->quiet)
		msg_error("%s/%s: %s: the bytes that it covers are read without verification; plfs check has details", c->dir,
			  path, what);
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
	size_t nr = (size_t)sums->nr_trailers + 1;
	uint64_t *trailers = vec_room(sums->trailers, &sums->cap_trailers, nr, sizeof(*trailers));

	if (!trailers)
		return -ENOMEM;
	sums->trailers = trailers;
	trailers[sums->nr_trailers++] = at;
	return 0;
}

/* Keep @t, which is ours from here on, in place of the one that was kept first if there are too many. */
static int add_older(struct log_sums *sums, struct sums_table *t)
{
	uint32_t at = sums->nr_older < OLDER_MAX ? sums->nr_older : sums->next_older++ % OLDER_MAX;
	struct sums_table **older = vec_room(sums->older, &sums->cap_older, (size_t)at + 1, sizeof(*older));

	if (!older) {
		mem_free(t);
		return -ENOMEM;
	}
	sums->older = older;
	if (at < sums->nr_older) {
		sums->older_bytes -= table_len(older[at]);
		mem_free(older[at]);
	} else {
		sums->nr_older++;
	}
	older[at] = t;
	sums->older_bytes += table_len(t);
	return 0;
}

/* The table that has all of chunk @no, among those that are kept. */
static const struct sums_table *find_older(const struct log_sums *sums, uint64_t no)
{
	for (uint32_t i = sums->nr_older; i-- > 0;)
		if (has_chunk(sums->older[i], no) && !ends_before(sums->older[i], no, CHUNK))
			return sums->older[i];
	return NULL;
}

/* ---- closed logs, and what has been moved to the log of others ---- */

/* Read the bytes from @from to the end of the trailer at @self, mem_alloc()ed. */
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
	n = datalog_pread(s, h, *buf, len, from);
	return n == (ssize_t)len ? 0 : n < 0 ? (int)n : -EBADMSG;
}

/*
 * The table of the trailer at @self, of which @hint bytes are read at first. -ENODATA: there is none;
 * -EBADMSG
 */
static int load_table(struct sums_table **slot, struct store *s, int h, const uint8_t *id, uint64_t self,
		      size_t hint)
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
	if (!ret) {
		ssize_t n = index_block_parse(&block, buf + (self - t.block_len - from), t.block_len);

		ret = n == (ssize_t)t.block_len ? 0 : n == -EPROTONOSUPPORT ? (int)n : -EBADMSG;
	}
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

/* @ret, with one line if that is for features that are not known here. */
static int refused(const struct container *c, const char *path, int ret)
{
	if (ret == -EPROTONOSUPPORT)
		msg_error(
			"%s/%s: an index block or trailer with features that this library does not know: use the one that wrote it",
			c->dir, path);
	return ret;
}

static bool is_telling(int ret) { return ret == -EBADMSG || ret == -ENODATA || ret == -EIO; }

/* From the live file of an open log. -ENOENT: it has none any more. */
static int load_live(struct log_sums *sums, const struct container *c, const char *path)
{
	char live[CONTAINER_PATH_LEN];
	struct sums_table *t;
	struct live_sums ss;
	int ret;

	name_live_of_log(path, live);
	ret = live_load_sums(c, live, &ss);
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

/* From the end of a closed log. -EBADMSG, -ENODATA, -EIO: it has no table there. */
static int load_last(struct log_sums *sums, const struct container *c, const char *path, int h)
{
	struct store *s = c->store;
	struct stat st;
	uint64_t self;
	int ret = s->ops->fstat(s, h, &st);

	if (ret)
		return ret;
	sums->loaded = true;
	self = datalog_len(&st);
	if (!self)
		return 0;
	ret = -EBADMSG;
	if (self % 8 == 0 && self > INDEX_TRAILER_LEN) {
		self -= INDEX_TRAILER_LEN;
		ret = load_table(&sums->latest, s, h, c->id, self, TAIL_LEN);
	}
	if (!ret)
		return add_trailer(sums, self);
	return is_telling(ret) ? ret : refused(c, path, ret);
}

/* The same; its owner may have gone on with it, and may close it at this moment. */
static int load_end(struct log_sums *sums, const struct container *c, const char *path, int h)
{
	int ret = load_last(sums, c, path, h);

	if (!is_telling(ret))
		return ret;
	ret = load_live(sums, c, path);
	if (!ret || ret == -EAGAIN || ret == -ENOMEM)
		return ret == -ENOMEM ? ret : 0;
	ret = load_last(sums, c, path, h);
	if (!is_telling(ret))
		return ret;
	if (!datalog_is_elsewhere(c, path)) /* else a copy of what its host has released so far */
		warn(sums, c, path, "the data log does not end with its table of checksums");
	return 0;
}

/* The latest checksums, as they are now. */
static int load_latest(struct log_sums *sums, const struct container *c, const char *path, int h,
		       bool growing)
{
	uint64_t looked = sums->looked;
	int ret;

	sums_release(sums);
	sums->looked = looked;
	ret = growing ? load_live(sums, c, path) : -ENOENT;
	if (ret == -ENOENT)
		return load_end(sums, c, path, h);
	sums->loaded = ret != -ENOMEM; /* else it is damaged, or of another host */
	sums->live = !ret || ret == -EAGAIN; /* there may be more the next time */
	return ret == -ENOMEM ? ret : 0;
}

/* Step from *@at to the table before. -ENODATA: there is none. */
static int step(struct log_sums *sums, struct trailer_walk *walk, uint64_t *at)
{
	struct index_trailer t;
	int ret = trailer_walk_at(walk, *at, &t);

	if (!ret && !t.prev_table)
		ret = -ENODATA;
	if (ret)
		return ret;
	*at = t.prev_table;
	return *at + APART <= sums->trailers[sums->nr_trailers - 1] ? add_trailer(sums, *at) : 0;
}

/*
 * From *@at on to the last trailer that ends behind @end; *@after becomes the one behind that, if it was met.
 * -ENODATA: it is the first with a table; -EAGAIN: it is more than max_steps away.
 */
static int walk_to(struct log_sums *sums, const struct container *c, int h, uint64_t end, uint64_t *at,
		   uint64_t *after)
{
	struct trailer_walk walk = { .s = c->store, .h = h, .id = c->id };
	uint64_t before = *at;
	unsigned nr_steps = 0;
	int ret = 0;

	while (!ret && before > end) {
		*after = *at == before ? *after : *at;
		*at = before;
		if (sums->max_steps && nr_steps++ == sums->max_steps)
			ret = -EAGAIN;
		else
			ret = step(sums, &walk, &before);
	}
	trailer_walk_end(&walk);
	return ret;
}

/*
 * The table of chunk @no, in front of the latest one: the first that was made when the chunk was whole. (An
 * earlier one has the checksum of a part of it.) -EAGAIN: it is more than max_steps away.
 */
static int load_older(struct log_sums *sums, const struct container *c, const char *path, int h, uint64_t no,
		      const struct sums_table **found)
{
	uint64_t end = (no + 1) * CHUNK, at = 0, after = 0;
	int ret = sums->nr_trailers ? 0 : -EBADMSG;
	struct sums_table *t = NULL;

	/* From one that is certainly all behind the chunk on to the last that ends there. */
	for (uint32_t i = 0; i < sums->nr_trailers && (!i || sums->trailers[i] > end + 2 * CHUNK); i++)
		at = sums->trailers[i];
	if (!ret)
		ret = walk_to(sums, c, h, end, &at, &after);
	if (ret == -EAGAIN) /* the next walk goes on here */
		return at < sums->trailers[sums->nr_trailers - 1] && add_trailer(sums, at) ? -ENOMEM : ret;
	if (!ret || ret == -ENODATA)
		ret = load_table(&t, c->store, h, c->id, at, CHUNK);
	/* A table around the end of the chunk was made before the chunk was whole. */
	if (!ret && after && ends_before(t, no, CHUNK))
		ret = load_table(&t, c->store, h, c->id, after, CHUNK);
	if (ret || !has_chunk(t, no)) {
		if (ret && !is_telling(ret)) {
			mem_free(t);
			return refused(c, path, ret);
		}
		warn(sums, c, path, "a table of checksums in the data log is damaged");
		if (!new_table(&t, no, 1)) {
			mem_free(t);
			return -ENOMEM;
		}
		t->known = false;
	}
	*found = t;
	return add_older(sums, t);
}

/* A log made of parity: what another log of its group has lost would be in the bytes, and in their table. */
static int unproved(struct log_sums *sums, const struct container *c, const char *path)
{
	if (!sums->warned && !sums->quiet)
		msg_error("%s/%s: what parity gives cannot be compared with checksums, so it is not read: a log that was needed for it is damaged too; plfs check lists all damage",
			  c->dir, path);
	sums->warned = true;
	return -EIO;
}

int sums_find(struct log_sums *sums, const struct container *c, const char *path, int h, bool growing,
	      uint64_t no, uint32_t need, struct sums_chunk *chunk)
{
	const struct sums_table *t;
	int ret = 0;

	*chunk = (struct sums_chunk){ 0 };
	if (!sums->loaded || ((sums->live || growing) && ends_before(sums->latest, no, need)))
		ret = load_latest(sums, c, path, h, growing);
	t = sums->latest;
	if (!ret && t && no < t->first) {
		t = find_older(sums, no);
		if (!t)
			ret = load_older(sums, c, path, h, no, &t);
	}
	if (ret == -EAGAIN)
		return rebuilt_is(h) ? -EIO : 0;
	if (!ret && has_chunk(t, no) && t->known)
		*chunk = (struct sums_chunk){ t->crc[no - t->first],
					      no + 1 == t->first + t->nr ? t->last_len : CHUNK, false };
	else
		chunk->lost = !growing && !sums->live && (!t || has_chunk(t, no));
	return !ret && chunk->lost && rebuilt_is(h) ? unproved(sums, c, path) : ret;
}

static uint64_t known_end(const struct sums_table *t)
{
	return !t ? 0 : t->nr ? (t->first + t->nr - 1) * CHUNK + t->last_len : t->first * CHUNK;
}

int sums_reach(struct log_sums *sums, const struct container *c, const char *path, int h, uint64_t from,
	       uint64_t end, uint64_t *reach)
{
	struct stat st;
	int ret = 0;

	if (end > known_end(sums->latest) && sums->looked != UINT64_MAX) {
		ret = c->store->ops->fstat(c->store, h, &st);
		sums->end = ret ? 0 : datalog_len(&st);
		if (!ret && datalog_len(&st) > from && datalog_len(&st) / CHUNK + 1 > sums->looked) {
			sums->looked = datalog_len(&st) / CHUNK + 1;
			ret = load_latest(sums, c, path, h, true);
			if (!sums->latest && c->store->remote) /* each look may be a message */
				sums->looked = UINT64_MAX;
		}
	}
	*reach = known_end(sums->latest);
	return ret;
}

uint64_t sums_unsummed(const struct log_sums *sums, uint64_t from)
{
	return from < known_end(sums->latest) ? 0 : sums->end - min_u64(sums->end, from);
}
