/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs_check_tree(): all files below a directory, by several threads, and which of them share a container. Of each
 * file that has one no more is remembered than the container's id and the stub's number.
 */
#include "backend_walk.h"
#include "check.h"
#include "critical.h"
#include "own.h"
#include "sys.h"

#include <pthread.h>
#include <stdio.h>

/* Ids and inode numbers: open addressing. */
struct seen {
	struct seen_id {
		uint8_t id[STUB_ID_LEN];
		ino_t ino;   /* 0: free */
		bool shared; /* by another stub */
	} *slots;
	size_t nr, cap; /* a power of two */
};

struct tree {
	struct plfs_mount *m;
	struct plfs_check *check;
	pthread_mutex_t lock; /* for what follows, and for the caller's functions */
	struct seen seen;
	bool any_shared;
	bool any_moved; /* stubs that are not those that their containers were made for */
	int ret;
};

/* ---- which containers have been met ---- */

static struct seen_id *slot_of(const struct seen *s, const uint8_t *id)
{
	uint64_t hash;

	memcpy(&hash, id, sizeof(hash)); /* ids are random */
	for (size_t i = hash & (s->cap - 1);; i = (i + 1) & (s->cap - 1))
		if (!s->slots[i].ino || !memcmp(s->slots[i].id, id, STUB_ID_LEN))
			return &s->slots[i];
}

static bool grow(struct seen *s)
{
	struct seen old = *s;

	s->cap = old.cap ? 2 * old.cap : 1024;
	s->slots = mem_zalloc(s->cap * sizeof(*s->slots));
	if (!s->slots) {
		*s = old;
		return false;
	}
	for (size_t i = 0; i < old.cap; i++)
		if (old.slots[i].ino)
			*slot_of(s, old.slots[i].id) = old.slots[i];
	mem_free(old.slots);
	return true;
}

/* Whether the stub has been met under another name; else it is remembered. */
static bool is_met(struct tree *t, const struct stub *stub, ino_t ino)
{
	struct seen_id *slot;
	bool met = false;

	mutex_lock(&t->lock);
	if (2 * t->seen.nr >= t->seen.cap && !grow(&t->seen)) {
		t->ret = t->ret < 0 ? t->ret : -ENOMEM;
	} else {
		slot = slot_of(&t->seen, stub->id);
		met = slot->ino == ino;
		if (!slot->ino) {
			memcpy(slot->id, stub->id, STUB_ID_LEN);
			slot->ino = ino;
			t->seen.nr++;
		} else if (!met) {
			slot->shared = t->any_shared = true;
		}
	}
	mutex_unlock(&t->lock);
	return met;
}

/* ---- what is told ---- */

struct tree_file {
	struct tree *t;
	const char *path; /* the whole backend path */
};

static void found_in_tree(void *arg, const struct plfs_finding *finding)
{
	struct tree_file *tf = arg;
	struct plfs_check *check = tf->t->check;

	mutex_lock(&tf->t->lock);
	check->found(check->arg, finding);
	mutex_unlock(&tf->t->lock);
}

/* Move what @one has counted to the whole. */
static void add_up(struct tree_file *tf, struct plfs_check *one)
{
	struct plfs_check *all = tf->t->check;

	mutex_lock(&tf->t->lock);
	all->nr_files += one->nr_files;
	all->nr_plain += one->nr_plain;
	all->nr_damaged += one->nr_damaged;
	all->nr_repaired += one->nr_repaired;
	all->nr_failed += one->nr_failed;
	all->log_bytes += one->log_bytes;
	if (all->progress)
		all->progress(all->arg, all);
	mutex_unlock(&tf->t->lock);
	one->nr_files = one->nr_plain = one->nr_damaged = one->nr_repaired = one->nr_failed = one->log_bytes = 0;
}

static void progress_in_tree(void *arg, const struct plfs_check *one)
{
	add_up(arg, (struct plfs_check *)one);
}

