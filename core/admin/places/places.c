/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs places: what is where.
 */
#include "core/admin/places/opened.h"

#include "core/backend/container_dirs.h"
#include "core/backend/names.h"
#include "core/backend/nested.h"
#include "core/backend/parity.h"
#include "core/backend/place.h"
#include "core/backend/stub_known.h"
#include "core/base/io.h"
#include "core/base/sys.h"

#include <stdio.h>
#include <sys/statvfs.h>

/* ---- the container of a file ---- */

int opened_container(struct plfs_mount *m, int dirfd, const char *path, enum container_use use,
		     struct container *c)
{
	int ret, fd = io_openat(dirfd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stub stub;
	struct stat st;

	fd = sys_fd_hide_briefly(fd < 0 ? -errno : fd);
	if (fd < 0)
		return fd;
	ret = sys.fstat(fd, &st) ? -errno : 0;
	if (!ret && S_ISREG(st.st_mode) && st.st_size && stub_is_by_header(fd, &st)) {
		ret = stub_read(fd, &stub);
		if (!ret && stub.has_container && (stub.placed || stub.spread)) {
			nested_init_container(m, c, fd, &stub, &st);
			ret = container_check(c, use);
			ret = ret ? ret : 1;
		}
	}
	sys_fd_close(&fd);
	return ret;
}

/* ---- what is where ---- */

struct looking {
	const struct container *c;
	struct plfs_place one;
	struct place_dir near;
	const char *host; /* HOST in the name, of @host_len bytes */
	size_t host_len;
	int (*fn)(void *arg, const struct plfs_place *place);
	void *arg;
};

static int count(void *arg, const char *name)
{
	struct looking *g = arg;
	enum dropping_kind kind = name_kind(name);
	struct stat st;

	g->one.nr_logs += kind == DROPPING_DATA;
	g->one.nr_open += kind == DROPPING_LIVE;
	if (kind == DROPPING_DATA && !g->near.store.ops->stat(&g->near.store, name, &st))
		g->one.bytes += (uint64_t)st.st_blocks * 512;
	return 0;
}

/* The logs of a host in another backend may be in directories of their own, or beside those of others. */
static int count_own(void *arg, const char *name)
{
	struct looking *g = arg;
	struct store *s = &g->near.store;
	size_t len;
	const char *host = name_host(name, &len);
	int h, ret, top = s->root;

	if (host && len == g->host_len && !memcmp(host, g->host, len))
		return count(g, name);
	if (!name_is_own_dir(name) || strncmp(name + 4, g->host, g->host_len) ||
	    (name[4 + g->host_len] && name[4 + g->host_len] != '.'))
		return 0;
	h = store_open(s, name, O_RDONLY | O_DIRECTORY | STORE_BRIEFLY, 0);
	if (h < 0)
		return 0;
	s->root = h;
	ret = s->ops->list(s, ".", count, g);
	store_close(s, &h);
	s->root = top;
	return ret;
}

/* Another mapping may have had another number for it: all that is there was counted with the lower. */
static bool is_counted(const struct looking *g, const char *dir, const char *name, const struct place *p)
{
	char file[STORE_PATH_LEN];
	struct place other;

	for (unsigned i = 1; i < name_spread_slot(name); i++) {
		snprintf(file, sizeof(file), "spread.%u.%s", i, p->host);
		if (!place_read_as(g->c->store, dir, file, &other) && !strcmp(other.path, p->path))
			return true;
	}
	return false;
}

static bool is_read_only(const struct store *s)
{
	struct statvfs fs;

	return !sys.fstatvfs(s->root, &fs) && fs.f_flag & ST_RDONLY;
}

static int look(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	struct looking *g = arg;
	char dir[CONTAINER_PATH_LEN], full[CONTAINER_PATH_LEN], text[64];
	struct place p;
	int ret;

	if (kind != DROPPING_NEAR && kind != DROPPING_SPREAD)
		return 0;
	container_path(g->c, path, full);
	snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(full, '/') - full), full);
	ret = place_read_as(g->c->store, dir, name, &p);
	if (ret && ret != -EBADMSG)
		return ret == -ENOENT ? 0 : ret;
	if (!ret && is_counted(g, dir, name, &p))
		return 0;
	place_host(&p, text, sizeof(text));
	g->one = (struct plfs_place){
		.host = text, .path = p.path, .name = p.host, .shared = kind == DROPPING_SPREAD
	};
	g->one.here = !place_enter_as(g->c->store, dir, name, &g->near, false);
	g->host = name_host(name, &g->host_len);
	if (g->one.here) {
		g->one.read_only = is_read_only(&g->near.store);
		g->near.store.ops->list(&g->near.store, ".", g->one.shared ? count_own : count, g);
		place_leave(&g->near);
	}
	return g->fn(g->arg, &g->one);
}

int plfs_places_of(struct plfs_mount *m, int dirfd, const char *path,
		   int (*fn)(void *arg, const struct plfs_place *place), void *arg)
{
	int saved ERRNO_KEPT = errno;
	struct container c;
	struct looking g = { .c = &c, .fn = fn, .arg = arg };
	struct store bare;
	int ret = opened_container(m, dirfd, path, CONTAINER_READ, &c);

	if (ret <= 0)
		return ret;
	bare = store_bare(c.store); /* each place and backend is looked into by itself, if it is there */
	c.store = &bare;
	return container_list(&c, look, &g);
}

/* ---- parity ---- */

static void count_parity(const struct container *c, const struct parity_group *g, struct plfs_parity *one)
{
	struct place_dir dir;
	struct stat st;

	if (parity_enter(c, g, &dir)) {
		one->nr_missing++;
		return;
	}
	one->here = true;
	if (dir.store.ops->stat(&dir.store, name_of(g->file), &st)) {
		one->nr_missing++;
	} else {
		one->nr++;
		one->bytes += (uint64_t)st.st_blocks * 512;
	}
	place_leave(&dir);
}

int plfs_parity_of(struct plfs_mount *m, int dirfd, const char *path,
		   int (*fn)(void *arg, const struct plfs_parity *parity), void *arg)
{
	int saved ERRNO_KEPT = errno;
	struct parity_groups gs;
	struct container c;
	int ret = opened_container(m, dirfd, path, CONTAINER_READ, &c);

	if (ret <= 0)
		return ret;
	ret = parity_read(&c, &gs);
	for (size_t i = 0; i < gs.nr && !ret; i++) {
		const char *top = gs.v[i].top;
		struct plfs_parity one = { .path = *top ? top : plfs_backend(m), .elsewhere = *top };
		bool first = true;

		for (size_t k = 0; k < i; k++)
			first &= strcmp(gs.v[k].top, top) != 0;
		for (size_t k = i; k < gs.nr && first; k++)
			if (!strcmp(gs.v[k].top, top))
				count_parity(&c, &gs.v[k], &one);
		ret = first ? fn(arg, &one) : 0;
	}
	parity_release(&gs);
	return ret;
}
