/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looking for the backend that has a container, by descriptors: whoever may rename directories on the way
 * could put a link in the place of one.
 */
#include "core/backend/nested.h"

#include "core/backend/placed.h"

#include "core/base/alloc.h"
#include "core/base/io.h"
#include "core/base/msg.h"
#include "core/base/sys.h"
#include "core/plfs_admin.h"
#include "core/store/dirs.h"
#include "core/store/posix.h"

#include <stdio.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define LEVELS_MAX 64 /* directories above the mapping that are looked at */
#define OTHERS_MAX 64 /* backends besides the mappings' that a process has to do with */

/* Each is set once. */
static struct plfs_mount *others[OTHERS_MAX];

/* ---- their mounts ---- */

static struct plfs_mount *mapped(const struct stat *dir)
{
	for (int i = 0; i < mount_count(); i++)
		if (mount_at(i)->dev == dir->st_dev && mount_at(i)->ino == dir->st_ino)
			return mount_at(i);
	return NULL;
}

static void drop(struct plfs_mount *o)
{
	if (o->store.ops)
		store_posix_close(&o->store);
	mem_free(o);
}

/* The store keeps the directory open, so that no other gets its number. */
static struct plfs_mount *make(struct plfs_mount *m, int fd, const struct stat *dir)
{
	struct plfs_mount *o = mem_zalloc(sizeof(*o));
	char name[32];

	if (!o)
		return NULL;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	stub_name(fd, o->backend, sizeof(o->backend));
	if (*o->backend != '/' || store_posix_open(&o->store, name)) {
		drop(o);
		return NULL;
	}
	store_keep(&o->store, &o->store.root);
	o->dirfd = store_fd(&o->store, o->store.root);
	o->backend_len = strlen(o->backend);
	o->spec = m->spec;
	o->dev = dir->st_dev;
	o->ino = dir->st_ino;
	o->mode = dir->st_mode;
	o->uid = dir->st_uid;
	o->gid = dir->st_gid;
	return o;
}

/* The mount of the directory @fd. NULL: there are too many, or no memory. */
static struct plfs_mount *mount_of(struct plfs_mount *m, int fd, const struct stat *dir)
{
	struct plfs_mount *found = mapped(dir), *made = NULL, *there;

	for (int i = 0; !found && i < OTHERS_MAX; i++) {
		there = __atomic_load_n(&others[i], __ATOMIC_ACQUIRE);
		if (!there && !made)
			made = make(m, fd, dir);
		if (!there && !made)
			return NULL;
		if (!there && __atomic_compare_exchange_n(&others[i], &there, made, false, __ATOMIC_ACQ_REL,
							  __ATOMIC_ACQUIRE))
			return made;
		if (there->dev == dir->st_dev && there->ino == dir->st_ino)
			found = there;
	}
	if (made)
		drop(made);
	return found;
}

/* ---- one directory ---- */

bool plfs_counts(const struct stat *dir, const struct stat *plfs, uid_t uid)
{
	if (!S_ISDIR(plfs->st_mode))
		return false;
	return !plfs->st_uid || plfs->st_uid == geteuid() || plfs->st_uid == uid ||
	       (plfs->st_uid == dir->st_uid && plfs->st_mode & (S_IWGRP | S_IWOTH));
}

struct seeking {
	struct plfs_mount *m;
	const struct container *c; /* NULL: each counts */
	uid_t uid;                 /* of the file */
	uid_t owner;               /* if @owned, of .plfs */
	bool owned;
	bool marked;               /* only with a format file */
};

static bool has_container(struct plfs_mount *o, const struct container *c)
{
	struct stat st;

	return !o->store.ops->stat(&o->store, c->dir, &st) && S_ISDIR(st.st_mode);
}

/* The backend in the directory @fd, hidden, which this closes. NULL: there is none, or none that counts. */
static struct plfs_mount *look_at(const struct seeking *s, int fd)
{
	struct plfs_mount *o = NULL;
	struct stat dir, plfs, format;

