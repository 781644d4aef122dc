/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parity files, and what is read by them.
 */
#include "core/dropping/parities.h"

#include "core/backend/names.h"
#include "core/backend/placed.h"
#include "core/backend/rebuilt.h"
#include "core/backend/spread.h"
#include "core/base/alloc.h"
#include "core/base/crc32c.h"
#include "core/base/sys.h"
#include "core/base/xor.h"
#include "core/dropping/datalog.h"
#include "core/dropping/sums.h"

#include <stdio.h>

#define PIECE_LEN ((size_t)1 << 20)

static_assert(PIECE_LEN % INDEX_CHUNK_LEN == 0, "pieces are of whole chunks");

/* ---- one file ---- */

static int read_block(const struct container *c, struct store *s, int h, struct parity_group *g)
{
	uint8_t *buf = mem_alloc(PARITY_DATA_OFF);
	ssize_t n = buf ? s->ops->pread(s, h, buf, PARITY_DATA_OFF, 0) : -ENOMEM;

	if (n >= 0)
		n = n == PARITY_DATA_OFF ? parity_decode(c, g, buf, PARITY_DATA_OFF) : -EIO;
	mem_free(buf);
	return n < 0 ? (n == -EBADMSG ? -EIO : (int)n) : 0;
}

/* Whether the file says what the group is. */
static bool is_same(const struct parity_group *a, const struct parity_group *b)
{
	bool same = a->len == b->len && a->nr == b->nr && !strcmp(a->file, b->file) &&
		    !strcmp(a->top, b->top);

	for (unsigned i = 0; i < a->nr && same; i++)
		same = a->logs[i].len == b->logs[i].len && !strcmp(a->logs[i].path, b->logs[i].path);
	return same;
}

/* A handle of the parity file of @g, whose block was read; *@crc: of its bytes. -ENXIO: no such backend. */
static int open_file(const struct container *c, const struct parity_group *g, uint32_t *crc)
{
	struct parity_group *own = mem_alloc(sizeof(*own));
	struct place_dir dir;
	struct stat st;
	int h = -1, ret = own ? parity_enter(c, g, &dir) : -ENOMEM;

	if (ret) {
		mem_free(own);
		return ret == -ENOENT && *g->top ? -ENXIO : ret;
	}
	h = store_open(&dir.store, name_of(g->file), O_RDONLY, 0);
	ret = h < 0 ? h : read_block(c, &dir.store, h, own);
	if (!ret && !is_same(g, own))
		ret = -EIO;
	if (!ret)
		ret = dir.store.ops->fstat(&dir.store, h, &st);
	if (!ret && st.st_size != (off_t)(PARITY_DATA_OFF + g->len))
		ret = -EIO;
	*crc = own->data_crc;
	if (ret && h >= 0)
		store_close(&dir.store, &h);
	place_leave(&dir);
	mem_free(own);
	return ret ? ret : h;
}

static int prove(struct store *s, int h, uint64_t len, uint32_t crc)
{
	uint8_t *buf = mem_alloc(PIECE_LEN);
	uint32_t sum = 0;
	int ret = buf ? 0 : -ENOMEM;

	for (uint64_t at = 0; at < len && !ret;) {
		size_t part = (size_t)min_u64(PIECE_LEN, len - at);
		ssize_t n = s->ops->pread(s, h, buf, part, PARITY_DATA_OFF + at);

		ret = n > 0 ? 0 : n < 0 ? (int)n : -EIO;
		sum = n > 0 ? crc32c(sum, buf, (size_t)n) : sum;
		at += n > 0 ? (uint64_t)n : 0;
	}
	mem_free(buf);
	return ret ? ret : sum == crc ? 0 : -EIO;
}

int parities_look(const struct container *c, const struct parity_group *g, bool proves)
{
	uint32_t crc;
	int ret = 0, h = open_file(c, g, &crc);

	if (h < 0)
		return h;
	if (proves)
		ret = prove(c->store, h, g->len, crc);
	store_close(c->store, &h);
	return ret;
}

/* ---- a log made anew ---- */

/* Its place in the order of bytes that were written: where the name says, else at home. */
static int open_log(const struct container *c, const char *path)
{
	struct store home = placed_home(c->store);
	char full[CONTAINER_PATH_LEN];

	container_path(c, path, full);
	return store_open(&home, full, O_RDONLY, 0);
}

