/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * open, creat and close.
 */
#include "adopt.h"
#include "fdtable.h"
#include "open_path.h"
#include "path.h"
#include "stream.h"

static inline bool wants_mode(int flags) { return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE; }

static COLD int open_near(const char *path, int flags, mode_t mode, int r)
{
	struct where w;

	r = ofile_find_and_open(&w, AT_FDCWD, path, flags, mode, r);
	return r == PATH_NOT_OPENED ? sys.open(w.path, flags, mode) : (int)done(r);
}

EXPORT HOT int open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;
	int r;

	if (wants_mode(flags)) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	if (!shim_on())
		return sys.open(path, flags, mode);
	r = path_is_far(AT_FDCWD, path) ? path_open_plain(AT_FDCWD, path, flags, mode) : -ENOSYS;
	return likely(r >= 0) ? r : open_near(path, flags, mode, r);
}
ALIAS(open64, open);
ALIAS(__open, open);
ALIAS(__open64, open);

static COLD int openat_near(int dirfd, const char *path, int flags, mode_t mode, int r)
{
	struct where w;

	r = ofile_find_and_open(&w, dirfd, path, flags, mode, r);
	return r == PATH_NOT_OPENED ? sys.openat(w.dirfd, w.path, flags, mode) : (int)done(r);
}

EXPORT HOT int openat(int dirfd, const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;
	int r;

	if (wants_mode(flags)) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	if (!shim_on())
		return sys.openat(dirfd, path, flags, mode);
	r = path_is_far(dirfd, path) ? path_open_plain(dirfd, path, flags, mode) : -ENOSYS;
	return likely(r >= 0) ? r : openat_near(dirfd, path, flags, mode, r);
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
	int r;

	if (!shim_on())
		return sys.creat(path, mode);
	r = ofile_find_and_open(&w, AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode, -ENOSYS);
	return r == PATH_NOT_OPENED ? sys.creat(w.path, mode) : (int)done(r);
}
ALIAS(creat64, creat);

/*
 * The slot is emptied first: once the kernel has the number back another thread may get it. The description
 * ends last: whether anybody else still has an unlinked file open shows only when our own descriptor is
 * closed.
 */
static COLD int close_ours(int fd)
{
	bool section CRITICAL = critical_begin();
	struct ofile *f;
	int ret, r;

	if (fd_is_hidden(fd))
		return (int)done(-EBADF);
	f = fd_take(fd);
	ret = io_close(fd);
	r = f ? ofile_unref(f) : 0;
	return ret < 0 ? ret : (int)done(r);
}

/* Descriptors of the library itself are not the program's to close. */
EXPORT HOT int close(int fd)
{
	if (unlikely(fd_is_ours(fd))) {
		pthread_testcancel();
		return close_ours(fd);
	}
	fd_forget_far(fd);
	return sys.close(fd);
}
ALIAS(__close, close);
SHIM_NAME(shim_close, close);

/* close_range() in pieces, around the library's own descriptors. */
static int close_around_hidden(unsigned first, unsigned last, int flags)
{
	unsigned low = (unsigned)__atomic_load_n(&fd_hidden_low, __ATOMIC_RELAXED), fd, start = first;
	int r;

	for (fd = first > low ? first : low; fd <= last && fd < SYS_FD_HIDDEN_LIMIT; fd++) {
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
	if (sys.close_range(~0U, ~0U, 0)) /* an old kernel has none: before anything of ours is closed */
		return -1;
	if (!(flags & (int)CLOSE_RANGE_CLOEXEC)) {
		for (fd = first; fd <= last && fd < fdtable_top; fd++) {
			if (fd_is_ours((int)fd) && !fd_is_hidden((int)fd))
				close((int)fd);
			fd_forget_far((int)fd);
		}
	}
	return close_around_hidden(first, last, flags);
}

static void close_if_from(int fd, int first)
{
	if (fd >= first)
		close(fd);
}

EXPORT void closefrom(int first)
{
	int saved ERRNO_KEPT = errno;

	if (!shim_on() && sys.closefrom) {
		sys.closefrom(first);
		return;
	}
	if (close_range(first < 0 ? 0 : (unsigned)first, ~0U, 0) && errno == ENOSYS)
		fd_each_open(close_if_from, first);
}
