/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The streams behind stream.h. Some fields of the public struct _IO_FILE are set by hand, because stdio has
 * no call for them: _fileno, so that fileno() of such a stream is its descriptor as of any other, and the
 * mode bits of _flags, when freopen() changes them. They have been where they are since glibc 2.1.
 * The C library's cookie streams are for bytes; wide characters on them are wrap_wide.c's.
 */
#include "stream.h"

#include "fdtable.h"

#include <stdio_ext.h>

/*
 * Bits of _IO_FILE._flags, from glibc's libio.h; not in a public header, but part of the ABI (getc's macros
 * used them).
 */
#define FILE_UNBUFFERED 0x0002
#define FILE_NO_READS 0x0004
#define FILE_NO_WRITES 0x0008
#define FILE_LINE_BUF 0x0200
#define FILE_IS_APPENDING 0x1000

#define NR_BUCKETS 256

struct stream {
	FILE *fp;
	int fd;
	bool wide;           /* its orientation */
	struct stream *next; /* in its bucket */
};

static pthread_mutex_t streams_lock = PTHREAD_MUTEX_INITIALIZER; /* the buckets; no call to stdio under it */
static struct stream *buckets[NR_BUCKETS];

static pthread_mutex_t hook_lock = PTHREAD_MUTEX_INITIALIZER; /* the hooks; before stdio's own locks */
static struct {
	struct stream s;
	FILE *original;
	char buf[BUFSIZ];
} hooks[3];

/* ---- what stdio calls ---- */

static ssize_t cookie_read(void *cookie, char *buf, size_t len)
{
	struct stream *s = cookie;

	return shim_read(s->fd, buf, len);
}

/* All, or less and errno: fopencookie() wants no -1 here. */
static ssize_t cookie_write(void *cookie, const char *buf, size_t len)
{
	struct stream *s = cookie;
	size_t have = 0;
	ssize_t n;

	while (have < len) {
		n = shim_write(s->fd, buf + have, len - have);
		if (n <= 0)
			break;
		have += (size_t)n;
	}
	return (ssize_t)have;
}

static int cookie_seek(void *cookie, off64_t *off, int whence)
{
	struct stream *s = cookie;
	off_t r = shim_lseek(s->fd, *off, whence);

	if (r < 0)
		return -1;
	*off = r;
	return 0;
}

static struct stream **bucket(FILE *fp) { return &buckets[((uintptr_t)fp >> 5) % NR_BUCKETS]; }

static int cookie_close(void *cookie)
{
	struct stream *s = cookie, **p;
	int fd = s->fd;

	mutex_lock(&streams_lock);
	for (p = bucket(s->fp); *p; p = &(*p)->next) {
		if (*p == s) {
			*p = s->next;
			break;
		}
	}
	mutex_unlock(&streams_lock);
	mem_free(s);
	return shim_close(fd);
}

static const cookie_io_functions_t cookie_functions = {cookie_read, cookie_write, cookie_seek, cookie_close};

/* ---- modes ---- */

int stream_parse_mode(const char *mode, struct stream_mode *out)
{
	const char *p, *ccs = strstr(mode, ",ccs=");
	const char *end = ccs ? ccs : mode + strlen(mode);
	bool plus = false;
	int flags;

	if (*mode == 'r')
		flags = 0;
	else if (*mode == 'w')
		flags = O_CREAT | O_TRUNC;
	else if (*mode == 'a')
		flags = O_CREAT | O_APPEND;
	else
		return -EINVAL;
	for (p = mode + 1; p < end; p++) {
		plus |= *p == '+';
		flags |= *p == 'x' ? O_EXCL : *p == 'e' ? O_CLOEXEC : 0;
	}
	flags |= plus ? O_RDWR : *mode == 'r' ? O_RDONLY : O_WRONLY;
	out->flags = flags;
	out->mode[0] = *mode;
	out->mode[1] = plus ? '+' : '\0';
	out->mode[2] = '\0';
	return ccs ? (int)refused("fopen with ,ccs=", EINVAL) : 0;
}

/* ---- streams ---- */

/*
 * Where glibc has a bad pointer, to crash programs that read wide characters from a cookie stream: what it
 * then finds is an empty buffer, should it ever look.
 */
uint64_t stream_no_wide_data[128];

static FILE *make(struct stream *s, int fd, const char *mode)
{
	FILE *fp = sys.fopencookie(s, mode, cookie_functions);

	if (!fp)
		return NULL;
	fp->_fileno = fd;
	fp->_wide_data = (struct _IO_wide_data *)stream_no_wide_data;
	s->fp = fp;
	s->fd = fd;
	return fp;
}

FILE *stream_open(int fd, const struct stream_mode *mode, bool sought)
{
	struct stream *s = mem_zalloc(sizeof(*s));
	FILE *fp = NULL;

	if (s)
		fp = make(s, fd, mode->mode);
	if (!fp) {
		mem_free(s);
		errno = ENOMEM;
		return NULL;
	}
	mutex_lock(&streams_lock);
	s->next = *bucket(fp);
	__atomic_store_n(bucket(fp), s, __ATOMIC_RELEASE); /* a fork in between finds a whole list */
	mutex_unlock(&streams_lock);
	/* As glibc does: a stream that can only append starts at the end, unless @fd appended before. */
	if (!sought && (mode->flags & O_APPEND) && (mode->flags & O_ACCMODE) == O_WRONLY)
		shim_lseek(fd, 0, SEEK_END);
	return fp;
}

