/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Live files, the reading side, from any process: it reads the file, or a mapping of it, and checks the sequence number. Every
 * byte is a stranger's, and may change while it is looked at.
 */
#include "stage_layout.h"

#include "alloc.h"
#include "bytes.h"
#include "crc32c.h"
#include "dropping.h"
#include "log.h"
#include "own.h"
#include "stranded.h"

#include <stdio.h>

#define STAGE_MAPPED_MAX 16 /* records */

/* What a header may say at most, whoever wrote it. */
#define RECORDS_CAP_MAX (1 << 16)
#define STAGE_CAP_MAX (1 << 30)
#define OFF_MAX ((uint64_t)1 << 40)

/* Whether the owner is of another host. */
static bool is_foreign(const struct container *c, const char *path)
{
	return c->store->remote && !dropping_live_is_ours(strchr(path, '/') + 1);
}

/* A name in the same directory, and nothing that leads elsewhere. */
static bool is_log_name(const void *name)
{
	return memchr(name, 0, INDEX_LOG_NAME_LEN) && !strncmp(name, "data.", 5) && !strchr(name, '/');
}

/*
 * Whether it is of a kernel that is no more, on a file system that only one has at a time. If that one lost its power the pages need not
 * belong together.
 */
static bool is_stranded(const struct container *c, const uint8_t *header)
{
	uint32_t boot = get_le32(header + 212), ours = dropping_boot();

	return !c->store->remote && boot && ours && boot != ours;
}

/*
 * Open a live file and read its header. *@elsewhere, unless NULL: its owner is of another host, and lives; if not, all its pages have been
 * written back, and from here on are read as they are. -ENODATA: its owner has just made it, its log has no bytes yet. -EBADMSG: damaged;
 * -EPROTONOSUPPORT: of another version (one line says so).
 */
static int open_live(const struct container *c, const char *path, int flags, uint8_t *header, bool *elsewhere)
{
	char full[CONTAINER_PATH_LEN];
	uint8_t copy[STATIC_LEN];
	bool foreign = is_foreign(c, path);
	ssize_t n;
	int h;

	container_path(c, path, full);
	h = store_open(c->store, full, flags | STORE_BRIEFLY | (foreign ? c->store->uncached : 0), 0);
	if (h < 0)
		return h;
	if (elsewhere)
		*elsewhere = foreign && c->store->ops->locked(c->store, h);
	if (foreign)
		c->store->ops->forget(c->store, h);
	n = c->store->ops->pread(c->store, h, header, HEADER_LEN, 0);
	memcpy(copy, header, STATIC_LEN);
	put_le32(copy + 12, 0);
	if (n == HEADER_LEN && !memcmp(header, STAGE_MAGIC, 8) && get_le32(header + 8) == STAGE_VERSION &&
	    !memcmp(header + 16, c->id, STUB_ID_LEN) && crc32c(0, copy, STATIC_LEN) == get_le32(header + 12) &&
	    is_log_name(header + 80) && get_le64(header + 32) <= OFF_MAX && get_le64(header + 40) <= RECORDS_CAP_MAX &&
	    get_le64(header + 64) <= OFF_MAX && get_le64(header + 72) <= STAGE_CAP_MAX)
		return h;
	store_close(c->store, &h);
	if (n == HEADER_LEN && !memcmp(header, STAGE_MAGIC, 8) && get_le32(header + 8) != STAGE_VERSION &&
	    crc32c(0, copy, STATIC_LEN) == get_le32(header + 12)) {
		log_error("%s: live index of version %u, this library's is %d", full, get_le32(header + 8), STAGE_VERSION);
		return -EPROTONOSUPPORT;
	}
	return n < 0 ? (int)n : get_le64(header) ? -EBADMSG : -ENODATA;
}

/* Make numbers of the checked words of a header. -EBADMSG */
static int take_words(uint8_t *header)
{
	for (size_t i = 0; i < ARRAY_SIZE(STAGE_WORDS); i++) {
		uint64_t word = get_le64(header + STAGE_WORDS[i]);

		if (stage_word(stage_number(word)) != word)
			return -EBADMSG;
		put_le64(header + STAGE_WORDS[i], stage_number(word));
	}
	return 0;
}

