// SPDX-License-Identifier: BSD-3-Clause
/*
 * The stat family, access, and what is asked of a file system. The kernel answers for the stub; core then
 * corrects what differs, on every result, because any road may lead to a stub.
 */
#include "fdtable.h"
#include "path.h"

static int stat_done(int r, struct stat *st)
{
	if (r == 0 && (plfs_maybe_stub(st->st_mode) || S_ISDIR(st->st_mode)) && shim_active)
		plfs_fix_stat(st);
	return r;
}

/* stat_done() for a path that may be a symbolic link's. */
static int lstat_done(int r, struct stat *st, const struct where *w)
{
	if (r == 0 && w->m && S_ISLNK(st->st_mode))
		st->st_size = path_shown_link_len(w, st->st_size);
	return stat_done(r, st);
}

static COLD int stat_near(const char *path, struct stat *st)
{
	struct where w;
	int r = path_find_at(&w, AT_FDCWD, path);

	if (r < 0)
		return (int)done(r);
	return stat_done(w.m ? sys.fstatat(w.dirfd, w.path, st, 0) : sys.stat(w.path, st), st);
}

EXPORT HOT int stat(const char *path, struct stat *st)
{
	return likely(path_is_far(AT_FDCWD, path)) ? stat_done(sys.stat(path, st), st) : stat_near(path, st);
}
ALIAS64(stat64, stat);

static COLD int lstat_near(const char *path, struct stat *st)
{
	struct where w;
	int r = path_find_at(&w, AT_FDCWD, path);

	if (r < 0)
		return (int)done(r);
	return lstat_done(w.m ? sys.fstatat(w.dirfd, w.path, st, AT_SYMLINK_NOFOLLOW) : sys.lstat(w.path, st), st, &w);
}

EXPORT HOT int lstat(const char *path, struct stat *st)
{
	return likely(path_is_far(AT_FDCWD, path)) ? stat_done(sys.lstat(path, st), st) : lstat_near(path, st);
}
ALIAS64(lstat64, lstat);

EXPORT HOT int fstat(int fd, struct stat *st)
{
	shim_on();
	return stat_done(sys.fstat(fd, st), st);
}
ALIAS64(fstat64, fstat);

static COLD int fstatat_near(int dirfd, const char *path, struct stat *st, int flags)
{
	struct where w;
	int r = path_find_at(&w, dirfd, path);

	return r < 0 ? (int)done(r) : lstat_done(sys.fstatat(w.dirfd, w.path, st, flags), st, &w);
}

EXPORT HOT int fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
	if (likely(path_is_far(dirfd, path)))
		return stat_done(sys.fstatat(dirfd, path, st, flags), st);
	return fstatat_near(dirfd, path, st, flags);
}
ALIAS64(fstatat64, fstatat);

static inline int statx_done(int r, struct statx *stx)
{
	if (r == 0 && (plfs_maybe_stub(stx->stx_mode) || S_ISDIR(stx->stx_mode)) && shim_active)
		plfs_fix_statx(stx);
	return r;
}

static COLD int statx_near(int dirfd, const char *path, int flags, unsigned mask,
                                                struct statx *stx)
{
	struct where w;
	int r = path_find_at(&w, dirfd, path);

	if (r < 0)
		return (int)done(r);
	r = statx_done(sys.statx(w.dirfd, w.path, flags, mask, stx), stx);
	if (r == 0 && w.m && S_ISLNK(stx->stx_mode))
		stx->stx_size = (uint64_t)path_shown_link_len(&w, (off_t)stx->stx_size);
	return r;
}

EXPORT HOT int statx(int dirfd, const char *path, int flags, unsigned mask, struct statx *stx)
{
	mask |= STATX_MODE | STATX_TYPE;
	if (likely(path_is_far(dirfd, path)))
		return statx_done(sys.statx(dirfd, path, flags, mask, stx), stx);
	return statx_near(dirfd, path, flags, mask, stx);
}

/*
 * Programs built against glibc before 2.33 call these. @ver is the layout of struct stat; there has only been
 * one on 64-bit machines, with a second number for the kernel's.
 */
EXPORT int __xstat(int ver, const char *path, struct stat *st)
{
	(void)ver;
	return stat(path, st);
}
ALIAS64(__xstat64, __xstat);

EXPORT int __lxstat(int ver, const char *path, struct stat *st)
{
	(void)ver;
	return lstat(path, st);
}
ALIAS64(__lxstat64, __lxstat);

EXPORT int __fxstat(int ver, int fd, struct stat *st)
{
	(void)ver;
	return fstat(fd, st);
}
ALIAS64(__fxstat64, __fxstat);

EXPORT int __fxstatat(int ver, int dirfd, const char *path, struct stat *st, int flags)
{
	(void)ver;
	return fstatat(dirfd, path, st, flags);
}
ALIAS64(__fxstatat64, __fxstatat);

/* ---- access ---- */

static COLD int access_near(const char *path, int mode)
{
	struct where w;
	int r = path_find(&w, AT_FDCWD, path);

	return r < 0 ? (int)done(r) : sys.access(w.path, mode);
}

EXPORT HOT int access(const char *path, int mode)
{
	return likely(path_is_far(AT_FDCWD, path)) ? sys.access(path, mode) : access_near(path, mode);
}

EXPORT int euidaccess(const char *path, int mode)
{
	struct where w;
	int r = path_find(&w, AT_FDCWD, path);

	return r < 0 ? (int)done(r) : sys.euidaccess(w.path, mode);
}
ALIAS(eaccess, euidaccess);

EXPORT int faccessat(int dirfd, const char *path, int mode, int flags)
{
	struct where w;
	int r = path_find(&w, dirfd, path);

	return r < 0 ? (int)done(r) : sys.faccessat(w.dirfd, w.path, mode, flags);
}

/* ---- file systems; those of a descriptor need no help ---- */

EXPORT int statfs(const char *path, struct statfs *buf)
{
	struct where w;
	int r = path_find(&w, AT_FDCWD, path);

	return r < 0 ? (int)done(r) : sys.statfs(w.path, buf);
}
ALIAS64(statfs64, statfs);
ALIAS(__statfs, statfs);

EXPORT int statvfs(const char *path, struct statvfs *buf)
{
	struct where w;
	int r = path_find(&w, AT_FDCWD, path);

	return r < 0 ? (int)done(r) : sys.statvfs(w.path, buf);
}
ALIAS64(statvfs64, statvfs);

EXPORT long pathconf(const char *path, int name)
{
	struct where w;
	int r = path_find(&w, AT_FDCWD, path);

	return r < 0 ? done(r) : sys.pathconf(w.path, name);
}
