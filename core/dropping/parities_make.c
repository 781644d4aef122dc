/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Making parity files.
 */
#include "core/dropping/parities_make.h"

#include "core/backend/names.h"
#include "core/backend/spread.h"
#include "core/base/alloc.h"
#include "core/base/crc32c.h"
#include "core/base/gf256.h"
#include "core/dropping/datalog.h"
#include "core/dropping/sums.h"

#include <stdio.h>

#define PIECE_LEN ((size_t)1 << 20)

static_assert(PIECE_LEN % INDEX_CHUNK_LEN == 0, "pieces are of whole chunks");

/* A file that is made. */
struct target {
	struct parity_group *g;
	struct place_dir dir;
	bool entered, made;
	int h;
	uint8_t *sum; /* PIECE_LEN */
};

struct making {
	const struct container *c;
	struct carry *carry;
	struct target to[PARITY_ROWS_MAX];
	unsigned nr;
	const struct parity_group *logs; /* that of the first */
	int h[PARITY_LOGS_MAX];
	struct log_sums sums[PARITY_LOGS_MAX];
	uint8_t *part; /* PIECE_LEN */
	struct parities_failure *f;
};

/* ---- bytes ---- */

/* Whether the @len bytes at m->part, from @off on in the file of log @i, match their checksums. */
static int compare(struct making *m, unsigned i, size_t len, uint64_t off)
{
	int ret = 0;

	for (size_t at = 0; at < len && !ret; at += INDEX_CHUNK_LEN) {
		uint32_t part = (uint32_t)min_size(len - at, INDEX_CHUNK_LEN);
		uint64_t log_off = datalog_log_off(off + at);
		struct sums_chunk chunk;

		if (log_off == UINT64_MAX)
			continue;
		ret = sums_find(&m->sums[i], m->c, m->logs->logs[i].path, m->h[i], false,
				log_off / INDEX_CHUNK_LEN, part, &chunk);
		if (!ret && (m->sums[i].warned ||
			     (chunk.len && chunk.len <= part &&
			      crc32c(0, m->part + at, chunk.len) != chunk.crc)))
			ret = -EIO;
	}
	return ret;
}

/* Add the bytes of log @i to the sums. */
static int add_log(struct making *m, unsigned i, size_t len, uint64_t off)
{
	struct store *s = m->c->store;
	uint64_t end = m->logs->logs[i].len;
	ssize_t n;
	int ret;

	if (off >= end)
		return 0;
	len = (size_t)min_u64(len, end - off);
	n = s->ops->pread(s, m->h[i], m->part, len, off);
	ret = n < 0 ? (int)n : n != (ssize_t)len ? -EIO : compare(m, i, len, off);
	if (ret)
		m->f->log = i;
	for (unsigned k = 0; k < m->nr && !ret; k++)
		gf256_add_bytes(m->to[k].sum, m->part, len);
	m->carry->bytes += ret ? 0 : len;
	return !ret && m->carry->copied ? m->carry->copied(m->carry->arg, len) : ret;
}

/* From the last log to the first: what is in the second sum is doubled before each (Horner's rule). */
static int add_logs(struct making *m, size_t len, uint64_t off)
{
	int ret = 0;

	for (unsigned k = 0; k < m->nr; k++)
		memset(m->to[k].sum, 0, len);
	for (unsigned i = m->logs->nr; i-- > 0 && !ret;) {
		for (unsigned k = 0; k < m->nr; k++)
			if (m->to[k].g->row)
				gf256_double_bytes(m->to[k].sum, len);
		ret = add_log(m, i, len, off);
	}
	return ret;
}

static int write_piece(struct making *m, unsigned k, size_t len, uint64_t off)
{
	struct target *t = &m->to[k];
	ssize_t n = t->dir.store.ops->pwrite(&t->dir.store, t->h, t->sum, len, off);

	if (n != (ssize_t)len)
		m->f->row = k;
	return n == (ssize_t)len ? 0 : n < 0 ? (int)n : -ENOSPC;
}

static int add_all(struct making *m)
{
	size_t piece = m->carry->piece ? min_size(m->carry->piece, PIECE_LEN) : PIECE_LEN;
	int ret = 0;

	for (uint64_t off = 0; off < m->logs->len && !ret;) {
		size_t len = (size_t)min_u64(piece, m->logs->len - off);

		ret = add_logs(m, len, off);
		for (unsigned k = 0; k < m->nr && !ret; k++) {
			m->to[k].g->data_crc = crc32c(m->to[k].g->data_crc, m->to[k].sum, len);
			ret = write_piece(m, k, len, PARITY_DATA_OFF + off);
		}
		off += len;
	}
	return ret;
}

/* ---- files ---- */

static int open_logs(struct making *m)
{
	int ret = 0;

	for (unsigned i = 0; i < m->logs->nr && !ret; i++) {
		m->h[i] = datalog_open(m->c, m->logs->logs[i].path, false);
		m->sums[i].quiet = true;
		ret = m->h[i] < 0 ? m->h[i] : 0;
		m->f->log = ret ? i : m->f->log;
	}
	m->part = mem_alloc(PIECE_LEN);
	return ret ? ret : m->part ? 0 : -ENOMEM;
}

static void close_logs(struct making *m)
{
	for (unsigned i = 0; i < m->logs->nr; i++) {
		if (m->h[i] >= 0)
			store_close(m->c->store, &m->h[i]);
		sums_release(&m->sums[i]);
	}
	mem_free(m->part);
}

/* Others than the owner may not read it: nothing follows the file's mode there. */
#define PARITY_MODE 0600

