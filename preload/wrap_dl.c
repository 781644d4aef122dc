/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dlopen and dlmopen. The dynamic loader opens and maps files itself: what it is to load is made a plain file
 * first, or is given to it as a copy in memory.
 *
 * Everything that is not below a mount goes on by a jump, not by a call: the loader finds out by the return
 * address who asks, and looks for a name without a slash where that object's RUNPATH says. RTLD_DEEPBIND is
 * taken away: an object bound so would call the C library's open() and write() past us, and see stubs.
 */
#include "image.h"
#include "needed.h"
#include "proc.h"
#include "through.h"

#include <dlfcn.h>
#include <pthread.h>

/* A call in the last place is a jump when the compiler optimises; these see to it that it always is. */
#if defined(__clang__)
#define BY_JUMP
#if __has_attribute(musttail)
#define JUMP __attribute__((musttail)) return
#else /* older than clang 13 */
#define JUMP return
#endif
#elif !__has_attribute(no_sanitize) /* gcc 7 */
#define BY_JUMP __attribute__((optimize("O2")))
#define JUMP return
#else
#define BY_JUMP __attribute__((optimize("O2"), no_sanitize("address", "undefined", "thread")))
#define JUMP return
#endif

/*
 * Copies that were loaded. They stay open: the loader knows an object by its path, which has the descriptor's
 * number.
 */
struct copy {
	struct copy *next;
	dev_t dev;
	ino_t ino;
	struct timespec mtime;
	off_t size;
	int fd;
};

static pthread_mutex_t copies_lock = PTHREAD_MUTEX_INITIALIZER;
static struct copy *copies;

void dl_fork_child(void) { pthread_mutex_init(&copies_lock, NULL); }

/* The descriptor of the copy of @w that was loaded before, or -1. */
static int find_copy(const struct stat *st)
{
	const struct copy *c = copies;

	while (c && (c->dev != st->st_dev || c->ino != st->st_ino || c->size != st->st_size ||
	             memcmp(&c->mtime, &st->st_mtim, sizeof(c->mtime)) != 0))
		c = c->next;
	return c ? c->fd : -1;
}

/* Keep @fd, and the program from closing it. */
static int keep_copy(const struct stat *st, int fd)
{
	struct copy *c = mem_alloc(sizeof(*c));

	fd = sys_fd_hide(fd);
	if (!c)
		return fd;
	*c = (struct copy){copies, st->st_dev, st->st_ino, st->st_mtim, st->st_size, fd};
	copies = c;
	sys_fd_own(&c->fd);
	return fd;
}

/* A descriptor to load the logical file at @w from; -1: it is a plain file now, or cannot be read. */
static int copy_of(const struct where *w)
{
	struct stat st;
	int fd = -1;

	mutex_lock(&copies_lock);
	if (!sys.fstatat(w->dirfd, w->path, &st, 0)) {
		fd = find_copy(&st);
		if (fd < 0 && !image_make(w, &fd) && fd >= 0)
			fd = keep_copy(&st, fd);
	}
	mutex_unlock(&copies_lock);
	return fd;
}

/* What the loader should open: @w's path, or a link to a copy, into @buf. */
static const char *loadable(const struct where *w, char *buf, size_t len)
{
	int saved ERRNO_KEPT = errno;
	int fd = image_is_logical(w, 0) ? copy_of(w) : -1;

	if (fd < 0)
		return w->path;
	snprintf(buf, len, "/proc/self/fd/%d", fd);
	return buf;
}

/*
 * A name that the loader searches for, or that begins with something for it to fill in, is its own business,
 * but for what it will find.
 */
static __attribute__((noinline)) bool is_mapped(const char *name, const void *caller)
{
	struct where w;

	if (!shim_on() || !name || !*name)
		return false;
	if (!strchr(name, '/') || *name == '$') {
		needed_by_caller(name, caller);
		return false;
	}
	return !path_find(&w, AT_FDCWD, name) && !path_through(&w, 0) && w.m;
}

static inline int allowed(int flags) { return shim_active ? flags & ~RTLD_DEEPBIND : flags; }

static __attribute__((noinline)) void *load(const char *name, int flags, const Lmid_t *ns)
{
	struct where w;
	char buf[32];

	path_find(&w, AT_FDCWD, name);
	path_through(&w, 0);
	name = loadable(&w, buf, sizeof(buf));
	needed_by_file(w.path, environ);
	msg_debug(MSG_OPEN, "dlopen %s", name);
	return ns ? sys.dlmopen(*ns, name, flags) : sys.dlopen(name, flags);
}

EXPORT BY_JUMP void *dlopen(const char *name, int flags)
{
	if (is_mapped(name, __builtin_return_address(0)))
		return load(name, allowed(flags), NULL);
	JUMP sys.dlopen(name, allowed(flags));
}

static __attribute__((noinline)) void *load_into(Lmid_t ns, const char *name, int flags)
{
	return load(name, flags, &ns);
}

EXPORT BY_JUMP void *dlmopen(Lmid_t ns, const char *name, int flags)
{
	if (is_mapped(name, __builtin_return_address(0)))
		return load_into(ns, name, allowed(flags));
	JUMP sys.dlmopen(ns, name, allowed(flags));
}
