/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls that open, reopen and close streams. What happens in between is stream.c's.
 */
#include "fdtable.h"
#include "open_path.h"
#include "path.h"
#include "stream.h"
#include "through.h"

#include <execinfo.h>
#include <mntent.h>
#include <stdlib.h>

/*
 * fdopen() of a file of the C library's that has just been opened for it: where fopen() would stand, which is
 * at the end of one that is only appended to.
 */
static FILE *fdopen_new(int fd, const char *mode, const struct stream_mode *m)
{
	if ((m->flags & (O_APPEND | O_ACCMODE)) == (O_APPEND | O_WRONLY))
		sys.lseek(fd, 0, SEEK_END);
	return sys.fdopen(fd, mode);
}

/* A stream for a mapped path; NULL and errno. */
static FILE *fopen_mapped(const struct where *w, const char *mode)
{
	struct stream_mode m;
	bool logical;
	FILE *fp;
	int fd, saved, r = stream_parse_mode(mode, &m);

	fd = r < 0 ? r : ofile_open(w, m.flags, 0666, &logical);
	if (fd < 0) {
		done(fd);
		return NULL;
	}
	fp = logical ? stream_open(fd, &m, false) : fdopen_new(fd, mode, &m);
	if (!fp) {
		saved = errno;
		shim_close(fd);
		errno = saved;
	}
	return fp;
}

/*
 * fopen() of what path_find() left to the kernel, in two steps, so that the first can be told to follow no
 * links. NULL and errno in *@err; 0: it has to be found out where the path leads, and whether the mode makes
 * sense.
 */
static FILE *fopen_plain(const char *path, const char *mode, int *err)
{
	struct stream_mode m;
	FILE *fp = NULL;
	int fd = -ELOOP;

	*err = 0;
	if (strlen(mode) < 5 && !mode[1 + strspn(mode + 1, "b+ex")] && !stream_parse_mode(mode, &m))
		fd = path_open_plain(AT_FDCWD, path, m.flags, 0666);
	if (path_is_undecided(fd))
		return NULL;
	if (fd >= 0)
		fp = fdopen_new(fd, mode, &m);
	*err = fd < 0 ? -fd : errno;
	if (fd >= 0 && !fp)
		sys.close(fd);
	return fp;
}

EXPORT FILE *fopen(const char *path, const char *mode)
{
	struct where w;
	FILE *fp = NULL;
	int err, r = path_find_at(&w, AT_FDCWD, path);

	if (!r && !w.m && shim_active) {
		fp = fopen_plain(w.path, mode, &err);
		r = fp ? 0 : err ? -err : path_look(&w, *mode == 'r' ? 0 : O_CREAT);
	}
	if (r < 0)
		done(r);
	if (r < 0 || fp)
		return fp;
	return w.m ? fopen_mapped(&w, mode) : sys.fopen(w.path, mode);
}
ALIAS(fopen64, fopen);
ALIAS(_IO_fopen, fopen);

/*
 * Whether a stream of @want's mode may be made on @f, as glibc checks it; "a" adds O_APPEND. *@appended: it
 * was there. 0 or -errno.
 */
static int check_fdopen(struct ofile *f, int fd, const struct stream_mode *want, bool *appended)
{
	int acc = want->flags & O_ACCMODE, flags;

	if ((acc != O_WRONLY && !ofile_can_read(f)) || (acc != O_RDONLY && !ofile_can_write(f)))
		return -EINVAL;
	*appended = f->flags & O_APPEND;
	if (!(want->flags & O_APPEND) || *appended)
		return 0;
	flags = shim_fcntl(fd, F_GETFL);
	return shim_fcntl(fd, F_SETFL, flags | O_APPEND) < 0 ? -errno : 0;
}

EXPORT FILE *fdopen(int fd, const char *mode)
{
	struct ofile *f = fd_get(&fd);
	bool appended = false;
	struct stream_mode m;
	int r;

	if (!f)
		return sys.fdopen(fd, mode);
	r = stream_parse_mode(mode, &m);
	if (!r)
		r = check_fdopen(f, fd, &m, &appended);
	if (fd_done(f, r) < 0)
		return NULL;
	return stream_open(fd, &m, appended);
}
ALIAS(_IO_fdopen, fdopen);

