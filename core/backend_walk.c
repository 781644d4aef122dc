/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The walk: a stack of directories, and of parts of large ones, from which all threads take.
 */
#include "backend_walk.h"

#include "alloc.h"
#include "critical.h"
#include "own.h"
#include "sys.h"
#include "tree.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#define THREADS_MAX 64
#define PART_NAMES 64       /* files of one directory that a thread does at a time */
#define PARTS_PER_THREAD 4  /* more do not wait on the stack */

struct item {
	struct item *next;
	char *names;      /* of files, a NUL behind each; NULL: the whole directory is to be listed */
	unsigned nr_names;
	char path[];
};

struct walk {
	const struct backend_walk *w;
	pthread_mutex_t lock; /* for what follows */
	pthread_cond_t changed;
	struct item *stack;
	unsigned nr_parts, busy, nr_threads;
};

int backend_open_dir(struct plfs_mount *m, const char *path)
{
	return tree_open(m->store.root, *path ? path : ".");
}

int walk_open(const struct walk_entry *e)
{
	const int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	int fd = own_openat(e->dirfd, e->name, flags | O_NOATIME);

	if (fd < 0 && errno == EPERM) /* not the owner */
		fd = own_openat(e->dirfd, e->name, flags);
	/* It is just being made a plain file. */
	for (int tries = 0; fd < 0 && errno == EWOULDBLOCK && tries < 100; tries++) {
		own_nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		fd = own_openat(e->dirfd, e->name, flags);
	}
	return fd < 0 ? -errno : fd;
}

/* ---- the stack ---- */

static void tell_trouble(struct walk *k, const char *path, int err)
{
	if (err != -ENOENT && err != -ENOTDIR && err != -ELOOP) /* not there any more */
		k->w->trouble(k->w->arg, path, err);
}

/* @dir and @name as a path into @out (PATH_MAX). */
static bool join(const char *dir, const char *name, char *out)
{
	return snprintf(out, PATH_MAX, *dir ? "%s/%s" : "%s%s", dir, name) < PATH_MAX;
}

static void push(struct walk *k, const char *path, const char *names, size_t names_len, unsigned nr_names)
{
	size_t len = strlen(path) + 1;
	struct item *item = mem_alloc(sizeof(*item) + len);

	if (item) {
		item->nr_names = nr_names;
		item->names = names ? mem_alloc(names_len) : NULL;
		memcpy(item->path, path, len);
	}
	if (!item || (names && !item->names)) {
		mem_free(item);
		tell_trouble(k, path, -ENOMEM);
		return;
	}
	if (names)
		memcpy(item->names, names, names_len);
	mutex_lock(&k->lock);
	item->next = k->stack;
	k->stack = item;
	__atomic_add_fetch(&k->nr_parts, names != NULL, __ATOMIC_RELAXED); /* looked at without the lock, too */
	pthread_cond_signal(&k->changed);
	mutex_unlock(&k->lock);
}

static void do_files(struct walk *k, int dirfd, const char *dir, const char *names, unsigned nr)
{
	struct walk_entry e = { .dirfd = dirfd };
	char path[PATH_MAX];

	e.path = path;
	for (unsigned i = 0; i < nr; i++, names += strlen(names) + 1) {
		e.name = names;
		if (join(dir, names, path))
			k->w->file(k->w->arg, &e);
		else
			tell_trouble(k, dir, -ENAMETOOLONG);
	}
}

/* ---- listing ---- */

/* Whether there are containers in the directory, as its format file says: it is a backend. */
static bool is_backend(int dirfd)
{
	static const char mark[] = "plfs-format ";
	char text[sizeof(mark) - 1];
	struct walk_entry e = { .dirfd = tree_open(dirfd, PLFS_DIR_NAME), .name = "format" };
	int fd = e.dirfd < 0 ? -1 : walk_open(&e);
	bool is = fd >= 0 && own_pread_all(fd, text, sizeof(text), 0) == (ssize_t)sizeof(text) &&
		!memcmp(text, mark, sizeof(text));

	if (fd >= 0)
		own_close(fd);
	if (e.dirfd >= 0)
		own_close(e.dirfd);
	return is;
}

struct listing {
	struct walk *k;
	const char *path;
	int fd;
	char names[PART_NAMES * 256];
	size_t names_len;
	unsigned nr_names;
};

