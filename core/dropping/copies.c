/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies of logs. carry.c copies; which of two files is the better one is decided here, by their bytes.
 */
#include "core/dropping/copies.h"

#include "core/backend/names.h"
#include "core/backend/placed.h"
#include "core/base/alloc.h"
#include "core/dropping/datalog.h"
#include "core/dropping/parities.h"

#include <stdio.h>

/* ---- reading ---- */

static int open_in(const struct container *c, const char *path, const char *top)
{
	struct place_dir dir;
	int h, ret = spare_enter(c, path, top, &dir);

	if (ret)
		return ret;
	h = store_open(&dir.store, name_of(path), O_RDONLY, 0);
	place_leave(&dir);
	ret = h < 0 ? h : datalog_check(c, path, h);
	if (ret && h >= 0)
		store_close(c->store, &h);
	return ret ? ret : h;
}

int copies_open(const struct container *c, const char *path, unsigned *no, char *where)
{
	struct spare_dirs *dirs = mem_alloc(sizeof(*dirs));
	int ret = dirs ? spare_read(c, path, dirs) : -ENOMEM, h = -ENOENT;

	while (!ret && h < 0 && *no < dirs->nr) {
		snprintf(where, PLACE_PATH_LEN, "%s", dirs->path[*no]);
		h = open_in(c, path, where);
		(*no)++;
	}
	if (h < 0 && dirs && c->store->base) {
		unsigned more = *no - dirs->nr;

		h = parities_open(c, path, &more, where);
		*no = dirs->nr + more;
	}
	mem_free(dirs);
	return h < 0 ? -ENOENT : h;
}

/* ---- proving ---- */

int copies_prove(const struct container *c, const char *path, int h, uint64_t *len)
{
	struct stat st;
	int ret = c->store->ops->fstat(c->store, h, &st);

	*len = ret ? 0 : datalog_len(&st);
	return ret ? ret : carried_prove(c, path, h, -1, *len);
}

void copies_look(const struct container *c, const char *path, const char *top, bool proves,
		 struct copies_one *one)
{
	struct stat st;
	int h = open_in(c, path, top);

	*one = (struct copies_one){ .where = top, .ret = h < 0 ? h : 0 };
	if (h < 0)
		return;
	if (proves) {
		one->ret = copies_prove(c, path, h, &one->len);
	} else {
		one->ret = c->store->ops->fstat(c->store, h, &st);
		one->len = one->ret ? 0 : datalog_len(&st);
	}
	store_close(c->store, &h);
}

/* ---- making ---- */

/*
 * Whether the file called as the log @path in @dir, which is @top, has its length; or is longer and whole:
 * then the log has been cut since, and can be restored.
 */
static bool is_there(const struct container *c, const char *path, struct place_dir *dir, const char *top,
		     const struct stat *log)
{
	struct copies_one one;
	struct stat st;

	if (dir->store.ops->stat(&dir->store, name_of(path), &st) || !S_ISREG(st.st_mode) ||
	    st.st_size < log->st_size)
		return false;
	if (st.st_size == log->st_size)
		return true;
	copies_look(c, path, top, true, &one);
	return !one.ret;
}

int copies_make(const struct container *c, const char *path, const struct place_settings *ps,
		struct carry *carry)
{
	struct store home = placed_home(c->store);
	char full[CONTAINER_PATH_LEN], top[PLACE_PATH_LEN];
	struct place_dir dir;
	struct stat st;
	int ret;

	container_path(c, path, full);
	ret = home.ops->stat(&home, full, &st);
	if (ret)
		return ret;
	ret = spare_begin(c, path, ps, &dir, top);
	if (ret)
		return ret == -ENOENT ? -ENXIO : ret;
	if (!is_there(c, path, &dir, top, &st))
		ret = carry_copy(c, path, &dir, carry);
	place_leave(&dir);
	return ret;
}

/* ---- restoring ---- */

/* Whether the longest copy so far is in @top. */
static void find_whole(const struct container *c, const char *path, const char *top, uint64_t least,
		       struct copies_source *src)
{
	int h = open_in(c, path, top);
	uint64_t len;

