/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Logged files: the first of a file's writers gives it a container, which its header then names.
 */
#include "core/file/logged.h"

#include "core/backend/container_dirs.h"
#include "core/backend/container_remove.h"
#include "core/backend/names.h"
#include "core/backend/place_turn.h"
#include "core/backend/stub_lock.h"
#include "core/base/io.h"
#include "core/base/msg.h"
#include "core/base/stamp.h"
#include "core/base/sys.h"
#include "core/file/owned.h"
#include "core/store/posix_acl.h"
#include "core/write/durable.h"

#include <unistd.h>

bool logged_wants_near(const struct inode *ino)
{
	return unlikely(ino->m->store.near) && !ino->near_full;
}

struct claim_arg {
	struct plfs_mount *m;
	struct container c;
	struct stat *st;
	const void *acl;
	size_t acl_len;
	int fd; /* of the stub */
	bool near; /* logs of it are to be near */
};

#define SYNC_TRIES 10

/*
 * The header that will name it may come to the disk at any moment: if bytes of the stub have been synced it
 * must not name nothing. Until it does plfs gc -a 0 may remove the container: then it is made anew.
 */
static int make_synced(struct claim_arg *ca)
{
	int ret = -ENOENT;

	for (int tries = 0; ret == -ENOENT && tries < SYNC_TRIES; tries++) {
		ret = container_make(&ca->c, name_hostdir(&ca->c));
		if (ret || !stub_is_synced(ca->fd))
			return ret;
		ret = durable_sync_way(&ca->c);
	}
	return ret;
}

static int make_container(struct claim_arg *ca, const uint8_t *id)
{
	int ret = mount_prepare(ca->m);

	if (ret)
		return ret;
	inode_init_container(ca->m, &ca->c, id, ca->st);
	ca->c.maker = ca->c.caller;
	ca->c.acl = ca->acl;
	ca->c.acl_len = ca->acl_len;
	return make_synced(ca);
}

bool logged_is_ours(const struct container *c)
{
	return !c->listed && !c->give && c->uid == geteuid();
}

/*
 * Who changes the stub waits for byte 0, and then has the container follow: but not for ever. The container
 * of this user would keep out an owner who has closed the file meanwhile, or got it.
 */
static int check_same(const struct claim_arg *ca)
{
	struct stat now;

	return sys.fstat(ca->fd, &now) ? -errno : owned_is_same(&now, ca->st) ? 0 : -EREMCHG;
}

/* The features at once: else each rank would find them missing, and wait for the container's lock. */
static int make_named(void *arg, struct stub *stub)
{
	struct claim_arg *ca = arg;
	int ret = sys.fstat(ca->fd, ca->st) ? -errno : make_container(ca, stub->id);

	if (!ret)
		ret = check_same(ca);
	stub->has_maker = true;
	stub->maker = ca->c.caller;
	stub->copied = ca->m->store.spares;
	stub->placed = !ret && ca->near && logged_is_ours(&ca->c);
	stub->spread = !ret && ca->m->store.spread && logged_is_ours(&ca->c);
	return ret;
}

/* One that was made for nothing goes again, unless the stub names it after all. */
static void drop_unnamed(struct claim_arg *ca)
{
	struct stub now;

	if (*ca->c.dir && !stub_read(ca->fd, &now) &&
	    (!now.has_container || memcmp(now.id, ca->c.id, STUB_ID_LEN)))
		container_remove(&ca->c);
	*ca->c.dir = '\0';
}

/* Have a container made that the word "claim" names, whoever has set it. */
static int decide(struct claim_arg *ca, const struct stub *now, uint8_t *id)
{
	uint64_t mine = 0, claim = now->claim;
	int ret = 0;

	while (!claim && !mine)
		if (sys.getrandom(&mine, sizeof(mine), 0) != sizeof(mine))
			return -EIO;
	/* Before others can see its name, and make something else there. */
	stub_claimed_id(claim ? claim : mine, ca->st->st_ino, id);
	ret = make_container(ca, id);
	if (!ret && !claim)
		ret = stub_propose(ca->fd, mine, &claim);
	if (ret || !mine || claim == mine)
		return ret;
	container_remove(&ca->c);
	stub_claimed_id(claim, ca->st->st_ino, id);
	return make_container(ca, id);
}

