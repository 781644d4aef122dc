/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs drain: one container, one file, or all that one user has in a place for one backend.
 */
#include "core/admin/places/drained.h"

#include "core/admin/places/ahead.h"
#include "core/admin/places/bring.h"
#include "core/admin/places/leftovers.h"
#include "core/admin/places/listed.h"
#include "core/admin/places/mend.h"
#include "core/admin/places/mirror.h"
#include "core/admin/places/orphan.h"
#include "core/admin/places/ready.h"
#include "core/admin/places/stage.h"
#include "core/admin/places/young.h"
#include "core/admin/walk/walk.h"
#include "core/backend/container_dirs.h"
#include "core/backend/container_remove.h"
#include "core/backend/nested.h"
#include "core/backend/origin.h"
#include "core/backend/placed.h"
#include "core/backend/queue.h"
#include "core/backend/spare.h"
#include "core/backend/stub_known.h"
#include "core/backend/stub_lock.h"
#include "core/backend/stub_use.h"
#include "core/base/as_owner.h"
#include "core/base/io.h"
#include "core/base/msg.h"
#include "core/base/sys.h"
#include "core/base/vec.h"

#include <stdio.h>
#include <unistd.h>

/* ---- one file ---- */

struct finishing {
	const struct container *c;
	struct plfs_drain *d;
	struct listed *ends;
	bool told; /* that one cannot be closed: a job leaves many, in one place */
};

/* What a repair leaves damaged is closed by no other either. */
static void note_finding(void *arg, const struct plfs_finding *f)
{
	struct finishing *g = arg;

	if (f->severity == PLFS_REMAINS && (!strcmp(f->code, "not-synced") || !strcmp(f->code, "log-cut")))
		listed_add(g->ends, f->path);
	if (f->severity == PLFS_REPAIRED && !strcmp(f->code, "finished-home"))
		g->d->nr_logs++;
	if (f->severity == PLFS_FAILED && !strncmp(f->code, "finished", strlen("finished")) && !g->told) {
		drain_unfinished(g->d, g->c, f->path, f->text);
		g->told = true;
	}
}

/* Close the logs of killed processes, as plfs repair does. @ends: those whose ends are lost, which stay. */
static void finish(struct plfs_mount *m, int dirfd, const char *path, const struct container *c,
		   struct plfs_drain *d, struct listed *ends)
{
	struct finishing g = { .c = c, .d = d, .ends = ends };
	struct plfs_check check = { .repair = true, .quick = true, .found = note_finding, .arg = &g };

	plfs_check(m, dirfd, path, &check);
}

/* Who removed the file while the repair had it locked took it for one in use, and left its container. */
static void remove_unlinked(const struct container *c, int fd)
{
	struct stat st;

	if (!sys.fstat(fd, &st) && !st.st_nlink && !stub_in_use(fd))
		container_remove(c);
}

static int drain_all(const struct container *c, const struct stub *stub, struct plfs_drain *d,
		     struct drain_open *open)
{
	int ret = stub->placed ? drain_container(c, d, open) : 0, one;

	one = d->to_home && stub->spread ? bring_container(c, d, open) : mirror_open(c, d, open);
	return ret ? ret : one;
}

/* The header says so before the first copy is there: who removes the file removes them too. */
static int mirror(struct container *c, int fd, struct stub *stub, const struct stat *st, struct plfs_drain *d)
{
	struct as_owner owner = { .is = false };
	uint64_t void_ns = 0;
	int h, ret = 0;

	/* what is void may go for good; a copy of the stub does not speak for the original */
	if (c->store->spares->parity && stub->generation_ns && !stub_is_copy(stub, st->st_ino) &&
	    !io_fsync(fd))
		void_ns = stub->generation_ns;
	if (!stub->copied) {
		h = stub_reopen(fd, O_RDWR);
		ret = h < 0 ? h : stub_set_copied(h, stub);
		sys_fd_close(&h);
	}
	if (ret)
		return ret;
	c->copied = true;
	as_owner_begin(&owner, st->st_uid, st->st_gid);
	ret = mirror_container(c, void_ns, d);
	as_owner_end(&owner);
	return ret;
}