static uint64_t load_number(const uint8_t *map, int off) { return stage_number(load_le64(map + off)); }

static int decode_live(struct index_record *rec, const uint8_t *p, bool sealed)
{
	uint8_t copy[INDEX_RECORD_LEN];
	int ret;

	if (sealed) {
		ret = index_record_decode(rec, p, INDEX_RECORD_LEN);
		return ret < 0 ? ret : 0;
	}
	memcpy(copy, p, sizeof(copy));
	put_le32(copy + REC_CRC, 0);
	put_le32(copy + REC_CRC, crc32c(0, copy, sizeof(copy)));
	ret = index_record_decode(rec, copy, sizeof(copy));
	return ret < 0 ? ret : 0;
}

/* What changes, as it is now, behind what has been checked: not even who writes over the file can make more records than there is room for. */
static int read_dynamic(struct store *s, int h, const uint8_t *header, uint8_t *dyn)
{
	ssize_t n = s->ops->pread(s, h, dyn + STATIC_LEN, DYNAMIC_END - STATIC_LEN, STATIC_LEN);

	memcpy(dyn, header, STATIC_LEN);
	return n == DYNAMIC_END - STATIC_LEN ? take_words(dyn) : n < 0 ? (int)n : -EBADMSG;
}

/*
 * The last record, which may be growing: @recorded_len tells how far it has got. 0: it is none, for its write had not returned; -EBADMSG
 */
static int decode_last(struct index_record *rec, const uint8_t *p, uint64_t recorded_len)
{
	bool run = get_le64(p + REC_COUNT) != 1;
	int grows = run ? REC_COUNT : REC_LENGTH;
	uint64_t log_off, length;
	uint8_t copy[INDEX_RECORD_LEN];
	uint32_t crc = get_le32(p + REC_CRC);

	if (!decode_live(rec, p, true))
		return 1;
	memcpy(copy, p, sizeof(copy));
	put_le32(copy + REC_CRC, 0);
	put_le64(copy + grows, 0);
	if (crc32c(0, copy, sizeof(copy)) != crc)
		return -EBADMSG;
	log_off = get_le64(copy + REC_LOG_OFF);
	length = get_le64(copy + REC_LENGTH);
	if (recorded_len == log_off)
		return 0;
	if (recorded_len < log_off || (run && (!length || (recorded_len - log_off) % length)))
		return -EBADMSG;
	put_le64(copy + grows, run ? (recorded_len - log_off) / length : recorded_len - log_off);
	return decode_live(rec, copy, false) ? -EBADMSG : 1;
}

/* One attempt. -EAGAIN: the owner was changing records. */
static int load_once(const struct container *c, int h, const uint8_t *header, struct stage_state *state,
		     struct index_record *records, uint8_t *raw, bool insist)
{
	struct store *s = c->store;
	uint8_t dyn[DYNAMIC_END], again[8];
	uint64_t seq, nr, cap, off;
	int ret = read_dynamic(s, h, header, dyn);
	ssize_t n;