/* Name the container that is decided on. */
static int carry_out(struct claim_arg *ca, struct stub *now, const uint8_t *id)
{
	struct store *s = &ca->m->store;
	int h, ret = container_check(&ca->c, CONTAINER_CHANGE);

	if (ret)
		return ret;
	h = container_open_lock(&ca->c, STORE_BRIEFLY, true);
	if (h < 0)
		return h;
	ret = store_lock(s, h);
	if (!ret || ret == -EOPNOTSUPP)
		ret = stub_finish_claim(ca->fd, now, id, stamp_next(), ca->st->st_ino, ca->c.owner);
	store_unlock(s, h);
	store_close(s, &h);
	return ret;
}

/*
 * Whoever had locked the header before the word was set has named another container. Then no process can name
 * this one any more: it goes, also while others, who find that too, prepare to.
 */
static bool was_in_vain(struct claim_arg *ca, struct stub *now, const uint8_t *id)
{
	struct stub is;

	if (!*ca->c.dir || stub_read(ca->fd, &is) || stub_has_none(&is) ||
	    (is.has_container && !memcmp(is.id, id, STUB_ID_LEN)))
		return false;
	container_remove(&ca->c);
	*ca->c.dir = '\0';
	*now = is;
	return true;
}

/* A process that reads the file keeps its header locked. */
static int claim_beside(struct claim_arg *ca, struct stub *now)
{
	uint8_t id[STUB_ID_LEN];
	int ret = stub_read(ca->fd, now);

	if (ret || !stub_has_none(now))
		return ret;
	ret = ca->m->store.remote ? -EBUSY : decide(ca, now, id);
	if (!ret)
		ret = carry_out(ca, now, id);
	return was_in_vain(ca, now, id) ? 0 : ret;
}

#define LOCKED_TRIES 10 /* where hosts share the file system: until that process may have ended */

static __attribute__((noinline, cold)) void tell_locked(int fd)
{
	char name[PATH_MAX];

	msg_error("%s: a process that only reads it keeps its header locked, so nothing can be written: end that process",
		  stub_name(fd, name, sizeof(name)));
}

static int claim_header(struct claim_arg *ca, struct stub *now)
{
	const struct timespec pause = { .tv_nsec = 100000000 };
	int ret = -EBUSY;

	for (int tries = 0; ret == -EBUSY && tries < LOCKED_TRIES; tries++) {
		if (tries)
			io_nanosleep(&pause, NULL);
		ret = stub_claim(ca->fd, now, stamp_next(), ca->st->st_ino, make_named, ca);
		if (ret || memcmp(now->id, ca->c.id, STUB_ID_LEN))
			drop_unnamed(ca);
		if (ret == -EBUSY)
			ret = claim_beside(ca, now);
	}
	if (ret == -EBUSY)
		tell_locked(ca->fd);
	return ret;
}

/* All ranks of a job begin at once: with near= one of each host claims the file for the others. */
static int claim_in_turn(struct claim_arg *ca, struct stub *now)
{
	int turn = unlikely(ca->near) ? place_turn_take(&ca->m->store, ca->st->st_ino) : -1;
	int ret = turn < 0 ? 0 : stub_read(ca->fd, now);

	if (turn < 0 || (!ret && (!now->has_container || now->moving)))
		ret = claim_header(ca, now);
	place_turn_end(&turn);
	return ret;
}

int logged_claim(struct inode *ino, int fd)
{
	uint8_t acl[ACL_LEN_MAX];
	struct stat st;
	struct claim_arg ca = {
		.m = ino->m, .st = &st, .acl = acl, .fd = fd, .near = logged_wants_near(ino),
	};
	struct stub now;
	ssize_t n;
	int ret;

	if (sys.fstat(fd, &st))
		return -errno;
	n = acl_get(fd, acl);
	if (n < 0)
		return (int)n;
	ca.acl_len = (size_t)n;
	ret = claim_in_turn(&ca, &now);
	if (ret)
		return ret;
	if (now.has_container && !memcmp(now.id, ca.c.id, STUB_ID_LEN))
		owned_follow(&ca.c, fd, &st);
	if (!ino->c.store && now.has_container && !memcmp(now.id, ca.c.id, STUB_ID_LEN)) {
		ino->c = ca.c; /* what was found out while it was made */
		ino->c.acl = NULL;
		ino->c.acl_len = 0;
	}
	inode_follow(ino, &now, &st);
	return 0;
}
