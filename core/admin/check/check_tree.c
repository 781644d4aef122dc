/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs_check_tree(): checks all files below a directory, with several threads, and finds those that share a
 * container. For each file with a container it remembers only the container's id and the stub's inode number.
 */
#include "core/admin/walk/owners.h"
#include "core/admin/walk/walk.h"
#include "core/admin/check/check_file.h"
#include "core/backend/nested.h"
#include "core/backend/stub_known.h"
#include "core/backend/stub_lock.h"
#include "core/base/critical.h"
#include "core/base/io.h"
#include "core/base/sys.h"

#include <pthread.h>
#include <stdio.h>

/* Ids and inode numbers: open addressing. */
struct seen {
	struct seen_id {
		uint8_t id[STUB_ID_LEN];
		ino_t ino;   /* 0: free */
		bool shared; /* another stub has the container too */
	} *slots;
	size_t nr, cap; /* a power of two */
};

struct tree {
	struct plfs_mount *m;
	struct plfs_check *check;
	pthread_mutex_t lock; /* for the rest, and for calling the caller's functions */
	struct seen seen;
	bool any_shared;
	bool any_moved; /* some stub is a copy of the one that its container was made for */
	bool any_backend; /* another backend lies below */
	struct owners unread; /* whose files could not all be read */
	int ret;
};

/* ---- containers seen so far ---- */

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

