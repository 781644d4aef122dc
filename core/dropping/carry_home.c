/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Moving logs from other backends home (spread=), and removing what led there. carry.c copies.
 */
#include "core/dropping/carry.h"

#include "core/backend/name_list.h"
#include "core/backend/names.h"
#include "core/backend/spread_list.h"
#include "core/backend/spread_open.h"
#include "core/backend/spread_store.h"
#include "core/dropping/datalog.h"
#include "core/dropping/node_index.h"

#include <stdio.h>

static void dir_of(const struct container *c, const char *path, char *dir)
{
	container_path(c, path, dir);
	*strrchr(dir, '/') = '\0';
}

/*
 * The hostdir there, with its spread.N.HOST locked: nobody makes a log. -EBUSY: somebody does. One that has
 * made the live file holds no lock any more.
 */
static int lock_there(const struct container *c, const char *dir, const char *file, struct place_dir *there)
{
	int ret = place_enter_as(c->store, dir, file, there, false);

	if (ret)
		return ret;
	there->lock = store_open(&there->store, file, O_RDWR | STORE_BRIEFLY, 0);
	ret = there->lock < 0 ? there->lock : store_try_lock(&there->store, there->lock);
	if (ret)
		place_leave(there);
	return ret;
}

/* ---- one log ---- */

struct moving {
	const struct container *c;
	const char *path; /* relative to the container */
	struct place_dir to;
	char file[STORE_PATH_LEN]; /* "spread.N.HOST" */
	int h;
	off_t len;
};

static bool has_live(const struct container *c, const char *path)
{
	char live[CONTAINER_PATH_LEN], full[CONTAINER_PATH_LEN];
	struct stat st;

	name_live_of_log(path, live);
	container_path(c, live, full);
	return c->store->ops->stat(c->store, full, &st) != -ENOENT;
}

/* The node index is locked: nobody continues the log. It goes if it is what was copied. */
static int leave(void *arg)
{
	struct moving *m = arg;
	char dir[CONTAINER_PATH_LEN];
	struct place_dir there;
	struct stat st;
	int ret;

	dir_of(m->c, m->path, dir);
	ret = lock_there(m->c, dir, m->file, &there);
	if (ret)
		return ret;
	ret = m->c->store->ops->fstat(m->c->store, m->h, &st);
	if (!ret)
		ret = st.st_size != m->len || !st.st_nlink || has_live(m->c, m->path) ? -EBUSY : 0;
	if (!ret)
		ret = m->to.store.ops->unlink(&m->to.store, name_of(m->path));
	place_leave(&there);
	return ret;
}

/*
 * Home may have it with more behind: it was made anew there while this backend was gone, and was continued.
 * 1: it is whole; 0: home has none, or a beginning; -EIO: it is damaged; -errno.
 */
static int home_has_more(const struct moving *m)
{
	struct store home = store_bare(m->c->store);
	char full[CONTAINER_PATH_LEN];
	struct stat st;
	int h, ret;

	container_path(m->c, m->path, full);
	h = store_open(&home, full, O_RDONLY | STORE_BRIEFLY, 0);
	if (h < 0)
		return h == -ENOENT ? 0 : h;
	ret = home.ops->fstat(&home, h, &st);
	if (!ret && st.st_size > m->len) {
		ret = carried_prove(m->c, m->path, h, -1, datalog_len(&st));
		ret = ret ? ret : 1;
	}
	store_close(&home, &h);
	return ret;
}

/* Without a header and bytes it is being made, or its process was killed then: there is nothing to copy. */
static int copy(struct moving *m, struct carry *carry)
{
	struct stat st;
	int ret = m->c->store->ops->fstat(m->c->store, m->h, &st);

	if (ret)
		return ret;
	m->len = st.st_size;
	ret = datalog_check(m->c, m->path, m->h);
	if (ret)
		return ret == -EIO && !datalog_len(&st) ? 0 : ret;
	ret = home_has_more(m);
	if (ret)
		return ret > 0 ? 0 : ret;
	ret = carry_back(m->c, m->path, m->h, -1, carry);
	carry->nr_logs -= !ret; /* not yet */
	return ret;
}

int carry_home(const struct container *c, const char *path, struct carry *carry)
{
	struct moving m = { .c = c, .path = path };
	char full[CONTAINER_PATH_LEN];
	int ret;

	container_path(c, path, full);
	m.h = spread_open_there(c->store, full, &m.to, m.file);
	if (m.h < 0)
		return m.h;
	ret = copy(&m, carry);
	if (!ret)
		ret = node_index_alone(c, path, false, leave, &m);
	carry->nr_logs += !ret;
	store_close(c->store, &m.h);
	place_leave(&m.to);
	return ret;
}

/* ---- what leads there ---- */

/* Nobody makes logs there, and there is none: no more than directories of processes. */
static void remove_own_dirs(struct place_dir *there, const char *file)
{
	struct name_list names = { .nr = 0 };
	size_t len;
	const char *host = name_host(file, &len);

	there->store.ops->list(&there->store, ".", name_list_add, &names);
	for (size_t i = 0; i < names.nr; i++)
		if (name_is_own_dir(names.v[i]) && !strncmp(names.v[i] + 4, host, len) &&
		    (!names.v[i][4 + len] || names.v[i][4 + len] == '.'))
			store_rmdir(&there->store, names.v[i]);
	name_list_release(&names);
}

static int has_logs(const struct container *c, const char *dir, const char *file)
{
	struct name_list names;
	int ret = spread_list(c->store, dir, file, &names);

	if (!ret && (names.nr || spread_has_open(c->store, dir, file, NULL)))
		ret = -EBUSY;
	name_list_release(&names);
	return ret;
}

int carry_home_end(const struct container *c, const char *path)
{
	char dir[CONTAINER_PATH_LEN], full[CONTAINER_PATH_LEN];
	const char *file = name_of(path);
	struct store home = store_bare(c->store);
	struct place_dir there, top;
	int ret;

	dir_of(c, path, dir);
	container_path(c, path, full);
	ret = place_enter_as(c->store, dir, file, &top, true);
	if (ret)
		return ret;
	ret = lock_there(c, dir, file, &there);
	if (!ret) {
		ret = has_logs(c, dir, file);
		if (!ret)
			remove_own_dirs(&there, file);
		if (!ret) /* no log comes back once nothing leads to it */
			ret = there.store.ops->sync(&there.store, there.store.root, true);
		if (!ret)
			ret = home.ops->unlink(&home, full);
		if (!ret)
			ret = there.store.ops->unlink(&there.store, file);
		place_leave(&there);
		if (!ret)
			carry_remove_way(dir, &top);
	}
	place_leave(&top);
	return ret;
}
