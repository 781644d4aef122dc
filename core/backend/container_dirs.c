/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Container directories: making, listing, removing. What is inside the files is others'.
 */
#include "core/backend/container_dirs.h"

#include "core/backend/config.h"
#include "core/backend/spread_open.h"
#include "core/base/msg.h"
#include "core/store/dirs.h"

#include <stdio.h>
#include <unistd.h>

static int make_dir(struct store *s, const char *path, mode_t mode)
{
	int ret = s->ops->mkdir(s, path, mode);

	return ret == -EEXIST ? 0 : ret;
}

/*
 * The directory of this name for two digits. Those of a backend that several users share are made by its
 * owner, with `plfs init`.
 */
static int make_parent(const struct container *c)
{
	struct store *s = c->store;
	char path[CONTAINER_PATH_LEN];
	struct stat st;
	int ret = s->ops->stat(s, PLFS_DIR_NAME, &st);

	snprintf(path, sizeof(path), "%.*s", (int)(strrchr(c->dir, '/') - c->dir), c->dir);
	return ret ? ret : make_dir(s, path, st.st_mode & 01777);
}

int container_say_for(const struct container *c)
{
	char path[CONTAINER_PATH_LEN];
	int h;

	if (c->give || c->uid == c->caller)
		return 0;
	container_for_path(c, path);
	h = store_open(c->store, path, O_RDWR | O_CREAT | O_EXCL | STORE_BRIEFLY, 0444);
	if (h < 0)
		return h == -EEXIST ? 0 : h; /* whoever made it: container_check() looks */
	store_close(c->store, &h);
	return 0;
}

/*
 * The directory that was made just now, closed to others. Where users may take each other's directories away
 * another may lie there: but none that is closed to who has put it there. For whom it is stands there before
 * others can look: else they would believe it to be another file's.
 */
static int give_made(struct container *c, const struct store_grant *g)
{
	struct store *s = c->store;
	struct stat st;
	int ret, h = store_open(s, c->dir, O_RDONLY | O_DIRECTORY | STORE_BRIEFLY, 0);

	if (h < 0)
		return h;
	ret = s->ops->fstat(s, h, &st);
	if (!ret && s->ops->grant && (st.st_mode & 077 || (st.st_uid != g->uid && st.st_uid != geteuid())))
		ret = -EPERM;
	if (!ret)
		ret = container_say_for(c);
	if (!ret)
		ret = store_grant(s, h, &st, g);
	store_close(s, &h);
	/* What container_check() would find. */
	if (!ret && st.st_uid == c->uid && st.st_gid == c->gid && !(c->mode & (S_IWGRP | S_IWOTH))) {
		c->checked = 1u << CONTAINER_READ | 1u << CONTAINER_CHANGE;
		c->owner = c->uid;
	}
	return ret;
}

/*
 * The container's own directory. Who else comes at the same time finds it there, with its last mode or a
 * closer one.
 */
static int make_own(struct container *c)
{
	const struct store_grant g = {
		.uid = c->uid,
		.gid = c->gid,
		.mode = container_dir_mode(c->mode) | S_ISGID,
		.acl = c->acl,
		.acl_len = c->acl_len,
		.made = true,
	};
	struct store *s = c->store;
	int ret;

	if (c->uid == CONTAINER_ANYBODY)
		return make_dir(s, c->dir, container_dir_mode(c->mode));
	ret = s->ops->mkdir(s, c->dir, S_IRWXU);
	c->made = !ret;
	if (!ret)
		ret = give_made(c, &g);
	return ret == -EEXIST ? 0 : ret;
}

static int is_stranger(void *arg, int fd, const char *name, unsigned char type)
{
	(void)arg, (void)fd, (void)type;
	return !name_is_known(name, false);
}

bool container_is_own_hostdir(const struct container *c, int h)
{
	int fd = store_fd(c->store, h);

	return fd < 0 || !dirs_list(fd, is_stranger, NULL); /* who has no descriptors has no users */
}

/* By root, of the hostdir that it has just made, if that is what lies there. */
static int give_hostdir(const struct container *c, const char *path)
{
	struct store *s = c->store;
	struct stat st;
	int ret, h = store_open(s, path, O_RDONLY | O_DIRECTORY | STORE_BRIEFLY, 0);

	if (h < 0)
		return h;
	ret = s->ops->fstat(s, h, &st);
	if (!ret && st.st_uid != c->uid && (st.st_uid != geteuid() || !container_is_own_hostdir(c, h)))
		ret = -EPERM;
	if (!ret)
		ret = store_chown(s, h, c->uid, (gid_t)-1);
	store_close(s, &h);
	return ret;
}

static void hostdir_path(const struct container *c, unsigned hostdir, char *path)
{
	snprintf(path, CONTAINER_PATH_LEN, "%s/hostdir.%u", c->dir, hostdir);
}

static int make_hostdir(const struct container *c, unsigned hostdir)
{
	char path[CONTAINER_PATH_LEN];
	int ret;

	hostdir_path(c, hostdir, path);
	ret = c->store->ops->mkdir(c->store, path, container_dir_mode(c->mode));
	if (!ret && c->give)
		ret = give_hostdir(c, path);
	return ret == -EEXIST ? 0 : ret;
}

