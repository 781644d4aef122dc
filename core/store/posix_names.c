/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names in the store on a directory: opening, making, changing, listing and removing what they lead to.
 * Several users may work in one store, and one of them may own a directory there in which another works:
 * whatever he puts into the place of a name, nothing outside is reached. So no symbolic link is followed, in
 * no component; and what is removed, renamed or made is named in a directory that is open.
 */
#include "core/store/posix_names.h"

#include "core/base/msg.h"
#include "core/base/io.h"
#include "core/store/dirs.h"
#include "core/store/posix_acl.h"

#include <stdio.h>

static int err(long ret)
{
	return ret < 0 ? -errno : 0;
}

static int openat_again(int dirfd, const char *path, int flags, mode_t mode)
{
	int fd;

	do {
		fd = io_openat(dirfd, path, flags, mode);
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
			io_close(dir);
		errno = saved_errno;
		if (next < 0)
			return -1;
		dir = next;
		path = slash + 1;
	}
	next = openat_again(dir, path, flags, mode);
	saved_errno = errno;
	if (dir != s->root)
		io_close(dir);
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
		fd = io_openat2(s->root, path, &how, sizeof(how));
	} while (fd < 0 && errno == EINTR);
	return fd;
}

/* The directory that @path is in, and *@name in it. To be closed. */
static int open_parent(struct store *s, const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	char dir[STORE_PATH_LEN];
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

/* Whether a umask has taken of the mode of what was made; a look at the name is enough for that. */
static bool is_short_of(int parent, const char *name, mode_t mode)
{
	struct stat st;

	return sys.fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) || (st.st_mode & mode) != mode;
}

#define JUST_S 60

/*
 * Whether the directory can be the one that was made just now. Who may write to the directory above may have
 * put another in its place, which is to keep its mode. Nobody can set when a file was born.
 */
static bool was_just_made(const struct store *s, int fd)
{
	struct timespec now;
	struct statx stx;

	if (s->remote || sys.clock_gettime(CLOCK_REALTIME, &now) ||
	    sys.statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &stx) || !(stx.stx_mask & STATX_BTIME))
		return true;
	return stx.stx_btime.tv_sec + JUST_S >= now.tv_sec;
}

/* A directory that was just made, and of which the umask has taken its owner's right to open it. */
static int chmod_made(struct store *s, int parent, const char *name, mode_t mode)
{
	int fd = io_openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), ret = 0;
	struct stat st;

	fd = sys_fd_hide_briefly(fd < 0 ? -errno : fd);
	if (fd < 0)
		return fd;
	if (sys.fstat(fd, &st))
		ret = -errno;
	else
		ret = st.st_uid == geteuid() && was_just_made(s, fd) ?
			      io_chmod_path(fd, (st.st_mode & S_ISGID) | mode) :
			      -EACCES;
	sys_fd_close(&fd);
	return ret;
}

int names_mkdir(struct store *s, const char *path, mode_t mode)
{
	const char *name;
	struct stat st;
	int ret, parent = open_parent(s, path, &name);

	if (parent < 0)
		return parent;
	ret = err(sys.mkdirat(parent, name, mode));
	if (!ret && is_short_of(parent, name, mode)) {
		int fd = open_made(s, path, &st);

		if (fd == -EACCES)
			ret = chmod_made(s, parent, name, mode);
		/* This may cost the bit that passes the group on, where that is none of ours. */
		else if (fd >= 0 && !was_just_made(s, fd))
			ret = -EIO;
		else if (fd >= 0 && (st.st_mode & mode) != mode)
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

int names_grant(struct store *s, int h, const struct stat *now, const struct store_grant *g)
{
	mode_t mode = g->mode, both = mode >> 3 & mode & 07;
	gid_t gid = now->st_gid;
	int ret;

	(void)s;
	/* root may, and must: it works for somebody */
	if (now->st_uid != g->uid && !sys.fchown(h, g->uid, g->gid))
		gid = g->gid;
	if (gid != g->gid && sys.fchown(h, (uid_t)-1, g->gid))
		mode = (g->mode & (S_IRWXU | S_ISVTX)) | both << 3 | both;
	ret = acl_set(h, g->acl, g->acl_len, g->uid, g->made);
	return ret ? ret : err(sys.fchmod(h, mode));
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

/* @rename: of two names in the directory @parent; -1 and errno. */
static int rename_by(struct store *s, const char *from, const char *to,
		     int (*rename)(int parent, const char *from, const char *to))
{
	const char *name, *slash = strrchr(to, '/');
	int ret, parent = open_parent(s, from, &name);

	if (parent < 0)
		return parent;
	ret = err(rename(parent, name, slash ? slash + 1 : to));
	sys_fd_close(&parent);
	return ret;
}

static int rename_over(int parent, const char *from, const char *to)
{
	return sys.renameat(parent, from, parent, to);
}

int names_rename(struct store *s, const char *from, const char *to)
{
	return rename_by(s, from, to, rename_over);
}

/* NFS and others know no flags. Without links as well, two processes at once may both find no file. */
static int rename_new(int parent, const char *from, const char *to)
{
	struct stat st;

	if (!sys.renameat2(parent, from, parent, to, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
		return -1;
	if (!sys.linkat(parent, from, parent, to, 0))
		return sys.unlinkat(parent, from, 0);
	if (errno != EPERM && errno != ENOSYS && errno != EOPNOTSUPP && errno != EMLINK)
		return -1;
	if (sys.fstatat(parent, to, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? rename_over(parent, from, to) : -1;
	errno = EEXIST;
	return -1;
}

int names_rename_new(struct store *s, const char *from, const char *to)
{
	return rename_by(s, from, to, rename_new);
}

struct list_arg {
	int (*fn)(void *arg, const char *name);
	void *arg;
};

static int list_one(void *arg, int fd, const char *name, unsigned char type)
{
	struct list_arg *la = arg;

	(void)fd, (void)type;
	return la->fn(la->arg, name);
}

int names_list(struct store *s, const char *path, int (*fn)(void *arg, const char *name), void *arg)
{
	struct list_arg la = { fn, arg };
	int fd = open_dir(s, path), ret;

	if (fd == -ELOOP || fd == -ENOTDIR || fd == -EXDEV) {
		msg_error("%s: damaged: it should be a directory (%s)", path, msg_errno_name(-fd));
		return -EIO;
	}
	if (fd < 0)
		return fd;
	ret = dirs_list(fd, list_one, &la);
	sys_fd_close(&fd);
	return ret;
}

/* What is left of a killed process's attempt is in the way. */
static int set_aside(int parent, const char *name, const char *aside, dirs_known *known)
{
	int ret = err(sys.renameat(parent, name, parent, aside));

	for (int tries = 0; (ret == -ENOTEMPTY || ret == -EEXIST) && tries < 3; tries++) {
		dirs_remove(parent, aside, false, known);
		ret = err(sys.renameat(parent, name, parent, aside));
	}
	return ret;
}

int names_remove_tree(struct store *s, const char *path, dirs_known *known)
{
	const char *name;
	char aside[NAME_MAX + 1];
	int ret, parent = open_parent(s, path, &name);

	if (parent < 0)
		return parent;
	ret = -ENAMETOOLONG;
	if (snprintf(aside, sizeof(aside), "%s" STORE_GONE, name) < (int)sizeof(aside))
		ret = set_aside(parent, name, aside, known);
	if (ret != -ENOENT) /* where it cannot be renamed it goes where it is */
		ret = dirs_remove(parent, ret ? name : aside, false, known);
	sys_fd_close(&parent);
	return ret;
}
