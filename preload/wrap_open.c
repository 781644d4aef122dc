// SPDX-License-Identifier: BSD-3-Clause
/*
 * open, creat, close and the mkstemp family.
 */
#include "fdtable.h"
#include "path.h"
#include "stream.h"

#include <stdlib.h>
#include <sys/random.h>

static inline bool wants_mode(int flags) { return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE; }

EXPORT int open(const char *path, int flags, ...)
{
	struct where w;
	mode_t mode = 0;
	va_list ap;
	int r;

	if (wants_mode(flags)) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	r = ofile_find_and_open(&w, AT_FDCWD, path, flags, mode);
	return r == PATH_NOT_OPENED ? sys.open(w.path, flags, mode) : (int)done(r);
}
ALIAS(open64, open);
ALIAS(__open, open);
ALIAS(__open64, open);

EXPORT int openat(int dirfd, const char *path, int flags, ...)
{
	struct where w;
	mode_t mode = 0;
	va_list ap;
	int r;

	if (wants_mode(flags)) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	r = ofile_find_and_open(&w, dirfd, path, flags, mode);
	return r == PATH_NOT_OPENED ? sys.openat(w.dirfd, w.path, flags, mode) : (int)done(r);
}
ALIAS(openat64, openat);

/*
 * What _FORTIFY_SOURCE makes of an open() without a mode; that O_CREAT then needs one was checked by the
 * compiler.
 */
EXPORT int __open_2(const char *path, int flags) { return open(path, flags, 0); }
ALIAS(__open64_2, __open_2);

EXPORT int __openat_2(int dirfd, const char *path, int flags) { return openat(dirfd, path, flags, 0); }
ALIAS(__openat64_2, __openat_2);

EXPORT int creat(const char *path, mode_t mode)
{
	struct where w;
	int r = ofile_find_and_open(&w, AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);

	return r == PATH_NOT_OPENED ? sys.creat(w.path, mode) : (int)done(r);
}
ALIAS(creat64, creat);

/*
 * The slot is emptied first: once the kernel has the number back another thread may get it. The description
 * ends last: whether anybody else still has an unlinked file open shows only when our own descriptor is
 * closed.
 */
static int close_ours(int fd)
{
	bool section CRITICAL = critical_begin();
	struct ofile *f = fd_take(fd);
	int ret = sys.close(fd), r = f ? ofile_unref(f) : 0;

	return ret < 0 ? ret : (int)done(r);
}

/* Descriptors of the library itself are not the program's to close. */
EXPORT int close(int fd)
{
	if (unlikely(fd_is_ours(fd)))
		return close_ours(fd);
	if (unlikely(sys_fd_is_hidden(fd)))
		return (int)done(-EBADF);
	fd_forget_far(fd);
	return sys.close(fd);
}
ALIAS(__close, close);
SHIM_NAME(shim_close, close);

/* close_range() in pieces, around the library's own descriptors. */
static int close_around_hidden(unsigned first, unsigned last, int flags)
{
	unsigned fd, start = first;
	int r;

	for (fd = first; fd <= last && fd < fdtable_len; fd++) {
		if (!sys_fd_is_hidden((int)fd))
			continue;
		if (start < fd) {
			r = sys.close_range(start, fd - 1, flags);
			if (r < 0)
				return r;
		}
		start = fd + 1;
	}
	return start > last ? 0 : sys.close_range(start, last, flags);
}

EXPORT int close_range(unsigned first, unsigned last, int flags)
{
	unsigned fd;

	if (!shim_on())
		return sys.close_range ? sys.close_range(first, last, flags) : (int)done(-ENOSYS);
	if (!sys.close_range)
		return (int)done(-ENOSYS);
	if (first > last || (flags & ~(int)(CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC)))
		return (int)done(-EINVAL);
	if (!(flags & (int)CLOSE_RANGE_CLOEXEC)) {
		for (fd = first; fd <= last && fd < fdtable_len; fd++)
			if (fd_is_ours((int)fd))
				close((int)fd);
	}
	return close_around_hidden(first, last, flags);
}