/* Remember the stub. True: it was seen before, under another name. */
static bool is_met(struct tree *t, const struct stub *stub, ino_t ino)
{
	struct seen_id *slot;
	bool met = false;

	mutex_lock(&t->lock);
	if (2 * t->seen.nr >= t->seen.cap && !grow(&t->seen)) {
		t->ret = t->ret < 0 ? t->ret : -ENOMEM;
		t->unread.all = true;
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

/* ---- reports ---- */

struct tree_file {
	struct tree *t;
	const char *path; /* the whole backend path */
	uint64_t left;    /* of its size, for done_bytes */
};

static void found_in_tree(void *arg, const struct plfs_finding *finding)
{
	struct tree_file *tf = arg;
	struct plfs_check *check = tf->t->check;

	mutex_lock(&tf->t->lock);
	check->found(check->arg, finding);
	mutex_unlock(&tf->t->lock);
}

/* Add the counts of @one to those of the tree, and clear them. */
static void add_up(struct tree_file *tf, struct plfs_check *one)
{
	struct plfs_check *all = tf->t->check;
	uint64_t done = min_u64(one->log_bytes + one->done_bytes, tf->left);

	mutex_lock(&tf->t->lock);
	all->nr_files += one->nr_files;
	all->nr_plain += one->nr_plain;
	all->nr_damaged += one->nr_damaged;
	all->nr_repaired += one->nr_repaired;
	all->nr_failed += one->nr_failed;
	all->log_bytes += one->log_bytes;
	all->done_bytes += done;
	tf->left -= done;
	if (all->progress)
		all->progress(all->arg, all);
	mutex_unlock(&tf->t->lock);
	one->nr_files = one->nr_plain = one->nr_damaged = one->nr_repaired = one->nr_failed = 0;
	one->log_bytes = one->done_bytes = 0;
}

static void progress_in_tree(void *arg, const struct plfs_check *one)
{
	add_up(arg, (struct plfs_check *)one);
}

/* Set the result of the tree: the first -errno, else 1 if there is damage. */
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

static void report(struct tree *t, const char *path, enum plfs_severity severity, const char *code,
		   const char *text)
{
	char full[PATH_MAX];
	struct tree_file tf = { .t = t, .path = full };
	struct plfs_finding told = { .severity = severity, .file = full, .code = code, .path = "",
		.text = text };

	whole_path(t, path, full);
	found_in_tree(&tf, &told);
}

/* Another backend has the containers of its files. */
static bool report_backend(void *arg, const char *path)
{
	struct tree *t = arg;

	__atomic_store_n(&t->any_backend, true, __ATOMIC_RELAXED);
	report(t, path, PLFS_NOTED, "backend",
	       "a separate backend, not checked: name it on the command line");
	return false;
}

static bool no_backend(void *arg, const char *path)
{
	(void)arg, (void)path;
	return false;
}

static void report_trouble(void *arg, const char *path, int err)
{
	struct tree *t = arg;

	report(t, path, PLFS_FAILED, "unreadable",
	       err == -EXDEV ? "something is mounted here: files beneath the mount cannot be checked" :
	       strerror(-err));
	mutex_lock(&t->lock);
	t->check->nr_failed++;
	t->unread.all = true;
	mutex_unlock(&t->lock);
	result(t, err);
}

/* ---- files ---- */

/* Whether the file was checked already, under another name. */
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
		io_close(fd);
	return met;
}

static void note_unread(struct tree *t, uid_t uid)
{
	mutex_lock(&t->lock);
	owners_add(&t->unread, uid);
	mutex_unlock(&t->lock);
}

static bool has_lost_mark(const struct walk_entry *e, const struct stat *st)
{
	int fd = stub_maybe_unmarked(st) ? walk_open(e) : -1;
	bool has = fd >= 0 && stub_is_by_header(fd, st);

	if (fd >= 0)
		io_close(fd);
	return has;
}

static void check_entry(void *arg, const struct walk_entry *e)
{
	struct tree *t = arg;
	char full[PATH_MAX];
	struct tree_file tf = { .t = t, .path = full };
	struct plfs_check one = {
		.repair = t->check->repair, .dry_run = t->check->dry_run, .partial = t->check->partial,
		.quick = t->check->quick, .lost_max = t->check->lost_max, .found = found_in_tree,
		.progress = progress_in_tree, .arg = &tf,
	};
	struct stub stub = { 0 };
	struct stat st;
	uid_t uid;
	int ret;

	if (sys.fstatat(e->dirfd, e->name, &st, AT_SYMLINK_NOFOLLOW))
		return;
	if (!stub_marked(st.st_mode) && !has_lost_mark(e, &st)) {
		one.nr_plain = 1;
		add_up(&tf, &one);
		return;
	}
	if (is_done(t, e, &st))
		return;
	whole_path(t, e->path, full);
	uid = st.st_uid;
	tf.left = (uint64_t)st.st_size;
	ret = check_file(t->m, e->dirfd, e->name, full, &one, &st, &stub);
	if (ret == -ENOENT || ret == -ELOOP || ret == -EISDIR) /* replaced meanwhile */
		return;
	if (!st.st_ino) /* it could not be opened */
		report(t, e->path, PLFS_FAILED, "unreadable", strerror(-ret));
	check_count(&one, &st, ret);
	one.done_bytes = tf.left;
	add_up(&tf, &one);
	result(t, ret);
	if (ret < 0)
		note_unread(t, uid);
	if (!stub.has_container)
		return;
	if (stub_is_copy(&stub, st.st_ino))
		__atomic_store_n(&t->any_moved, true, __ATOMIC_RELAXED);
	if (st.st_nlink < 2)
		is_met(t, &stub, st.st_ino);
}

/* ---- copies ---- */

static void report_shared(struct tree *t, const char *path, bool copy)
{
	report(t, path, PLFS_DAMAGED, "copy",
	       copy ?
	       "a copy made without the library; it shares the container of another file, and writing to one "
		      "changes both: copy the other with the library, then remove this one" :
		      "another file, a copy made without the library, shares its container, and writing to "
		      "one changes both");
	mutex_lock(&t->lock);
	t->check->nr_damaged++;
	mutex_unlock(&t->lock);
	result(t, 1);
}

/* A copy is the only stub of its container, by all names of the backend: from now on it is the file. */
static void adopt_moved(struct tree *t, const struct walk_entry *e, const struct stub *stub, ino_t ino)
{
	const char *text = "the container belongs to this file again";
	char failed[100];
	int ret = 0, fd = -1;

	if (!t->check->dry_run)
		fd = io_openat(e->dirfd, e->name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (!t->check->dry_run)
		ret = fd < 0 ? -errno : stub_set_number(fd, stub, ino);
	if (fd >= 0)
		io_close(fd);
	if (ret)
		snprintf(failed, sizeof(failed), "%s: could not be done: %s", text, strerror(-ret));
	report(t, e->path, ret ? PLFS_FAILED : PLFS_REPAIRED, "moved", ret ? failed : text);
	mutex_lock(&t->lock);
	t->check->nr_failed += ret != 0;
	t->check->nr_repaired += !ret;
	t->check->nr_damaged += t->check->dry_run;
	mutex_unlock(&t->lock);
	result(t, ret ? ret : t->check->dry_run);
}

static void check_sharing(void *arg, const struct walk_entry *e)
{
	struct tree *t = arg;
	const struct seen_id *slot;
	struct stub stub;
	struct stat st;
	int fd = walk_open(e);

	if (fd < 0)
		return;
	if (!sys.fstat(fd, &st) && stub_is_by_header(fd, &st) && st.st_size && !stub_read(fd, &stub) &&
	    stub.has_container && t->seen.cap) {
		slot = slot_of(&t->seen, stub.id);
		if (slot->ino && slot->shared)
			report_shared(t, e->path, stub_is_copy(&stub, st.st_ino));
		else if (t->any_moved && slot->ino == st.st_ino && stub_is_copy(&stub, st.st_ino) &&
			 !owners_have(&t->unread, st.st_uid))
			adopt_moved(t, e, &stub, st.st_ino);
	}
	io_close(fd);
}

/* Check the format file of the backend. */
static void check_backend(struct tree *t)
{
	int ret = mount_check_format(t->m);

	if (!ret || ret == -ENOENT) /* the next write makes a missing one */
		return;
	if (ret == -EIO)
		report(t, PLFS_DIR_NAME "/format", t->check->repair ? PLFS_REMAINS : PLFS_DAMAGED, "format",
		       "damaged: it has no \"plfs-format N\" line, and nothing new can be written. If only "
		       "this version of libplfs has written here, remove it: the next write makes it anew");
	else
		report(t, PLFS_DIR_NAME "/format", PLFS_FAILED, "version", strerror(-ret));
	mutex_lock(&t->lock);
	*(ret == -EIO ? &t->check->nr_damaged : &t->check->nr_failed) += 1;
	mutex_unlock(&t->lock);
	result(t, ret == -EIO ? 1 : ret);
}

static void no_trouble(void *arg, const char *path, int err)
{
	(void)arg, (void)path, (void)err;
}

/* A name in another backend, of a file that may have its container here. */
static void note_name(void *arg, const struct walk_entry *e)
{
	struct tree *t = arg;
	struct stub stub;
	struct stat st;
	int fd = walk_open(e);

	if (fd >= 0 && !sys.fstat(fd, &st) && stub_is_by_header(fd, &st) && st.st_size &&
	    !stub_look(fd, &stub) && stub.has_container)
		is_met(t, &stub, st.st_ino);
	if (fd >= 0)
		io_close(fd);
}

static void note_trouble(void *arg, const char *path, int err)
{
	struct tree *t = arg;

	(void)path, (void)err;
	__atomic_store_n(&t->unread.all, true, __ATOMIC_RELAXED);
}

/* Before a copy becomes the owner of a container: the first may lie in a backend below, or above. */
static void note_others(struct tree *t, unsigned nr_threads)
{
	struct plfs_mount *top = nested_top(t->m);
	const struct walk walk = {
		.m = top, .nr_threads = nr_threads, .file = note_name, .trouble = note_trouble, .arg = t,
	};
	const char *start = "";

	if (top != t->m || t->any_backend)
		walk_run(&walk, &start, 1);
}

static void report_outer(struct tree *t)
{
	const struct plfs_mount *outer = nested_outer(t->m);
	char text[PATH_MAX + 100];

	if (!outer)
		return;
	snprintf(text, sizeof(text), "lies in the backend %s, which may have the data of files here as well",
		 outer->backend);
	report(t, "", PLFS_NOTED, "backend", text);
}

int plfs_check_tree(struct plfs_mount *m, const char *path, unsigned nr_threads, struct plfs_check *check)
{
	int saved ERRNO_KEPT = errno;
	struct tree t = { .m = m, .check = check };
	struct walk walk = {
		.m = m, .nr_threads = nr_threads, .backend = report_backend, .file = check_entry,
		.trouble = report_trouble, .arg = &t,
	};
	const char *start = path + m->backend_len;

	while (*start == '/')
		start++;
	pthread_mutex_init(&t.lock, NULL);
	if (!*start) {
		check_backend(&t);
		report_outer(&t);
	}
	walk_run(&walk, &start, 1);
	t.any_moved &= t.check->repair && !*start;
	if (t.any_moved)
		note_others(&t, nr_threads);
	if (t.any_shared || t.any_moved) {
		walk.backend = no_backend;
		walk.file = check_sharing;
		walk.trouble = no_trouble;
		walk_run(&walk, &start, 1);
	}
	mem_free(t.seen.slots);
	owners_release(&t.unread);
	pthread_mutex_destroy(&t.lock);
	return t.ret;
}