static int rebuild(const struct container *c, const struct parity_group *g, const char *path)
{
	uint64_t lens[PARITY_LOGS_MAX] = { g->len };
	int h[PARITY_LOGS_MAX], ret;
	unsigned nr = 1;
	uint32_t crc;

	h[0] = open_file(c, g, &crc);
	ret = h[0] < 0 ? h[0] : 0;
	for (unsigned i = 0; i < g->nr && !ret; i++) {
		if (!strcmp(g->logs[i].path, path))
			continue;
		h[nr] = open_log(c, g->logs[i].path);
		ret = h[nr] < 0 ? h[nr] : 0;
		lens[nr] = g->logs[i].len;
		nr += h[nr] >= 0;
	}
	if (!ret)
		return rebuilt_make(c->store, h, lens, nr, parity_has(g, path),
				    container_file_mode(c, false));
	for (unsigned i = 0; i < nr && h[0] >= 0; i++)
		store_close(c->store, &h[i]);
	return ret;
}

int parities_open(const struct container *c, const char *path, unsigned *no, char *where)
{
	struct parity_groups gs;
	unsigned seen = 0;
	int h = -ENOENT, ret = parity_read(c, &gs);

	for (size_t i = gs.nr; i-- > 0 && !ret && h < 0;) { /* the latest group is the longest */
		const struct parity_group *g = &gs.v[i];

		if (!parity_has(g, path) || seen++ < *no)
			continue;
		*no = seen;
		snprintf(where, PLACE_PATH_LEN, "%s", *g->top ? g->top : "the first backend");
		h = rebuild(c, g, path);
		ret = h < 0 ? 0 : datalog_check(c, path, h);
		if (ret && h >= 0)
			store_close(c->store, &h);
		h = ret ? -ENOENT : h;
		ret = 0;
	}
	parity_release(&gs);
	return h < 0 ? -ENOENT : h;
}

bool parities_cover(const struct container *c, const char *path, uint64_t len)
{
	char where[PLACE_PATH_LEN];
	unsigned no = 0;
	bool covers = false;
	struct stat st;

	for (int h; !covers && (h = parities_open(c, path, &no, where)) >= 0;) {
		covers = !c->store->ops->fstat(c->store, h, &st) && datalog_len(&st) >= len;
		store_close(c->store, &h);
	}
	return covers;
}

/* ---- making ---- */

struct making {
	const struct container *c;
	struct parity_group *g;
	struct carry *carry;
	int logs[PARITY_LOGS_MAX];
	struct log_sums sums[PARITY_LOGS_MAX];
	int to;
	uint8_t *sum, *part; /* PIECE_LEN each */
	unsigned bad;        /* the log whose bytes are wrong */
};

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
		ret = sums_find(&m->sums[i], m->c, m->g->logs[i].path, m->logs[i], false,
				log_off / INDEX_CHUNK_LEN, part, &chunk);
		if (!ret && (m->sums[i].warned ||
			     (chunk.len && chunk.len <= part &&
			      crc32c(0, m->part + at, chunk.len) != chunk.crc)))
			ret = -EIO;
	}
	return ret;
}

static int add_log(struct making *m, unsigned i, size_t len, uint64_t off)
{
	struct store *s = m->c->store;
	uint64_t end = m->g->logs[i].len;
	ssize_t n;
	int ret;

	if (off >= end)
		return 0;
	len = (size_t)min_u64(len, end - off);
	n = s->ops->pread(s, m->logs[i], m->part, len, off);
	ret = n < 0 ? (int)n : n != (ssize_t)len ? -EIO : compare(m, i, len, off);
	if (ret)
		m->bad = i;
	else
		xor_bytes(m->sum, m->part, len);
	m->carry->bytes += ret ? 0 : len;
	return !ret && m->carry->copied ? m->carry->copied(m->carry->arg, len) : ret;
}

static int add_all(struct making *m, struct store *to)
{
	size_t piece = m->carry->piece ? min_size(m->carry->piece, PIECE_LEN) : PIECE_LEN;
	int ret = 0;

	m->g->data_crc = 0;
	for (uint64_t off = 0; off < m->g->len && !ret;) {
		size_t len = (size_t)min_u64(piece, m->g->len - off);
		ssize_t n;

		memset(m->sum, 0, len);
		for (unsigned i = 0; i < m->g->nr && !ret; i++)
			ret = add_log(m, i, len, off);
		if (ret)
			break;
		m->g->data_crc = crc32c(m->g->data_crc, m->sum, len);
		n = to->ops->pwrite(to, m->to, m->sum, len, PARITY_DATA_OFF + off);
		ret = n == (ssize_t)len ? 0 : n < 0 ? (int)n : -ENOSPC;
		off += len;
	}
	return ret;
}

static int write_block(struct making *m, struct store *to)
{
	ssize_t n;

	parity_encode(m->c, m->g, m->sum);
	n = to->ops->pwrite(to, m->to, m->sum, PARITY_DATA_OFF, 0);
	return n == PARITY_DATA_OFF ? 0 : n < 0 ? (int)n : -ENOSPC;
}

