/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Modes, owners, times and extended attributes.
 */
#include "fdtable.h"
#include "path.h"
#include "through.h"

#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/xattr.h>

/* path_find() for a call that must not reach a stub by a road that we do not see. */
static int find_for_change(struct where *w, int dirfd, const char *path, int at_flags)
{
	int r = path_find(w, dirfd, path);

	return r ? r : path_through(w, at_flags);
}

/* ---- modes ---- */

EXPORT int chmod(const char *path, mode_t mode)
{
	struct where w;
	int r = find_for_change(&w, AT_FDCWD, path, 0);

	if (r < 0)
		return (int)done(r);
	if (!w.m)
		return sys.chmod(w.path, mode);
	return (int)done(plfs_chmod(w.dirfd, w.path, mode, 0));
}

EXPORT int lchmod(const char *path, mode_t mode)
{
	struct where w;
	int r = find_for_change(&w, AT_FDCWD, path, AT_SYMLINK_NOFOLLOW);

	if (r < 0)
		return (int)done(r);
	if (!w.m || !__GLIBC_PREREQ(2, 32)) /* before, this is for no file: ENOSYS */
		return sys.lchmod(w.path, mode);
	return (int)done(plfs_chmod(w.dirfd, w.path, mode, AT_SYMLINK_NOFOLLOW));
}

EXPORT int fchmodat(int dirfd, const char *path, mode_t mode, int flags)
{
	struct where w;
	int r = find_for_change(&w, dirfd, path, flags);

	if (r < 0)
		return (int)done(r);
	if (!w.m)
		return sys.fchmodat(w.dirfd, w.path, mode, flags);
	return (int)done(plfs_chmod(w.dirfd, w.path, mode, flags));
}

EXPORT int fchmod(int fd, mode_t mode)
{
	struct ofile *f = fd_get(&fd);

	if (!f)
		return sys.fchmod(fd, mode);
	return (int)fd_done(f, plfs_chmod(fd, NULL, mode, 0));
}

/* ---- owners ---- */

EXPORT int chown(const char *path, uid_t uid, gid_t gid)
{
	struct where w;
	int r = find_for_change(&w, AT_FDCWD, path, 0);

	if (r < 0)
		return (int)done(r);
	if (!w.m)
		return sys.chown(w.path, uid, gid);
	return (int)done(plfs_chown(w.dirfd, w.path, uid, gid, 0));
}

EXPORT int lchown(const char *path, uid_t uid, gid_t gid)
{
	struct where w;
	int r = find_for_change(&w, AT_FDCWD, path, AT_SYMLINK_NOFOLLOW);

	if (r < 0)
		return (int)done(r);
	if (!w.m)
		return sys.lchown(w.path, uid, gid);
	return (int)done(plfs_chown(w.dirfd, w.path, uid, gid, AT_SYMLINK_NOFOLLOW));
}

EXPORT int fchownat(int dirfd, const char *path, uid_t uid, gid_t gid, int flags)
{
	struct where w;
	int r = find_for_change(&w, dirfd, path, flags);

	if (r < 0)
		return (int)done(r);
	if (!w.m)
		return sys.fchownat(w.dirfd, w.path, uid, gid, flags);
	return (int)done(plfs_chown(w.dirfd, w.path, uid, gid, flags));
}

EXPORT int fchown(int fd, uid_t uid, gid_t gid)
{
	struct ofile *f = fd_get(&fd);

	if (!f)
		return sys.fchown(fd, uid, gid);
	return (int)fd_done(f, plfs_chown(fd, NULL, uid, gid, 0));
}

/* ---- times; the stub's, once nothing is left that would move them ---- */

/* path_find() for a call that sets times. */
static int find_for_times(struct where *w, int dirfd, const char *path, int at_flags)
{
	int r = find_for_change(w, dirfd, path, at_flags);

	if (!r && w->m)
		plfs_before_utimes(w->dirfd, w->path, at_flags);
	return r;
}

static void commit_for_times(int fd)
{
	if (fd_is_logical(fd))
		plfs_before_utimes(fd, NULL, 0);
}

EXPORT int utime(const char *path, const struct utimbuf *times)
{
	struct where w;
	int r = find_for_times(&w, AT_FDCWD, path, 0);

	return r < 0 ? (int)done(r) : sys.utime(w.path, times);
}

EXPORT int utimes(const char *path, const struct timeval tv[2])
{
	struct where w;
	int r = find_for_times(&w, AT_FDCWD, path, 0);

	return r < 0 ? (int)done(r) : sys.utimes(w.path, tv);
}

EXPORT int lutimes(const char *path, const struct timeval tv[2])
{
	struct where w;
	int r = find_for_times(&w, AT_FDCWD, path, AT_SYMLINK_NOFOLLOW);

	return r < 0 ? (int)done(r) : sys.lutimes(w.path, tv);
}

