/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Directories: opened by translated paths, and listed without the container directory.
 */
#include "bynumber.h"
#include "fdtable.h"
#include "path.h"

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

EXPORT DIR *fdopendir(int fd) { return sys.fdopendir(fd_seen(fd)); }

EXPORT int closedir(DIR *dir)
{
	if (shim_on() && dir)
		fd_drop(sys.dirfd(dir));
	return sys.closedir(dir);
}

/*
 * Whether @name, found in @dirfd, is the container directory, or a descriptor of the library's own. Asks the
 * kernel only when such a name comes up.
 */
static bool is_hidden(int dirfd, const char *name)
{
	struct stat st;

	if (unlikely(name[0] >= '0' && name[0] <= '9'))
		return shim_active && path_lists_hidden(dirfd, name);
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

/*
 * Take what programs do not see out of the @n bytes of entries, whose names begin at @name_at. What is left.
 */
static ssize_t without_hidden(int fd, char *buf, ssize_t n, size_t name_at)
{
	uint16_t len;
	ssize_t at;

	for (at = 0; at < n;) {
		memcpy(&len, buf + at + offsetof(struct dirent64, d_reclen), sizeof(len));
		if (likely(!is_hidden(fd, buf + at + name_at))) {
			at += len;
			continue;
		}
		memmove(buf + at, buf + at + len, (size_t)(n - at) - len);
		n -= len;
	}
	return n;
}

EXPORT ssize_t getdents64(int fd, void *buf, size_t len)
{
	ssize_t n, left;

	fd = fd_seen(fd);
	do {
		n = sys.getdents64(fd, buf, len);
		left = n > 0 ? without_hidden(fd, buf, n, offsetof(struct dirent64, d_name)) : n;
	} while (n > 0 && !left); /* nothing else was there: 0 would mean the end */
	return left;
}

/* An old name for it, which also says where it began. */
EXPORT ssize_t getdirentries(int fd, char *restrict buf, size_t len, off_t *restrict base)
{
	off_t began = sys.lseek(fd_seen(fd), 0, SEEK_CUR);
	ssize_t n = began < 0 ? -1 : getdents64(fd, buf, len);

	if (n >= 0)
		*base = began;
	return n;
}
ALIAS64(getdirentries64, getdirentries);

long bynumber_getdents(long nr, int fd, void *buf, size_t len, size_t name_at)
{
	ssize_t n, left;

	fd = fd_seen(fd);
	do {
		n = sys.syscall(nr, fd, buf, len);
		left = n > 0 ? without_hidden(fd, buf, n, name_at) : n;
	} while (n > 0 && !left);
	return left;
}

/*
 * ---- scandir: the program's filter behind our own. It has no argument to pass things in, hence the thread's
 * variables. ----
 */

static __thread int (*user_filter)(const struct dirent *) __attribute__((tls_model("initial-exec")));

static __thread int listed_fd __attribute__((tls_model("initial-exec"))); /* the directory */

static int filter_hidden(const struct dirent *e)
{
	if (is_hidden(listed_fd, e->d_name))
		return 0;
	return user_filter ? user_filter(e) : 1;
}

static bool may_list_descriptors(const char *path)
{
	return shim_active && path && (!strncmp(path, "/proc/", 6) || !strncmp(path, "/dev/fd", 7));
}

EXPORT int scandirat(int dirfd, const char *path, struct dirent ***list, int (*filter)(const struct dirent *),
                     int (*compar)(const struct dirent **, const struct dirent **))
{
	int (*outer)(const struct dirent *) = user_filter, outer_fd = listed_fd;
	struct where w;
	int fd, r = path_find(&w, dirfd, path);

	if (r < 0)
		return (int)done(r);
	fd = w.m || may_list_descriptors(w.path) ?
		     sys_fd_hide(sys.openat(w.dirfd, w.path, O_PATH | O_DIRECTORY | O_CLOEXEC)) :
		     -1;
	if (fd < 0)
		return sys.scandirat(w.dirfd, w.path, list, filter, compar);
	user_filter = filter;
	listed_fd = fd;
	r = sys.scandirat(w.dirfd, w.path, list, filter_hidden, compar);
	user_filter = outer;
	listed_fd = outer_fd;
	sys_fd_close(&fd);
	return r;
}
ALIAS64(scandirat64, scandirat);

EXPORT int scandir(const char *path, struct dirent ***list, int (*filter)(const struct dirent *),
                   int (*compar)(const struct dirent **, const struct dirent **))
{
	return scandirat(AT_FDCWD, path, list, filter, compar);
}
ALIAS64(scandir64, scandir);
