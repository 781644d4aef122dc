/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Modes and owners of a container's directories and droppings.
 *
 * Whoever may write the file may have moved something here that is not his. So a name alone is no reason to
 * change anything: a log, a live file and a kept map have the container's id in them, the others look like
 * what they are, and a hostdir has nothing in it but droppings.
 */
#include "core/dropping/owner.h"

#include "core/backend/container_dirs.h"
#include "core/backend/given.h"
#include "core/backend/names.h"
#include "core/backend/parity.h"
#include "core/backend/spare.h"
#include "core/backend/spread_enter.h"
#include "core/base/bytes.h"
#include "core/base/io.h"
#include "core/base/msg.h"
#include "core/base/settle.h"
#include "core/store/posix_acl.h"
#include "core/dropping/node_index.h"
#include "core/dropping/notice.h"

#include <stdio.h>

static mode_t dir_mode_now(const struct container *c)
{
	return container_dir_mode(c->mode) | (c->uid == CONTAINER_ANYBODY ? 0 : S_ISGID);
}

struct change_arg {
	const struct container *c;
	mode_t old_mode; /* of the stub */
	bool drops_lists;
	bool owner;
	uid_t uid;
	gid_t gid;
	struct settle settle; /* for all of it */
	int ret;
};

/* ---- what it is ---- */

/* The container's own: another process may be giving it to the same user. */
static bool is_our_dir(const struct change_arg *ca, int h, const struct stat *st, bool top)
{
	if (!top)
		return container_is_own_hostdir(ca->c, h);
	return ca->c->uid == CONTAINER_ANYBODY || st->st_uid == ca->c->owner ||
	       (ca->owner && st->st_uid == ca->uid);
}

/*
 * Whether the dropping has no header yet. It may be an empty file of another user, too: so its mode and owner
 * stay, and that is no error. A lock has its header before a stub names the container.
 */
static bool is_unborn(const struct change_arg *ca, const char *name, int h)
{
	enum dropping_kind kind = name_kind(name);
	uint8_t head[CONTAINER_ID_OFF + STUB_ID_LEN];
	ssize_t n = ca->c->store->ops->pread(ca->c->store, h, head, sizeof(head), 0);

	if (kind == DROPPING_DATA || kind == DROPPING_LIVE)
		return n >= 0 && is_zero(head, (size_t)n);
	return !n && strcmp(name, "lock");
}

static bool is_our_file(const struct change_arg *ca, const char *name, int h, const struct stat *st)
{
	struct container before = *ca->c;
	uint8_t head[CONTAINER_ID_OFF + STUB_ID_LEN];

	if (!store_may_write(st) || stub_marked(st->st_mode))
		return false;
	if (ca->c->store->ops->pread(ca->c->store, h, head, sizeof(head), 0) == sizeof(head) &&
	    !memcmp(head + CONTAINER_ID_OFF, ca->c->id, STUB_ID_LEN))
		return true;
	before.mode = ca->old_mode;
	if (name_is_notice(name))
		return container_knows_file(&before, h, st, notice_is_one);
	switch (name_kind_to_be(name)) {
	case DROPPING_INDEX:
		return container_knows_file(&before, h, st, node_index_is_one);
	case DROPPING_COPIES:
		return container_knows_file(&before, h, st, spare_is_one);
	default:
		return false;
	}
}

enum look { OURS, UNBORN, OTHERS };

/* @name: of a file; NULL: a directory, @top: the container itself. */
static enum look look(const struct change_arg *ca, const char *name, bool top, int h, const struct stat *st)
{
	if (name ? is_our_file(ca, name, h, st) : is_our_dir(ca, h, st, top))
		return OURS;
	return name && is_unborn(ca, name, h) ? UNBORN : OTHERS;
}

#define HEADER_WAITS 5

/*
 * The process that has just made it writes its header next; one that gives it to another user, late, does so
 * again when it sees that the stub is somebody else's by now. Both are waited for, with one patience for the
 * whole container: what stays so is not waited for again at each file.
 */
static enum look look_patiently(struct change_arg *ca, const char *name, bool top, int h, struct stat *st)
{
	enum look is = look(ca, name, top, h, st);

	if (!name && !top) /* by what is in it */
		return is;
	while (is != OURS && (is != UNBORN || ca->settle.waits < HEADER_WAITS) &&
	       settle_wait(&ca->settle)) {
		if (ca->c->store->ops->fstat(ca->c->store, h, st))
			break;
		is = look(ca, name, top, h, st);
	}
	return is;
}

/* ---- changing it ---- */

/*
 * Another user's file stays as it is. An index that users may write who may no longer write the stub would be
 * taken for a stranger's.
 */
static bool is_written_by_more(const char *name, const struct stat *st, mode_t mode)
{
	return name && name_kind_to_be(name) == DROPPING_INDEX && st->st_mode & ~mode & 022;
}