struct stream *stream_find(FILE *fp)
{
	struct stream *s;
	unsigned i;

	for (i = 0; i < ARRAY_SIZE(hooks); i++) {
		if (fp == hooks[i].s.fp)
			return &hooks[i].s;
	}
	mutex_lock(&streams_lock);
	for (s = *bucket(fp); s && s->fp != fp; s = s->next)
		;
	mutex_unlock(&streams_lock);
	return s;
}

void stream_set_wide(FILE *fp)
{
	struct stream *s = stream_find(fp);

	if (s)
		s->wide = true;
}

bool stream_get_wide(FILE *fp)
{
	const struct stream *s = stream_find(fp);

	return s && s->wide;
}

FILE *stream_reopen(struct stream *s, int fd, const struct stream_mode *mode)
{
	const int mask = FILE_NO_READS | FILE_NO_WRITES | FILE_IS_APPENDING | _IO_EOF_SEEN | _IO_ERR_SEEN;
	int acc = mode->flags & O_ACCMODE;
	FILE *fp = s->fp;

	flockfile(fp);
	sys.fflush(fp);
	__fpurge(fp);
	if (fd >= 0 && s->fd >= 0 && fd != s->fd && shim_dup3(fd, s->fd, mode->flags & O_CLOEXEC) >= 0) {
		shim_close(fd);
		fd = s->fd;
	} else if (fd < 0 && s->fd >= 0) {
		shim_close(s->fd);
	}
	s->fd = fd;
	fp->_fileno = fd >= 0 ? fd : -2; /* -1 would mean closed, and fclose() would not call us */
	fp->_flags &= ~mask;
	fp->_flags |= (acc == O_RDONLY ? FILE_NO_WRITES : 0) | (acc == O_WRONLY ? FILE_NO_READS : 0) |
	              (mode->flags & O_APPEND ? FILE_IS_APPENDING : 0);
	fp->_offset = -1;
	s->wide = false;
	if (fp->_mode < 0)
		fp->_mode = 0; /* neither bytes nor wide characters yet */
	if (fd >= 0 && (mode->flags & O_APPEND) && acc == O_WRONLY)
		shim_lseek(fd, 0, SEEK_END);
	funlockfile(fp);
	return fd >= 0 ? fp : NULL;
}

/* ---- the standard streams ---- */

static FILE **standard(int fd)
{
	return fd == STDIN_FILENO ? &stdin : fd == STDOUT_FILENO ? &stdout : &stderr;
}

/* Make the hook of @fd buffer as @old does, and take over what is in its buffer. */
static void take_over(FILE *fp, FILE *old, char *buf)
{
	size_t pending;

	if (old->_flags & FILE_UNBUFFERED)
		setvbuf(fp, NULL, _IONBF, 0);
	else
		setvbuf(fp, buf, old->_flags & FILE_LINE_BUF ? _IOLBF : _IOFBF, BUFSIZ);
	if (old->_mode > 0)
		return;
	pending = (size_t)(old->_IO_write_ptr - old->_IO_write_base);
	if (old->_IO_write_ptr > old->_IO_write_base) {
		fwrite(old->_IO_write_base, 1, pending, fp);
		__fpurge(old);
	}
}

static bool started;

void stream_hook(int fd)
{
	FILE **var = standard(fd), *old = *var;

	if (!__atomic_load_n(&started, __ATOMIC_RELAXED))
		return;
	mutex_lock(&hook_lock);
	/* Another stream there is the program's own idea, and one on another descriptor does not concern us.
	 */
	if (old && old != hooks[fd].s.fp && old->_fileno == fd && !stream_find(old)) {
		hooks[fd].original = old;
		if (!hooks[fd].s.fp)
			make(&hooks[fd].s, fd, fd == STDIN_FILENO ? "r" : "w");
		if (hooks[fd].s.fp) {
			hooks[fd].s.fd = fd;
			hooks[fd].s.fp->_fileno = fd;
			take_over(hooks[fd].s.fp, old, hooks[fd].buf);
			*var = hooks[fd].s.fp;
		}
	}
	mutex_unlock(&hook_lock);
}

void stream_start(void)
{
	struct ofile *f;
	int fd;

	fdtable_on_standard = stream_hook;
	__atomic_store_n(&started, true, __ATOMIC_RELAXED);
	for (fd = 0; fd <= STDERR_FILENO; fd++) {
		f = fd_find(fd);
		if (!f)
			continue;
		stream_hook(fd);
		fd_put(f);
	}
}

bool stream_is_hook(FILE *fp)
{
	return fp && (fp == hooks[0].s.fp || fp == hooks[1].s.fp || fp == hooks[2].s.fp);
}

/*
 * The C library never frees its three streams, and programs go on to use them after fclose(), with an
 * error each time. So ours is kept for another day, and the original takes its place and its close().
 */
int stream_close_hook(FILE *fp)
{
	int i, r, closed, ended, saved;
	struct ofile *f;

	for (i = 0; fp != hooks[i].s.fp; i++)
		;
	r = sys.fflush(fp);
	saved = errno;
	if (*standard(i) == fp)
		*standard(i) = hooks[i].original;
	clearerr(fp);
	f = fd_take(i);
	closed = sys.fclose(hooks[i].original);
	ended = f ? ofile_unref(f) : 0;
	if (closed || (!r && !ended))
		return closed;
	errno = r ? saved : -ended;
	return EOF;
}

void stream_fork_child(void)
{
	pthread_mutex_init(&streams_lock, NULL);
	pthread_mutex_init(&hook_lock, NULL);
}
