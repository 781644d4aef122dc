/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names in the store on a directory: opening, making, changing, listing and removing what they lead to. Several users
 * may work in one store, and one of them may own a directory there in which another works: whatever he puts into the
 * place of a name, nothing outside is reached. So no symbolic link is followed, in no component; what is removed,
 * renamed or made is named in a directory that is open; and modes and owners are changed through descriptors.
 */
#include "store_names.h"

#include "log.h"
#include "own.h"
#include "store_acl.h"

#include <stdio.h>

static int err(long ret)
{
	return ret < 0 ? -errno : 0;
}

static int openat_again(int dirfd, const char *path, int flags, mode_t mode)
{
	int fd;

	do {
		fd = own_openat(dirfd, path, flags, mode);
	} while (fd < 0 && errno == EINTR);
	return fd;
}

/* What openat2() does, one component after the other. */
static int walk(const struct store *s, const char *path, int flags, mode_t mode)
{
	int dir = s->root, next, saved_errno;
	char name[NAME_MAX + 1];
	const char *slash;

	while ((slash = strchr(path, '/'))) {
		if ((size_t)(slash - path) >= sizeof(name) || (slash - path == 2 && !memcmp(path, "..", 2))) {
			next = -1;
			errno = slash - path == 2 ? EXDEV : ENAMETOOLONG;
		} else {
			memcpy(name, path, (size_t)(slash - path));
			name[slash - path] = '\0';
			next = openat_again(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
			if (next < 0 && errno == ENOTDIR) /* or a link */
				errno = ELOOP;
		}
		saved_errno = errno;
		if (dir != s->root)
			own_close(dir);
		errno = saved_errno;
		if (next < 0)
			return -1;
		dir = next;
		path = slash + 1;
	}
	next = openat_again(dir, path, flags, mode);
	saved_errno = errno;
	if (dir != s->root)
		own_close(dir);
	errno = saved_errno;
	return next;
}

int names_open(struct store *s, const char *path, int flags, mode_t mode)
{
	struct open_how how = { .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
	int fd;

	flags = (flags & ~STORE_BRIEFLY) | O_CLOEXEC | O_NOFOLLOW;
	if (s->no_openat2)
		return walk(s, path, flags, mode);
	how.flags = (unsigned)flags;
	how.mode = flags & O_CREAT ? mode & 07777 : 0;
	do {
		fd = own_openat2(s->root, path, &how, sizeof(how));
	} while (fd < 0 && errno == EINTR);
	return fd;
}

/* The directory that @path is in, and *@name in it. To be closed. */
static int open_parent(struct store *s, const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX];
	int fd;

	*name = slash ? slash + 1 : path;
	if ((size_t)(*name - path) >= sizeof(dir))
		return -ENAMETOOLONG;
	memcpy(dir, path, (size_t)(*name - path));
	dir[slash ? slash - path : 0] = '\0';
	fd = names_open(s, slash ? dir : ".", O_PATH | O_DIRECTORY, 0);
	return sys_fd_hide_briefly(fd < 0 ? -errno : fd);
}

static int open_dir(struct store *s, const char *path)
{
	int fd = names_open(s, path, O_RDONLY | O_DIRECTORY, 0);

	return sys_fd_hide_briefly(fd < 0 ? -errno : fd);
}

/* A directory that was just made here, unless somebody has put something else in its place. */
static int open_made(struct store *s, const char *path, struct stat *st)
{
	int fd = open_dir(s, path);

	if (fd >= 0 && sys.fstat(fd, st)) {
		int ret = -errno;

		sys_fd_close(&fd);
		return ret;
	}
	return fd;
}

int names_mkdir(struct store *s, const char *path, mode_t mode)
{
	const char *name;
	struct stat st;
	int ret, parent = open_parent(s, path, &name);

	if (parent < 0)
		return parent;
	ret = err(sys.mkdirat(parent, name, mode));
	if (!ret && mode & (077 | S_ISVTX)) { /* what a umask is likely to have taken away */
		int fd = open_made(s, path, &st);

		/* This may cost the bit that passes the group on, where that is none of ours. */
		if (fd >= 0 && (st.st_mode & mode) != mode)
			ret = err(sys.fchmod(fd, (st.st_mode & S_ISGID) | mode));
		else if (fd < 0 && fd != -ENOENT) /* others may remove it at any time */
			ret = fd;
		sys_fd_close(&fd);
		if (ret)
			sys.unlinkat(parent, name, AT_REMOVEDIR);
	}
	sys_fd_close(&parent);
	return ret;
}

int names_grant(struct store *s, const char *path, const struct store_grant *g)
{
	mode_t mode = g->mode, both = mode >> 3 & mode & 07;
	struct stat st;
	int fd = open_made(s, path, &st), ret = 0;

	if (fd < 0)
		return fd;
	if (st.st_uid != g->uid && !sys.fchown(fd, g->uid, g->gid)) /* root may, and must: it works for somebody */
		st.st_gid = g->gid;
	if (st.st_gid != g->gid && sys.fchown(fd, (uid_t)-1, g->gid))
		mode = (g->mode & (S_IRWXU | S_ISVTX)) | both << 3 | both;
	ret = acl_set(fd, g->acl, g->acl_len, g->uid);
	if (!ret)
		ret = err(sys.fchmod(fd, mode));
	sys_fd_close(&fd);
	return ret;
}

/* What has other names as well is not ours alone. */
static int open_to_change(struct store *s, const char *path)
{
	int fd = names_open(s, path, O_RDONLY | O_NONBLOCK, 0), ret;
	struct stat st;

	fd = sys_fd_hide_briefly(fd < 0 ? -errno : fd);
	if (fd < 0)
		return fd;
	ret = err(sys.fstat(fd, &st));
	if (!ret && (S_ISDIR(st.st_mode) || store_may_write(&st)))
		return fd;
	sys_fd_close(&fd);
	return ret ? ret : -EIO;
}

int names_chmod(struct store *s, const char *path, mode_t mode)
{
	int ret, fd = open_to_change(s, path);

	if (fd < 0)
		return fd;
	ret = err(sys.fchmod(fd, mode));
	sys_fd_close(&fd);
	return ret;
}

int names_chown(struct store *s, const char *path, uid_t uid, gid_t gid)
{
	int ret, fd = open_to_change(s, path);

	if (fd < 0)
		return fd;
	ret = err(sys.fchown(fd, uid, gid));
	sys_fd_close(&fd);
	return ret;
}

static int unlink_at(struct store *s, const char *path, int flags)
{
	const char *name;
	int ret, parent = open_parent(s, path, &name);

	if ((parent == -EMFILE || parent == -ENFILE) && flags) /* it is empty, or it stays */
		return err(sys.unlinkat(s->root, path, flags));
	if (parent < 0)
		return parent;
	ret = err(sys.unlinkat(parent, name, flags));
	sys_fd_close(&parent);
	return ret;
}

int names_unlink(struct store *s, const char *path)
{
	return unlink_at(s, path, 0);
}

int names_rmdir(struct store *s, const char *path)
{
	return unlink_at(s, path, AT_REMOVEDIR);
}

int names_rename(struct store *s, const char *from, const char *to)
{
	const char *name, *slash = strrchr(to, '/');
	int ret, parent = open_parent(s, from, &name);

	if (parent < 0)
		return parent;
	ret = err(sys.renameat(parent, name, parent, slash ? slash + 1 : to));
	sys_fd_close(&parent);
	return ret;
}

/* getdents64() and a buffer of our own: opendir() would call the program's malloc. */
static int list_dir(int fd, int (*fn)(void *arg, const char *name), void *arg)
{
	char buf[4096] __attribute__((aligned(8)));
	int ret = 0;

	while (!ret) {
		ssize_t n = sys.getdents64(fd, buf, sizeof(buf));

		if (n <= 0)
			return n < 0 ? -errno : 0;
		for (ssize_t pos = 0; pos < n && !ret;) {
			struct dirent *d = (struct dirent *)(buf + pos);

			pos += d->d_reclen;
			if (strcmp(d->d_name, ".") && strcmp(d->d_name, ".."))
				ret = fn(arg, d->d_name);
		}
	}
	return ret;
}

int names_list(struct store *s, const char *path, int (*fn)(void *arg, const char *name), void *arg)
{
	int fd = open_dir(s, path), ret;

	if (fd == -ELOOP || fd == -ENOTDIR || fd == -EXDEV) {
		log_error("%s: damaged: it should be a directory (%s)", path, log_errno_name(-fd));
		return -EIO;
	}
	if (fd < 0)
		return fd;
	ret = list_dir(fd, fn, arg);
	sys_fd_close(&fd);
	return ret;
}

#define TREE_DEPTH_MAX 8 /* a container has two levels */

struct remove_arg {
	int fd; /* of the directory that the names are in */
	int depth;
	int ret;
};

static int remove_dir(int parent, const char *name, int depth);

/* From the directory's own descriptor: whatever takes its place meanwhile, nothing elsewhere is removed. */
static int remove_entry(void *arg, const char *name)
{
	struct remove_arg *ra = arg;
	int ret = err(sys.unlinkat(ra->fd, name, 0)), below;

	if (ret == -EISDIR || ret == -EPERM) {
		below = remove_dir(ra->fd, name, ra->depth + 1);
		ret = below == -ENOTDIR ? ret : below;
	}
	if (ret && ret != -ENOENT && !ra->ret)
		ra->ret = ret;
	return 0;
}

static int empty_dir(int fd, int depth)
{
	struct remove_arg ra = { .fd = fd, .depth = depth };
	int ret = list_dir(fd, remove_entry, &ra);

	return ra.ret ? ra.ret : ret;
}

static int remove_dir(int parent, const char *name, int depth)
{
	int fd, ret, ret2;

	if (depth > TREE_DEPTH_MAX)
		return -ELOOP;
	fd = openat_again(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	fd = sys_fd_hide_briefly(fd < 0 ? -errno : fd);
	if (fd < 0)
		return fd;
	ret = empty_dir(fd, depth);
	ret2 = err(sys.unlinkat(parent, name, AT_REMOVEDIR));
	if (ret2 == -ENOTEMPTY && !ret) { /* a listing may miss entries while they are being removed */
		sys.lseek(fd, 0, SEEK_SET);
		ret = empty_dir(fd, depth);
		ret2 = err(sys.unlinkat(parent, name, AT_REMOVEDIR));
	}
	sys_fd_close(&fd);
	return ret ? ret : ret2;
}

/* What is left of a killed process's attempt is in the way. */
static int set_aside(int parent, const char *name, const char *aside)
{
	int ret = err(sys.renameat(parent, name, parent, aside));

	for (int tries = 0; (ret == -ENOTEMPTY || ret == -EEXIST) && tries < 3; tries++) {
		remove_dir(parent, aside, 0);
		ret = err(sys.renameat(parent, name, parent, aside));
	}
	return ret;
}

int names_remove_tree(struct store *s, const char *path)
{
	const char *name;
	char aside[NAME_MAX + 1];
	int ret, parent = open_parent(s, path, &name);

	if (parent < 0)
		return parent;
	ret = -ENAMETOOLONG;
	if (snprintf(aside, sizeof(aside), "%s" STORE_GONE, name) < (int)sizeof(aside))
		ret = set_aside(parent, name, aside);
	if (ret != -ENOENT) /* where it cannot be renamed it goes where it is */
		ret = remove_dir(parent, ret ? name : aside, 0);
	sys_fd_close(&parent);
	return ret;
}