	if (h < 0)
		return;
	if (!copies_prove(c, path, h, &len) && len >= least && (src->from < 0 || len > src->len)) {
		copies_close(c, src);
		*src = (struct copies_source){ .from = h, .other = -1, .len = len };
		snprintf(src->where, sizeof(src->where), "%s", top);
		return;
	}
	store_close(c->store, &h);
}

/* Whether the log at home and its copy in @top have all bytes together, by the checksums of one of them. */
static void find_pair(const struct container *c, const char *path, const char *top, uint64_t least,
		      struct copies_source *src)
{
	int h[2] = { datalog_open(c, path, false), open_in(c, path, top) };
	struct stat st;

	for (int i = 0; i < 2 && h[0] >= 0 && h[1] >= 0 && src->from < 0; i++) {
		uint64_t len = c->store->ops->fstat(c->store, h[i], &st) ? 0 : datalog_len(&st);

		if (len < least || carried_prove(c, path, h[i], h[!i], len))
			continue;
		*src = (struct copies_source){ .from = h[i], .other = h[!i], .len = len };
		snprintf(src->where, sizeof(src->where), "%s", top);
	}
	for (int i = 0; i < 2; i++)
		if (h[i] >= 0 && src->from < 0)
			store_close(c->store, &h[i]);
}

int copies_find(const struct container *c, const char *path, uint64_t least, struct copies_source *src)
{
	struct spare_dirs *dirs = mem_alloc(sizeof(*dirs));
	int ret = dirs ? spare_read(c, path, dirs) : -ENOMEM;

	*src = (struct copies_source){ .from = -1, .other = -1 };
	for (unsigned i = 0; !ret && i < dirs->nr; i++)
		find_whole(c, path, dirs->path[i], least, src);
	for (unsigned i = 0; !ret && i < dirs->nr && src->from < 0; i++)
		find_pair(c, path, dirs->path[i], least, src);
	mem_free(dirs);
	return src->from < 0 ? -ENOENT : 0;
}

void copies_close(const struct container *c, struct copies_source *src)
{
	if (src->from >= 0)
		store_close(c->store, &src->from);
	if (src->other >= 0)
		store_close(c->store, &src->other);
}

/* Whether the log at home is whole, and no shorter than @len. */
static bool is_good(const struct container *c, const char *path, uint64_t len)
{
	int h = datalog_open(c, path, false);
	uint64_t have;
	bool good;

	if (h < 0)
		return false;
	good = !copies_prove(c, path, h, &have) && have >= len;
	store_close(c->store, &h);
	return good;
}

int copies_restore(const struct container *c, const char *path, uint64_t least, struct carry *carry)
{
	struct copies_source src;
	int ret = copies_find(c, path, least, &src);

	if (ret)
		return ret;
	if (!is_good(c, path, src.len))
		ret = carry_back(c, path, src.from, src.other, carry);
	else
		ret = -EEXIST;
	copies_close(c, &src);
	return ret == -EEXIST ? 0 : ret ? ret : 1;
}

static int refresh_one(const struct container *c, const char *path, const char *top, uint64_t len,
		       struct carry *carry)
{
	struct copies_one one;
	struct place_dir dir;
	int ret;

	copies_look(c, path, top, true, &one);
	if (!one.ret && one.len >= len)
		return 0;
	ret = spare_enter(c, path, top, &dir);
	if (ret)
		return ret;
	ret = carry_copy(c, path, &dir, carry);
	place_leave(&dir);
	return ret ? ret : 1;
}

int copies_refresh(const struct container *c, const char *path, struct carry *carry)
{
	struct spare_dirs *dirs = mem_alloc(sizeof(*dirs));
	int ret = dirs ? spare_read(c, path, dirs) : -ENOMEM, nr = 0;
	int h = ret ? ret : datalog_open(c, path, false);
	uint64_t len;

	if (!ret)
		ret = h < 0 ? h : copies_prove(c, path, h, &len);
	if (h >= 0)
		store_close(c->store, &h);
	for (unsigned i = 0; !ret && i < dirs->nr; i++) {
		int one = refresh_one(c, path, dirs->path[i], len, carry);

		nr += one > 0;
		ret = one < 0 ? one : 0;
	}
	mem_free(dirs);
	return ret ? ret : nr;
}
