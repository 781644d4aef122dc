/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scans the data logs: header, tables of checksums, and the bytes, chunk by chunk.
 */
#include "core/admin/scan/scan_log.h"

#include "core/admin/scan/scan_trailers.h"
#include "core/dropping/datalog.h"
#include "core/dropping/synced.h"
#include "core/base/crc32c.h"
#include "core/admin/scan/mend.h"
#include "core/base/sys.h"

#include <stdlib.h>

#define READ_LEN ((size_t)16 * INDEX_CHUNK_LEN)

/* A log that is being scanned. */
struct log_scan {
	struct scan *l;
	struct scan_log *log;
	int h;
	uint8_t *buf;              /* READ_LEN bytes */
	uint64_t bad_from, bad_to; /* chunks in a row that do not match their checksums */
	uint64_t next_chunk;       /* the tables have all before it */
	uint64_t end_chunk;        /* the log has all before it, whole */
	bool tables_ok;
};

/* ---- chunks ---- */

static void report_bad_chunks(struct log_scan *ll)
{
	const struct finding *f;

	if (ll->bad_to == ll->bad_from)
		return;
	f = findings_add(ll->l->found, PLFS_DAMAGED, "chunk", ll->log->path, ll->bad_from,
			 "bytes %llu to %llu of its data do not match their checksums",
			 (unsigned long long)ll->bad_from,
			 (unsigned long long)ll->bad_to - 1);
	if (scan_add_bad(ll->l, ll->log, ll->bad_from, ll->bad_to - ll->bad_from, f))
		ll->l->found->ret = -ENOMEM;
	ll->bad_from = ll->bad_to = 0;
}

/* Of a chunk that was synced in part before its host lost power, readers give that part. */
static void add_bad_chunk(struct log_scan *ll, uint64_t from, uint64_t to)
{
	size_t synced = 0;

	synced_in_part(ll->l->c, ll->log->path, ll->h, from / INDEX_CHUNK_LEN, (size_t)(to - from), false,
		       &synced);
	from += min_u64(synced, to - from);
	if (ll->bad_to != from)
		report_bad_chunks(ll);
	if (ll->bad_to == ll->bad_from)
		ll->bad_from = from;
	ll->bad_to = to;
}

/*
 * Compare the bytes [off, end) of the log, which begin a chunk, with their checksums. Unreadable bytes never
 * match.
 */
static int check_chunks(struct log_scan *ll, uint64_t off, uint64_t end, const uint8_t *crcs)
{
	struct store *s = ll->l->c->store;

	while (off < end) {
		size_t want = (size_t)min_u64(READ_LEN, end - off);
		ssize_t n = datalog_pread(s, ll->h, ll->buf, want, off);

		if (n < 0 && n != -EIO && n != -EINVAL)
			return (int)n;
		if (n < 0) { /* by chunks: most of them may be readable */
			want = (size_t)min_u64(INDEX_CHUNK_LEN, end - off);
			n = datalog_pread(s, ll->h, ll->buf, want, off);
		}
		for (size_t pos = 0; pos < want; pos += INDEX_CHUNK_LEN, crcs += 4) {
			size_t len = min_size(INDEX_CHUNK_LEN, want - pos);

			if (n < (ssize_t)(pos + len) || crc32c(0, ll->buf + pos, len) != get_le32(crcs))
				add_bad_chunk(ll, off + pos, off + pos + len);
		}
		off += want;
		ll->l->check->log_bytes += want;
		if (ll->l->check->progress)
			ll->l->check->progress(ll->l->check->arg, ll->l->check);
	}
	return 0;
}

/* ---- tables ---- */

/* Read the table that @block names into *@buf, mem_alloc()ed. -EBADMSG: it is damaged. */
static int read_table(struct log_scan *ll, const struct index_block *block, struct index_chunks *table,
		      void **buf)
{
	struct store *s = ll->l->c->store;
	uint8_t head[INDEX_CHUNKS_HEADER_LEN];
	uint64_t nr;
	size_t len;
	ssize_t n = datalog_pread(s, ll->h, head, sizeof(head), block->chunks_off);

	*buf = NULL;
	if (n != sizeof(head))
		return n < 0 && n != -EIO ? (int)n : -EBADMSG;
	nr = get_le32(head + 12);
	len = index_chunks_len(nr);
	if (nr > block->log_len / INDEX_CHUNK_LEN + 1 || block->chunks_off + len > ll->log->len)
		return -EBADMSG;
	*buf = mem_alloc(len);
	if (!*buf)
		return -ENOMEM;
	n = datalog_pread(s, ll->h, *buf, len, block->chunks_off);
	if (n >= 0)
		n = index_chunks_parse(table, *buf, (size_t)n);
	return n > 0 ? 0 : n == -ENODATA || n == -EIO ? -EBADMSG : (int)n;
}