EXPORT int futimesat(int dirfd, const char *path, const struct timeval tv[2])
{
	struct where w;
	int r;

	if (!path)
		commit_for_times(dirfd);
	r = find_for_times(&w, dirfd, path, 0);
	return r < 0 ? (int)done(r) : sys.futimesat(w.dirfd, w.path, tv);
}

EXPORT int utimensat(int dirfd, const char *path, const struct timespec ts[2], int flags)
{
	struct where w;
	int r;

	if (!path)
		commit_for_times(dirfd);
	r = find_for_times(&w, dirfd, path, flags);
	return r < 0 ? (int)done(r) : sys.utimensat(w.dirfd, w.path, ts, flags);
}

EXPORT int futimes(int fd, const struct timeval tv[2])
{
	commit_for_times(fd);
	return sys.futimes(fd_seen(fd), tv);
}

EXPORT int futimens(int fd, const struct timespec ts[2])
{
	commit_for_times(fd);
	return sys.futimens(fd_seen(fd), ts);
}

/* ---- extended attributes: the stub's own ---- */

EXPORT ssize_t getxattr(const char *path, const char *name, void *value, size_t len)
{
	struct where w;
	int r = path_find(&w, AT_FDCWD, path);

	return r < 0 ? done(r) : sys.getxattr(w.path, name, value, len);
}

EXPORT ssize_t lgetxattr(const char *path, const char *name, void *value, size_t len)
{
	struct where w;
	int r = path_find(&w, AT_FDCWD, path);

	return r < 0 ? done(r) : sys.lgetxattr(w.path, name, value, len);
}

EXPORT int setxattr(const char *path, const char *name, const void *value, size_t len, int flags)
{
	struct where w;
	int r = path_find(&w, AT_FDCWD, path);

	return r < 0 ? (int)done(r) : sys.setxattr(w.path, name, value, len, flags);
}

EXPORT int lsetxattr(const char *path, const char *name, const void *value, size_t len, int flags)
{
	struct where w;
	int r = path_find(&w, AT_FDCWD, path);

	return r < 0 ? (int)done(r) : sys.lsetxattr(w.path, name, value, len, flags);
}

EXPORT ssize_t listxattr(const char *path, char *list, size_t len)
{
	struct where w;
	int r = path_find(&w, AT_FDCWD, path);

	return r < 0 ? done(r) : sys.listxattr(w.path, list, len);
}

EXPORT ssize_t llistxattr(const char *path, char *list, size_t len)
{
	struct where w;
	int r = path_find(&w, AT_FDCWD, path);

	return r < 0 ? done(r) : sys.llistxattr(w.path, list, len);
}

EXPORT int removexattr(const char *path, const char *name)
{
	struct where w;
	int r = path_find(&w, AT_FDCWD, path);

	return r < 0 ? (int)done(r) : sys.removexattr(w.path, name);
}

EXPORT int lremovexattr(const char *path, const char *name)
{
	struct where w;
	int r = path_find(&w, AT_FDCWD, path);

	return r < 0 ? (int)done(r) : sys.lremovexattr(w.path, name);
}

EXPORT ssize_t fgetxattr(int fd, const char *name, void *value, size_t len)
{
	return sys.fgetxattr(fd_seen(fd), name, value, len);
}

EXPORT int fsetxattr(int fd, const char *name, const void *value, size_t len, int flags)
{
	return sys.fsetxattr(fd_seen(fd), name, value, len, flags);
}

EXPORT ssize_t flistxattr(int fd, char *list, size_t len) { return sys.flistxattr(fd_seen(fd), list, len); }

EXPORT int fremovexattr(int fd, const char *name) { return sys.fremovexattr(fd_seen(fd), name); }

/* ---- others that name a file only to point at it ---- */

EXPORT int name_to_handle_at(int dirfd, const char *path, struct file_handle *handle, int *mount_id,
                             int flags)
{
	struct where w;
	int r = path_find(&w, dirfd, path);

	return r < 0 ? (int)done(r) : sys.name_to_handle_at(w.dirfd, w.path, handle, mount_id, flags);
}

EXPORT int inotify_add_watch(int fd, const char *path, uint32_t mask)
{
	struct where w;
	int r = path_find(&w, AT_FDCWD, path);

	return r < 0 ? (int)done(r) : sys.inotify_add_watch(fd, w.path, mask);
}

EXPORT int fanotify_mark(int fd, unsigned flags, uint64_t mask, int dirfd, const char *path)
{
	struct where w;
	int r = path_find(&w, dirfd, path);

	return r < 0 ? (int)done(r) : sys.fanotify_mark(fd, flags, mask, w.dirfd, w.path);
}

EXPORT key_t ftok(const char *path, int id)
{
	struct where w;
	int r = path_find(&w, AT_FDCWD, path);

	return r < 0 ? (key_t)done(r) : sys.ftok(w.path, id);
}
