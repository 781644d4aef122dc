/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whose a container is, and how its paths and modes follow from its stub.
 */
#include "core/backend/container.h"

#include "core/backend/given.h"
#include "core/base/msg.h"
#include "core/base/io.h"
#include "core/base/settle.h"
#include "core/store/posix_acl.h"

#include <stdio.h>
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
	c->uid = c->owner = c->maker = CONTAINER_ANYBODY;
	c->mode = mode & 0777;
	c->nr_hostdirs = CONTAINER_HOSTDIRS;
}

void container_set_stub(struct container *c, const struct stat *stub)
{
	c->uid = stub->st_uid;
	c->gid = stub->st_gid;
	c->number = stub->st_ino;
	c->mode = stub->st_mode & 0777;
	c->caller = geteuid();
	c->give = c->uid && !c->caller;
}

void container_look_at_list(struct container *c, int fd)
{
	if (c->mode & S_IWGRP && !c->checked)
		c->listed = acl_is_there(fd);
}

void container_look_at_group(struct container *c, int fd)
{
	int perm = fd < 0 ? fd : acl_group(fd);

	c->list_group = perm >= 0 ? perm + 1 : perm == -ENODATA ? -1 : 0;
}

void container_init_for(struct container *c, struct store *store, const uint8_t *id, const struct stat *stub)
{
	container_init(c, store, id, 0);
	container_set_stub(c, stub);
}