/* Not to lock it: it says that nothing has been purged (container_is_purged()). */
static int make_lock(const struct container *c)
{
	int h = container_open_lock(c, STORE_BRIEFLY, true);

	return h < 0 ? h : store_close(c->store, &h);
}

static int make_all(struct container *c, unsigned hostdir)
{
	int ret = make_own(c);

	if (ret == -ENOENT) {
		ret = make_parent(c);
		if (!ret)
			ret = make_own(c);
	}
	if (ret == -EACCES || ret == -EPERM)
		msg_error("cannot make %s: %s; the owner of the backend makes it with: plfs init BACKEND",
			  c->dir, strerror(-ret));
	if (!ret)
		ret = make_hostdir(c, hostdir);
	return ret ? ret : make_lock(c);
}

int container_make(struct container *c, unsigned hostdir)
{
	char path[CONTAINER_PATH_LEN];
	int ret = make_all(c, hostdir);

	for (int tries = 0; ret == -ENOENT && tries < 10; tries++) /* plfs gc -a 0 has removed a part */
		ret = make_all(c, hostdir);
	/* Nothing is to stay that cannot be listed, and so removed, either; others make it anew. */
	if (ret == -EMFILE || ret == -ENFILE) {
		hostdir_path(c, hostdir, path);
		store_rmdir(c->store, path);
		store_rmdir(c->store, c->dir);
	}
	return ret;
}

int container_add_hostdir(const struct container *c, unsigned hostdir)
{
	int ret = container_is_purged(c) ? -ENOENT : make_hostdir(c, hostdir);

	return ret == -ENOENT ? -EIDRM : ret;
}

bool container_is_hostdir(const char *name, size_t len)
{
	size_t at = sizeof("hostdir.") - 1;
	unsigned k = 0;

	if (len <= at || len > at + 4 || memcmp(name, "hostdir.", at) || (name[at] == '0' && len > at + 1))
		return false;
	for (; at < len && name[at] >= '0' && name[at] <= '9'; at++)
		k = 10 * k + (unsigned)(name[at] - '0');
	return at == len && k < CONFIG_HOSTDIRS_MAX;
}

struct list_arg {
	const struct container *c;
	const char *hostdir; /* NULL: there was none yet */
	int (*fn)(void *arg, const char *path, const char *name, enum dropping_kind kind);
	void *arg;
	bool gone;      /* a backend with logs of it is not there, and has no open ones */
	bool tells;     /* one line for that */
};

static int list_dropping(void *arg, const char *name)
{
	struct list_arg *la = arg;
	char path[CONTAINER_PATH_LEN];

	if (snprintf(path, sizeof(path), "%s/%s", la->hostdir, name) > CONTAINER_REST_MAX)
		return 0;
	return la->fn(la->arg, path, name, name_kind(name));
}

static int list_hostdir(void *arg, const char *name)
{
	struct list_arg *la = arg;
	char path[CONTAINER_PATH_LEN];
	int ret;

	if (!container_is_hostdir(name, strlen(name)))
		return 0;
	container_path(la->c, name, path);
	la->hostdir = name;
	ret = la->c->store->ops->list(la->c->store, path, list_dropping, la);
	if (ret == -EREMOTE) {
		la->gone = true;
		if (la->tells)
			spread_tell_all_gone(la->c->store, path);
	}
	return ret == -ENOENT || ret == -EREMOTE ? 0 : ret;
}

static int list(struct list_arg *la)
{
	struct store *s = la->c->store;
	int ret = s->ops->list(s, la->c->dir, list_hostdir, la);

	return !ret && !la->hostdir ? -ENOENT : ret;
}

int container_list(const struct container *c,
		   int (*fn)(void *arg, const char *path, const char *name, enum dropping_kind kind),
		   void *arg)
{
	struct list_arg la = { .c = c, .fn = fn, .arg = arg, .tells = true };
	int ret = list(&la);

	return !ret && la.gone ? -EIO : ret;
}

int container_list_there(const struct container *c,
			 int (*fn)(void *arg, const char *path, const char *name, enum dropping_kind kind),
			 void *arg)
{
	struct list_arg la = { .c = c, .fn = fn, .arg = arg };

	return list(&la);
}

static int find_one(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	(void)arg, (void)path, (void)name;
	return kind == DROPPING_DATA || kind == DROPPING_LIVE || kind == DROPPING_INDEX;
}

static bool has(const struct container *c, const char *name)
{
	char path[CONTAINER_PATH_LEN];
	struct stat st;

	container_path(c, name, path);
	return c->store->ops->stat(c->store, path, &st) != -ENOENT;
}

bool container_is_purged(const struct container *c)
{
	int ret;

	if (!c->filled || has(c, "lock") || has(c, "index.global"))
		return false;
	ret = container_list(c, find_one, NULL);
	return !ret || ret == -ENOENT;
}

bool container_has(const char *name, int depth, bool dir)
{
	/* Or a link of that name, which goes and is not followed. */
	if (!depth && container_is_hostdir(name, strlen(name)))
		return true;
	return dir ? depth == 1 && name_is_own_dir(name) : name_is_known(name, !depth);
}