	if (ret)
		return ret;
	seq = get_le64(dyn + OFF_SEQ);
	nr = get_le64(dyn + OFF_NR_RECORDS);
	off = get_le64(dyn + 32);
	cap = get_le64(dyn + 40);
	if (nr > cap)
		return -EBADMSG;
	n = s->ops->pread(s, h, raw, nr * INDEX_RECORD_LEN, off);
	if (n != (ssize_t)(nr * INDEX_RECORD_LEN))
		return n < 0 ? (int)n : -EBADMSG;
	n = s->ops->pread(s, h, again, sizeof(again), OFF_SEQ);
	if (n != sizeof(again))
		return n < 0 ? (int)n : -EBADMSG;
	if (stage_number(get_le64(again)) != seq || (!insist && seq % 2))
		return -EAGAIN;
	/* In the middle of a change the last but one may be taking the last in. */
	for (uint64_t i = 0; i < nr && !ret; i++)
		if (i + 1 < nr || seq % 2)
			ret = decode_live(&records[i], raw + i * INDEX_RECORD_LEN, i + 1 + seq % 2 < nr);
	if (!ret && nr && seq % 2 == 0) {
		ret = decode_last(&records[nr - 1], raw + (nr - 1) * INDEX_RECORD_LEN, get_le64(dyn + OFF_RECORDED));
		nr -= ret == 0;
		ret = ret < 0 ? ret : 0;
	}
	state->nr_records = nr;
	state->flushed_len = get_le64(dyn + OFF_FLUSHED);
	state->staged_len = get_le64(dyn + OFF_STAGED);
	state->last_trailer = get_le64(dyn + OFF_LAST_TRAILER);
	state->last_table = get_le64(dyn + OFF_LAST_TABLE);
	return ret;
}

/* Load from an owner that lives on another host: see the end of the table in stage.h. What it has released is there. */
static int load_foreign(const struct container *c, const char *path, int h, const uint8_t *header, struct stage_state *state,
			struct index_record *records, uint8_t *raw)
{
	char log[CONTAINER_PATH_LEN];
	struct store *s = c->store;
	uint8_t dyn[DYNAMIC_END];
	uint64_t nr, log_end;
	struct stat st;
	ssize_t n;
	int ret = read_dynamic(s, h, header, dyn);

	if (ret)
		return ret;
	nr = min_u64(get_le64(dyn + OFF_NR_RECORDS), get_le64(dyn + 40));
	n = s->ops->pread(s, h, raw, nr * INDEX_RECORD_LEN, get_le64(dyn + 32));
	if (n != (ssize_t)(nr * INDEX_RECORD_LEN))
		return n < 0 ? (int)n : -EBADMSG;
	snprintf(log, sizeof(log), "%s/%.*s%s", c->dir, (int)(strchr(path, '/') + 1 - path), path, state->log_name);
	ret = s->ops->stat(s, log, &st);
	if (ret == -ENOENT && !s->ops->fstat(s, h, &st) && st.st_nlink) /* the live file is there still, so nobody has closed the log: it has no bytes */
		st.st_size = 0;
	else if (ret)
		return ret;
	log_end = max_u64((uint64_t)st.st_size, DROPPING_DATA_OFF) - DROPPING_DATA_OFF;
	for (uint64_t i = 0; i < nr; i++) {
		struct index_record *rec = &records[state->nr_records];

		if (!decode_live(rec, raw + i * INDEX_RECORD_LEN, true) &&
		    (rec->type != INDEX_WRITE || index_record_log_end(rec) <= log_end))
			state->nr_records++;
	}
	return 0;
}

/*
 * Load what a killed process, or a power failure, has left on a host that was started anew since. A record with its checksum
 * is true whenever it is from; so is the last, which could still grow, if it is the one that the header means. Of bytes it takes a checksum to tell
 * whether they are there.
 */
static int load_stranded(const struct container *c, int h, uint8_t *header, struct stage_state *state,
			 struct index_record *records, uint8_t *raw)
{
	uint64_t nr, off = get_le64(header + 32);
	ssize_t n = take_words(header);

	if (n)
		return (int)n;
	nr = min_u64(get_le64(header + OFF_NR_RECORDS), get_le64(header + 40));
	state->stranded = true;
	state->flushed_len = get_le64(header + OFF_FLUSHED);
	state->staged_len = get_le64(header + OFF_STAGED);
	state->last_trailer = get_le64(header + OFF_LAST_TRAILER);
	state->last_table = get_le64(header + OFF_LAST_TABLE);
	memset(raw, 0, nr * INDEX_RECORD_LEN);
	n = c->store->ops->pread(c->store, h, raw, nr * INDEX_RECORD_LEN, off);
	if (n < 0)
		return (int)n;
	for (uint64_t i = 0; i < nr; i++) {
		struct index_record *rec = &records[state->nr_records];

		if (!decode_live(rec, raw + i * INDEX_RECORD_LEN, true) ||
		    (i + 1 == nr && get_le32(raw + i * INDEX_RECORD_LEN + REC_CRC) == get_le32(header + OFF_LAST_CRC) &&
		     decode_last(rec, raw + i * INDEX_RECORD_LEN, get_le64(header + OFF_RECORDED)) > 0))
			state->nr_records++;
	}
	return 0;
}

