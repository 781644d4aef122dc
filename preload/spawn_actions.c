/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * posix_spawn_file_actions_*(). Each action goes to the C library's list and, once that has taken it, to
 * ours, which hangs on the padding at the end of the program's own object: it lives and dies with that.
 */
#include "spawn_actions.h"

#include "path.h"
#include "through.h"

enum kind { OPEN, CLOSE, DUP2, CHDIR, FCHDIR, CLOSEFROM, TCSETPGRP };

struct action {
	struct action *next;
	enum kind kind;
	int fd, to;
	int flags;
	mode_t mode;
	char path[]; /* of OPEN and CHDIR */
};

struct list {
	uint64_t magic; /* an object that was never initialised holds anything */
	struct action *first;
};

#define MAGIC 0x504c46535350574eULL

/* The end of the padding: the C library, should it ever need some, begins at the front. */
static struct list *list_of(const posix_spawn_file_actions_t *actions)
{
	static_assert(sizeof(actions->__pad) >= sizeof(struct list) && sizeof(*actions) % 8 == 0, "no room");
	return (struct list *)((char *)(actions + 1) - sizeof(struct list));
}

static struct action *first_of(const posix_spawn_file_actions_t *actions)
{
	return actions && list_of(actions)->magic == MAGIC ? list_of(actions)->first : NULL;
}

static void forget(posix_spawn_file_actions_t *actions)
{
	struct action *a = first_of(actions), *next;

	for (; a; a = next) {
		next = a->next;
		mem_free(a);
	}
	memset(list_of(actions), 0, sizeof(struct list));
}

/* Remember what the C library has taken, if @r is 0. */
static int add(posix_spawn_file_actions_t *actions, int r, const struct action *new, const char *path)
{
	size_t len = path ? strlen(path) + 1 : 0;
	struct action **end, *a;

	if (r)
		return r;
	a = mem_alloc(sizeof(*a) + len);
	if (!a)
		return ENOMEM;
	*a = *new;
	if (path)
		memcpy(a->path, path, len);
	if (list_of(actions)->magic != MAGIC)
		*list_of(actions) = (struct list){MAGIC, NULL};
	for (end = &list_of(actions)->first; *end; end = &(*end)->next)
		;
	*end = a;
	return 0;
}

EXPORT int posix_spawn_file_actions_init(posix_spawn_file_actions_t *actions)
{
	shim_on();
	memset(list_of(actions), 0, sizeof(struct list));
	return sys.posix_spawn_file_actions_init(actions);
}

EXPORT int posix_spawn_file_actions_destroy(posix_spawn_file_actions_t *actions)
{
	shim_on();
	forget(actions);
	return sys.posix_spawn_file_actions_destroy(actions);
}

EXPORT int posix_spawn_file_actions_addopen(posix_spawn_file_actions_t *actions, int fd, const char *path,
					    int flags, mode_t mode)
{
	const struct action a = {.kind = OPEN, .fd = fd, .flags = flags, .mode = mode};

	shim_on();
	return add(actions, sys.posix_spawn_file_actions_addopen(actions, fd, path, flags, mode), &a, path);
}

EXPORT int posix_spawn_file_actions_addclose(posix_spawn_file_actions_t *actions, int fd)
{
	const struct action a = {.kind = CLOSE, .fd = fd};

	shim_on();
	return add(actions, sys.posix_spawn_file_actions_addclose(actions, fd), &a, NULL);
}

EXPORT int posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t *actions, int fd, int to)
{
	const struct action a = {.kind = DUP2, .fd = fd, .to = to};

	shim_on();
	return add(actions, sys.posix_spawn_file_actions_adddup2(actions, fd, to), &a, NULL);
}

EXPORT int posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t *actions, const char *path)
{
	const struct action a = {.kind = CHDIR};

	shim_on();
	return add(actions, sys.posix_spawn_file_actions_addchdir_np(actions, path), &a, path);
}

