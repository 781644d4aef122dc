/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Container directories: making, listing, removing. What is inside the files is others'.
 */
#include "container.h"

#include "log.h"

#include <stdio.h>
#include <stdlib.h>

void container_init(struct container *c, struct store *store, const uint8_t *id, mode_t mode)
{
	char hex[2 * STUB_ID_LEN + 1];

	for (int i = 0; i < STUB_ID_LEN; i++)
		snprintf(hex + 2 * i, 3, "%02x", id[i]);
	c->store = store;
	memcpy(c->id, id, STUB_ID_LEN);
	snprintf(c->dir, sizeof(c->dir), PLFS_DIR_NAME "/%.2s/%s", hex, hex);
	c->mode = mode & 0777;
	c->nr_hostdirs = CONTAINER_HOSTDIRS;
}

void container_path(const struct container *c, const char *rest, char *out)
{
	snprintf(out, CONTAINER_PATH_LEN, "%s/%s", c->dir, rest);
}

/* Who may read the file may list and read here; who may write it may also make droppings. */
static mode_t dir_mode(mode_t mode)
{
	mode_t m = S_IRWXU;

	for (int shift = 0; shift <= 3; shift += 3) {
		if (mode & (04 << shift))
			m |= (mode_t)(05 << shift);
		if (mode & (02 << shift))
			m |= (mode_t)(07 << shift);
	}
	return m;
}

mode_t container_file_mode(const struct container *c, bool shared)
{
	return (c->mode & (shared ? 0666 : 0444)) | S_IRUSR | S_IWUSR;
}

static int make_dir(struct store *s, const char *path, mode_t mode)
{
	int ret = s->ops->mkdir(s, path, mode);

	return ret == -EEXIST ? 0 : ret;
}

int container_make(const struct container *c, unsigned hostdir)
{
	struct store *s = c->store;
	char path[CONTAINER_PATH_LEN];
	struct stat st;
	int ret;

	snprintf(path, sizeof(path), "%s/hostdir.%u", c->dir, hostdir);
	ret = make_dir(s, path, dir_mode(c->mode));
	if (ret != -ENOENT)
		return ret;
	ret = make_dir(s, c->dir, dir_mode(c->mode));
	if (ret == -ENOENT) {
		char parent[CONTAINER_PATH_LEN];

		ret = s->ops->stat(s, PLFS_DIR_NAME, &st);
		snprintf(parent, sizeof(parent), "%.*s", (int)(strrchr(c->dir, '/') - c->dir), c->dir);
		if (!ret)
			ret = make_dir(s, parent, st.st_mode & 01777);
		if (!ret)
			ret = make_dir(s, c->dir, dir_mode(c->mode));
	}
	return ret ? ret : make_dir(s, path, dir_mode(c->mode));
}

struct list_arg {
	const struct container *c;
	const char *hostdir;
	int (*fn)(void *arg, const char *path, const char *name, enum dropping_kind kind);
	void *arg;
};

static enum dropping_kind kind_of(const char *name)
{
	if (strstr(name, ".tmp."))
		return DROPPING_OTHER;
	if (!strncmp(name, "data.", 5))
		return DROPPING_DATA;
	if (!strncmp(name, "live.", 5))
		return DROPPING_LIVE;
	if (!strncmp(name, "index.", 6))
		return DROPPING_INDEX;
	return DROPPING_OTHER;
}

static int list_dropping(void *arg, const char *name)
{
	struct list_arg *la = arg;
	char path[CONTAINER_PATH_LEN];

	if (snprintf(path, sizeof(path), "%s/%s", la->hostdir, name) >= (int)sizeof(path))
		return 0;
	return la->fn(la->arg, path, name, kind_of(name));
}

static int list_hostdir(void *arg, const char *name)
{
	struct list_arg *la = arg;
	char path[CONTAINER_PATH_LEN];
	int ret;

	if (strncmp(name, "hostdir.", 8))
		return 0;
	if (snprintf(path, sizeof(path), "%s/%s", la->c->dir, name) >= (int)sizeof(path))
		return 0;
	la->hostdir = name;
	ret = la->c->store->ops->list(la->c->store, path, list_dropping, la);
	return ret == -ENOENT ? 0 : ret;
}

int container_list(const struct container *c,
		   int (*fn)(void *arg, const char *path, const char *name, enum dropping_kind kind), void *arg)
{
	struct list_arg la = { .c = c, .fn = fn, .arg = arg };

	return c->store->ops->list(c->store, c->dir, list_hostdir, &la);
}

int container_remove(const struct container *c)
{
	int ret = store_remove_tree(c->store, c->dir);

	log_debug(LOG_PATH, "removed container %s: %s", c->dir, strerror(-ret));
	return ret == -ENOENT ? 0 : ret;
}

struct change_arg {
	const struct container *c;
	bool owner;
	uid_t uid;
	gid_t gid;
	int ret;
};

static void change(struct change_arg *ca, const char *rest, mode_t mode)
{
	struct store *s = ca->c->store;
	char path[CONTAINER_PATH_LEN];
	int ret;

	snprintf(path, sizeof(path), *rest ? "%s/%s" : "%s%s", ca->c->dir, rest);
	ret = ca->owner ? s->ops->chown(s, path, ca->uid, ca->gid) : s->ops->chmod(s, path, mode);
	if (ret && ret != -ENOENT && ret != -EPERM && !ca->ret)
		ca->ret = ret;
}

static int change_hostdir(void *arg, const char *name)
{
	struct change_arg *ca = arg;

	if (!strncmp(name, "hostdir.", 8))
		change(ca, name, dir_mode(ca->c->mode));
	return 0;
}

static int change_dropping(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	struct change_arg *ca = arg;

	(void)name;
	change(ca, path, container_file_mode(ca->c, kind != DROPPING_DATA));
	return 0;
}

/* Directories are opened up before what is in them and closed after it would be nicer; the owner can always do both. */
static int change_all(struct change_arg *ca)
{
	struct store *s = ca->c->store;
	int ret;

	change(ca, "", dir_mode(ca->c->mode));
	change(ca, "index.global", container_file_mode(ca->c, true));
	change(ca, "lock", container_file_mode(ca->c, true));
	ret = s->ops->list(s, ca->c->dir, change_hostdir, ca);
	if (!ret)
		ret = container_list(ca->c, change_dropping, ca);
	return ret == -ENOENT ? 0 : ret ? ret : ca->ret;
}

int container_chmod(struct container *c, mode_t mode)
{
	struct change_arg ca = { .c = c };

	c->mode = mode & 0777;
	return change_all(&ca);
}

int container_chown(const struct container *c, uid_t uid, gid_t gid)
{
	struct change_arg ca = { .c = c, .owner = true, .uid = uid, .gid = gid };

	return change_all(&ca);
}
