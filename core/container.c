/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Container directories: making, listing, removing. What is inside the files is others'.
 */
#include "container.h"

#include "config.h"
#include "log.h"
#include "own.h"
#include "store_acl.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void container_init(struct container *c, struct store *store, const uint8_t *id, mode_t mode)
{
	char hex[2 * STUB_ID_LEN + 1];

	for (int i = 0; i < STUB_ID_LEN; i++)
		snprintf(hex + 2 * i, 3, "%02x", id[i]);
	memset(c, 0, sizeof(*c));
	c->store = store;
	memcpy(c->id, id, STUB_ID_LEN);
	snprintf(c->dir, sizeof(c->dir), PLFS_DIR_NAME "/%.2s/%s", hex, hex);
	c->uid = CONTAINER_ANYBODY;
	c->mode = mode & 0777;
	c->nr_hostdirs = CONTAINER_HOSTDIRS;
}

void container_set_stub(struct container *c, const struct stat *stub)
{
	c->uid = stub->st_uid;
	c->gid = stub->st_gid;
	c->mode = stub->st_mode & 0777;
	c->give = c->uid && !geteuid();
}

void container_look_at_list(struct container *c, int fd)
{
	uint8_t list[ACL_LEN_MAX];

	if (c->mode & S_IWGRP && !c->checked)
		c->listed = acl_get(fd, list) > 0;
}

void container_init_for(struct container *c, struct store *store, const uint8_t *id, const struct stat *stub)
{
	container_init(c, store, id, 0);
	container_set_stub(c, stub);
}

void container_path(const struct container *c, const char *rest, char *out)
{
	snprintf(out, CONTAINER_PATH_LEN, "%s/%s", c->dir, rest);
}

