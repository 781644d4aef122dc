/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parity files, and logs made anew of them.
 */
#include "core/dropping/parities.h"

#include "core/backend/names.h"
#include "core/backend/placed.h"
#include "core/backend/rebuilt.h"
#include "core/backend/spread.h"
#include "core/base/alloc.h"
#include "core/base/crc32c.h"
#include "core/base/gf256.h"
#include "core/dropping/datalog.h"
#include "core/dropping/sums.h"

#include <stdio.h>

#define PIECE_LEN ((size_t)1 << 20)

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
	return a->row == b->row && parity_is_of_same(a, b) && !strcmp(a->file, b->file) &&
	       !strcmp(a->top, b->top);
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

/*
 * A way to make the log number @wanted of a group anew: by one parity file, or by both without the log number
 * @without, which may be lost too.
 */
struct way {
	const struct parity_group *g, *second; /* NULL: by @g alone */
	unsigned wanted, without;
};

static unsigned number_of(const struct parity_group *g, const char *path)
{
	unsigned i = 0;

	while (i < g->nr && strcmp(g->logs[i].path, path))
		i++;
	return i;
}

/* The way number @no: the latest groups are the longest, and one file is faster than two. */
static bool find_way(const struct parity_groups *gs, const char *path, unsigned no, struct way *w)
{
	for (size_t i = gs->nr; i-- > 0;) {
		*w = (struct way){ .g = &gs->v[i], .wanted = number_of(&gs->v[i], path) };
		if (w->wanted < w->g->nr && !no--)
			return true;
	}
	for (size_t i = gs->nr; i-- > 0;) {
		w->g = &gs->v[i];
		w->wanted = number_of(w->g, path);
		w->second = w->g->row || w->wanted == w->g->nr ? NULL : parity_other(gs, w->g);
		for (w->without = 0; w->second && w->without < w->g->nr; w->without++)
			if (w->without != w->wanted && !no--)
				return true;
	}
	return false;
}

/*
 * What a part is multiplied by, so that the sum of all is the log: of the parity file of @row, or with @row
 * PARITY_ROWS_MAX of the log number @log. With x and y the factors of the two logs in the second file it is
 *   x' * (second - the others' multiples)                             by the second file alone
 *   (y * (first - the others) + second - the others' multiples) / (x + y)           by both
 * where the difference is the sum, and 1 / (x + y) is there, as no two factors are equal.
 */
static uint8_t factor_of(const struct way *w, unsigned row, unsigned log)
{
	uint8_t x = gf256_pow2(w->wanted), y = gf256_pow2(w->without);
	uint8_t by_second = gf256_inverse(w->second ? x ^ y : x);

	if (!w->second && !w->g->row)
		return 1;
	if (row == 0)
		return gf256_mul(y, by_second);
	if (row == 1)
		return by_second;
	return gf256_mul(gf256_pow2(log) ^ (w->second ? y : 0), by_second);
}

static int add_part(struct rebuilt_part *parts, unsigned *nr, int h, uint64_t len, uint64_t at, uint8_t times)
{
	if (h < 0)
		return h;
	parts[(*nr)++] = (struct rebuilt_part){ h, len, at, times };
	return 0;
}

static int add_parity(const struct container *c, const struct way *w, const struct parity_group *g,
		      struct rebuilt_part *parts, unsigned *nr)
{
	uint32_t crc;

	return add_part(parts, nr, open_file(c, g, &crc), g->len, PARITY_DATA_OFF, factor_of(w, g->row, 0));
}

static int rebuild(const struct container *c, const struct way *w)
{
	struct rebuilt_part parts[PARITY_LOGS_MAX];
	const struct parity_group *g = w->g;
	unsigned nr = 0;
	int ret = add_parity(c, w, g, parts, &nr);

	if (!ret && w->second)
		ret = add_parity(c, w, w->second, parts, &nr);
	for (unsigned i = 0; i < g->nr && !ret; i++)
		if (i != w->wanted && (!w->second || i != w->without))
			ret = add_part(parts, &nr, open_log(c, g->logs[i].path), g->logs[i].len, 0,
				       factor_of(w, PARITY_ROWS_MAX, i));
	if (!ret)
		return rebuilt_make(c->store, parts, nr, g->logs[w->wanted].len,
				    container_file_mode(c, false));
	for (unsigned i = 0; i < nr; i++)
		store_close(c->store, &parts[i].h);
	return ret;
}

int parities_open(const struct container *c, const char *path, unsigned *no, char *where)
{
	struct parity_groups gs;
	int h = -ENOENT, ret = parity_read(c, &gs);
	struct way w;

	while (!ret && h < 0 && find_way(&gs, path, *no, &w)) {
		(*no)++;
		snprintf(where, PLACE_PATH_LEN, "%s", *w.g->top ? w.g->top : "the first backend");
		h = rebuild(c, &w);
		if (h >= 0 && datalog_check(c, path, h))
			store_close(c->store, &h); /* sets it to -1 */
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