static void temporary_name(const struct target *t, char *tmp)
{
	snprintf(tmp, CONTAINER_PATH_LEN, "%s.tmp.1", name_of(t->g->file));
}

/* Its block, and an empty file of a temporary name. */
static int begin_file(struct making *m, unsigned k, const struct place_settings *ps, int record)
{
	struct target *t = &m->to[k];
	char tmp[CONTAINER_PATH_LEN];
	int ret = parity_name(t->g, t->g->logs[0].path);

	t->g->len = t->g->data_crc = 0;
	for (unsigned i = 0; i < t->g->nr; i++)
		t->g->len = max_u64(t->g->len, t->g->logs[i].len);
	m->f->row = k;
	if (!ret)
		ret = parity_begin(m->c, ps, t->g, &t->dir);
	if (ret)
		return ret == -ENOENT ? -ENXIO : ret;
	t->entered = true;
	t->sum = mem_alloc(PIECE_LEN);
	ret = t->sum ? parity_append(m->c, record, t->g) : -ENOMEM;
	if (ret)
		return ret;
	temporary_name(t, tmp);
	t->h = store_open(&t->dir.store, tmp, O_RDWR | O_CREAT | O_EXCL | STORE_BRIEFLY, PARITY_MODE);
	if (t->h < 0)
		return t->h;
	t->made = true;
	if (m->c->give)
		store_give(&t->dir.store, t->h, m->c->uid);
	m->f->row = UINT_MAX;
	return 0;
}

static int end_file(struct making *m, unsigned k)
{
	struct target *t = &m->to[k];
	struct store *s = &t->dir.store;
	char tmp[CONTAINER_PATH_LEN];
	int ret;

	temporary_name(t, tmp);
	parity_encode(m->c, t->g, t->sum);
	ret = write_piece(m, k, PARITY_DATA_OFF, 0);
	if (!ret)
		ret = s->ops->sync(s, t->h, false);
	if (!ret)
		ret = s->ops->rename(s, tmp, name_of(t->g->file));
	if (!ret) {
		t->made = false;
		ret = s->ops->sync(s, s->root, true);
	}
	m->f->row = ret ? k : m->f->row;
	return ret;
}

static void leave_file(struct target *t)
{
	char tmp[CONTAINER_PATH_LEN];

	if (t->h >= 0)
		store_close(&t->dir.store, &t->h);
	if (t->made) {
		temporary_name(t, tmp);
		t->dir.store.ops->unlink(&t->dir.store, tmp);
	}
	if (t->entered)
		place_leave(&t->dir);
	mem_free(t->sum);
}

static int make(struct making *m, const struct parities_row *rows, int record)
{
	int ret = 0;

	for (unsigned k = 0; k < m->nr && !ret; k++)
		ret = begin_file(m, k, rows[k].ps, record);
	if (!ret)
		ret = open_logs(m);
	if (!ret)
		ret = add_all(m);
	for (unsigned k = 0; k < m->nr && !ret; k++)
		ret = end_file(m, k);
	return ret;
}

int parities_make(const struct container *c, int record, const struct parities_row *rows, unsigned nr_rows,
		  struct carry *carry, struct parities_failure *f)
{
	struct making m = { .c = c, .carry = carry, .nr = nr_rows, .logs = rows[0].g, .f = f };
	int ret;

	*f = (struct parities_failure){ UINT_MAX, UINT_MAX };
	for (unsigned k = 0; k < nr_rows; k++)
		m.to[k] = (struct target){ .g = rows[k].g, .h = -1 };
	for (unsigned i = 0; i < PARITY_LOGS_MAX; i++)
		m.h[i] = -1;
	ret = make(&m, rows, record);
	close_logs(&m);
	for (unsigned k = 0; k < nr_rows; k++) {
		leave_file(&m.to[k]);
		if (ret && m.to[k].entered)
			parities_drop(c, record, m.to[k].g);
	}
	carry->nr_logs += ret ? 0 : nr_rows;
	return ret;
}

void parities_drop(const struct container *c, int record, const struct parity_group *g)
{
	struct parity_group *none = mem_zalloc(sizeof(*none));
	struct place_dir dir;

	if (!none)
		return;
	if (!parity_enter(c, g, &dir)) {
		dir.store.ops->unlink(&dir.store, name_of(g->file));
		place_leave(&dir);
	}
	snprintf(none->file, sizeof(none->file), "%s", g->file);
	parity_append(c, record, none);
	mem_free(none);
}

int parities_remake(const struct container *c, const struct parity_group *g, struct carry *carry)
{
	const struct spread_settings *ss = c->store->spread;
	const struct place_settings *ps = NULL;
	struct parity_group *anew = mem_alloc(sizeof(*anew));
	char top[PLACE_PATH_LEN];
	struct parities_failure f;
	int record, ret;

	for (unsigned i = 0; ss && *g->top && !ps && i < ss->nr; i++)
		if (!parity_top(c, &ss->others[i], top) && !strcmp(top, g->top))
			ps = &ss->others[i];
	if (!anew || (*g->top && !ps)) {
		mem_free(anew);
		return ps ? -ENOMEM : -ENXIO;
	}
	record = parity_lock(c);
	ret = record < 0 ? record : 0;
	*anew = *g;
	if (!ret)
		ret = parities_make(c, record, &(struct parities_row){ anew, ps }, 1, carry, &f);
	if (!ret)
		parities_drop(c, record, g);
	if (record >= 0)
		store_close(c->store, &record);
	mem_free(anew);
	return ret;
}