	if (fd >= 0 && !sys.fstat(fd, &dir) && dir.st_dev == s->m->dev &&
	    !sys.fstatat(fd, PLFS_DIR_NAME, &plfs, AT_SYMLINK_NOFOLLOW) &&
	    plfs_counts(&dir, &plfs, s->uid) && (!s->owned || plfs.st_uid == s->owner) &&
	    (!s->marked || !sys.fstatat(fd, PLFS_DIR_NAME "/format", &format, AT_SYMLINK_NOFOLLOW)))
		o = mount_of(s->m, fd, &dir);
	sys_fd_close(&fd);
	return o && o != s->m && (!s->c || has_container(o, s->c)) ? o : NULL;
}

/* ---- all of them ---- */

/* Cut the last component off. False: there was none. */
static bool go_up(char *path)
{
	char *slash = strrchr(path, '/');

	if (!*path)
		return false;
	*(slash ? slash : path) = '\0';
	return true;
}

static bool has_plfs(const struct seeking *s, char *path)
{
	size_t len = strlen(path);
	struct stat st;
	bool has;

	if (len + sizeof("/" PLFS_DIR_NAME) > PATH_MAX)
		return false;
	strcpy(path + len, "/" PLFS_DIR_NAME);
	has = !sys.fstatat(s->m->dirfd, path, &st, AT_SYMLINK_NOFOLLOW);
	path[len] = '\0';
	return has;
}

/* From the directory @path (PATH_MAX), relative to the mapping, up to those in the mapping's own. */
static struct plfs_mount *seek_below(const struct seeking *s, char *path)
{
	struct plfs_mount *o = NULL;

	for (; !o && *path; go_up(path))
		if (has_plfs(s, path))
			o = look_at(s, sys_fd_hide_briefly(dirs_open_any(s->m->dirfd, path)));
	return o;
}

/* The directories above the mapping. @highest: the last that counts, not the first. */
static struct plfs_mount *seek_above(const struct seeking *s, bool highest)
{
	char path[3 * LEVELS_MAX + sizeof(PLFS_DIR_NAME)] = "", plfs[sizeof(path) + sizeof(PLFS_DIR_NAME)];
	dev_t dev = s->m->dev;
	ino_t ino = s->m->ino;
	struct plfs_mount *o = NULL, *next;
	struct stat st;