/* The number of @fp if it is one of the three standard streams, else -1. */
static int standard_number(FILE *fp)
{
	int nr = fp->_fileno;

	return nr >= STDIN_FILENO && nr <= STDERR_FILENO &&
			       fp == (nr == 0 ? stdin :
				      nr == 1 ? stdout :
						stderr) ?
		       nr :
		       -1;
}

/* Our record for the standard stream @nr, which is to lead to a logical file now. */
static struct stream *hook_standard(int nr)
{
	stream_hook(nr);
	return stream_find(nr == 0 ? stdin : nr == 1 ? stdout : stderr);
}

/* Open what freopen() is to put behind a stream; *@logical as for ofile_open(). The descriptor or -errno. */
static int reopen_target(const struct where *w, const char *path, FILE *fp, int flags, bool *logical)
{
	char link[32];
	struct where self;
	int r;

	*logical = false;
	if (!path) { /* the same file in another mode, which is a new description */
		if (fp->_fileno < 0)
			return -EBADF;
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fp->_fileno);
		r = path_find(&self, AT_FDCWD, link);
		if (r < 0)
			return r;
		return self.m ? ofile_open(&self, flags, 0666, logical) : -EBADF;
	}
	if (w->m)
		return ofile_open(w, flags, 0666, logical);
	r = sys.open(path, flags, 0666);
	return r < 0 ? -errno : r;
}

/* Flush @fp, which is not ours, and close its descriptor, as each freopen() does that fails. */
static void close_behind(FILE *fp)
{
	struct ofile *f = fp->_fileno >= 0 ? fd_take(fp->_fileno) : NULL;

	sys.freopen("", "r", fp); /* fails */
	if (f)
		ofile_unref(f);
}

/*
 * A stream that is not ours, nor a standard one, cannot be given to a logical file: its pointer must stay the
 * same.
 */
static FILE *cannot_reopen(FILE *fp)
{
	close_behind(fp);
	done(refused("freopen of a stream of the C library", EOPNOTSUPP));
	return NULL;
}

/*
 * Whether an open with @flags leads to a logical file: to find out before it makes or empties one. Without a
 * path it is the file of the descriptor, which is ours.
 */
static bool leads_to_logical(const struct where *w, const char *path, int flags)
{
	struct stat st;

	if (!path || !w->m)
		return !path;
	if (!sys.fstatat(w->dirfd, w->path, &st, 0))
		return plfs_is_stub(&st, w->dirfd, w->path, 0);
	return flags & O_CREAT && plfs_would_make(w->m, w->dirfd, w->path);
}

/* @fp is ours, which is @s, or may have to be. */
static FILE *freopen_ours(const struct where *w, const char *path, const char *mode, FILE *fp,
                          struct stream *s)
{
	int nr = standard_number(fp), fd, r;
	struct stream_mode m;
	bool logical;

	r = stream_parse_mode(mode, &m);
	if (!r && !s && nr < 0 && leads_to_logical(w, path, m.flags))
		return cannot_reopen(fp);
	fd = r < 0 ? r : reopen_target(w, path, fp, m.flags, &logical);
	/* a plain file, made by now if need be: the C library's own business */
	if (fd >= 0 && !s && !logical && w->m) {
		sys.close(fd);
		return sys.freopen(w->path, m.mode, fp);
	}
	if (fd >= 0 && !s) {
		sys.fflush(fp);
		s = logical && nr >= 0 ? hook_standard(nr) : NULL;
		if (!s) {
			shim_close(fd);
			return cannot_reopen(fp);
		}
	}
	if (fd < 0 && s)
		stream_reopen(s, -1, &m);
	else if (fd < 0)
		close_behind(fp);
	done(fd);
	return fd < 0 ? NULL : stream_reopen(s, fd, &m);
}