int plfs_drain_file(struct plfs_mount *m, int dirfd, const char *path, struct plfs_drain *d)
{
	int saved ERRNO_KEPT = errno;
	int ret, fd = io_openat(dirfd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct listed ends = { .nr = 0 };
	struct drain_open open = { .nr = 0 }, still = { .ends = &ends };
	struct as_owner owner = { .is = false };
	struct container c;
	struct stub stub;
	struct stat st;

	fd = sys_fd_hide(fd < 0 ? -errno : fd);
	if (fd < 0)
		return fd;
	ret = sys.fstat(fd, &st) ? -errno : 0;
	if (!ret && (!S_ISREG(st.st_mode) || !stub_is_by_header(fd, &st) || !st.st_size))
		goto out; /* a plain file has nothing elsewhere */
	ret = stub_read(fd, &stub);
	if (ret || !stub.has_container || (!stub.placed && !m->store.spares && !(d->to_home && stub.spread)))
		goto out;
	m = nested_init_container(m, &c, fd, &stub, &st);
	ret = container_check(&c, CONTAINER_CHANGE);
	if (ret)
		goto out;
	as_owner_begin(&owner, st.st_uid, st.st_gid);
	ret = drain_all(&c, &stub, d, &open);
	as_owner_end(&owner);
	if (!ret && d->closed_only && !open.nr_dead) {
		still = open;
	} else if (!ret && open.nr) {
		finish(m, dirfd, path, &c, d, &ends);
		as_owner_begin(&owner, st.st_uid, st.st_gid);
		ret = drain_all(&c, &stub, d, &still);
		ahead_tell(&c, fd, &stub);
		remove_unlinked(&c, fd);
		as_owner_end(&owner);
	}
	d->nr_left += still.nr;
	if (!ret && c.store->spares)
		ret = mirror(&c, fd, &stub, &st, d);
out:
	listed_release(&ends);
	sys_fd_close(&fd);
	return ret;
}

/* ---- a place ---- */

struct ids {
	uint8_t (*v)[STUB_ID_LEN];
	size_t nr, cap;
};

struct placing {
	struct plfs_mount *m;
	struct plfs_drain *d;
	char top[PLACE_PATH_LEN]; /* NEAR/plfs.UID/BACKEND-ID, as the kernel has it */
	int fd;                   /* of it */
	uid_t uid;       /* whose it is */
	struct ids killed; /* containers with logs of processes that write, or were killed */
	bool only_orphans;
	unsigned nr_others; /* containers that another backend has */
	char other[2 * STUB_ID_LEN + 1]; /* the first of them */
	int depth, ret;
};

static bool has_id(const struct ids *ids, const uint8_t *id)
{
	for (size_t i = 0; i < ids->nr; i++)
		if (!memcmp(ids->v[i], id, STUB_ID_LEN))
			return true;
	return false;
}

static int add_id(struct ids *ids, const uint8_t *id)
{
	void *v = vec_room(ids->v, &ids->cap, ids->nr + 1, STUB_ID_LEN);

	if (!v)
		return -ENOMEM;
	ids->v = v;
	memcpy(ids->v[ids->nr++], id, STUB_ID_LEN);
	return 0;
}

static bool parse_id(const char *name, uint8_t *id)
{
	return queue_parse(name, id) && !name[2 * STUB_ID_LEN];
}

static void remove_orphan(struct placing *p, int dir, const char *name)
{
	char parent[PLACE_PATH_LEN + 4];

	if ((plfs_place_is_shared(p->top) || spare_is_top(p->top)) && young_tree(dir, name, p->d->age_ns)) {
		p->d->nr_young++;
		return;
	}
	snprintf(parent, sizeof(parent), "%s/%.2s", p->top, name);
	drain_count_orphan(p->d, parent, name, p->d->dry ? 0 : dirs_remove(dir, name, false, container_has));
}

static void note_other(struct placing *p, const char *name)
{
	if (!p->nr_others++)
		snprintf(p->other, sizeof(p->other), "%s", name);
}

static int drain_id(struct placing *p, int dir, const char *name)
{
	struct store *s = &p->m->store;
	struct container c;
	struct stat st;
	uint8_t id[STUB_ID_LEN] = { 0 };
	struct drain_open open = { .nr = 0 };
	int ret;

	if (orphan_is_being_removed(name)) {
		remove_orphan(p, dir, name);
		return 0;
	}
	if (!parse_id(name, id) || (p->d->closed_only && !ready_look(dir, name, p->d)))
		return 0;
	container_init(&c, s, id, 0);
	ret = s->ops->stat(s, c.dir, &st);
	if (ret == -ENOENT) { /* no file has it any more */
		if (orphan_is_of(s, p->fd, dir, name))
			remove_orphan(p, dir, name);
		else
			note_other(p, name);
		return 0;
	}
	if (!ret && p->only_orphans)
		leftovers_remove(dir, name, p->top, p->d);
	if (ret || p->only_orphans)
		return ret;
	/* as it is made: what a user of the stub may do to droppings */
	c.mode = st.st_mode & 0666;
	c.gid = st.st_gid;
	ret = st.st_uid != p->uid ? -EPERM : 0;
	if (!ret) {
		drain_mend(&c, p->top, dir, name, p->d);
		ret = drain_container(&c, p->d, &open);
	}
	if (!ret && open.nr && !p->d->closed_only)
		ret = add_id(&p->killed, id);
	return ret;
}

/* What is no directory, or gone; all else could have logs. */
static bool is_no_dir(int ret) { return ret == -ENOTDIR || ret == -ELOOP || ret == -ENOENT; }

static int visit(void *arg, int fd, const char *name, unsigned char type)
{
	struct placing *p = arg;
	int dir, ret;

	(void)type;
	if (p->depth) {
		ret = drain_id(p, fd, name);
	} else {
		dir = dirs_open(fd, name);
		if (dir < 0) {
			ret = is_no_dir(dir) ? 0 : dir; /* the file "home" */
			p->ret = p->ret ? p->ret : ret;
			return 0;
		}
		p->depth++;
		ret = dirs_list(dir, visit, p);
		p->depth--;
		io_close(dir);
	}
	if (ret != -ENOENT) /* gone with its last log */
		p->ret = p->ret ? p->ret : ret;
	return 0;
}

static void drain_found(void *arg, const struct walk_entry *e)
{
	struct placing *p = arg;
	int fd = walk_open(e), ret = 0;
	struct stub stub;
	struct stat st;

	if (fd < 0)
		return;
	if (!sys.fstat(fd, &st) && stub_is_by_header(fd, &st) && st.st_size && !stub_look(fd, &stub) &&
	    stub.has_container && has_id(&p->killed, stub.id))
		ret = plfs_drain_file(p->m, e->dirfd, e->name, p->d);
	io_close(fd);
	p->ret = p->ret ? p->ret : ret;
}

static void no_trouble(void *arg, const char *path, int err) { (void)arg, (void)path, (void)err; }

/*
 * Whose logs have live files: their sizes are to be published before those go, in the stubs. Where these are
 * only the backend knows.
 */
static void drain_killed(struct placing *p)
{
	const struct walk walk = {
		.m = p->m, .nr_threads = 1, .file = drain_found, .trouble = no_trouble, .arg = p,
	};
	const char *start = "";
	uint64_t left = p->d->nr_left, done = p->d->nr_logs + p->d->nr_lost;

	walk_run(&walk, &start, 1);
	if (p->d->nr_left == left && p->d->nr_logs + p->d->nr_lost == done)
		p->d->nr_left += p->killed.nr; /* files that cannot be found: in a backend below, perhaps */
}

static bool has_backend(struct plfs_mount *m)
{
	struct stat st;

	return !m->store.ops->stat(&m->store, PLFS_DIR_NAME "/format", &st);
}

bool plfs_place_is_shared(const char *top)
{
	size_t len = strlen(top), end = strlen(PLACE_SHARED_END);

	return len > end && !strcmp(top + len - end, PLACE_SHARED_END);
}

/* They can be drained, or removed with it, under its path. */
static void tell_others(struct placing *p)
{
	p->d->nr_left++;
	msg_error("%s/%.2s/%s: one of %u containers with logs of another backend, which was at %s: they stay; "
		  "under a mapping to where that is now, run plfs drain FILE", p->top, p->other, p->other,
		  p->nr_others, plfs_backend(p->m));
}

int plfs_drain_place(struct plfs_mount *m, const char *top, bool only_orphans, struct plfs_drain *d)
{
	int saved ERRNO_KEPT = errno;
	struct placing p = { .m = m, .d = d, .only_orphans = only_orphans };
	char link[64];
	struct as_owner owner = { .is = false };
	struct stat st;
	int ret;

	if (!has_backend(m))
		return -ENXIO;
	if (!only_orphans && plfs_place_is_shared(top))
		return -EINVAL;
	d->of_place = true;
	p.fd = sys_fd_hide(io_open(top, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
	if (p.fd < 0)
		return -errno;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", p.fd);
	if (sys.fstat(p.fd, &st) || sys.readlink(link, p.top, sizeof(p.top) - 1) < 0) {
		p.ret = -errno;
	} else {
		p.uid = st.st_uid;
		if (d->yield)
			d->yield->place = p.fd;
		p.only_orphans |= spare_is_top(p.top); /* nothing moves from there */
		placed_enable(&m->store);
		as_owner_begin(&owner, st.st_uid, st.st_gid);
		ret = dirs_list(p.fd, visit, &p);
		p.ret = p.ret || ret == -ENOENT ? p.ret : ret; /* or it was removed meanwhile */
		if (!d->closed_only)
			stage_collect(m, p.fd, p.top, d);
		as_owner_end(&owner);
		if (p.killed.nr)
			drain_killed(&p);
	}
	if (p.nr_others && !d->closed_only)
		tell_others(&p);
	d->of_place = false;
	mem_free(p.killed.v);
	sys_fd_close(&p.fd);
	return p.ret;
}

/* ---- what places there are ---- */

struct finding_tops {
	const char *near;
	char user[PLACE_PATH_LEN];
	int (*fn)(void *arg, const char *top, const char *home);
	void *arg;
	bool failed; /* there is one that cannot be told */
};

static int find_top(void *arg, int fd, const char *name, unsigned char type)
{
	struct finding_tops *f = arg;
	char path[2 * PATH_MAX], home[PATH_MAX];
	int dir;

	(void)type;
	if (origin_read(fd, name, home, NULL)) {
		dir = dirs_open(fd, name);
		if (dir < 0) /* none of ours */
			return 0;
		io_close(dir);
		msg_error("%s/%s: its file \"home\", the way to the backend, is missing or damaged", f->user,
			  name);
		f->failed = true;
		return 0;
	}
	snprintf(path, sizeof(path), "%s/%s", f->user, name);
	return f->fn(f->arg, path, home);
}

static int find_user(void *arg, int fd, const char *name, unsigned char type)
{
	struct finding_tops *f = arg;
	char own[32];
	struct stat st;
	unsigned uid;
	int dir, ret;

	(void)type;
	snprintf(own, sizeof(own), "plfs.%u", (unsigned)geteuid());
	if (sscanf(name, "plfs.%u", &uid) != 1 || (geteuid() && strcmp(name, own)))
		return 0;
	dir = dirs_open(fd, name);
	if (is_no_dir(dir))
		return 0;
	snprintf(f->user, sizeof(f->user), "%s/%s", f->near, name);
	ret = dir < 0 ? dir : 0;
	if (!ret && sys.fstat(dir, &st))
		ret = -errno;
	if (!ret && st.st_uid == uid && !(st.st_mode & (S_IWGRP | S_IWOTH)))
		ret = dirs_list(dir, find_top, f);
	if (dir >= 0)
		io_close(dir);
	if (ret < 0)
		msg_error("%s: %s", f->user, strerror(-ret));
	return ret;
}

int plfs_places_in(const char *near, int (*fn)(void *arg, const char *top, const char *home), void *arg)
{
	int saved ERRNO_KEPT = errno;
	struct finding_tops f = { .near = near, .fn = fn, .arg = arg };
	int fd = io_open(near, O_RDONLY | O_DIRECTORY | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	ret = dirs_list(fd, find_user, &f);
	io_close(fd);
	return ret ? ret : f.failed ? -EIO : 0;
}