EXPORT void closefrom(int first)
{
	if (!shim_on() && sys.closefrom) {
		sys.closefrom(first);
		return;
	}
	close_range(first < 0 ? 0 : (unsigned)first, ~0U, 0);
}

/* ---- temporary files; the C library's own opens them where we cannot see it ---- */

/* Write a random name over the six X of @template before its last @suffix_len bytes. -EINVAL: there are none.
 */
static int new_name(char *template, int suffix_len)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	size_t len = strlen(template), i;
	uint8_t random[6];
	struct timespec now;

	if (suffix_len < 0 || len < 6 + (size_t)suffix_len)
		return -EINVAL;
	if (!sys.getrandom ||
	    sys.getrandom(random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random)) {
		sys.clock_gettime(CLOCK_MONOTONIC, &now);
		memcpy(random, &now.tv_nsec, 4);
		memcpy(random + 4, &now.tv_sec, 2);
	}
	for (i = 0; i < 6; i++)
		template[len - (size_t)suffix_len - 6 + i] = letters[random[i] % (sizeof(letters) - 1)];
	return 0;
}

static bool has_x(const char *template, int suffix_len)
{
	size_t len = strlen(template);

	return suffix_len >= 0 && len >= 6 + (size_t)suffix_len &&
	       !strncmp(template + len - (size_t)suffix_len - 6, "XXXXXX", 6);
}

/*
 * A new file, or with @dir a new directory, named after @template, which is mapped. The descriptor or 0, or
 * -errno.
 */
static int make_temp(char *template, int suffix_len, int flags, bool dir)
{
	struct where w;
	int tries, r = -EEXIST;

	if (!has_x(template, suffix_len))
		return -EINVAL;
	for (tries = 0; tries < TMP_MAX && r == -EEXIST; tries++) {
		r = new_name(template, suffix_len);
		if (!r)
			r = path_find(&w, AT_FDCWD, template);
		if (r < 0)
			break;
		if (dir)
			r = sys.mkdirat(w.dirfd, w.path, 0700) ? -errno : 0;
		else
			r = ofile_open(&w, (flags & ~O_ACCMODE) | O_RDWR | O_CREAT | O_EXCL, 0600, NULL);
	}
	return r;
}

/* Whether the template lies below a mount; the name as it is, for the X are as good as any. */
static bool is_mapped(const char *template)
{
	struct where w;

	return shim_on() && !path_find(&w, AT_FDCWD, template) && w.m;
}

EXPORT int mkostemps(char *template, int suffix_len, int flags)
{
	if (!is_mapped(template))
		return sys.mkostemps(template, suffix_len, flags);
	return (int)done(make_temp(template, suffix_len, flags, false));
}
ALIAS(mkostemps64, mkostemps);

EXPORT int mkostemp(char *template, int flags)
{
	if (!is_mapped(template))
		return sys.mkostemp(template, flags);
	return (int)done(make_temp(template, 0, flags, false));
}
ALIAS(mkostemp64, mkostemp);

EXPORT int mkstemps(char *template, int suffix_len)
{
	if (!is_mapped(template))
		return sys.mkstemps(template, suffix_len);
	return (int)done(make_temp(template, suffix_len, 0, false));
}
ALIAS(mkstemps64, mkstemps);

EXPORT int mkstemp(char *template)
{
	if (!is_mapped(template))
		return sys.mkstemp(template);
	return (int)done(make_temp(template, 0, 0, false));
}
ALIAS(mkstemp64, mkstemp);

EXPORT char *mkdtemp(char *template)
{
	if (!is_mapped(template))
		return sys.mkdtemp(template);
	return done(make_temp(template, 0, 0, true)) < 0 ? NULL : template;
}