/* The worst of all: what could not be looked at, then damage. */
static void result(struct tree *t, int ret)
{
	mutex_lock(&t->lock);
	if (t->ret >= 0 && ret)
		t->ret = ret;
	mutex_unlock(&t->lock);
}

static void whole_path(const struct tree *t, const char *path, char *out)
{
	snprintf(out, PATH_MAX, *path ? "%s/%s" : "%s%s", t->m->backend, path);
}

static void tell_of(struct tree *t, const char *path, enum plfs_severity severity, const char *code, const char *text)
{
	char full[PATH_MAX];
	struct tree_file tf = { t, full };
	struct plfs_finding told = { .severity = severity, .file = full, .code = code, .path = "", .text = text };

	whole_path(t, path, full);
	found_in_tree(&tf, &told);
}

/* Its files have their containers there. */
static bool tell_backend(void *arg, const char *path)
{
	tell_of(arg, path, PLFS_NOTED, "backend", "a backend of its own, which has not been looked at: name it");
	return false;
}

static bool no_backend(void *arg, const char *path)
{
	(void)arg, (void)path;
	return false;
}

static void tell_trouble(void *arg, const char *path, int err)
{
	struct tree *t = arg;

	tell_of(t, path, PLFS_FAILED, "unreadable",
		err == -EXDEV ? "something is mounted here: what is beneath cannot be looked at" : strerror(-err));
	mutex_lock(&t->lock);
	t->check->nr_failed++;
	mutex_unlock(&t->lock);
	result(t, err);
}

/* ---- files ---- */

/* Whether it has been met under another name. */
static bool is_done(struct tree *t, const struct walk_entry *e, const struct stat *st)
{
	struct stub stub;
	bool met = false;
	int fd;

	if (st->st_nlink < 2)
		return false;
	fd = walk_open(e);
	if (fd >= 0 && !stub_read(fd, &stub) && stub.has_container)
		met = is_met(t, &stub, st->st_ino);
	if (fd >= 0)
		own_close(fd);
	return met;
}

static void check_entry(void *arg, const struct walk_entry *e)
{
	struct tree *t = arg;
	char full[PATH_MAX];
	struct tree_file tf = { t, full };
	struct plfs_check one = {
		.repair = t->check->repair, .dry_run = t->check->dry_run, .partial = t->check->partial,
		.quick = t->check->quick, .found = found_in_tree, .progress = progress_in_tree, .arg = &tf,
	};
	struct stub stub = { 0 };
	struct stat st;
	int ret;

	if (sys.fstatat(e->dirfd, e->name, &st, AT_SYMLINK_NOFOLLOW))
		return;
	if (!stub_marked(st.st_mode)) {
		one.nr_plain = 1;
		add_up(&tf, &one);
		return;
	}
	if (is_done(t, e, &st))
		return;
	whole_path(t, e->path, full);
	ret = check_file(t->m, e->dirfd, e->name, full, &one, &st, &stub);
	if (ret == -ENOENT || ret == -ELOOP || ret == -EISDIR) /* something else by now */
		return;
	if (!st.st_ino) /* it could not be opened */
		tell_of(t, e->path, PLFS_FAILED, "unreadable", strerror(-ret));
	check_count(&one, &st, ret);
	add_up(&tf, &one);
	result(t, ret);
	if (!stub.has_container)
		return;
	if (stub_is_copy(&stub, st.st_ino))
		__atomic_store_n(&t->any_moved, true, __ATOMIC_RELAXED);
	if (st.st_nlink < 2)
		is_met(t, &stub, st.st_ino);
}

/* ---- copies ---- */

static void tell_shared(struct tree *t, const char *path, bool copy)
{
	tell_of(t, path, PLFS_DAMAGED, "copy",
		copy ? "a copy that was made without the library: what is done to it happens to another file; copy that with the library, and remove this" :
		       "another file, a copy that was made without the library, has the same container: what is done to one happens to the other");
	mutex_lock(&t->lock);
	t->check->nr_damaged++;
	mutex_unlock(&t->lock);
	result(t, 1);
}

