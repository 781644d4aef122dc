/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs places --forget: giving up on what a file has on a host, or in another backend.
 */
#include "core/admin/places/opened.h"

#include "core/backend/container_dirs.h"
#include "core/backend/names.h"
#include "core/backend/place_lost.h"
#include "core/base/sys.h"
#include "core/dropping/notice.h"
#include "core/gather/kept_map.h"

#include <stdio.h>

struct forgetting {
	const struct container *c;
	const char *what; /* HOST; with a slash in it: the directory of a backend */
	unsigned nr;
};

/* Whether @dir is the backend that @p is in, or the directory there. */
static bool is_backend(const char *dir, const struct place *p)
{
	size_t len = strlen(dir), near = (size_t)place_near_len(p->path);

	while (len > 1 && dir[len - 1] == '/')
		len--;
	return (len == near || len == strlen(p->path)) && !memcmp(dir, p->path, len);
}

static bool is_wanted(const struct forgetting *f, const struct place *p)
{
	char text[64];

	if (strchr(f->what, '/'))
		return is_backend(f->what, p);
	place_host(p, text, sizeof(text));
	return !(p->features & PLACE_SHARED) && (!strcmp(f->what, p->host) || !strcmp(f->what, text));
}

static int forget(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	struct forgetting *f = arg;
	char dir[CONTAINER_PATH_LEN], full[CONTAINER_PATH_LEN];
	struct store *s = f->c->store;
	struct place p;
	int ret;

	if (kind != DROPPING_NEAR && kind != DROPPING_SPREAD)
		return 0;
	container_path(f->c, path, full);
	snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(full, '/') - full), full);
	ret = place_read_as(s, dir, name, &p);
	if (ret && ret != -EBADMSG)
		return ret == -ENOENT ? 0 : ret;
	if (!is_wanted(f, &p))
		return 0;
	ret = place_is_lost(s, dir, name);
	if (!ret)
		ret = kept_map_revoke(f->c);
	if (!ret)
		ret = s->ops->unlink(s, full);
	f->nr += !ret;
	return ret;
}

int plfs_places_forget(struct plfs_mount *m, int dirfd, const char *path, const char *what, unsigned *nr)
{
	int saved ERRNO_KEPT = errno;
	struct container c;
	struct store bare;
	struct forgetting f = { .c = &c, .what = what };
	int ret = opened_container(m, dirfd, path, CONTAINER_CHANGE, &c);

	if (ret > 0) {
		bare = store_bare(c.store); /* what is not there is not listed, but looked for */
		c.store = &bare;
		ret = container_list(&c, forget, &f);
	}
	if (f.nr)
		notice_raise(&c);
	*nr = f.nr;
	return ret;
}