static int change_mode(const struct change_arg *ca, int h, const char *name, const struct stat *st,
		       mode_t mode)
{
	int fd = ca->drops_lists ? store_fd(ca->c->store, h) : -1;
	int ret = store_chmod(ca->c->store, h, mode | (name ? st->st_mode & CONTAINER_UNBORN : 0));

	return ret || fd < 0 ? ret : acl_set(fd, NULL, 0, 0, false);
}

/*
 * The container has the list that the stub had when it was made, or none. Where only one of both has one now:
 * without a list the mode's bits for the group are the group's, and not those of all who are named.
 */
static void heed_list(struct change_arg *ca, struct container *c)
{
	int h = c->list_group ? store_open(c->store, c->dir, O_RDONLY | STORE_BRIEFLY | O_DIRECTORY, 0) : -1;
	int fd = h < 0 ? -1 : store_fd(c->store, h);
	bool has = fd >= 0 && acl_is_there(fd);

	if (c->list_group > 0 && fd >= 0 && !has)
		c->mode &= ~(mode_t)070 | (mode_t)(c->list_group - 1) << 3;
	ca->drops_lists = c->list_group < 0 && has;
	if (h >= 0)
		store_close(c->store, &h);
}

/* @rest: relative to the container. @name: of a file; NULL: a directory. */
static void change(struct change_arg *ca, const char *rest, const char *name, mode_t mode)
{
	struct store *s = ca->c->store;
	char path[CONTAINER_PATH_LEN];
	enum look is = OURS;
	struct stat st;
	int ret, h;

	snprintf(path, sizeof(path), *rest ? "%s/%s" : "%s%s", ca->c->dir, rest);
	h = store_open(s, path, O_RDONLY | STORE_BRIEFLY | (name ? 0 : O_DIRECTORY), 0);
	ret = h < 0 ? h : s->ops->fstat(s, h, &st);
	if (!ret)
		is = look_patiently(ca, name, !*rest, h, &st);
	if (is == UNBORN) {
		store_close(s, &h);
		return;
	}
	if (is == OTHERS) {
		if (!ca->c->told)
			msg_error("%s: not of this container: its mode and owner stay; take it away", path);
		ret = -EIO;
	}
	if (!ret)
		ret = ca->owner ? store_chown(s, h, ca->uid, ca->gid) : change_mode(ca, h, name, &st, mode);
	if (h >= 0)
		store_close(s, &h);
	if (ret == -EPERM && !is_written_by_more(name, &st, mode))
		ret = 0;
	if (ret && ret != -ENOENT && !ca->ret)
		ca->ret = ret;
}

static int change_hostdir(void *arg, const char *name)
{
	struct change_arg *ca = arg;

	if (container_is_hostdir(name, strlen(name)))
		change(ca, name, NULL, dir_mode_now(ca->c));
	return 0;
}

/* A log that a repair has made anew at home, while its backend was not there, is in both. */
static void change_at_home(struct change_arg *ca, const char *path, const char *name, mode_t mode)
{
	struct store bare = store_bare(ca->c->store);
	struct container home = *ca->c;
	struct change_arg also = *ca;

	if (!ca->c->store->base || name_kind(name) != DROPPING_DATA || !spread_slot_of(name))
		return;
	home.store = &bare;
	also.c = &home;
	change(&also, path, name, mode);
	ca->ret = also.ret;
}

/* Parity is its owner's, whatever the file's mode. */
static int change_dropping(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	struct change_arg *ca = arg;
	mode_t mode = container_file_mode(ca->c, kind != DROPPING_DATA);

	if (!name_is_known(name, false) || name_is_old(name) || (kind == DROPPING_PARITY && !ca->owner))
		return 0;
	change(ca, path, name, mode);
	change_at_home(ca, path, name, mode);
	return 0;
}

/*
 * Directories are opened up before what is in them and closed after it would be nicer; the owner can always
 * do both.
 */
static int change_all(struct change_arg *ca)
{
	struct store *s = ca->c->store;
	int ret;

	change(ca, "", NULL, dir_mode_now(ca->c));
	change(ca, "index.global", "index.global", container_file_mode(ca->c, true));
	change(ca, "lock", "lock", container_lock_mode(ca->c));
	if (s->base) /* spread= */
		change(ca, PARITY_NAME, PARITY_NAME, container_file_mode(ca->c, false));
	ret = s->ops->list(s, ca->c->dir, change_hostdir, ca);
	if (!ret)
		ret = container_list(ca->c, change_dropping, ca);
	return ret == -ENOENT ? 0 : ret ? ret : ca->ret;
}