/* The only stub of its container, where all names are known: it is the file now. */
static void adopt_moved(struct tree *t, const struct walk_entry *e, const struct stub *stub, ino_t ino)
{
	const char *text = "its container is its own again";
	char failed[100];
	int ret = 0, fd = -1;

	if (!t->check->dry_run)
		fd = own_openat(e->dirfd, e->name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (!t->check->dry_run)
		ret = fd < 0 ? -errno : stub_set_number(fd, stub, ino);
	if (fd >= 0)
		own_close(fd);
	if (ret)
		snprintf(failed, sizeof(failed), "%s: could not be done: %s", text, strerror(-ret));
	tell_of(t, e->path, ret ? PLFS_FAILED : PLFS_REPAIRED, "moved", ret ? failed : text);
	mutex_lock(&t->lock);
	t->check->nr_failed += ret != 0;
	t->check->nr_repaired += !ret;
	t->check->nr_damaged += t->check->dry_run;
	mutex_unlock(&t->lock);
	result(t, ret ? ret : t->check->dry_run);
}

static void second_look(void *arg, const struct walk_entry *e)
{
	struct tree *t = arg;
	const struct seen_id *slot;
	struct stub stub;
	struct stat st;
	int fd = walk_open(e);

	if (fd < 0)
		return;
	if (!sys.fstat(fd, &st) && stub_marked(st.st_mode) && st.st_size && !stub_read(fd, &stub) &&
	    stub.has_container && t->seen.cap) {
		slot = slot_of(&t->seen, stub.id);
		if (slot->ino && slot->shared)
			tell_shared(t, e->path, stub_is_copy(&stub, st.st_ino));
		else if (t->any_moved && slot->ino == st.st_ino && stub_is_copy(&stub, st.st_ino))
			adopt_moved(t, e, &stub, st.st_ino);
	}
	own_close(fd);
}

/* The backend as a whole. */
static void check_backend(struct tree *t)
{
	int ret = mount_check_format(t->m);

	if (!ret || ret == -ENOENT) /* without one it is made anew */
		return;
	if (ret == -EIO)
		tell_of(t, PLFS_DIR_NAME "/format", t->check->repair ? PLFS_REMAINS : PLFS_DAMAGED, "format",
			"damaged: no \"plfs-format N\" line; nothing new can be written. If this backend was written by this version alone, "
			"remove it: the next that writes makes it anew");
	else
		tell_of(t, PLFS_DIR_NAME "/format", PLFS_FAILED, "version", strerror(-ret));
	mutex_lock(&t->lock);
	*(ret == -EIO ? &t->check->nr_damaged : &t->check->nr_failed) += 1;
	mutex_unlock(&t->lock);
	result(t, ret == -EIO ? 1 : ret);
}

static void no_trouble(void *arg, const char *path, int err)
{
	(void)arg, (void)path, (void)err;
}

int plfs_check_tree(struct plfs_mount *m, const char *path, unsigned nr_threads, struct plfs_check *check)
{
	int saved ERRNO_KEPT = errno;
	struct tree t = { .m = m, .check = check };
	struct backend_walk walk = {
		.m = m, .nr_threads = nr_threads, .backend = tell_backend, .file = check_entry,
		.trouble = tell_trouble, .arg = &t,
	};
	const char *start = path + m->backend_len;

	while (*start == '/')
		start++;
	pthread_mutex_init(&t.lock, NULL);
	if (!*start)
		check_backend(&t);
	backend_walk(&walk, &start, 1);
	t.any_moved &= t.check->repair && !*start && t.ret >= 0;
	if (t.any_shared || t.any_moved) {
		walk.backend = no_backend;
		walk.file = second_look;
		walk.trouble = no_trouble;
		backend_walk(&walk, &start, 1);
	}
	mem_free(t.seen.slots);
	pthread_mutex_destroy(&t.lock);
	return t.ret;
}