/*
 * Compute the damaged table of @block again from the data. If it differs from the damaged one by a single
 * bit, that bit was flipped, and the data is right.
 */
static int mend_table(struct log_scan *ll, const struct index_block *block)
{
	struct store *s = ll->l->c->store;
	uint64_t first = ll->next_chunk ? min_u64(ll->next_chunk, ll->end_chunk) : 0, nr;
	uint64_t last = (block->log_len + INDEX_CHUNK_LEN - 1) / INDEX_CHUNK_LEN;
	size_t len, at;
	uint8_t *is, *was;
	int ret = 0;

	nr = block->chunks_off == block->log_len ? last - first : 0;
	len = index_chunks_len(nr);
	if (!nr || last <= first || block->log_len > ll->log->len || len > ll->log->len - block->log_len ||
	    ll->l->check->quick || !ll->l->check->repair)
		return 0;
	is = mem_zalloc(len);
	was = mem_zalloc(len);
	if (!is || !was)
		ret = -ENOMEM;
	if (!ret && datalog_pread(s, ll->h, is, len, block->chunks_off) != (ssize_t)len)
		ret = -ENODATA;
	for (uint64_t i = 0; i < nr && !ret; i++) {
		uint64_t from = (first + i) * INDEX_CHUNK_LEN,
			to = min_u64(from + INDEX_CHUNK_LEN, block->log_len);

		if (datalog_pread(s, ll->h, ll->buf, to - from, from) != (ssize_t)(to - from))
			ret = -ENODATA;
		else
			put_le32(was + INDEX_CHUNKS_HEADER_LEN + 4 * i, crc32c(0, ll->buf, to - from));
	}
	if (!ret) {
		struct index_chunks table = { .first_chunk = first, .nr_chunks = (uint32_t)nr,
			.chunk_crc = was + INDEX_CHUNKS_HEADER_LEN };

		index_chunks_encode(&table, was);
		if (mend_differ_by_one(is, was, len, &at))
			ret = scan_add_log_mend(ll->l, ll->log->path, block->chunks_off + at, is[at],
					    was[at]);
	}
	mem_free(is);
	mem_free(was);
	return ret == -ENODATA ? 0 : ret;
}

static int check_table(struct log_scan *ll, const struct index_block *block)
{
	struct scan *l = ll->l;
	struct index_chunks table;
	uint64_t off, end;
	void *buf;
	int ret = read_table(ll, block, &table, &buf);

	if (!ret &&
	    (table.first_chunk > ll->next_chunk || table.first_chunk * INDEX_CHUNK_LEN > block->log_len ||
	     table.nr_chunks > (block->log_len + INDEX_CHUNK_LEN - 1) / INDEX_CHUNK_LEN - table.first_chunk))
		ret = -EBADMSG;
	if (ret == -EBADMSG) {
		bool never_there = scan_ends_synced(l, ll->log) &&
			(!ll->log->complete || ll->log->live != SCAN_NONE ||
			 block->chunks_off >= ll->log->len);

		findings_add(l->found, never_there ? PLFS_NOTED : PLFS_DAMAGED, "table", ll->log->path,
			     block->chunks_off,
			     "the checksums at byte %llu of its data are damaged: the data that they cover "
			     "cannot be verified",
			     (unsigned long long)block->chunks_off);
		ll->tables_ok = false;
		ret = mend_table(ll, block);
	} else if (!ret) {
		off = table.first_chunk * INDEX_CHUNK_LEN;
		end = min_u64(off + (uint64_t)table.nr_chunks * INDEX_CHUNK_LEN, block->log_len);
		ll->end_chunk = block->log_len / INDEX_CHUNK_LEN;
		ll->next_chunk = max_u64(ll->next_chunk, table.first_chunk + table.nr_chunks);
		if (!l->check->quick)
			ret = check_chunks(ll, off, end, table.chunk_crc);
	}
	mem_free(buf);
	return ret;
}

