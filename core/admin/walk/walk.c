/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The walk: all threads take directories, and parts of large ones, from one stack.
 */
#include "core/admin/walk/walk.h"

#include "core/admin/walk/deep.h"
#include "core/base/alloc.h"
#include "core/base/critical.h"
#include "core/base/io.h"
#include "core/base/sys.h"
#include "core/plfs_admin.h"
#include "core/store/dirs.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>

#define THREADS_MAX 64
#define PART_NAMES 64       /* files of one directory that a thread visits at a time */
#define PARTS_PER_THREAD 4  /* at most so many on the stack */

struct item {
	struct item *next;
	char *names;      /* of files to visit, a NUL behind each; NULL: list the directory */
	unsigned nr_names;
	char path[];
};

struct walking {
	const struct walk *w;
	pthread_mutex_t lock; /* for the rest */
	pthread_cond_t changed;
	struct item *stack;
	unsigned nr_parts, busy, nr_threads;
	unsigned max_open; /* descriptors of each thread in a deep tree */
};

int walk_open_dir(const struct plfs_mount *m, const char *path)
{
	return dirs_open(m->dirfd, *path ? path : ".");
}

int walk_open(const struct walk_entry *e)
{
	const int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	int fd = io_openat(e->dirfd, e->name, flags | O_NOATIME);

	if (fd < 0 && errno == EPERM) /* not the owner */
		fd = io_openat(e->dirfd, e->name, flags);
	/* A process is flattening it. */
	for (int tries = 0; fd < 0 && errno == EWOULDBLOCK && tries < 100; tries++) {
		io_nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		fd = io_openat(e->dirfd, e->name, flags);
	}
	return fd < 0 ? -errno : fd;
}

/* ---- the stack ---- */

static void report_trouble(struct walking *k, const char *path, int err)
{
	if (err != -ENOENT && err != -ENOTDIR && err != -ELOOP) /* removed meanwhile */
		k->w->trouble(k->w->arg, path, err);
}

/* Join @dir and @name into @out (PATH_MAX). False: too long. */
static bool join(const char *dir, const char *name, char *out)
{
	return snprintf(out, PATH_MAX, *dir ? "%s/%s" : "%s%s", dir, name) < PATH_MAX;
}

/* For people, where that is too long. */
static void join_some(const char *dir, const char *name, char *out)
{
	if (!join(dir, name, out))
		snprintf(out, PATH_MAX, "%.*s/.../%s", PATH_MAX - NAME_MAX - 7, dir, name);
}

static void push(struct walking *k, const char *path, const char *names, size_t names_len, unsigned nr_names)
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
		report_trouble(k, path, -ENOMEM);
		return;
	}
	if (names)
		memcpy(item->names, names, names_len);
	mutex_lock(&k->lock);
	item->next = k->stack;
	k->stack = item;
	__atomic_add_fetch(&k->nr_parts, names != NULL, __ATOMIC_RELAXED); /* also read without the lock */
	pthread_cond_signal(&k->changed);
	mutex_unlock(&k->lock);
}

static void do_files(struct walking *k, int dirfd, const char *dir, const char *names, unsigned nr)
{
	struct walk_entry e = { .dirfd = dirfd };
	char path[PATH_MAX];

	e.path = path;
	for (unsigned i = 0; i < nr; i++, names += strlen(names) + 1) {
		e.name = names;
		join_some(dir, names, path);
		k->w->file(k->w->arg, &e);
	}
}

/* ---- listing ---- */

/* Whether the directory is a backend, by its format file, and by the owner of what has its containers. */
static bool is_backend(int dirfd)
{
	struct stat dir, plfs;
	static const char mark[] = "plfs-format ";
	char text[sizeof(mark) - 1];
	struct walk_entry e = { .dirfd = dirs_open(dirfd, PLFS_DIR_NAME), .name = "format" };
	int fd = e.dirfd < 0 ? -1 : walk_open(&e);
	bool is = fd >= 0 && io_pread_all(fd, text, sizeof(text), 0) == (ssize_t)sizeof(text) &&
		!memcmp(text, mark, sizeof(text)) && !sys.fstat(dirfd, &dir) &&
		!sys.fstat(e.dirfd, &plfs) && plfs_counts(&dir, &plfs, dir.st_uid);

	if (fd >= 0)
		io_close(fd);
	if (e.dirfd >= 0)
		io_close(e.dirfd);
	return is;
}

struct listing {
	struct walking *k;
	const char *path;
	int fd;
	struct deep_sum deep; /* of directories in it that no path can name */
	char names[PART_NAMES * 256];
	size_t names_len;
	unsigned nr_names;
};

/* Visit the files listed so far, or leave them to another thread if the stack has room. */
static void end_part(struct listing *l)
{
	struct walking *k = l->k;

	if (l->nr_names == PART_NAMES &&
	    __atomic_load_n(&k->nr_parts, __ATOMIC_RELAXED) < (k->nr_threads - 1) * PARTS_PER_THREAD)
		push(k, l->path, l->names, l->names_len, l->nr_names);
	else
		do_files(k, l->fd, l->path, l->names, l->nr_names);
	l->names_len = l->nr_names = 0;
}

/* ---- too deep for a path ---- */