int container_chmod(struct container *c, mode_t mode)
{
	struct change_arg ca = { .c = c, .old_mode = c->mode };
	struct settle settle = {};
	struct stat dir;
	int ret = container_check(c, CONTAINER_CHANGE);

	if (ret || !container_is_checked(c, CONTAINER_CHANGE))
		return ret;
	/* By root: others' logs would be closed to the file's owner too. */
	if (c->give && !container_chown(c, c->uid, c->gid))
		c->owner = c->uid;
	c->mode = mode & 0777;
	heed_list(&ca, c);
	do {
		ret = change_all(&ca);
		if (ret || c->store->ops->stat(c->store, c->dir, &dir) ||
		    !(dir.st_mode & ~container_dir_mode(mode) & 077))
			return ret;
		/* Another user's directory: what is in it stays open to those who are to have nothing. */
		if (c->caller && c->caller != dir.st_uid)
			break;
	} while (settle_wait(&settle)); /* another process is changing it */
	return -EPERM;
}

/* The directory may be what another process is late at. */
static int check_patiently(struct container *c)
{
	struct settle settle = {};

	while (container_try_check(c, CONTAINER_CHANGE) && settle_wait(&settle))
		;
	return container_check(c, CONTAINER_CHANGE);
}

int container_chown(const struct container *c, uid_t uid, gid_t gid)
{
	struct container copy = *c;
	struct change_arg ca = {
		.c = &copy, .old_mode = c->mode, .owner = true, .uid = uid, .gid = gid
	};
	int ret;

	copy.finishes = true;
	ret = check_patiently(&copy);
	return ret || !container_is_checked(&copy, CONTAINER_CHANGE) ? ret : change_all(&ca);
}

static void path_for(const struct container *c, uid_t uid, char *path)
{
	struct container other = *c;

	other.uid = uid;
	container_for_path(&other, path);
}

bool container_begin_giving(const struct container *c, const struct stat *after)
{
	struct container copy = *c;
	struct given g = { .number = c->number, .gid = after->st_gid };
	char path[CONTAINER_PATH_LEN];
	struct stat dir;

	copy.told = copy.finishes = true;
	if (c->uid == CONTAINER_ANYBODY || container_check(&copy, CONTAINER_CHANGE) ||
	    c->store->ops->stat(c->store, c->dir, &dir))
		return false;
	if (dir.st_uid == after->st_uid && dir.st_gid == after->st_gid)
		return false;
	/* The owner gives it to another group; and others' for.UID stays. */
	if (c->caller && (c->caller != dir.st_uid || c->uid != dir.st_uid || after->st_uid != dir.st_uid))
		return false;
	if (c->uid != dir.st_uid && c->uid == after->st_uid)
		return false;
	g.from = dir.st_uid;
	memcpy(g.id, c->id, STUB_ID_LEN);
	path_for(c, after->st_uid, path);
	return !given_write(c->store, path, &g);
}

void container_end_giving(const struct container *c, uid_t uid)
{
	char path[CONTAINER_PATH_LEN];
	struct given g;
	uid_t by;

	path_for(c, uid, path);
	if (given_read(c->store, path, &g, &by))
		c->store->ops->unlink(c->store, path);
}

int container_finish_giving(const struct container *c, const struct stat *stub)
{
	int ret = c->caller && c->caller != stub->st_uid ? -EPERM :
							   container_chown(c, stub->st_uid, stub->st_gid);
	struct stat dir;

	if (!ret)
		ret = c->store->ops->stat(c->store, c->dir, &dir);
	if (!ret && (dir.st_uid != stub->st_uid || dir.st_gid != stub->st_gid))
		ret = -EPERM;
	if (!ret)
		container_end_giving(c, stub->st_uid);
	return ret;
}

/* Users count who may write the file before and after. */
static int check_as(struct container *c, const struct stat *stub, const struct stat *other)
{
	container_set_stub(c, stub);
	c->mode &= other->st_mode;
	c->checked = 0;
	return container_check(c, CONTAINER_CHANGE);
}

/* As one of the two; without a line while it may still become right. */
static int check_either(struct container *c, const struct stat *before, const struct stat *now)
{
	struct settle settle = {};
	bool told = c->told;
	int ret;

	c->told = true;
	do {
		ret = check_as(c, before, now);
		if (ret)
			ret = check_as(c, now, before);
	} while (ret && settle_wait(&settle));
	c->told = told;
	return ret ? check_as(c, now, before) : 0;
}

static int follow(struct container *c, const struct stat *before, const struct stat *now)
{
	int ret = check_either(c, before, now);

	if (ret || !container_is_checked(c, CONTAINER_CHANGE))
		return ret;
	ret = container_chown(c, now->st_uid, now->st_gid);
	container_set_stub(c, now);
	if (c->owner == c->caller)
		container_say_for(c);
	if (!ret)
		ret = check_as(c, now, before);
	if (!ret)
		ret = container_chmod(c, now->st_mode);
	c->checked = 0;
	return ret;
}

int container_follow(struct container *c, const struct stat *before, const struct stat *now)
{
	int ret;

	c->finishes = true;
	ret = follow(c, before, now);
	c->finishes = false;
	return ret;
}