EXPORT int posix_spawn_file_actions_addfchdir_np(posix_spawn_file_actions_t *actions, int fd)
{
	const struct action a = {.kind = FCHDIR, .fd = fd};

	shim_on();
	return add(actions, sys.posix_spawn_file_actions_addfchdir_np(actions, fd), &a, NULL);
}

EXPORT int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int fd)
{
	const struct action a = {.kind = CLOSEFROM, .fd = fd};

	shim_on();
	if (!sys.posix_spawn_file_actions_addclosefrom_np)
		return ENOSYS;
	return add(actions, sys.posix_spawn_file_actions_addclosefrom_np(actions, fd), &a, NULL);
}

EXPORT int posix_spawn_file_actions_addtcsetpgrp_np(posix_spawn_file_actions_t *actions, int fd)
{
	const struct action a = {.kind = TCSETPGRP, .fd = fd};

	shim_on();
	if (!sys.posix_spawn_file_actions_addtcsetpgrp_np)
		return ENOSYS;
	return add(actions, sys.posix_spawn_file_actions_addtcsetpgrp_np(actions, fd), &a, NULL);
}

/* ---- what becomes of them ---- */

static bool open_is_ours(const struct action *a)
{
	struct where w;

	return path_find(&w, AT_FDCWD, a->path) || path_before_open(&w, a->flags) || w.m;
}

/* Whether names that are looked up from there may lead below a mount. */
static bool dir_is_ours(const struct action *a)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	struct plfs_mount *m;
	char real[PATH_MAX];
	struct where w;
	ssize_t len;
	int fd = a->fd;

	if (a->kind == CHDIR) {
		if (path_find(&w, AT_FDCWD, a->path) || w.m)
			return true;
		fd = sys.openat(w.dirfd, w.path, flags);
	}
	len = fd < 0 ? -1 : path_read_fd(fd, real);
	if (a->kind == CHDIR && fd >= 0)
		sys.close(fd);
	return len >= 0 && plfs_cwd_class(real, &m) != 0;
}

bool spawn_actions_are_ours(const posix_spawn_file_actions_t *actions)
{
	int saved ERRNO_KEPT = errno;
	const struct action *a;

	for (a = shim_active ? first_of(actions) : NULL; a; a = a->next) {
		if (a->kind == OPEN ? open_is_ours(a) :
				      (a->kind == CHDIR || a->kind == FCHDIR) && dir_is_ours(a))
			return true;
	}
	return false;
}

/* The number is closed first, so that there is one for the file: as POSIX wants it. */
static int do_open(const struct action *a)
{
	int fd;

	close(a->fd);
	fd = open(a->path, a->flags, a->mode);
	if (fd < 0 || fd == a->fd)
		return fd;
	if (dup2(fd, a->fd) < 0)
		return -1;
	return close(fd);
}

/* A duplicate onto itself is there to lose its close-on-exec. */
static int do_dup2(const struct action *a)
{
	int flags;

	if (a->fd != a->to)
		return dup2(a->fd, a->to);
	flags = fcntl(a->fd, F_GETFD);
	return flags < 0 ? flags : fcntl(a->fd, F_SETFD, flags & ~FD_CLOEXEC);
}

static int do_one(const struct action *a)
{
	switch (a->kind) {
	case OPEN:
		return do_open(a);
	case CLOSE:
		close(a->fd); /* one that is not open does not matter */
		return 0;
	case DUP2:
		return do_dup2(a);
	case CHDIR:
		return chdir(a->path);
	case FCHDIR:
		return fchdir(a->fd);
	case CLOSEFROM:
		closefrom(a->fd);
		return 0;
	default:
		return tcsetpgrp(a->fd, getpgrp());
	}
}

int spawn_actions_do(const posix_spawn_file_actions_t *actions)
{
	const struct action *a;

	for (a = first_of(actions); a; a = a->next) {
		if (do_one(a) < 0)
			return -errno;
	}
	return 0;
}