	for (int i = 0; i < LEVELS_MAX && (!o || highest); i++) {
		strcat(path, i ? "/.." : "..");
		if (sys.fstatat(s->m->dirfd, path, &st, 0) || st.st_dev != dev || st.st_ino == ino)
			break;
		ino = st.st_ino;
		snprintf(plfs, sizeof(plfs), "%s/" PLFS_DIR_NAME, path);
		if (sys.fstatat(s->m->dirfd, plfs, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		next = look_at(s, sys_fd_hide_briefly(io_openat(s->m->dirfd, path,
								  O_PATH | O_DIRECTORY | O_CLOEXEC)));
		o = next ? next : o;
	}
	return o;
}

/* Whether @path is the mount's directory, or below it. */
static bool has_path(const struct plfs_mount *m, const char *path)
{
	return !strncmp(path, m->backend, m->backend_len) &&
	       (path[m->backend_len] == '/' || !path[m->backend_len]);
}

/* The directory of the stub @fd, relative to the mapping, into @path (PATH_MAX); "": the mapping's own. */
static void dir_of(const struct plfs_mount *m, int fd, char *path)
{
	stub_name(fd, path, PATH_MAX);
	if (has_path(m, path) && path[m->backend_len])
		memmove(path, path + m->backend_len + 1, strlen(path + m->backend_len));
	else
		*path = '\0';
	go_up(path);
}

/* Nothing of it is asked that other hosts can change: where these share it that could take a message. */
static bool leads_elsewhere(const struct plfs_mount *m, dev_t *dev)
{
	struct statx now;

	if (sys.statx(AT_FDCWD, m->backend, AT_STATX_DONT_SYNC, STATX_INO, &now))
		return false;
	*dev = makedev(now.stx_dev_major, now.stx_dev_minor);
	return now.stx_ino != m->ino || *dev != m->dev;
}

bool nested_has_dev(dev_t dev)
{
	int saved ERRNO_KEPT = errno;
	dev_t now;

	if (likely(mount_has_dev(dev)))
		return true;
	for (int i = 0; i < mount_count(); i++) {
		if (!leads_elsewhere(mount_at(i), &now) || now != dev)
			continue;
		__atomic_store_n(&mount_at(i)->dev_now, dev, __ATOMIC_RELAXED);
		return true;
	}
	return false;
}

/* Whether the name of @fd, relative to the directory @top, leads to it. */
static bool is_below(int top, const char *name, int fd)
{
	struct stat there, st;

	return !sys.fstatat(top, name, &there, AT_SYMLINK_NOFOLLOW) && !sys.fstat(fd, &st) &&
	       there.st_ino == st.st_ino && there.st_dev == st.st_dev;
}

static __attribute__((noinline, cold)) struct plfs_mount *mount_there(struct plfs_mount *m, int fd)
{
	int top = sys_fd_hide_briefly(io_openat(AT_FDCWD, m->backend, O_PATH | O_DIRECTORY | O_CLOEXEC));
	char *name = mem_alloc(PATH_MAX); /* the stack may be small */
	struct plfs_mount *o = NULL;
	struct stat dir;

	if (name && top >= 0 && !sys.fstat(top, &dir)) {
		stub_name(fd, name, PATH_MAX);
		if (has_path(m, name) && name[m->backend_len] && is_below(top, name + m->backend_len + 1, fd))
			o = mount_of(m, top, &dir);
	}
	mem_free(name);
	sys_fd_close(&top);
	return o ? o : m;
}

struct plfs_mount *nested_now(struct plfs_mount *m, int fd)
{
	int saved ERRNO_KEPT = errno;
	dev_t dev;

	return likely(!leads_elsewhere(m, &dev)) ? m : mount_there(m, fd);
}

struct plfs_mount *nested_holding(struct plfs_mount *m, int fd, bool below)
{
	struct plfs_mount *o = mount_followed(m, fd);

	return o != m || below ? o : nested_now(m, fd);
}

struct plfs_mount *nested_find_below(struct plfs_mount *m, const struct container *c, int fd)
{
	int saved ERRNO_KEPT = errno;
	const struct seeking s = { .m = m, .c = c, .uid = c->uid };
	char *path = mem_alloc(PATH_MAX); /* the stack may be small */
	struct plfs_mount *o;

	if (!path)
		return NULL;
	dir_of(m, fd, path);
	o = seek_below(&s, path);
	mem_free(path);
	return o;
}

struct plfs_mount *nested_find(struct plfs_mount *m, const struct container *c, int fd)
{
	int saved ERRNO_KEPT = errno;
	const struct seeking s = { .m = m, .c = c, .uid = c->uid };
	struct plfs_mount *o = nested_find_below(m, c, fd);

	if (!o)
		o = seek_above(&s, false);
	if (o)
		msg_debug(MSG_OPEN, "%s is in %s", c->dir, o->backend);
	return o;
}

struct plfs_mount *nested_init_container(struct plfs_mount *m, struct container *c, int fd,
					 const struct stub *stub, const struct stat *st)
{
	struct plfs_mount *o = NULL;

	m = nested_now(m, fd);
	container_init_from(c, &m->store, stub, st);
	container_look_at_list(c, fd);
	if (stub_is_copy(stub, st->st_ino))
		o = nested_find_below(m, c, fd);
	if (!o && !has_container(m, c))
		o = nested_find(m, c, fd);
	if (o)
		c->store = &o->store;
	placed_enable_by(c->store, stub);
	return o ? o : m;
}

/* The kernel's name of the directory that (dirfd, path) is in, into @dir (PATH_MAX). False: unknown. */
static bool real_dir(int dirfd, const char *path, char *dir)
{
	size_t len = strlen(path);
	bool known;
	int fd;

	if (len >= PATH_MAX)
		return false;
	while (len > 1 && path[len - 1] == '/')
		len--;
	while (len && path[len - 1] != '/')
		len--;
	memcpy(dir, path, len);
	dir[len] = '\0';
	fd = io_openat(dirfd, len ? dir : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	fd = sys_fd_hide_briefly(fd < 0 ? -errno : fd);
	known = fd >= 0 && *stub_name(fd, dir, PATH_MAX) == '/';
	sys_fd_close(&fd);
	return known;
}

/* The container's backend, of a logical file; @m of any other. */
static struct plfs_mount *home_of(struct plfs_mount *m, int dirfd, const char *path, const struct stat *st)
{
	struct container c;
	struct stub stub;
	int fd = io_openat(dirfd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	fd = sys_fd_hide_briefly(fd < 0 ? -errno : fd);
	if (fd >= 0 && !stub_look(fd, &stub) && stub.has_container)
		m = nested_init_container(m, &c, fd, &stub, st);
	sys_fd_close(&fd);
	return m;
}

/* In the same directory, by its text. */
static bool is_beside(int fromfd, const char *from, int tofd, const char *to)
{
	const char *a = strrchr(from, '/'), *b = strrchr(to, '/');
	size_t len = a ? (size_t)(a - from) : 0;

	return fromfd == tofd && !a == !b && len == (b ? (size_t)(b - to) : 0) && !memcmp(from, to, len);
}

/* @dir: PATH_MAX bytes. */
static bool may_move(struct plfs_mount *m, int fromfd, const char *from, int tofd, const char *to, char *dir)
{
	struct seeking s = { .m = m };
	struct plfs_mount *o;
	struct stat st;
	bool known;

	if (sys.fstatat(fromfd, from, &st, AT_SYMLINK_NOFOLLOW) ||
	    (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
		return true;
	/* its container, or those of what is in it, would stay behind in another backend */
	known = (S_ISDIR(st.st_mode) || stub_marked(st.st_mode)) && real_dir(tofd, to, dir);
	o = known ? mount_holding(m, dir) : m;
	if (!real_dir(fromfd, from, dir))
		return o == m;
	if (known && mount_holding(m, dir) != o)
		return false;
	if (o != m || !has_path(m, dir) || !dir[m->backend_len])
		return true;
	s.uid = st.st_uid;
	memmove(dir, dir + m->backend_len + 1, strlen(dir + m->backend_len));
	o = seek_below(&s, dir);
	if (!o || !real_dir(tofd, to, dir) || has_path(o, dir))
		return true;
	if (S_ISREG(st.st_mode))
		o = home_of(m, fromfd, from, &st);
	return S_ISREG(st.st_mode) && (o == m || has_path(o, dir));
}

/* Without memory a program copies the file, as to another file system. */
bool nested_may_move(struct plfs_mount *m, int fromfd, const char *from, int tofd, const char *to)
{
	int saved ERRNO_KEPT = errno;
	bool may;
	char *dir;

	if (is_beside(fromfd, from, tofd, to))
		return true;
	dir = mem_alloc(PATH_MAX); /* the stack may be small */
	may = dir && may_move(m, fromfd, from, tofd, to, dir);
	mem_free(dir);
	return may;
}

struct plfs_mount *nested_outer(struct plfs_mount *m)
{
	int saved ERRNO_KEPT = errno;
	const struct seeking s = { .m = m, .uid = m->uid, .marked = true };

	return seek_above(&s, false);
}

struct plfs_mount *nested_top(struct plfs_mount *m)
{
	int saved ERRNO_KEPT = errno;
	struct seeking s = { .m = m, .uid = m->uid, .owned = true, .marked = true };
	struct plfs_mount *top;
	struct stat st;

	if (m->store.ops->stat(&m->store, PLFS_DIR_NAME, &st))
		return m;
	s.owner = st.st_uid;
	top = seek_above(&s, true);
	return top ? top : m;
}

const char *plfs_outer_backend(struct plfs_mount *m)
{
	const struct plfs_mount *outer = nested_outer(m);

	return outer ? outer->backend : NULL;
}
