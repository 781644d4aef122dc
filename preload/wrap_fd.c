/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors as such: duplicating them, and their flags.
 */
#include "fdtable.h"
#include "lock.h"
#include "stream.h"

/* @fd is a new duplicate of the descriptor that @f (may be NULL) belongs to. Takes over the reference. */
static int installed(int fd, struct ofile *f)
{
	int r;

	if (!f)
		return fd;
	if (fd < 0) {
		fd_put(f);
		return fd;
	}
	r = fd_install_got(fd, f);
	if (r < 0)
		sys.close(fd);
	return r < 0 ? (int)done(r) : fd;
}

EXPORT int dup(int fd)
{
	struct ofile *f = fd_get_any(&fd);

	return likely(!f) ? sys.dup(fd) : installed(sys.dup(fd), f);
}

/* Bookkeeping after the kernel has put a duplicate onto @to. Takes over the reference to @f. */
static int replaced(int to, struct ofile *f)
{
	if (f)
		return installed(to, f);
	fd_drop(to);
	return to;
}

/* Whether nothing is known of @fd that would have to be forgotten when it is replaced. */
static inline bool is_plain(int fd) { return !fd_is_ours(fd) && !fd_is_far(fd); }

/* Whether nothing else of this process can be using the library's descriptors now. */
static bool is_alone(void)
{
	struct stat st;

	if (critical.depth || critical.paused)
		return false;
	/* ".", ".." and one thread */
	return __libc_single_threaded || (!sys.stat("/proc/self/task", &st) && st.st_nlink == 3);
}

/* Let the program have the number @to, which is the library's own. 0 or -errno. */
static int make_room(int from, int to)
{
	int saved ERRNO_KEPT = errno;
	struct rlimit lim;

	if (from == to || sys.fcntl(fd_seen(from), F_GETFD) < 0)
		return -EBADF;
	if (!sys.getrlimit(RLIMIT_NOFILE, &lim) && (rlim_t)to >= lim.rlim_cur)
		return -EBADF;
	return is_alone() && !plfs_free_number(to) ? 0 : -EBUSY;
}

/* Where the number cannot be had, dup2() says EBUSY, as in a race with open(). */
static COLD int dup_onto_hidden(int from, int to, int flags)
{
	int saved, r = make_room(from, to);

	if (r < 0)
		return (int)done(r);
	r = shim_dup3(from, to, flags);
	if (r < 0) {
		saved = errno;
		sys.close(to);
		errno = saved;
	}
	return r;
}

EXPORT int dup2(int from, int to)
{
	struct ofile *f;
	int r;

	if (unlikely(fd_is_hidden(to)))
		return dup_onto_hidden(from, to, 0);
	f = fd_get_any(&from);
	if (likely(!f && is_plain(to)))
		return sys.dup2(from, to);
	r = sys.dup2(from, to);
	if (r < 0 || from == to) {
		if (f)
			fd_put(f);
		return r;
	}
	return replaced(to, f);
}
ALIAS(__dup2, dup2);

EXPORT int dup3(int from, int to, int flags)
{
	struct ofile *f;
	int r;

	if (unlikely(fd_is_hidden(to)))
		return from == to || flags & ~O_CLOEXEC ? (int)done(-EINVAL) :
							  dup_onto_hidden(from, to, flags);
	f = fd_get_any(&from);
	if (likely(!f && is_plain(to)))
		return sys.dup3(from, to, flags);
	r = sys.dup3(from, to, flags);
	if (r < 0) {
		if (f)
			fd_put(f);
		return r;
	}
	return replaced(to, f);
}
SHIM_NAME(shim_dup3, dup3);

/* ---- fcntl ---- */

/* The access mode and the flags that the kernel may not know about are ours, the rest is the kernel's. */
#define OUR_FLAGS (O_ACCMODE | O_APPEND | O_DIRECT | O_SYNC | O_LARGEFILE)

static int get_flags(struct ofile *f, int fd)
{
	int flags = sys.fcntl(fd, F_GETFL);

	ofile_learn_flags(f, fd);
	return flags < 0 ? -errno : (flags & ~OUR_FLAGS) | (f->flags & OUR_FLAGS);
}

/*
 * O_APPEND does not go onto a kernel description that was opened without it: core writes the stub's size
 * through that one, and pwrite() on an appending description ignores its offset. (One that was opened so has
 * another beside it.)
 */
static int set_flags(struct ofile *f, int fd, int flags)
{
	const int settable = O_APPEND | O_ASYNC | O_DIRECT | O_NOATIME | O_NONBLOCK;
	int r, kept_here;

	mutex_lock(&f->lock);
	ofile_learn_locked(f, fd);
	kept_here = O_DIRECT | (f->opened_append ? 0 : O_APPEND);
	r = sys.fcntl(fd, F_SETFL, flags & ~kept_here) < 0 ? -errno : 0;
	if (r)
		goto out;
	if (flags & ~f->flags & O_DIRECT)
		ofile_set_direct(f, fd);
	f->flags = (f->flags & ~settable) | (flags & settable);
	if (f->shared)
		ofile_mark_for_heirs(f, fd);
out:
	mutex_unlock(&f->lock);
	return r;
}

/* fcntl() on a logical file; -errno. */
static int fcntl_ours(struct ofile *f, int fd, int cmd, void *arg)
{
	int r;

	switch (cmd) {
	case F_GETFL:
		return get_flags(f, fd);
	case F_SETFL:
		return set_flags(f, fd, (int)(intptr_t)arg);
	/* A regular file sends none; the kernel's is ours (ofile_mark_for_heirs()). */
	case F_SETSIG:
		if ((intptr_t)arg < 0 || (intptr_t)arg > 64)
			return -EINVAL;
		f->program_signal = (int)(intptr_t)arg;
		return 0;
	case F_GETSIG:
		return f->program_signal;
	/* the stub's would be broken by every open of ours, and never granted while we write */
	case F_SETLEASE:
		return (int)refused("lease", EINVAL);
	default:
		r = sys.fcntl(fd, cmd, arg);
		return r < 0 ? -errno : r;
	}
}

EXPORT int fcntl(int fd, int cmd, ...)
{
	struct ofile *f = fd_get_any(&fd);
	va_list ap;
	void *arg;

	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (!f) {
		if (unlikely(cmd == F_SETLK || cmd == F_SETLKW))
			plfs_note_plain_lock();
		return sys.fcntl(fd, cmd, arg);
	}
	if (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC)
		return installed(sys.fcntl(fd, cmd, arg), f);
	if (f->kind != OFILE_FILE) {
		fd_put(f);
		return sys.fcntl(fd, cmd, arg);
	}
	if (lock_is_command(cmd))
		return (int)done(lock_fcntl(f, fd, cmd, arg));
	return (int)fd_done(f, fcntl_ours(f, fd, cmd, arg));
}
ALIAS(fcntl64, fcntl);
ALIAS(__fcntl, fcntl);
SHIM_NAME(shim_fcntl, fcntl);