/* The files so far: for another thread if there is one to take them. */
static void end_part(struct listing *l)
{
	struct walk *k = l->k;

	if (l->nr_names == PART_NAMES &&
	    __atomic_load_n(&k->nr_parts, __ATOMIC_RELAXED) < (k->nr_threads - 1) * PARTS_PER_THREAD)
		push(k, l->path, l->names, l->names_len, l->nr_names);
	else
		do_files(k, l->fd, l->path, l->names, l->nr_names);
	l->names_len = l->nr_names = 0;
}

static int found(void *arg, int fd, const char *name, unsigned char type)
{
	struct listing *l = arg;
	char path[PATH_MAX];
	size_t len = strlen(name) + 1;
	struct stat st;

	if (!strcmp(name, PLFS_DIR_NAME) && (!*l->path || is_backend(fd)))
		return 0;
	if (type == DT_UNKNOWN) {
		if (sys.fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW)) {
			tell_trouble(l->k, l->path, -errno);
			return 0;
		}
		type = S_ISDIR(st.st_mode) ? DT_DIR : S_ISREG(st.st_mode) ? DT_REG : DT_LNK;
	}
	if (type == DT_DIR) {
		if (join(l->path, name, path))
			push(l->k, path, NULL, 0, 0);
		else
			tell_trouble(l->k, l->path, -ENAMETOOLONG);
	} else if (type == DT_REG) {
		memcpy(l->names + l->names_len, name, len);
		l->names_len += len;
		if (++l->nr_names == PART_NAMES)
			end_part(l);
	}
	return 0;
}

static void list(struct walk *k, int fd, const char *path)
{
	struct listing l;
	int ret;

	l.k = k;
	l.path = path;
	l.fd = fd;
	l.names_len = l.nr_names = 0;
	ret = tree_list(fd, found, &l);
	if (ret)
		tell_trouble(k, path, ret);
	end_part(&l);
}

/* Whether its files are those of this backend. */
static bool is_ours(const struct walk *k, int fd, const char *path)
{
	return !*path || !k->w->backend || !is_backend(fd) || k->w->backend(k->w->arg, path);
}

static void do_item(struct walk *k, const struct item *item)
{
	struct stat st;
	int fd = backend_open_dir(k->w->m, item->path);

	if (fd < 0) {
		tell_trouble(k, item->path, fd);
		return;
	}
	if (item->names)
		do_files(k, fd, item->path, item->names, item->nr_names);
	else if (sys.fstat(fd, &st))
		tell_trouble(k, item->path, -errno);
	else if (st.st_dev == k->w->m->dev && is_ours(k, fd, item->path) &&
		 (!k->w->dir || k->w->dir(k->w->arg, item->path, &st)))
		list(k, fd, item->path); /* on another device, and not mounted: a subvolume, where all files are plain */
	own_close(fd);
}

/* ---- threads ---- */

static void *work(void *arg)
{
	struct walk *k = arg;

	mutex_lock(&k->lock);
	for (;;) {
		struct item *item;

		while (!k->stack && k->busy)
			pthread_cond_wait(&k->changed, &k->lock);
		item = k->stack;
		if (!item)
			break;
		k->stack = item->next;
		__atomic_sub_fetch(&k->nr_parts, item->names != NULL, __ATOMIC_RELAXED);
		k->busy++;
		mutex_unlock(&k->lock);
		do_item(k, item);
		mem_free(item->names);
		mem_free(item);
		mutex_lock(&k->lock);
		if (!--k->busy && !k->stack)
			pthread_cond_broadcast(&k->changed);
	}
	mutex_unlock(&k->lock);
	return NULL;
}

void threads_run(unsigned nr, void *(*fn)(void *arg), void *arg)
{
	pthread_t threads[THREADS_MAX];
	unsigned started = 0;
	sigset_t all, old;

	sigfillset(&all); /* a thread of our own takes no signals */
	pthread_sigmask(SIG_BLOCK, &all, &old);
	while (started + 1 < nr && started < THREADS_MAX && !pthread_create(&threads[started], NULL, fn, arg))
		started++;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	fn(arg);
	while (started)
		pthread_join(threads[--started], NULL);
}

void backend_walk(const struct backend_walk *w, const char *const *starts, size_t nr_starts)
{
	struct walk k = { .w = w, .nr_threads = 1 };

	pthread_mutex_init(&k.lock, NULL);
	pthread_cond_init(&k.changed, NULL);
	if (w->nr_threads > 1)
		k.nr_threads = w->nr_threads;
	for (size_t i = nr_starts; i-- > 0;)
		push(&k, starts[i], NULL, 0, 0);
	threads_run(k.nr_threads, work, &k);
	pthread_cond_destroy(&k.changed);
	pthread_mutex_destroy(&k.lock);
}