static int by_chunks_off(const void *a, const void *b)
{
	const struct scan_block *x = *(struct scan_block *const *)a, *y = *(struct scan_block *const *)b;

	return x->block.chunks_off < y->block.chunks_off ? -1 : x->block.chunks_off > y->block.chunks_off;
}

/* The *@nr blocks of the log that name a table, each table once, in the order of the log; mem_alloc()ed. */
static struct scan_block **tables_of(struct log_scan *ll, uint32_t *nr)
{
	struct scan *l = ll->l;
	struct scan_block **tables = mem_alloc((ll->log->nr_blocks + (size_t)1) * sizeof(*tables));
	uint32_t out = 0;

	*nr = 0;
	for (uint32_t i = ll->log->first_block; tables && i != SCAN_NONE; i = l->blocks[i].next)
		if (l->blocks[i].block.chunks_off)
			tables[(*nr)++] = &l->blocks[i];
	if (!tables || !*nr)
		return tables;
	qsort(tables, *nr, sizeof(*tables), by_chunks_off);
	for (uint32_t i = 0; i < *nr; i++)
		if (!out || tables[i]->block.chunks_off != tables[out - 1]->block.chunks_off)
			tables[out++] = tables[i];
	*nr = out;
	return tables;
}

/* The live file has the checksums behind those of the tables. */
static int check_live_chunks(struct log_scan *ll)
{
	const struct scan_live *live = ll->log->live == SCAN_NONE ? NULL : &ll->l->lives[ll->log->live];
	struct live_sums sums;
	uint8_t last[4];
	uint64_t off;
	int ret;

	/* stranded: they have decided how much is certain */
	if (!live || live->ret || live->state.stranded || ll->l->check->quick)
		return 0;
	ret = live_load_sums(ll->l->c, live->path, &sums);
	if (ret == -EBADMSG) {
		ll->l->lives[ll->log->live].sums_cut = true;
		findings_add(ll->l->found, PLFS_DAMAGED, "live-cut", live->path, 0,
			     "cut short: the checksums of the log's end are not there");
		return 0;
	}
	if (ret == -ENOENT || ret == -EAGAIN) /* just closed, or changing too fast */
		return 0;
	if (ret)
		return ret;
	off = sums.first_chunk * INDEX_CHUNK_LEN;
	ret = check_chunks(ll, off, off + sums.nr_chunks * INDEX_CHUNK_LEN, sums.crcs);
	off += sums.nr_chunks * INDEX_CHUNK_LEN;
	put_le32(last, sums.chunk_crc);
	if (!ret && sums.chunk_len)
		ret = check_chunks(ll, off, off + sums.chunk_len, last);
	mem_free(sums.crcs);
	return ret;
}

static int check_sums(struct log_scan *ll)
{
	uint32_t nr;
	struct scan_block **tables = tables_of(ll, &nr);
	int ret = tables ? 0 : -ENOMEM;

	ll->tables_ok = true;
	for (uint32_t i = 0; i < nr && !ret && ll->tables_ok; i++)
		ret = check_table(ll, &tables[i]->block);
	if (!ret && ll->tables_ok && ll->log->live == SCAN_NONE && ll->log->complete && !ll->log->elsewhere &&
	    ll->next_chunk * INDEX_CHUNK_LEN < ll->log->indexed_len)
		findings_add(ll->l->found, scan_ends_synced(ll->l, ll->log) ? PLFS_NOTED : PLFS_DAMAGED,
			     "unchecked", ll->log->path, ll->next_chunk,
			     "its data from byte %llu on has no checksums and cannot be verified",
			     (unsigned long long)ll->next_chunk * INDEX_CHUNK_LEN);
	if (!ret)
		ret = check_live_chunks(ll);
	report_bad_chunks(ll);
	mem_free(tables);
	return ret;
}

/* ---- all ---- */

uint64_t scan_readable_len(const struct scan *l, const struct scan_log *log)
{
	const struct scan_live *live = log->live == SCAN_NONE ? NULL : &l->lives[log->live];

	if (live && live->state.stranded)
		return live->sure_len;
	return max_u64(log->len, live && !live->ret ? live->staged_end : 0);
}