uint64_t stage_sure_len(const struct container *c, const char *path, const char *log, uint64_t from)
{
	uint8_t header[HEADER_LEN] = { 0 };
	int h = open_live(c, path, O_RDONLY, header, NULL);
	uint64_t len;

	if (h < 0)
		return from;
	len = take_words(header) ? from : stranded_check_log(c, h, header, log, from);
	store_close(c->store, &h);
	return len;
}

/*
 * The header, and the last two records to @tail, as they were at one moment. Only these two ever change, and through a
 * mapping looking takes less time than the owner needs from one change to the next.
 */
static bool look_at_once(const uint8_t *map, uint64_t off, uint64_t cap, uint8_t *dyn, uint8_t *tail)
{
	for (int tries = 0; tries < 100000; tries++) {
		uint64_t seq = load_number(map, OFF_SEQ);
		uint64_t nr = load_number(map, OFF_NR_RECORDS);
		uint64_t nr_tail = min_u64(nr, 2);

		if (seq % 2 || nr > cap)
			continue;
		memcpy(dyn, map, DYNAMIC_END);
		put_le64(dyn + OFF_NR_RECORDS, nr);
		memcpy(tail, map + off + (nr - nr_tail) * INDEX_RECORD_LEN, nr_tail * INDEX_RECORD_LEN);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (load_number(map, OFF_SEQ) == seq)
			return true;
	}
	return false;
}

/*
 * Load from an owner that is so busy that it changes something in the time of every load_once(). What stands before the
 * last two records is at rest; if it moves to the node index meanwhile, what is found in its place is true as well, and it
 * is in the node index, which is read after this.
 */
static int load_busy(const struct container *c, int h, const uint8_t *header, struct stage_state *state, struct index_record *records)
{
	struct store *s = c->store;
	uint8_t dyn[DYNAMIC_END], tail[2 * INDEX_RECORD_LEN];
	uint64_t off = get_le64(header + 32), cap = get_le64(header + 40), len = off + cap * INDEX_RECORD_LEN;
	struct stat st;
	const uint8_t *map;
	int ret = s->ops->fstat(s, h, &st);

	if (ret || off > (uint64_t)st.st_size || len > (uint64_t)st.st_size)
		return ret ? ret : -EBADMSG;
	map = s->ops->map(s, h, (size_t)len, false);
	if (!map)
		return -EAGAIN;
	ret = look_at_once(map, off, cap, dyn, tail) ? 0 : -EAGAIN;
	state->nr_records = ret ? 0 : get_le64(dyn + OFF_NR_RECORDS);
	for (uint64_t i = 0, nr = state->nr_records; i < nr && !ret; i++)
		ret = i + 2 < nr ? decode_live(&records[i], map + off + i * INDEX_RECORD_LEN, true) :
				   decode_live(&records[i], tail + (i + min_u64(nr, 2) - nr) * INDEX_RECORD_LEN, i + 1 < nr);
	if (mapping_is_broken(map)) /* cut meanwhile */
		ret = -EBADMSG;
	s->ops->unmap(s, (void *)map, (size_t)len);
	return ret;
}

/* Room for no more records than the file, which has room for them from the beginning, is long enough for. */
static int limit_cap(struct store *s, int h, uint8_t *header)
{
	uint64_t off = get_le64(header + 32), cap = get_le64(header + 40), len;
	struct stat st;
	int ret;

	if (cap <= STAGE_RECORDS_CAP)
		return 0;
	ret = s->ops->fstat(s, h, &st);
	len = ret ? 0 : (uint64_t)st.st_size;
	put_le64(header + 40, min_u64(cap, off < len ? (len - off) / INDEX_RECORD_LEN : 0));
	return ret;
}

