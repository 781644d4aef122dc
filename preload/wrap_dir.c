// SPDX-License-Identifier: BSD-3-Clause
/*
 * Directories: opened by translated paths, and listed without the container directory. The walkers (ftw,
 * nftw, fts, glob) open what they walk inside the C library; on a mapped path they are refused.
 */
#include "fdtable.h"
#include "path.h"

#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <stdlib.h>

/* A stream on a mapped directory: its descriptor may be used in the *at calls. */
static DIR *opened(DIR *dir, struct plfs_mount *m)
{
	struct ofile *f;

	if (!dir || !m)
		return dir;
	f = ofile_new_dir(m, NULL);
	if (f)
		fd_install(sys.dirfd(dir), f);
	return dir;
}

EXPORT DIR *opendir(const char *path)
{
	struct where w;
	int r = path_find(&w, AT_FDCWD, path);

	if (r < 0) {
		done(r);
		return NULL;
	}
	return opened(sys.opendir(w.path), w.m);
}

EXPORT int closedir(DIR *dir)
{
	if (shim_on() && dir)
		fd_drop(sys.dirfd(dir));
	return sys.closedir(dir);
}

/* Whether @name, found in @dirfd, is the container directory. Asks the kernel only when the name comes up. */
static bool is_hidden(int dirfd, const char *name)
{
	struct stat st;

	if (likely(name[0] != PLFS_DIR_NAME[0] || strcmp(name, PLFS_DIR_NAME)) || !shim_active)
		return false;
	return !sys.fstat(dirfd, &st) && plfs_is_root(st.st_dev, st.st_ino);
}

EXPORT struct dirent *readdir(DIR *dir)
{
	struct dirent *e;

	shim_on();
	do {
		e = sys.readdir(dir);
	} while (e && is_hidden(sys.dirfd(dir), e->d_name));
	return e;
}
ALIAS64(readdir64, readdir);

EXPORT int readdir_r(DIR *dir, struct dirent *entry, struct dirent **result)
{
	int r;

	shim_on();
	do {
		r = sys.readdir_r(dir, entry, result);
	} while (!r && *result && is_hidden(sys.dirfd(dir), (*result)->d_name));
	return r;
}
ALIAS64(readdir64_r, readdir_r);

EXPORT ssize_t getdents64(int fd, void *buf, size_t len)
{
	struct dirent64 *e;
	ssize_t n, at;
	size_t gone;

	shim_on();
	do {
		n = sys.getdents64(fd, buf, len);
		if (n <= 0)
			return n;
		for (at = 0; at < n; at += e->d_reclen) {
			e = (struct dirent64 *)((char *)buf + at);
			if (!is_hidden(fd, e->d_name))
				continue;
			gone = e->d_reclen;
			memmove(e, (char *)e + gone, (size_t)n - (size_t)at - gone);
			n -= (ssize_t)gone;
			break;
		}
	} while (!n); /* it was alone: 0 would mean the end */
	return n;
}

/*
 * ---- scandir: the program's filter behind our own. It has no argument to pass things in, hence the thread's
 * variables. ----
 */

static __thread int (*user_filter)(const struct dirent *) __attribute__((tls_model("initial-exec")));

static int filter_hidden(const struct dirent *e)
{
	if (!strcmp(e->d_name, PLFS_DIR_NAME))
		return 0;
	return user_filter ? user_filter(e) : 1;
}

EXPORT int scandirat(int dirfd, const char *path, struct dirent ***list, int (*filter)(const struct dirent *),
                     int (*compar)(const struct dirent **, const struct dirent **))
{
	int (*outer)(const struct dirent *) = user_filter;
	struct stat st;
	struct where w;
	int r = path_find(&w, dirfd, path);

	if (r < 0)
		return (int)done(r);
	if (!w.m || sys.fstatat(w.dirfd, w.path, &st, 0) || !plfs_is_root(st.st_dev, st.st_ino))
		return sys.scandirat(w.dirfd, w.path, list, filter, compar);
	user_filter = filter;
	r = sys.scandirat(w.dirfd, w.path, list, filter_hidden, compar);
	user_filter = outer;
	return r;
}
ALIAS64(scandirat64, scandirat);

EXPORT int scandir(const char *path, struct dirent ***list, int (*filter)(const struct dirent *),
                   int (*compar)(const struct dirent **, const struct dirent **))
{
	return scandirat(AT_FDCWD, path, list, filter, compar);
}
ALIAS64(scandir64, scandir);

/* ---- walkers ---- */

static bool is_mapped(const char *path)
{
	struct where w;

	return !path_find(&w, AT_FDCWD, path) && w.m;
}

EXPORT int ftw(const char *path, __ftw_func_t fn, int nr_fds)
{
	if (is_mapped(path))
		return (int)done(refused("ftw", ENOSYS));
	return sys.ftw(path, fn, nr_fds);
}
ALIAS64(ftw64, ftw);

EXPORT int nftw(const char *path, __nftw_func_t fn, int nr_fds, int flags)
{
	if (is_mapped(path))
		return (int)done(refused("nftw", ENOSYS));
	return sys.nftw(path, fn, nr_fds, flags);
}
ALIAS64(nftw64, nftw);

EXPORT FTS *fts_open(char *const *paths, int options, int (*compar)(const FTSENT **, const FTSENT **))
{
	char *const *p;

	for (p = paths; *p; p++) {
		if (!is_mapped(*p))
			continue;
		done(refused("fts_open", ENOSYS));
		return NULL;
	}
	return sys.fts_open(paths, options, compar);
}

EXPORT FTS64 *fts64_open(char *const *paths, int options, int (*compar)(const FTSENT64 **, const FTSENT64 **))
{
	char *const *p;

	for (p = paths; *p; p++) {
		if (!is_mapped(*p))
			continue;
		done(refused("fts64_open", ENOSYS));
		return NULL;
	}
	return sys.fts64_open(paths, options, compar);
}

EXPORT int glob(const char *pattern, int flags, int (*errfunc)(const char *path, int err), glob_t *out)
{
	if (is_mapped(pattern)) {
		done(refused("glob", ENOSYS));
		return GLOB_ABORTED;
	}
	return sys.glob(pattern, flags, errfunc, out);
}
ALIAS64(glob64, glob);