/* What neither the group nor others gain by. */
static mode_t both_have(mode_t mode)
{
	mode_t both = mode >> 3 & mode & 07;

	return (mode & 0700) | both << 3 | both;
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

/* Whether all those who may write the stub, besides its owner, have @right (04 or 02) to the container. */
static bool writers_have(const struct container *c, const struct stat *dir, mode_t right)
{
	bool others = dir->st_mode & right, group = dir->st_mode & right << 3 && dir->st_gid == c->gid;

	return (!(c->mode & S_IWGRP) || c->listed || group || others) && (!(c->mode & S_IWOTH) || others);
}

/* The file by which somebody who made the container of another user's stub says so. */
static void for_path(const struct container *c, char *path)
{
	snprintf(path, CONTAINER_PATH_LEN, "%s/for.%u", c->dir, (unsigned)c->uid);
}

/* Whether it was made by the stub's owner, or for him. */
static bool is_for(const struct container *c, const struct stat *dir)
{
	char path[CONTAINER_PATH_LEN];
	struct stat st;

	if (dir->st_uid == c->uid)
		return true;
	for_path(c, path);
	return !c->store->ops->stat(c->store, path, &st) && S_ISREG(st.st_mode) && st.st_uid == dir->st_uid;
}

enum verdict { RIGHT, CLOSED_TO_SOME, NOT_ITS_OWN };

static enum verdict judge(const struct container *c, enum container_use use, const struct stat *dir)
{
	if (!S_ISDIR(dir->st_mode) || !is_for(c, dir) || !writers_have(c, dir, S_IROTH))
		return NOT_ITS_OWN;
	return use == CONTAINER_CHANGE && !writers_have(c, dir, S_IWOTH) ? CLOSED_TO_SOME : RIGHT;
}

bool container_is_checked(const struct container *c, enum container_use use)
{
	return c->uid == CONTAINER_ANYBODY || c->checked & 1u << use;
}

int container_check(struct container *c, enum container_use use)
{
	const struct timespec wait = { .tv_nsec = 1000000 };
	enum verdict verdict = NOT_ITS_OWN;
	struct stat dir;

	if (container_is_checked(c, use))
		return 0;
	for (int tries = 0; tries < 5; tries++) {
		int ret = c->store->ops->stat(c->store, c->dir, &dir);

		if (ret)
			return ret == -ENOENT ? 0 : ret;
		verdict = judge(c, use, &dir);
		if (verdict == RIGHT || !S_ISDIR(dir.st_mode) || dir.st_mode & 077)
			break;
		own_nanosleep(&wait, NULL); /* somebody may just have made it */
	}
	if (verdict != RIGHT) {
		if (verdict == NOT_ITS_OWN && !c->told)
			log_error("%s: not the container of a file of user %u with mode %03o, whose header names it: it belongs to user %u, or is closed to "
				  "who may write the file; if that changed hands without libplfs: chown %u it, then chown it under libplfs",
				  c->dir, (unsigned)c->uid, (unsigned)c->mode, (unsigned)dir.st_uid, (unsigned)dir.st_uid);
		else if (!c->told)
			log_error("%s: some may write its file (mode %03o) who may not write here: under libplfs, chmod go-w the file, then chmod it back",
				  c->dir, (unsigned)c->mode);
		c->told = true;
		return verdict == NOT_ITS_OWN ? -EIO : -EACCES;
	}
	c->checked |= 1u << use;
	/* Made by somebody who could not give it the stub's group: it is open to what group and others have both. */
	if (use == CONTAINER_CHANGE && dir.st_gid != c->gid)
		c->mode = both_have(c->mode);
	return 0;
}

int container_open(const struct container *c, const char *path, int flags, mode_t mode)
{
	int h = store_open(c->store, path, flags, mode);

	if (h >= 0 && c->give && flags & O_CREAT)
		c->store->ops->give(c->store, h, c->uid);
	return h;
}

static int make_dir(struct store *s, const char *path, mode_t mode)
{
	int ret = s->ops->mkdir(s, path, mode);

	return ret == -EEXIST ? 0 : ret;
}

/*
 * The directory of this name for two digits. Those of a backend that several users share are made by its owner, with
 * `plfs init`.
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

static int say_for(const struct container *c)
{
	char path[CONTAINER_PATH_LEN];
	int h;

	if (c->uid == geteuid() || c->give)
		return 0;
	for_path(c, path);
	h = store_open(c->store, path, O_RDWR | O_CREAT | STORE_BRIEFLY, 0444);
	if (h < 0)
		return h;
	store_close(c->store, &h);
	return 0;
}

/* The container's own directory. Who else comes at the same time finds it there, with its last mode or a closer one. */
static int make_own(const struct container *c)
{
	const struct store_grant g = {
		.uid = c->uid, .gid = c->gid, .mode = dir_mode(c->mode) | S_ISGID, .acl = c->acl, .acl_len = c->acl_len,
	};
	struct store *s = c->store;
	int ret;

	if (c->uid == CONTAINER_ANYBODY)
		return make_dir(s, c->dir, dir_mode(c->mode));
	ret = s->ops->mkdir(s, c->dir, S_IRWXU);
	if (!ret)
		ret = s->ops->grant(s, c->dir, &g);
	if (!ret)
		ret = say_for(c);
	return ret == -EEXIST ? 0 : ret;
}

static int make_hostdir(const struct container *c, unsigned hostdir)
{
	char path[CONTAINER_PATH_LEN];
	int ret;

	snprintf(path, sizeof(path), "%s/hostdir.%u", c->dir, hostdir);
	ret = c->store->ops->mkdir(c->store, path, dir_mode(c->mode));
	if (!ret && c->give)
		ret = c->store->ops->chown(c->store, path, c->uid, (gid_t)-1);
	return ret == -EEXIST ? 0 : ret;
}

int container_make(const struct container *c, unsigned hostdir)
{
	int ret = make_hostdir(c, hostdir);

	if (ret != -ENOENT)
		return ret;
	ret = make_own(c);
	if (ret == -ENOENT) {
		ret = make_parent(c);
		if (!ret)
			ret = make_own(c);
	}
	if (ret == -EACCES || ret == -EPERM)
		log_error("cannot make %s: %s; let the owner of the backend say: plfs init BACKEND", c->dir, strerror(-ret));
	if (!ret)
		ret = make_hostdir(c, hostdir);
	/* Nothing is to stay that cannot be listed, and so removed, either; others make it anew. */
	if (ret == -EMFILE || ret == -ENFILE)
		c->store->ops->rmdir(c->store, c->dir);
	return ret;
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

	if (snprintf(path, sizeof(path), "%s/%s", la->hostdir, name) > CONTAINER_REST_MAX)
		return 0;
	return la->fn(la->arg, path, name, kind_of(name));
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
	return ret == -ENOENT ? 0 : ret;
}

int container_list(const struct container *c,
		   int (*fn)(void *arg, const char *path, const char *name, enum dropping_kind kind), void *arg)
{
	struct list_arg la = { .c = c, .fn = fn, .arg = arg };
	int ret = c->store->ops->list(c->store, c->dir, list_hostdir, &la);

	return !ret && !la.hostdir ? -ENOENT : ret;
}

int container_remove(const struct container *c)
{
	struct container copy = *c;
	int ret = container_check(&copy, CONTAINER_CHANGE);

	if (ret || !container_is_checked(&copy, CONTAINER_CHANGE)) /* gone already */
		return ret;
	ret = store_remove_tree(c->store, c->dir);

	log_debug(LOG_PATH, "removed container %s: %s", c->dir, strerror(-ret));
	return ret == -ENOENT ? 0 : ret;
}

static mode_t dir_mode_now(const struct container *c)
{
	return dir_mode(c->mode) | (c->uid == CONTAINER_ANYBODY ? 0 : S_ISGID);
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

	if (container_is_hostdir(name, strlen(name)))
		change(ca, name, dir_mode_now(ca->c));
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

	change(ca, "", dir_mode_now(ca->c));
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
	struct stat dir;
	int ret = container_check(c, CONTAINER_CHANGE);

	if (ret || !container_is_checked(c, CONTAINER_CHANGE))
		return ret;
	/* By root: others' logs would be closed to the file's owner too. */
	if (c->give)
		container_chown(c, c->uid, c->gid);
	c->mode = mode & 0777;
	ret = change_all(&ca);
	/* The directory of another user: then what is in it stays open to those who are to have nothing. */
	if (!ret && !c->store->ops->stat(c->store, c->dir, &dir) && dir.st_mode & ~dir_mode(mode) & 077)
		ret = -EPERM;
	return ret;
}

int container_chown(const struct container *c, uid_t uid, gid_t gid)
{
	struct change_arg ca = { .c = c, .owner = true, .uid = uid, .gid = gid };
	struct container copy = *c;
	int ret = container_check(&copy, CONTAINER_CHANGE);

	return ret || !container_is_checked(&copy, CONTAINER_CHANGE) ? ret : change_all(&ca);
}
