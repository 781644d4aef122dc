/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stat family, access, and what is asked of a file system. The kernel answers for the stub; core then
 * corrects what differs, on every result, because any road may lead to a stub.
 */
#include "fdtable.h"
#include "path.h"

#define TRIES 100 /* each time the name leads elsewhere */

static COLD int stat_again(struct stat *st, const struct plfs_name *name)
{
	for (int tries = 0; tries < TRIES; tries++) {
		if (sys.fstatat(name->dirfd, name->path, st, name->at_flags))
			return -1;
		if (plfs_fix_stat(st, name))
			return 0;
	}
	plfs_fix_stat(st, NULL);
	return 0;
}

static inline int stat_done(int r, struct stat *st, int dirfd, const char *path, int flags, uint64_t ended)
{
	const struct plfs_name name = {dirfd, path, flags, ended};

	if (r == 0 &&
	    (plfs_maybe_stub(st->st_mode) || S_ISDIR(st->st_mode) ||
	     plfs_maybe_unmarked(st, ended != UINT64_MAX)) &&
	    shim_active && !plfs_fix_stat(st, &name))
		r = stat_again(st, &name);
	return r;
}

/* Not below a mount by its name; it may be all the same. */
static inline int far_done(int r, struct stat *st, int dirfd, const char *path, int flags)
{
	return stat_done(r, st, dirfd, path, flags, UINT64_MAX);
}

/* All of them but statx(), @w found. */
static COLD int stat_near(int dirfd, const char *path, struct stat *st, int flags)
{
	struct where w;
	int r = path_find_at(&w, dirfd, path);
	uint64_t ended = plfs_before_stat();

	if (r < 0)
		return (int)done(r);
	r = stat_done(sys.fstatat(w.dirfd, w.path, st, flags), st, w.dirfd, w.path, flags, ended);
	if (r == 0 && w.m && S_ISLNK(st->st_mode))
		st->st_size = path_shown_link_len(&w, st->st_size);
	return r;
}

EXPORT HOT int stat(const char *path, struct stat *st)
{
	return likely(path_is_far(AT_FDCWD, path)) ? far_done(sys.stat(path, st), st, AT_FDCWD, path, 0)
	                                           : stat_near(AT_FDCWD, path, st, 0);
}
ALIAS64(stat64, stat);

EXPORT HOT int lstat(const char *path, struct stat *st)
{
	const int flags = AT_SYMLINK_NOFOLLOW;

	return likely(path_is_far(AT_FDCWD, path)) ? far_done(sys.lstat(path, st), st, AT_FDCWD, path, flags)
	                                           : stat_near(AT_FDCWD, path, st, flags);
}
ALIAS64(lstat64, lstat);

EXPORT HOT int fstat(int fd, struct stat *st)
{
	fd = fd_seen(fd);
	return far_done(sys.fstat(fd, st), st, fd, "", AT_EMPTY_PATH);
}
ALIAS64(fstat64, fstat);

EXPORT HOT int fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
	return likely(path_is_far(dirfd, path)) ?
		       far_done(sys.fstatat(dirfd, path, st, flags), st, dirfd, path, flags) :
		       stat_near(dirfd, path, st, flags);
}
ALIAS64(fstatat64, fstatat);

static COLD int statx_again(struct statx *stx, unsigned mask, const struct plfs_name *name)
{
	for (int tries = 0; tries < TRIES; tries++) {
		if (sys.statx(name->dirfd, name->path, name->at_flags, mask, stx))
			return -1;
		if (plfs_fix_statx(stx, name))
			return 0;
	}
	plfs_fix_statx(stx, NULL);
	return 0;
}

static inline bool statx_maybe_unmarked(const struct statx *stx, bool near)
{
	const struct stat st = {
		.st_mode = stx->stx_mode,
		.st_size = (off_t)stx->stx_size,
		.st_blocks = (blkcnt_t)stx->stx_blocks,
	};

	return plfs_maybe_unmarked(&st, near);
}

static inline int statx_done(int r, struct statx *stx, int dirfd, const char *path, int flags, unsigned mask,
			     uint64_t ended)
{
	const struct plfs_name name = {dirfd, path, flags, ended};

	if (r == 0 &&
	    (plfs_maybe_stub(stx->stx_mode) || S_ISDIR(stx->stx_mode) ||
	     statx_maybe_unmarked(stx, ended != UINT64_MAX)) &&
	    shim_active && !plfs_fix_statx(stx, &name))
		r = statx_again(stx, mask, &name);
	return r;
}

static COLD int statx_near(int dirfd, const char *path, int flags, unsigned mask,
                                                struct statx *stx)
{
	struct where w;
	int r = path_find_at(&w, dirfd, path);
	uint64_t ended = plfs_before_stat();

	if (r < 0)
		return (int)done(r);
	r = statx_done(sys.statx(w.dirfd, w.path, flags, mask, stx), stx, w.dirfd, w.path, flags, mask,
		       ended);
	if (r == 0 && w.m && S_ISLNK(stx->stx_mode))
		stx->stx_size = (uint64_t)path_shown_link_len(&w, (off_t)stx->stx_size);
	return r;
}

EXPORT HOT int statx(int dirfd, const char *path, int flags, unsigned mask, struct statx *stx)
{
	mask |= STATX_MODE | STATX_TYPE;
	if (likely(path_is_far(dirfd, path)))
		return statx_done(sys.statx(dirfd, path, flags, mask, stx), stx, dirfd, path, flags, mask,
				  UINT64_MAX);
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

/* ---- file systems ---- */

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

EXPORT int fstatfs(int fd, struct statfs *buf) { return sys.fstatfs(fd_seen(fd), buf); }
ALIAS64(fstatfs64, fstatfs);

EXPORT int fstatvfs(int fd, struct statvfs *buf) { return sys.fstatvfs(fd_seen(fd), buf); }
ALIAS64(fstatvfs64, fstatvfs);

EXPORT long fpathconf(int fd, int name) { return sys.fpathconf(fd_seen(fd), name); }