static int check_length(struct scan *l, struct scan_log *log)
{
	uint64_t have = scan_readable_len(l, log), want = log->records_end;
	const struct finding *f;

	if (want <= have)
		return 0;
	if (log->live != SCAN_NONE && l->lives[log->live].state.stranded)
		f = findings_add(l->found, PLFS_DAMAGED, "not-synced", log->path, have,
				 "its host restarted before bytes %llu to %llu of its data were synced: they "
				 "are lost",
				 (unsigned long long)have, (unsigned long long)want - 1);
	else
		f = findings_add(l->found, PLFS_DAMAGED, "log-cut", log->path, have,
				 "too short: the index has %llu bytes of its data, the log %llu",
			 (unsigned long long)want, (unsigned long long)have);
	return scan_add_bad(l, log, have, INT64_MAX, f);
}

/* Find one flipped bit in the header. */
static void mend_header(struct scan *l, const struct scan_log *log)
{
	uint8_t buf[DATALOG_HEADER_LEN], mended[DATALOG_HEADER_LEN];
	char full[CONTAINER_PATH_LEN];
	struct store *s = l->c->store;
	size_t at;
	int h;

	container_path(l->c, log->path, full);
	h = store_open(s, full, O_RDONLY | STORE_BRIEFLY, 0);
	if (h < 0)
		return;
	if (s->ops->pread(s, h, buf, sizeof(buf), 0) == sizeof(buf)) {
		memcpy(mended, buf, sizeof(buf));
		if (mend_find(mended, sizeof(mended), 12, &at) &&
		    !datalog_check_header(l->c, log->path, mended))
			scan_add_mend(l, log->path, at, buf[at], mended[at]);
	}
	store_close(s, &h);
}

/* The log, or what follows its first log->len bytes, is in a place that is not on this host. */
static int report_elsewhere(struct scan *l, struct scan_log *log, const struct place *p)
{
	const struct finding *f;
	char host[64];

	log->complete = true; /* as far as it is here */
	place_host(p, host, sizeof(host));
	if (!log->needed || log->records_end <= log->len)
		return 0;
	if (p->features & PLACE_SHARED)
		return scan_add_bad(l, log, log->len, INT64_MAX - log->len,
				    findings_add(l->found, PLFS_DAMAGED, "elsewhere", log->path, 0,
						 "the log is in the backend %s, which is not there or cannot be read",
						 p->path));
	f = findings_add(l->found, PLFS_DAMAGED, "elsewhere", log->path, 0,
			 "the log is on %s in %s, and was not drained: run plfs drain there; if the host is lost, "
			 "give up with: plfs places --forget %s FILE", host, p->path, host);
	return scan_add_bad(l, log, log->len, INT64_MAX - log->len, f);
}

static bool is_elsewhere(struct scan *l, const struct scan_log *log, struct place *p)
{
	char full[CONTAINER_PATH_LEN];

	container_path(l->c, log->path, full);
	return placed_is_elsewhere(l->c->store, full, p);
}

static int report_unreadable(struct scan *l, struct scan_log *log)
{
	const struct finding *f;
	struct place p;

	if (log->state == -EREMOTE && is_elsewhere(l, log, &p))
		return report_elsewhere(l, log, &p);
	if (log->state == -EPROTONOSUPPORT) {
		l->unknown = true;
		findings_add(l->found, PLFS_FAILED, "version", log->path, 0,
			     "another version of libplfs wrote the log");
		return 0;
	}
	if (log->state == -ENOENT && !log->needed)
		return 0; /* no record of it is valid: collected */
	if (log->state == -EIO)
		mend_header(l, log);
	if (log->state == -ENOENT)
		f = findings_add(l->found, PLFS_DAMAGED, "log-missing", log->path, 0, "the log is missing");
	else if (log->state == -EIO)
		f = findings_add(l->found, PLFS_DAMAGED, "log-header", log->path, 0,
				 "the header is damaged, or of another log: none of the log is read");
	else
		f = findings_add(l->found, PLFS_DAMAGED, "log-unreadable", log->path, 0, "cannot be read: %s",
				 strerror(-log->state));
	return scan_add_bad(l, log, 0, INT64_MAX, f);
}

/*
 * Whether the log has no whole header yet, and nothing else: it is being made, or its process was killed
 * then, or its host went down before the header was on disk.
 */