EXPORT FILE *freopen(const char *path, const char *mode, FILE *fp)
{
	struct stream *s = shim_on() ? stream_find(fp) : NULL;
	struct ofile *f = NULL;
	struct where w;
	int r = path_find(&w, AT_FDCWD, path);

	if (!r)
		r = path_before_open(&w, *mode == 'r' ? 0 : O_CREAT);
	if (r < 0) {
		done(r);
		return NULL;
	}
	if (s || w.m || (!path && shim_active && fd_is_ours(fp->_fileno)))
		return freopen_ours(&w, path, mode, fp, s);
	if (shim_active && fp->_fileno >= 0)
		f = fd_take(fp->_fileno); /* closed inside the C library, and given to another file */
	fp = sys.freopen(w.path, mode, fp);
	if (f)
		ofile_unref(f);
	return fp;
}
ALIAS(freopen64, freopen);

/* The C library closes its own streams' descriptors where we cannot see it. */
EXPORT int fclose(FILE *fp)
{
	struct ofile *f = NULL;
	int r;

	if (shim_on() && fp) {
		if (unlikely(stream_is_hook(fp)))
			return stream_close_hook(fp);
		if (fp->_fileno >= 0 && fd_is_ours(fp->_fileno) && !stream_find(fp))
			f = fd_take(fp->_fileno);
	}
	r = sys.fclose(fp);
	if (f)
		ofile_unref(f);
	return r;
}
ALIAS(_IO_fclose, fclose);

/* ---- dprintf: the C library writes to the descriptor where we cannot see it ---- */

/* The C library's own formatting into memory, and from there to @fd. */
static int print_to(int fd, const char *format, va_list ap)
{
	char *text = NULL;
	int len = vasprintf(&text, format, ap), have = 0;
	ssize_t n = 0;

	while (len > have && (n = shim_write(fd, text + have, (size_t)(len - have))) > 0)
		have += (int)n;
	if (len >= 0)
		free(text);
	return n < 0 ? -1 : len;
}

EXPORT int vdprintf(int fd, const char *format, va_list ap)
{
	return fd_is_ours(fd) ? print_to(fd, format, ap) : sys.vdprintf(fd, format, ap);
}

EXPORT int dprintf(int fd, const char *format, ...)
{
	va_list ap;
	int r;

	va_start(ap, format);
	r = vdprintf(fd, format, ap);
	va_end(ap);
	return r;
}

/* @flag asks for checks of the format. */
EXPORT int __vdprintf_chk(int fd, int flag, const char *format, va_list ap)
{
	return fd_is_ours(fd) ? print_to(fd, format, ap) : sys.__vdprintf_chk(fd, flag, format, ap);
}

EXPORT int __dprintf_chk(int fd, int flag, const char *format, ...)
{
	va_list ap;
	int r;

	va_start(ap, format);
	r = __vdprintf_chk(fd, flag, format, ap);
	va_end(ap);
	return r;
}

/* ---- others that open or write inside the C library ---- */

/* A table of file systems, whatever it is kept in; fclose() is its end as well as endmntent(). */
EXPORT FILE *setmntent(const char *path, const char *mode)
{
	char with_e[16];

	if (!shim_on() || !mode || strlen(mode) > 8)
		return sys.setmntent(path, mode);
	snprintf(with_e, sizeof(with_e), "%se", mode);
	return fopen(path, with_e);
}
ALIAS(__setmntent, setmntent);

/* One line each, as glibc writes them; with malloc(), which the real one does without. */
EXPORT void backtrace_symbols_fd(void *const *buf, int nr, int fd)
{
	char **names = fd_is_ours(fd) ? backtrace_symbols(buf, nr) : NULL;
	int i;

	if (!names) {
		sys.backtrace_symbols_fd(buf, nr, fd);
		return;
	}
	for (i = 0; i < nr; i++)
		dprintf(fd, "%s\n", names[i]);
	free(names);
}
ALIAS(__backtrace_symbols_fd, backtrace_symbols_fd);