static bool enters_deep(void *arg, int fd, const char *name)
{
	const struct listing *l = arg;
	struct walking *k = l->k;
	bool enters = strcmp(name, PLFS_DIR_NAME) || !is_backend(fd);

	if (enters && k->w->backend) {
		int dir = dirs_open(fd, name);

		enters = dir < 0 || !is_backend(dir) || k->w->backend(k->w->arg, l->path);
		if (dir >= 0)
			io_close(dir);
	}
	return enters;
}

static void do_deep_file(void *arg, int fd, const char *name)
{
	const struct listing *l = arg;
	struct walk_entry e = { .dirfd = fd, .name = name };
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%.*s/.../%s", PATH_MAX - NAME_MAX - 7, l->path, name);
	e.path = path;
	l->k->w->file(l->k->w->arg, &e);
}

static void report_deep_trouble(void *arg, int err)
{
	const struct listing *l = arg;

	report_trouble(l->k, l->path, err);
}

static void go_deep(struct listing *l, const char *name, bool files)
{
	const struct deep d = {
		.dev = l->k->w->m->dev, .max_open = l->k->max_open, .enters = enters_deep,
		.file = files ? do_deep_file : NULL, .trouble = report_deep_trouble, .arg = l,
	};

	if (enters_deep(l, l->fd, name))
		deep_visit(&d, l->fd, name, &l->deep);
}

static int sum_deep(void *arg, int fd, const char *name, unsigned char type)
{
	struct listing *l = arg;
	char path[PATH_MAX];

	(void)fd;
	if ((type == DT_DIR || type == DT_UNKNOWN) && !join(l->path, name, path))
		go_deep(l, name, false);
	return 0;
}

/* Half of all descriptors are for other things. */
static unsigned max_open(unsigned nr_threads)
{
	struct rlimit64 limit;

	if (sys.syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit))
		return 4;
	return (unsigned)min_u64(max_u64(limit.rlim_cur / 2 / nr_threads, 4), 1 << 20);
}

void walk_sum_deep(const struct walk *w, int fd, const char *path, struct deep_sum *sum)
{
	struct walking k = { .w = w, .max_open = max_open(1) };
	struct listing l;
	int ret;

	l.k = &k;
	l.path = path;
	l.fd = fd;
	l.deep = (struct deep_sum){ 0 };
	ret = dirs_list(fd, sum_deep, &l);
	if (ret)
		report_trouble(&k, path, ret);
	*sum = l.deep;
}

/* ---- a directory ---- */

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
			report_trouble(l->k, l->path, -errno);
			return 0;
		}
		type = S_ISDIR(st.st_mode) ? DT_DIR : S_ISREG(st.st_mode) ? DT_REG : DT_LNK;
	}
	if (type == DT_DIR) {
		if (join(l->path, name, path))
			push(l->k, path, NULL, 0, 0);
		else
			go_deep(l, name, true);
	} else if (type == DT_REG) {
		memcpy(l->names + l->names_len, name, len);
		l->names_len += len;
		if (++l->nr_names == PART_NAMES)
			end_part(l);
	}
	return 0;
}

static void list(struct walking *k, int fd, const char *path)
{
	struct listing l;
	int ret;

	l.k = k;
	l.path = path;
	l.fd = fd;
	l.names_len = l.nr_names = 0;
	l.deep = (struct deep_sum){ 0 };
	ret = dirs_list(fd, found, &l);
	if (ret)
		report_trouble(k, path, ret);
	end_part(&l);
	if (l.deep.nr && k->w->deep)
		k->w->deep(k->w->arg, path, &l.deep);
}

/* Whether the directory belongs to this backend, or the caller wants it all the same. */
static bool is_ours(const struct walking *k, int fd, const char *path)
{
	return !*path || !k->w->backend || !is_backend(fd) || k->w->backend(k->w->arg, path);
}

static void do_item(struct walking *k, const struct item *item)
{
	struct stat st;
	int fd = walk_open_dir(k->w->m, item->path);

	if (fd < 0) {
		report_trouble(k, item->path, fd);
		return;
	}
	if (item->names)
		do_files(k, fd, item->path, item->names, item->nr_names);
	else if (sys.fstat(fd, &st))
		report_trouble(k, item->path, -errno);
	else if (st.st_dev == k->w->m->dev && is_ours(k, fd, item->path) &&
		 (!k->w->dir || k->w->dir(k->w->arg, item->path, &st)))
		/* another device without a mount is a subvolume: all files there are plain */
		list(k, fd, item->path);
	io_close(fd);
}

/* ---- threads ---- */

static void *work(void *arg)
{
	struct walking *k = arg;

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

	sigfillset(&all); /* these threads take no signals */
	pthread_sigmask(SIG_BLOCK, &all, &old);
	while (started + 1 < nr && started < THREADS_MAX && !pthread_create(&threads[started], NULL, fn, arg))
		started++;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	fn(arg);
	while (started)
		pthread_join(threads[--started], NULL);
}

void walk_run(const struct walk *w, const char *const *starts, size_t nr_starts)
{
	struct walking k = { .w = w, .nr_threads = 1 };

	pthread_mutex_init(&k.lock, NULL);
	pthread_cond_init(&k.changed, NULL);
	if (w->nr_threads > 1)
		k.nr_threads = w->nr_threads;
	k.max_open = max_open(k.nr_threads);
	for (size_t i = nr_starts; i-- > 0;)
		push(&k, starts[i], NULL, 0, 0);
	threads_run(k.nr_threads, work, &k);
	pthread_cond_destroy(&k.changed);
	pthread_mutex_destroy(&k.lock);
}
