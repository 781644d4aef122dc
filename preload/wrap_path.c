/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The namespace: unlink, rename, link, symlink, readlink, realpath, mkdir, rmdir, mknod, mkfifo.
 */
#include "path.h"
#include "through.h"

#include <stdlib.h>

/* ---- unlink and rmdir ---- */

/* How many dots the last name in @path is, at most 2; 0: it is another name. */
static int dots_at_end(const char *path)
{
	size_t len = strlen(path), end;

	while (len && path[len - 1] == '/')
		len--;
	for (end = len; len && path[len - 1] == '.' && end - len < 2;)
		len--;
	return !len || path[len - 1] == '/' ? (int)(end - len) : 0;
}

/*
 * A backend's root is where a mount hangs: busy, whatever is in it. @path is the program's own: in w->path
 * the dots at its end may have gone, which the kernel refuses.
 */
static int rmdir_mapped(const struct where *w, const char *path)
{
	int dots = dots_at_end(path);
	struct stat st;

	if (sys.fstatat(w->dirfd, w->path, &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	if (dots && S_ISDIR(st.st_mode))
		return dots == 1 ? -EINVAL : -ENOTEMPTY;
	if (plfs_is_root(st.st_dev, st.st_ino))
		return -EBUSY;
	return sys.unlinkat(w->dirfd, w->path, AT_REMOVEDIR) ? -errno : 0;
}

EXPORT int unlink(const char *path)
{
	struct where w;
	int r = path_find_at(&w, AT_FDCWD, path);

	if (!r)
		r = path_through(&w, AT_SYMLINK_NOFOLLOW);
	if (r < 0)
		return (int)done(r);
	if (!w.m)
		return sys.unlink(w.path);
	return (int)done(plfs_unlink(w.m, w.dirfd, w.path));
}

EXPORT int unlinkat(int dirfd, const char *path, int flags)
{
	struct where w;
	int r = path_find_at(&w, dirfd, path);

	if (!r)
		r = path_through(&w, AT_SYMLINK_NOFOLLOW);
	if (r < 0)
		return (int)done(r);
	if (!w.m || (flags & ~AT_REMOVEDIR))
		return sys.unlinkat(w.dirfd, w.path, flags);
	return (int)done(flags ? rmdir_mapped(&w, path) : plfs_unlink(w.m, w.dirfd, w.path));
}

EXPORT int rmdir(const char *path)
{
	struct where w;
	int r = path_find(&w, AT_FDCWD, path);

	if (r < 0)
		return (int)done(r);
	if (!w.m)
		return sys.rmdir(w.path);
	return (int)done(rmdir_mapped(&w, path));
}

EXPORT int remove(const char *path)
{
	struct where w;
	int r = path_find(&w, AT_FDCWD, path);

	if (!r)
		r = path_through(&w, AT_SYMLINK_NOFOLLOW);
	if (r < 0)
		return (int)done(r);
	if (!w.m)
		return sys.remove(w.path);
	r = plfs_unlink(w.m, w.dirfd, w.path);
	if (r == -EISDIR)
		r = rmdir_mapped(&w, path);
	return (int)done(r);
}

/* ---- rename and link: within one mount, or not at all ---- */

EXPORT int rename(const char *from, const char *to)
{
	struct where a, b;
	int r = path_find_moved(&a, AT_FDCWD, from, &b, AT_FDCWD, to);

	if (r < 0)
		return (int)done(r);
	if (!a.m)
		return sys.rename(a.path, b.path);
	return (int)done(plfs_rename(a.m, a.dirfd, a.path, b.dirfd, b.path, 0));
}

EXPORT int renameat(int fromfd, const char *from, int tofd, const char *to)
{
	struct where a, b;
	int r = path_find_moved(&a, fromfd, from, &b, tofd, to);

	if (r < 0)
		return (int)done(r);
	if (!a.m)
		return sys.renameat(a.dirfd, a.path, b.dirfd, b.path);
	return (int)done(plfs_rename(a.m, a.dirfd, a.path, b.dirfd, b.path, 0));
}

EXPORT int renameat2(int fromfd, const char *from, int tofd, const char *to, unsigned flags)
{
	struct where a, b;
	int r = path_find_moved(&a, fromfd, from, &b, tofd, to);

	if (r < 0)
		return (int)done(r);
	if (!a.m)
		return sys.renameat2(a.dirfd, a.path, b.dirfd, b.path, flags);
	return (int)done(plfs_rename(a.m, a.dirfd, a.path, b.dirfd, b.path, flags));
}

EXPORT int link(const char *from, const char *to)
{
	struct where a, b;
	int r = path_find_linked(&a, AT_FDCWD, from, &b, AT_FDCWD, to);

	if (r >= 0 && a.m)
		r = plfs_link(a.m, a.dirfd, a.path, b.dirfd, b.path, 0);
	else if (r >= 0)
		return sys.link(a.path, b.path);
	return (int)done(r);
}

EXPORT int linkat(int fromfd, const char *from, int tofd, const char *to, int flags)
{
	struct where a, b;
	int r = 0;

	if (from && !*from &&
	    (flags & AT_EMPTY_PATH)) { /* the file open at fromfd: the kernel knows where that is */
		a.dirfd = fromfd;
		a.path = from;
		r = path_find(&b, tofd, to);
	} else {
		r = path_find_linked(&a, fromfd, from, &b, tofd, to);
		if (r >= 0 && a.m)
			return (int)done(plfs_link(a.m, a.dirfd, a.path, b.dirfd, b.path, flags));
	}
	return r < 0 ? (int)done(r) : sys.linkat(a.dirfd, a.path, b.dirfd, b.path, flags);
}

/* ---- symbolic links hold backend paths, so that the kernel can follow them; programs see their own ---- */

/* What to store for @target: a path below a virtual prefix becomes the backend's, into @buf. */
static const char *target_to_store(const char *target, char *buf)
{
	char shown[PATH_MAX];
	struct plfs_mount *m;

	if (!shim_on() || !target || !user_has_byte(target) || *target != '/' ||
	    plfs_path_map(target, buf, &m) != 1)
		return target;
	/* Mapped onto itself, or spelled with the backend's name: the text can stay as it is. */
	if (!path_show(buf, strlen(buf), shown))
		return target;
	return strncmp(target, buf, strlen(buf)) ? buf : target;
}

EXPORT int symlink(const char *target, const char *path)
{
	char buf[PATH_MAX];
	struct where w;
	int r = path_find(&w, AT_FDCWD, path);

	return r < 0 ? (int)done(r) : sys.symlink(target_to_store(target, buf), w.path);
}

EXPORT int symlinkat(const char *target, int dirfd, const char *path)
{
	char buf[PATH_MAX];
	struct where w;
	int r = path_find(&w, dirfd, path);

	return r < 0 ? (int)done(r) : sys.symlinkat(target_to_store(target, buf), w.dirfd, w.path);
}

/* readlink() that shows backend paths as the program's own. */
static ssize_t read_link(const struct where *w, char *buf, size_t len)
{
	char text[PATH_MAX], shown[PATH_MAX];
	ssize_t n = sys.readlinkat(w->dirfd, w->path, text, sizeof(text));
	size_t changed;

	if (n < 0)
		return -errno;
	if (!len)
		return -EINVAL;
	changed = path_show(text, (size_t)n, shown);
	n = (ssize_t)min_size(changed ? changed : (size_t)n, len);
	if (user_writable(buf, (size_t)n) < (size_t)n)
		return -EFAULT;
	memcpy(buf, changed ? shown : text, (size_t)n);
	return n;
}

EXPORT ssize_t readlink(const char *path, char *buf, size_t len)
{
	struct where w;
	int r = path_find(&w, AT_FDCWD, path);

	if (r < 0)
		return done(r);
	if (!shim_active)
		return sys.readlink(w.path, buf, len);
	return done(read_link(&w, buf, len));
}

EXPORT ssize_t readlinkat(int dirfd, const char *path, char *buf, size_t len)
{
	struct where w;
	int r = path_find(&w, dirfd, path);

	if (r < 0)
		return done(r);
	if (!shim_active)
		return sys.readlinkat(w.dirfd, w.path, buf, len);
	return done(read_link(&w, buf, len));
}

EXPORT ssize_t __readlink_chk(const char *path, char *buf, size_t len, size_t room)
{
	if (len > room)
		__chk_fail();
	return readlink(path, buf, len);
}

EXPORT ssize_t __readlinkat_chk(int dirfd, const char *path, char *buf, size_t len, size_t room)
{
	if (len > room)
		__chk_fail();
	return readlinkat(dirfd, path, buf, len);
}

EXPORT char *realpath(const char *path, char *resolved)
{
	char shown[PATH_MAX];
	struct where w;
	size_t len;
	char *out;
	int r = path_find(&w, AT_FDCWD, path);

	if (r < 0) {
		done(r);
		return NULL;
	}
	out = sys.realpath(w.path, resolved);
	if (!shim_active || !out)
		return out;
	len = path_show(out, strlen(out), shown);
	if (!len)
		return out;
	if (!resolved) { /* the program's own malloc: it is the program that frees it */
		free(out);
		return strdup(shown);
	}
	memcpy(resolved, shown, len + 1);
	return resolved;
}

EXPORT char *__realpath_chk(const char *path, char *resolved, size_t room)
{
	if (room < PATH_MAX)
		__chk_fail();
	return realpath(path, resolved);
}

EXPORT char *canonicalize_file_name(const char *path) { return realpath(path, NULL); }

/* ---- making things ---- */

EXPORT int mkdir(const char *path, mode_t mode)
{
	struct where w;
	int r = path_find(&w, AT_FDCWD, path);

	return r < 0 ? (int)done(r) : sys.mkdir(w.path, mode);
}

EXPORT int mkdirat(int dirfd, const char *path, mode_t mode)
{
	struct where w;
	int r = path_find(&w, dirfd, path);

	return r < 0 ? (int)done(r) : sys.mkdirat(w.dirfd, w.path, mode);
}

EXPORT int mknod(const char *path, mode_t mode, dev_t dev)
{
	struct where w;
	int r = path_find(&w, AT_FDCWD, path);

	return r < 0 ? (int)done(r) : sys.mknod(w.path, mode, dev);
}

EXPORT int mknodat(int dirfd, const char *path, mode_t mode, dev_t dev)
{
	struct where w;
	int r = path_find(&w, dirfd, path);

	return r < 0 ? (int)done(r) : sys.mknodat(w.dirfd, w.path, mode, dev);
}

/* What mknod() was before glibc 2.33. */
EXPORT int __xmknod(int ver, const char *path, mode_t mode, dev_t *dev)
{
	(void)ver;
	return mknod(path, mode, *dev);
}

EXPORT int __xmknodat(int ver, int dirfd, const char *path, mode_t mode, dev_t *dev)
{
	(void)ver;
	return mknodat(dirfd, path, mode, *dev);
}

EXPORT int mkfifo(const char *path, mode_t mode)
{
	struct where w;
	int r = path_find(&w, AT_FDCWD, path);

	return r < 0 ? (int)done(r) : sys.mkfifo(w.path, mode);
}

EXPORT int mkfifoat(int dirfd, const char *path, mode_t mode)
{
	struct where w;
	int r = path_find(&w, dirfd, path);

	return r < 0 ? (int)done(r) : sys.mkfifoat(w.dirfd, w.path, mode);
}
