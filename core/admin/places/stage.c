/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs stage: copies of a file's logs for the readers of this node, and what becomes of them.
 */
#include "core/admin/places/stage.h"

#include "core/admin/places/listed.h"
#include "core/admin/places/mend.h"
#include "core/admin/places/pace.h"
#include "core/backend/container_dirs.h"
#include "core/backend/names.h"
#include "core/backend/nested.h"
#include "core/backend/staged.h"
#include "core/backend/stub_known.h"
#include "core/base/as_owner.h"
#include "core/base/io.h"
#include "core/base/sys.h"
#include "core/dropping/carry.h"
#include "core/store/dirs.h"

#include <stdio.h>

/* ---- a file ---- */

struct staging {
	const struct container *c;
	struct plfs_drain *d;
};

/* 1: *@c, with the file open as *@fd; 0: it has no logs; -errno. */
static int open_file(struct plfs_mount *m, int dirfd, const char *path, struct container *c, struct stat *st)
{
	int ret, fd = io_openat(dirfd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stub stub;

	fd = sys_fd_hide_briefly(fd < 0 ? -errno : fd);
	if (fd < 0)
		return fd;
	ret = sys.fstat(fd, st) ? -errno : 0;
	if (!ret && S_ISREG(st->st_mode) && st->st_size && stub_is_by_header(fd, st)) {
		ret = stub_read(fd, &stub);
		if (!ret && stub.has_container) {
			nested_init_container(m, c, fd, &stub, st);
			ret = container_check(c, CONTAINER_READ);
			ret = ret ? ret : 1;
		}
	}
	sys_fd_close(&fd);
	return ret;
}

/* ---- staging ---- */

/* -ENOSPC: there is no room for this one, nor, most likely, for others. */
static int stage_log(struct staging *g, const char *log)
{
	struct plfs_drain *d = g->d;
	struct carry carry = { .copied = pace_copied, .arg = d, .piece = pace_piece(d) };
	int ret = carry_stage(g->c, log, &carry);

	d->nr_logs += carry.nr_logs;
	d->nr_there += ret == -EALREADY;
	d->nr_left += ret == -EBUSY;
	if (!ret || ret == -EALREADY || ret == -EBUSY || ret == -ENOENT)
		return 0;
	if (ret == -EREMOTE)
		d->nr_elsewhere++;
	else if (ret == -EIO || ret == -EBADMSG)
		d->nr_lost++;
	else
		d->nr_left++;
	drain_trouble(d, g->c->dir, log,
		      ret == -EREMOTE ? "is in a place that is not on this host: plfs drain there first" :
		      ret == -ENOSPC || ret == -EDQUOT ?
					"no room in the place, or near-max is reached: it is read at home" :
					strerror(-ret));
	return ret == -EDQUOT ? -ENOSPC : ret == -ENOSPC ? ret : 0;
}

static int stage_logs(struct staging *g)
{
	int ret, lock = staged_lock(g->c->store);
	struct listed logs;
	size_t i = 0;

	if (lock < 0)
		return lock;
	ret = listed_take(&logs, g->c);
	for (; i < logs.nr && !ret; i++)
		ret = stage_log(g, logs.v[i]);
	if (ret == -ENOSPC && i) {
		g->d->nr_left += logs.nr - i;
		ret = 0;
	}
	listed_release(&logs);
	sys_fd_close(&lock);
	return ret;
}

int plfs_stage_file(struct plfs_mount *m, int dirfd, const char *path, bool drops, struct plfs_drain *d)
{
	int saved ERRNO_KEPT = errno;
	struct as_owner owner = { .is = false };
	struct container c;
	struct staging g = { .c = &c, .d = d };
	struct stat st;
	int ret = open_file(m, dirfd, path, &c, &st);

	if (ret <= 0)
		return ret;
	if (!c.store->near)
		return -EOPNOTSUPP;
	if (st.st_uid != geteuid()) /* the directory is called by the user's number */
		return -EPERM;
	as_owner_begin(&owner, st.st_uid, st.st_gid);
	ret = drops ? staged_remove(c.store, c.dir) : stage_logs(&g);
	as_owner_end(&owner);
	return drops && ret == -ENOENT ? 0 : ret;
}

int plfs_staged_of(struct plfs_mount *m, int dirfd, const char *path, uint64_t *nr, uint64_t *bytes)
{
	int saved ERRNO_KEPT = errno;
	char full[CONTAINER_PATH_LEN];
	struct container c;
	struct listed logs;
	struct stat st;
	uint64_t len;
	int ret = open_file(m, dirfd, path, &c, &st);

	*nr = *bytes = 0;
	if (ret <= 0 || !c.store->near)
		return ret < 0 ? ret : 0;
	ret = listed_take(&logs, &c);
	for (size_t i = 0; i < logs.nr && !ret; i++) {
		container_path(&c, logs.v[i], full);
		if (staged_find(c.store, full, &len)) {
			(*nr)++;
			*bytes += len;
		}
	}
	listed_release(&logs);
	return ret;
}

/* ---- copies of what has gone ---- */

struct collecting {
	struct plfs_mount *m;
	struct plfs_drain *d;
	const char *top;
	char path[STORE_PATH_LEN]; /* ".plfs/XX/ID/hostdir.K" so far */
	int depth;                 /* 0: XX, 1: ID, 2: hostdirs, 3: logs */
};

/* Whether the backend certainly does not have what g->path names. */
static bool is_gone(struct collecting *g)
{
	struct store *s = &g->m->store;
	struct stat st;

	return s->ops->stat(s, g->path, &st) == -ENOENT;
}

static int collect(void *arg, int fd, const char *name, unsigned char type)
{
	struct collecting *g = arg;
	char parent[PLACE_PATH_LEN + sizeof(STAGED_DIR) + 4];
	size_t len = strlen(g->path);
	int dir;

	(void)type;
	if (!strcmp(name, "lock") || strstr(name, ".tmp.") ||
	    snprintf(g->path + len, sizeof(g->path) - len, "/%s", name) >= (int)(sizeof(g->path) - len)) {
		g->path[len] = '\0';
		return 0;
	}
	if (g->depth == 1 && is_gone(g)) {
		snprintf(parent, sizeof(parent), "%s/" STAGED_DIR "/%.2s", g->top, name);
		drain_count_orphan(g->d, parent, name,
				   g->d->dry ? 0 : dirs_remove(fd, name, false, container_has));
	} else if (g->depth < 3) {
		dir = dirs_open(fd, name);
		g->depth++;
		if (dir >= 0) {
			dirs_list(dir, collect, g);
			io_close(dir);
		}
		g->depth--;
	} else if (!g->d->dry && is_gone(g)) {
		sys.unlinkat(fd, name, 0);
	}
	g->path[len] = '\0';
	return 0;
}

void stage_collect(struct plfs_mount *m, int fd, const char *top, struct plfs_drain *d)
{
	struct collecting g = { .m = m, .d = d, .top = top, .path = PLFS_DIR_NAME };
	int dir = dirs_open(fd, STAGED_DIR);

	if (dir < 0)
		return;
	dirs_list(dir, collect, &g);
	io_close(dir);
}