static int open_all(struct making *m)
{
	int ret = 0;

	for (unsigned i = 0; i < m->g->nr && !ret; i++) {
		m->logs[i] = datalog_open(m->c, m->g->logs[i].path, false);
		m->sums[i].quiet = true;
		ret = m->logs[i] < 0 ? m->logs[i] : 0;
		m->bad = ret ? i : m->bad;
	}
	m->sum = mem_alloc(PIECE_LEN);
	m->part = mem_alloc(PIECE_LEN);
	return ret ? ret : m->sum && m->part ? 0 : -ENOMEM;
}

static void close_all(struct making *m)
{
	for (unsigned i = 0; i < m->g->nr; i++) {
		if (m->logs[i] >= 0)
			store_close(m->c->store, &m->logs[i]);
		sums_release(&m->sums[i]);
	}
	mem_free(m->sum);
	mem_free(m->part);
}

/* Others than the owner may not read it: nothing follows the file's mode there. */
#define PARITY_MODE 0600

static int make_in(struct making *m, struct store *to)
{
	const char *name = name_of(m->g->file);
	char tmp[CONTAINER_PATH_LEN];
	int ret = open_all(m);

	snprintf(tmp, sizeof(tmp), "%s.tmp.1", name);
	m->to = ret ? -1 : store_open(to, tmp, O_RDWR | O_CREAT | O_EXCL | STORE_BRIEFLY, PARITY_MODE);
	if (!ret && m->to < 0)
		ret = m->to;
	if (!ret && m->c->give)
		store_give(to, m->to, m->c->uid);
	if (!ret)
		ret = add_all(m, to);
	if (!ret)
		ret = write_block(m, to);
	if (!ret)
		ret = to->ops->sync(to, m->to, false);
	if (m->to >= 0)
		store_close(to, &m->to);
	else if (ret)
		return ret;
	if (!ret)
		ret = to->ops->rename(to, tmp, name);
	if (ret)
		to->ops->unlink(to, tmp);
	return ret ? ret : to->ops->sync(to, to->root, true);
}

int parities_make(const struct container *c, int record, const struct place_settings *ps,
		  struct parity_group *g, struct carry *carry, unsigned *bad)
{
	struct making m = { .c = c, .g = g, .carry = carry, .to = -1, .bad = UINT_MAX };
	struct place_dir dir;
	int ret = parity_name(g, g->logs[0].path);

	for (unsigned i = 0; i < PARITY_LOGS_MAX; i++)
		m.logs[i] = -1;
	g->len = g->data_crc = 0;
	for (unsigned i = 0; i < g->nr; i++)
		g->len = max_u64(g->len, g->logs[i].len);
	if (!ret)
		ret = parity_begin(c, ps, g, &dir);
	*bad = m.bad;
	if (ret)
		return ret == -ENOENT ? -ENXIO : ret;
	ret = parity_append(c, record, g);
	if (!ret)
		ret = make_in(&m, &dir.store);
	close_all(&m);
	place_leave(&dir);
	*bad = m.bad;
	if (ret)
		parities_drop(c, record, g);
	else
		carry->nr_logs++;
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
	unsigned bad;
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
		ret = parities_make(c, record, ps, anew, carry, &bad);
	if (!ret)
		parities_drop(c, record, g);
	if (record >= 0)
		store_close(c->store, &record);
	mem_free(anew);
	return ret;
}

/* ---- restoring ---- */

/* Where the name says that it was made, if that can be entered. */
static int put_back(const struct container *c, const char *path, int from, struct carry *carry)
{
	const char *name = name_of(path), *host;
	char dir[CONTAINER_PATH_LEN], file[STORE_PATH_LEN];
	unsigned slot = spread_slot_of(name);
	struct place_dir to;
	size_t len;
	int ret;

	host = slot ? name_host(name, &len) : NULL;
	if (host) {
		snprintf(dir, sizeof(dir), "%s/%.*s", c->dir, (int)(name - 1 - path), path);
		snprintf(file, sizeof(file), "spread.%u.%.*s", slot, (int)len, host);
	}
	if (!host || spread_enter(c->store, dir, file, name, &to))
		return carry_back(c, path, from, -1, carry);
	ret = carry_there(c, path, from, &to, carry);
	place_leave(&to);
	return ret;
}

int parities_restore(const struct container *c, const char *path, uint64_t least, struct carry *carry)
{
	char where[PLACE_PATH_LEN];
	unsigned no = 0;
	int ret = -ENOENT;

	for (int h; ret < 0 && (h = parities_open(c, path, &no, where)) >= 0;) {
		struct stat st;
		uint64_t len = c->store->ops->fstat(c->store, h, &st) ? 0 : datalog_len(&st);

		if (len >= least && !carried_prove(c, path, h, -1, len)) {
			ret = put_back(c, path, h, carry);
			ret = ret ? ret : 1;
		}
		store_close(c->store, &h);
	}
	return ret;
}