static bool is_newborn(struct scan *l, const struct scan_log *log)
{
	char full[CONTAINER_PATH_LEN];
	struct stat st;

	container_path(l->c, log->path, full);
	return !log->nr_blocks && !log->needed && !l->c->store->ops->stat(l->c->store, full, &st) &&
	       !datalog_len(&st);
}

/* For a stranded live file: find how much of the log is certain, as readers do (gather.c). */
static void find_sure_len(struct scan *l, const struct scan_log *log)
{
	struct scan_live *live = log->live == SCAN_NONE ? NULL : &l->lives[log->live];
	uint64_t known_len = 0;

	if (!live || live->ret || !live->state.stranded)
		return;
	for (uint32_t i = log->first_block; i != SCAN_NONE; i = l->blocks[i].next)
		if (l->blocks[i].block.synced)
			known_len = max_u64(known_len, l->blocks[i].block.log_len);
	live->sure_len = max_u64(known_len, live_sure_len(l->c, live->path, log->path, known_len));
}

static int scan_one(struct log_scan *ll)
{
	struct scan *l = ll->l;
	struct scan_log *log = ll->log;
	struct store *s = l->c->store;
	struct place p;
	struct stat st;
	int ret;

	find_sure_len(l, log);
	ll->h = datalog_open(l->c, log->path, log->live != SCAN_NONE);
	log->state = ll->h < 0 ? ll->h : 0;
	if (log->state == -EMFILE || log->state == -ENFILE || log->state == -ENOMEM || log->state == -EACCES)
		return log->state;
	if (log->state == -EIO && is_newborn(l, log))
		return 0;
	if (log->state)
		return report_unreadable(l, log);
	ret = s->ops->fstat(s, ll->h, &st);
	if (!ret)
		log->len = datalog_len(&st);
	/* its live file is where all of it is */
	log->elsewhere = !ret && log->live == SCAN_NONE && unlikely(placed_is_enabled(s)) &&
			 is_elsewhere(l, log, &p);
	if (log->elsewhere && (!log->needed || log->records_end > log->len)) {
		store_close(s, &ll->h);
		return report_elsewhere(l, log, &p);
	}
	if (!ret)
		ret = scan_trailers(l, log, ll->h);
	if (!ret)
		ret = check_length(l, log);
	if (!ret)
		ret = check_sums(ll);
	store_close(s, &ll->h);
	return ret;
}

/* Nobody removes single logs by hand. */
static void report_missing(struct scan *l)
{
	uint32_t nr = 0, total = 0;

	for (uint32_t i = 0; i < l->nr_logs; i++) {
		total += l->logs[i]->needed || l->logs[i]->listed;
		nr += l->logs[i]->needed && l->logs[i]->state == -ENOENT;
	}
	if (nr)
		findings_add(l->found, PLFS_NOTED, "purged", "", 0,
			     "%u of %u logs are missing: removed by a purge of old files? What is in the others "
			     "can be read; a backup of the backend may have them", nr, total);
}

static bool is_void(const struct scan *l, const struct scan_log *log)
{
	if (!log->listed || !log->indexed || !log->complete || log->live != SCAN_NONE)
		return false;
	for (uint32_t i = log->first_block; i != SCAN_NONE; i = l->blocks[i].next)
		if (l->blocks[i].block.max_stamp_ns > l->stub.generation_ns)
			return false;
	return true;
}

/* A copy of the stub may have another generation than the stub whose logs these are. */
static void report_void(struct scan *l)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < l->nr_logs; i++)
		if (is_void(l, l->logs[i])) {
			l->nr_void++;
			bytes += l->logs[i]->len;
		}
	if (l->nr_void)
		findings_add(l->found, PLFS_NOTED, "void", "", 0,
			     "%u logs with %llu bytes hold only what was overwritten or cut off: plfs compact, "
			     "or a repair, gives that back", l->nr_void, (unsigned long long)bytes);
}

int scan_logs(struct scan *l)
{
	uint8_t *buf = mem_alloc(READ_LEN);
	int ret = buf ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < l->nr_logs && !ret; i++) {
		struct log_scan ll = { .l = l, .log = l->logs[i], .h = -1, .buf = buf };

		ret = scan_one(&ll);
	}
	report_missing(l);
	report_void(l);
	mem_free(buf);
	return ret;
}