/* Give back what a file with few records has not needed: there may be thousands of them. */
static void shrink(struct index_record **records, uint64_t nr)
{
	struct index_record *fewer = mem_realloc(*records, (nr + 1) * sizeof(*fewer));

	if (fewer)
		*records = fewer;
}

int stage_load(const struct container *c, const char *path, struct stage_state *state, struct index_record **records)
{
	uint8_t header[HEADER_LEN] = { 0 };
	uint8_t *raw = NULL;
	bool elsewhere;
	uint64_t cap;
	int ret;
	int h = open_live(c, path, O_RDONLY, header, &elsewhere);

	memset(state, 0, sizeof(*state));
	*records = NULL;
	if (h == -ENODATA)
		return 0;
	if (h == -EBADMSG || h == -EIO)
		log_error("%s/%s: damaged live index", c->dir, path);
	if (h < 0)
		return h;
	memcpy(state->log_name, header + 80, sizeof(state->log_name)); /* ends with a NUL: open_live() */
	ret = limit_cap(c->store, h, header);
	cap = get_le64(header + 40);
	raw = ret ? NULL : mem_alloc(cap * INDEX_RECORD_LEN);
	*records = ret ? NULL : mem_alloc((cap + 1) * sizeof(**records));
	ret = ret ? ret : raw && *records ? -EAGAIN : -ENOMEM;
	if (ret == -EAGAIN && elsewhere)
		ret = load_foreign(c, path, h, header, state, *records, raw);
	else if (ret == -EAGAIN && is_stranded(c, header))
		ret = load_stranded(c, h, header, state, *records, raw);
	/* An owner killed in the middle of a change leaves an odd number for ever; what is there then is at rest. */
	for (int tries = 0; !elsewhere && (ret == -EAGAIN || ret == -EBADMSG) && tries < 20; tries++) {
		struct timespec wait = { .tv_nsec = 50000L * tries };

		if (tries)
			own_nanosleep(&wait, NULL);
		ret = load_once(c, h, header, state, *records, raw, tries >= 10);
		if (ret == -EAGAIN && tries >= 10)
			ret = load_busy(c, h, header, state, *records);
	}
	if (ret == -EBADMSG)
		log_error("%s/%s: damaged live index", c->dir, path);
	mem_free(raw);
	if (ret) {
		mem_free(*records);
		*records = NULL;
	} else {
		shrink(records, state->nr_records);
	}
	store_close(c->store, &h);
	return ret;
}