void container_init_from(struct container *c, struct store *store, const struct stub *stub,
			 const struct stat *st)
{
	container_init_for(c, store, stub->id, st);
	if (stub->has_maker)
		c->maker = stub->maker;
	c->copied = stub->copied;
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

bool container_is_as(const struct container *c, const struct stat *stub)
{
	mode_t mode = stub->st_mode & 0777;

	return c->uid == CONTAINER_ANYBODY || (c->uid == stub->st_uid && c->gid == stub->st_gid &&
					       (c->mode == mode || c->mode == both_have(mode)));
}

mode_t container_dir_mode(mode_t mode)
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

mode_t container_lock_mode(const struct container *c)
{
	return S_IRUSR | S_IWUSR | (c->mode & 022) | (c->mode & 022) << 1;
}

/* Whether all those who may write the stub, besides its owner, have @right (04 or 02) to the container. */
static bool writers_have(const struct container *c, const struct stat *dir, mode_t right)
{
	bool others = dir->st_mode & right, group = dir->st_mode & right << 3 && dir->st_gid == c->gid;

	return (!(c->mode & S_IWGRP) || c->listed || group || others) && (!(c->mode & S_IWOTH) || others);
}

void container_for_path(const struct container *c, char *path)
{
	snprintf(path, CONTAINER_PATH_LEN, "%s/for.%u", c->dir, (unsigned)c->uid);
}

/* Whether it was made by the stub's owner, or for him by one who could write the stub. */
static bool is_for(const struct container *c, const struct stat *dir)
{
	char path[CONTAINER_PATH_LEN];
	struct stat st;

	if (dir->st_uid == c->uid)
		return true;
	/* Else whoever finds that a container is missing could lay his own there. */
	if (dir->st_uid && dir->st_uid != c->maker && !(c->mode & (S_IWGRP | S_IWOTH)))
		return false;
	container_for_path(c, path);
	return !c->store->ops->stat(c->store, path, &st) && S_ISREG(st.st_mode) && st.st_uid == dir->st_uid;
}

/* The note that it is being given to the stub as that is, by one who may do so. */
static bool is_being_given(const struct container *c, const struct stat *dir, struct given *g)
{
	char path[CONTAINER_PATH_LEN];
	uid_t by;

	container_for_path(c, path);
	return given_read(c->store, path, g, &by) && (!by || (by == dir->st_uid && by == c->uid)) &&
	       g->gid == c->gid && g->number == c->number && !memcmp(g->id, c->id, STUB_ID_LEN);
}

bool container_is_half_given(const struct container *c)
{
	struct given g;
	struct stat dir;

	return c->uid != CONTAINER_ANYBODY && !c->store->ops->stat(c->store, c->dir, &dir) &&
	       is_being_given(c, &dir, &g);
}

enum verdict { RIGHT, CLOSED_TO_SOME, HALF_GIVEN, NOT_ITS_OWN };

static enum verdict judge(const struct container *c, enum container_use use, const struct stat *dir)
{
	struct given g;

	if (!S_ISDIR(dir->st_mode))
		return NOT_ITS_OWN;
	if (!is_for(c, dir) || !writers_have(c, dir, S_IROTH)) {
		if (!is_being_given(c, dir, &g) || (dir->st_uid != g.from && dir->st_uid != c->uid))
			return NOT_ITS_OWN;
		return c->finishes ? RIGHT : HALF_GIVEN;
	}
	return use == CONTAINER_CHANGE && !writers_have(c, dir, S_IWOTH) ? CLOSED_TO_SOME : RIGHT;
}

bool container_is_checked(const struct container *c, enum container_use use)
{
	return c->uid == CONTAINER_ANYBODY || c->checked & 1u << use;
}

int container_try_check(struct container *c, enum container_use use)
{
	bool told = c->told;
	int ret;

	c->told = true;
	ret = container_check(c, use);
	c->told = told;
	return ret;
}

static __attribute__((noinline, cold)) void tell(const struct container *c, enum verdict verdict,
						const struct stat *dir)
{
	if (verdict == HALF_GIVEN)
		msg_error(
			"%s: its file is being given to user %u; if that chown was interrupted: as root, repeat it under libplfs, or run plfs repair",
			c->dir, (unsigned)c->uid);
	else if (verdict == CLOSED_TO_SOME)
		msg_error(
			"%s: the container is less writable than its file (mode %03o): under libplfs, chmod go-w the file, then restore its mode",
			c->dir, (unsigned)c->mode);
	else
		msg_error(
			"%s: not the container of the file that names it (user %u, mode %03o): user %u owns it, or some users may write the file but not the container; if a chown (by root) or "
			"chmod under libplfs was interrupted: repeat it; if the owner was changed without libplfs: chown the file to %u, then chown it again under libplfs",
			c->dir, (unsigned)c->uid, (unsigned)c->mode, (unsigned)dir->st_uid,
			(unsigned)dir->st_uid);
}

int container_check(struct container *c, enum container_use use)
{
	struct settle settle = {};
	enum verdict verdict;
	struct stat dir;

	if (container_is_checked(c, use))
		return 0;
	do { /* somebody may just have made it, and have to open it yet */
		int ret = c->store->ops->stat(c->store, c->dir, &dir);

		if (ret)
			return ret == -ENOENT ? 0 : ret;
		verdict = judge(c, use, &dir);
	} while (verdict != RIGHT && S_ISDIR(dir.st_mode) && !(dir.st_mode & 077) && settle_wait(&settle));
	if (verdict != RIGHT) {
		if (!c->told)
			tell(c, verdict, &dir);
		c->told = true;
		return verdict == CLOSED_TO_SOME ? -EACCES : -EIO;
	}
	c->checked |= 1u << use;
	c->owner = dir.st_uid;
	/*
	 * Made by somebody who could not give it the stub's group: it is open to what group and others have
	 * both.
	 */
	if (use == CONTAINER_CHANGE && dir.st_gid != c->gid)
		c->mode = both_have(c->mode);
	return 0;
}

/* Whether all who may write the stub may write this file as well: its owner apart, who can be one of them. */
static bool is_open_to_writers(const struct container *c, const struct stat *st)
{
	if (st->st_mode & S_IWOTH)
		return true;
	return !(c->mode & S_IWOTH) && c->mode & S_IWGRP && st->st_mode & S_IWGRP &&
	       (c->listed || st->st_gid == c->gid);
}

/* A dropping never has the mark of a stub. */
static bool is_proven(const struct container *c, int h, const struct stat *st, container_proof *proof)
{
	uint8_t head[CONTAINER_HEAD_LEN];
	struct given g;
	struct stat dir;
	ssize_t n;

	if (stub_marked(st->st_mode))
		return false;
	/* Root may have changed the owner of all of it since @c was looked at, or is doing so. */
	if (st->st_uid != c->uid && st->st_uid != c->owner && st->st_uid != geteuid() &&
	    (c->store->ops->stat(c->store, c->dir, &dir) ||
	     (dir.st_uid != st->st_uid && !(is_being_given(c, &dir, &g) && g.from == st->st_uid))))
		return false;
	n = st->st_size ? c->store->ops->pread(c->store, h, head, sizeof(head), 0) : 0;
	return n >= 0 && proof(c, st, head, (size_t)n);
}

bool container_knows_file(const struct container *c, int h, const struct stat *st, container_proof *proof)
{
	return store_may_write(st) &&
	       (!proof || c->uid == CONTAINER_ANYBODY || is_open_to_writers(c, st) ||
		is_proven(c, h, st, proof));
}

/* Root may be giving the container and what is in it to another user just now, one after the other. */
static bool knows_when_given(const struct container *c, int h, container_proof *proof)
{
	struct settle settle = {};
	bool knows = false;
	struct stat st;

	while (!knows && settle_wait(&settle)) {
		if (c->store->ops->fstat(c->store, h, &st))
			break;
		knows = container_knows_file(c, h, &st, proof);
	}
	return knows;
}

int container_check_file(const struct container *c, const char *path, int h, const struct stat *st,
			 container_proof *proof)
{
	if (S_ISREG(st->st_mode) && st->st_nlink > 1) {
		msg_error(
			"%s: has a second name (a hard link), so nothing is written to it: remove that name",
			path);
		return -EIO;
	}
	if (container_knows_file(c, h, st, proof) || knows_when_given(c, h, proof))
		return 0;
	msg_error(
		"%s: not what libplfs made here (user %u, mode %03o), so nothing is written to it: it is damaged (see plfs check), or another user has moved it here (then move it away)",
		path, (unsigned)st->st_uid, (unsigned)st->st_mode & 0777);
	return -EIO;
}

/*
 * Give what was just made to the stub's owner. Root may have given all to somebody else since @c was looked
 * at, the directory first, and listed what there was.
 */
static void give_made(const struct container *c, int h)
{
	struct stat dir;

	store_give(c->store, h, c->uid);
	if (c->owner != CONTAINER_ANYBODY && !c->store->ops->stat(c->store, c->dir, &dir) &&
	    dir.st_uid != c->owner)
		store_give(c->store, h, dir.st_uid);
}

int container_open_shared(const struct container *c, const char *path, int flags, mode_t mode,
			  container_proof *proof)
{
	struct stat st;
	bool made = false;
	int ret = 0, h = -EEXIST;

	if (flags & O_CREAT && c->made)
		h = store_open(c->store, path, flags | O_EXCL, mode);
	if (h != -EEXIST)
		made = h >= 0;
	else if (flags & O_CREAT)
		h = store_open_or_make(c->store, path, flags & ~O_CREAT, mode, &made);
	else
		h = store_open(c->store, path, flags, 0);
	if (h >= 0 && made && c->give)
		give_made(c, h);
	if (h < 0 || made || (flags & O_ACCMODE) == O_RDONLY)
		return h;
	ret = c->store->ops->fstat(c->store, h, &st);
	if (!ret)
		ret = container_check_file(c, path, h, &st, proof);
	if (!ret)
		return h;
	store_close(c->store, &h);
	return ret;
}

int container_open(const struct container *c, const char *path, int flags, mode_t mode)
{
	int h;

	if ((flags & (O_CREAT | O_EXCL)) == O_CREAT)
		return container_open_shared(c, path, flags, mode, NULL);
	h = store_open(c->store, path, flags, mode);
	if (h >= 0 && c->give && flags & O_CREAT)
		give_made(c, h);
	return h;
}

/* Without those who may only read the file: they could hold a lock on it for ever, which others wait for. */
static int close_to_readers(const struct container *c, int h)
{
	int fd = c->acl_len ? store_fd(c->store, h) : -1;
	int ret = fd < 0 ? 0 : acl_set_of_lock(fd, c->acl, c->acl_len, c->uid);

	return ret ? ret : fd < 0 ? 0 : store_chmod(c->store, h, container_lock_mode(c));
}

#define LOCK_MAGIC "PLFSLOCK"
#define LOCK_LEN 32

static int make_lock(const struct container *c, const char *path, int flags)
{
	uint8_t buf[LOCK_LEN] = LOCK_MAGIC;
	int h, ret;

	flags |= O_RDWR | O_CREAT | O_EXCL;
	h = container_open(c, path, flags, c->acl_len ? S_IRUSR | S_IWUSR : container_lock_mode(c));
	if (h < 0)
		return h;
	memcpy(buf + CONTAINER_ID_OFF, c->id, STUB_ID_LEN);
	c->store->ops->pwrite(c->store, h, buf, sizeof(buf), 0); /* without it, it locks as well */
	ret = close_to_readers(c, h);
	if (!ret)
		return h;
	store_close(c->store, &h);
	c->store->ops->unlink(c->store, path);
	return ret;
}

int container_open_lock(const struct container *c, int flags, bool make)
{
	char path[CONTAINER_PATH_LEN];
	int h = -EEXIST;

	container_path(c, "lock", path);
	for (int tries = 0; h == -EEXIST && tries < 100; tries++) { /* others make and remove it */
		h = make && c->made && !tries ? -ENOENT :
						container_open_shared(c, path, O_RDWR | flags, 0, NULL);
		if (h == -ENOENT && make)
			h = make_lock(c, path, flags);
	}
	return h;
}