ssize_t stage_load_bytes(const struct container *c, const char *path, uint64_t log_off, void *buf, size_t len)
{
	uint8_t header[HEADER_LEN] = { 0 }, again[8];
	struct store *s = c->store;
	bool elsewhere;
	int h = open_live(c, path, O_RDONLY, header, &elsewhere);
	ssize_t ret;

	if (h < 0)
		return h == -ENODATA ? 0 : h;
	if (elsewhere) {
		store_close(s, &h);
		return 0;
	}
	for (;;) {
		uint64_t flushed, staged;

		ret = take_words(header);
		if (ret) {
			log_error("%s/%s: damaged live index", c->dir, path);
			ret = -EIO;
			break;
		}
		flushed = get_le64(header + OFF_FLUSHED);
		staged = get_le64(header + OFF_STAGED);
		if (log_off < flushed || log_off >= flushed + staged || staged > get_le64(header + 72))
			break;
		if (is_stranded(c, header))
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
		ret = s->ops->pread(s, h, header + STATIC_LEN, HEADER_LEN - STATIC_LEN, STATIC_LEN); /* what has been checked stays */
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
	uint64_t nr;
	ssize_t n = s->ops->pread(s, h, header, sizeof(header), 0);

	if (n != sizeof(header))
		return n < 0 ? (int)n : -EBADMSG;
	if (take_words(header))
		return -EBADMSG;
	nr = get_le64(header + OFF_NR_CHUNKS);
	sums->first_chunk = get_le64(header + OFF_FIRST_CHUNK);
	sums->chunk_crc = get_le32(header + OFF_CHUNK_CRC);
	if (get_le16(header + OFF_CHUNK_CRC + 6) == ((sums->first_chunk + nr) & 0xffff)) /* else the owner is, or was killed, in the middle of it */
		sums->chunk_len = get_le16(header + OFF_CHUNK_CRC + 4);
	sums->last_table = get_le64(header + OFF_LAST_TABLE);
	if (get_le64(header + OFF_SEQ) % 2)
		return -EAGAIN;
	if (nr > get_le64(header + 56) || nr > 1 << 20 || sums->first_chunk > (uint64_t)INT64_MAX / INDEX_CHUNK_LEN - nr)
		return -EBADMSG;
	sums->nr_chunks = min_u64(nr, get_le64(header + OFF_FLUSHED) / INDEX_CHUNK_LEN - min_u64(get_le64(header + OFF_FLUSHED) / INDEX_CHUNK_LEN, sums->first_chunk));
	if (sums->nr_chunks != nr) /* killed before it said that these are in the log: chunk_crc is of a later one */
		sums->chunk_len = 0;
	sums->crcs = mem_alloc(nr * 4);
	if (!sums->crcs)
		return -ENOMEM;
	n = s->ops->pread(s, h, sums->crcs, nr * 4, get_le64(header + 48));
	if (n != (ssize_t)(nr * 4))
		return n < 0 ? (int)n : -EBADMSG;
	n = s->ops->pread(s, h, again, sizeof(again), OFF_SEQ);
	return n < 0 ? (int)n : n == sizeof(again) && stage_number(get_le64(again)) == get_le64(header + OFF_SEQ) ? 0 : -EAGAIN;
}

int stage_load_sums(const struct container *c, const char *path, struct stage_sums *sums)
{
	uint8_t header[HEADER_LEN] = { 0 };
	bool elsewhere;
	int h = open_live(c, path, O_RDONLY, header, &elsewhere);
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

/* The sequence number covers all but a growing count or length, which is in the last record. */
static uint64_t digest_of(uint64_t seq, uint64_t nr, const uint8_t *last)
{
	return seq << 40 ^ nr << 32 ^ crc32c(0, last, INDEX_RECORD_LEN);
}

int stage_digest(const struct container *c, const char *path, uint64_t *digest)
{
	uint8_t header[HEADER_LEN] = { 0 }, last[INDEX_RECORD_LEN] = { 0 };
	bool elsewhere;
	int h = open_live(c, path, O_RDONLY, header, &elsewhere);
	uint64_t nr;

	*digest = 0;
	if (h == -ENODATA)
		return 0;
	if (h < 0)
		return h;
	nr = stage_number(get_le64(header + OFF_NR_RECORDS));
	if (nr)
		c->store->ops->pread(c->store, h, last, sizeof(last),
				     get_le64(header + 32) + (nr - 1) * INDEX_RECORD_LEN);
	*digest = digest_of(stage_number(get_le64(header + OFF_SEQ)), nr, last);
	if (elsewhere) /* a record that has its checksum is believed when its bytes are in the log, and at the owner's end there is more to see */
		*digest = ~(*digest + stage_number(get_le64(header + OFF_FLUSHED)) * 0x9e3779b97f4a7c15);
	store_close(c->store, &h);
	return 0;
}

bool stage_is_whole(struct store *s, int h)
{
	struct stat st;

	return !s->ops->fstat(s, h, &st) && st.st_size >= STAGE_INDEX_LEN;
}

bool stage_mapped_is_over(const uint8_t *map)
{
	return !load_le64(map);
}

/* A sum of products with odd numbers: another value of any one of them is another sum, by however much it has grown. */
uint64_t stage_mapped_digest(const uint8_t *map)
{
	uint64_t nr = load_number(map, OFF_NR_RECORDS), digest = load_number(map, OFF_SEQ) * 0x9e3779b97f4a7c15 + nr;

	if (nr && nr <= STAGE_RECORDS_CAP) { /* what grows in the last record */
		const uint8_t *last = map + RECORDS_OFF + (nr - 1) * INDEX_RECORD_LEN;

		digest += load_le64(last + REC_LENGTH) * 0xbf58476d1ce4e5b9 + load_le64(last + REC_STRIDE) * 0x94d049bb133111eb +
			  load_le64(last + REC_COUNT) * 0xff51afd7ed558ccd;
	}
	return digest;
}

uint64_t stage_mapped_file_digest(const uint8_t *map)
{
	uint64_t nr = load_number(map, OFF_NR_RECORDS), seq = load_number(map, OFF_SEQ);
	uint8_t last[INDEX_RECORD_LEN] = { 0 };

	if (nr && nr <= STAGE_RECORDS_CAP)
		memcpy(last, map + RECORDS_OFF + (nr - 1) * INDEX_RECORD_LEN, sizeof(last));
	return digest_of(seq, nr, last);
}

int stage_mapped_records(const uint8_t *map, uint64_t first, struct index_record *records, unsigned max)
{
	uint8_t raw[STAGE_MAPPED_MAX * INDEX_RECORD_LEN];
	int ret = 0;

	for (int tries = 0; tries < 100; tries++) {
		uint64_t seq = load_number(map, OFF_SEQ), nr = load_number(map, OFF_NR_RECORDS);

		if (seq % 2)
			continue;
		if (nr < first || nr > STAGE_RECORDS_CAP)
			return -ENODATA;
		nr -= first;
		if (nr > max || nr > STAGE_MAPPED_MAX)
			return -E2BIG;
		memcpy(raw, map + RECORDS_OFF + first * INDEX_RECORD_LEN, nr * INDEX_RECORD_LEN);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (load_number(map, OFF_SEQ) != seq)
			continue;
		for (uint64_t i = 0; i < nr && !ret; i++)
			ret = decode_live(&records[i], raw + i * INDEX_RECORD_LEN, i + 1 < nr);
		return ret ? ret : (int)nr;
	}
	return -EAGAIN;
}

bool stage_is_unmapped(const struct container *c, const char *path)
{
	uint8_t header[HEADER_LEN] = { 0 };
	int h = open_live(c, path, O_RDONLY, header, NULL);

	if (h < 0)
		return false;
	store_close(c->store, &h);
	return get_le32(header + 208);
}

int stage_notify(const struct container *c, const char *path, uint64_t stamp_ns)
{
	uint8_t header[HEADER_LEN] = { 0 }, word[8];
	int h = open_live(c, path, O_RDWR, header, NULL);
	uint8_t *map;
	ssize_t n;

	if (h < 0)
		return h == -ENODATA ? 0 : h;
	map = c->store->remote && !is_foreign(c, path) ? c->store->ops->map(c->store, h, HEADER_LEN, true) : NULL;
	if (map) { /* a write beside the stores of the owner loses what those have left in the page, on GlusterFS for one */
		store_le64(map + OFF_NOTIFY, stamp_ns);
		c->store->ops->unmap(c->store, map, HEADER_LEN);
		store_close(c->store, &h);
		return 0;
	}
	put_le64(word, stamp_ns);
	n = c->store->ops->pwrite(c->store, h, word, sizeof(word), OFF_NOTIFY);
	store_close(c->store, &h);
	return n < 0 ? (int)n : 0;
}

uint64_t stage_adopted(const struct container *c, const char *path)
{
	uint8_t header[HEADER_LEN] = { 0 };
	int h = open_live(c, path, O_RDONLY, header, NULL);

	if (h < 0)
		return 0;
	store_close(c->store, &h);
	return get_le64(header + OFF_ADOPTED);
}

void stage_set_adopted(const struct container *c, const char *path, uint64_t digest)
{
	uint8_t header[HEADER_LEN] = { 0 }, word[8];
	int h = open_live(c, path, O_RDWR, header, NULL);

	if (h < 0)
		return;
	put_le64(word, digest);
	c->store->ops->pwrite(c->store, h, word, sizeof(word), OFF_ADOPTED);
	store_close(c->store, &h);
}
