/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies from descriptor to descriptor: sendfile, copy_file_range and splice, where one side or both are
 * logical files. The kernel would move the stubs' bytes, so they are moved here, in pieces, each offset by as
 * much as the other side took. What is wrong with the descriptors the kernel is left to say: it gets the same
 * call for no bytes.
 *
 * tee() and vmsplice() know pipes only and need no help.
 */
#include "fdtable.h"

#define PIECE (256 << 10) /* copied at a time */
#define IO_MAX 0x7ffff000 /* what Linux moves in one call at most */
#define PAGE 4096

/* One side of a copy. */
struct end {
	int fd;
	struct ofile *f; /* NULL: not ours, and the kernel's to judge */
	off_t *given;    /* the program's offset, or NULL: that of the descriptor moves */
	off_t off;
};

static struct end end_of(int fd, off_t *given)
{
	struct ofile *f = fd_get(&fd);

	return (struct end){fd, f, given, 0};
}

/*
 * Both past ofile_preadv() and ofile_pwritev(): the buffer is not the program's, so O_DIRECT asks nothing of
 * it.
 */
static ssize_t end_read(const struct end *e, void *buf, size_t len)
{
	ssize_t ret;

	if (e->f)
		return plfs_pread(e->f->file, buf, len, e->off);
	ret = sys.pread(e->fd, buf, len, e->off);
	return ret < 0 ? -errno : ret;
}

/* Where @in_order, not at an offset: to what may be no file at all. */
static ssize_t end_write(const struct end *e, bool in_order, const void *buf, size_t len)
{
	unsigned depth;
	ssize_t ret;
	int r;

	if (e->f) {
		ret = plfs_pwrite(e->f->file, buf, len, e->off);
		r = ret > 0 && e->f->flags & O_DSYNC ? plfs_sync(e->f->file) : 0;
		return r < 0 ? r : ret;
	}
	depth = critical_pause(); /* it may be a pipe, or a socket */
	ret = in_order ? sys.write(e->fd, buf, len) : sys.pwrite(e->fd, buf, len, e->off);
	ret = ret < 0 ? -errno : ret;
	critical_resume(depth);
	return ret;
}

/* Whether the program's offset, if it gave one, can be used. */
static bool given_is_good(const struct end *e)
{
	return !e->given || user_writable(e->given, sizeof(*e->given)) == sizeof(*e->given);
}

/* Find e->off, and whether @len bytes can follow it. 0 or -errno. */
static int end_begin(struct end *e, size_t len)
{
	if (!given_is_good(e))
		return -EFAULT;
	if (e->given)
		e->off = *e->given;
	else
		e->off = e->f ? ofile_tell(e->f, e->fd) : sys.lseek(e->fd, 0, SEEK_CUR);
	if (e->off < 0 && !e->given)
		return e->f ? (int)e->off : -errno;
	return e->off < 0 || len > (size_t)(INT64_MAX - e->off) ? -EINVAL : 0;
}

static void end_settle(const struct end *e)
{
	if (e->given)
		*e->given = e->off;
	else if (e->f)
		ofile_lseek(e->f, e->fd, e->off, SEEK_SET);
	else
		sys.lseek(e->fd, e->off, SEEK_SET);
}

static ssize_t ends_done(const struct end *a, const struct end *b, ssize_t ret)
{
	if (a->f)
		fd_put(a->f);
	if (b->f)
		fd_put(b->f);
	return done(ret);
}

static bool may_read(const struct end *e) { return !e->f || ofile_can_read(e->f); }

static bool may_write(const struct end *e) { return !e->f || ofile_can_write(e->f); }

static bool appends(const struct end *e)
{
	if (e->f)
		ofile_learn_flags(e->f, e->fd);
	return e->f && (e->f->flags & O_APPEND);
}

/* Up to @len bytes; the offsets in @in and @out move with them. Bytes moved, or -errno if there are none. */
static ssize_t copy(struct end *in, struct end *out, bool in_order, size_t len)
{
	size_t total = 0, room = min_size(len, PIECE);
	ssize_t got = 0, put = 0;
	char *buf = mem_alloc(room);

	if (!buf)
		return -ENOMEM;
	while (total < len) {
		got = end_read(in, buf, min_size(len - total, room));
		if (got <= 0)
			break;
		put = end_write(out, in_order, buf, (size_t)got);
		if (put <= 0)
			break;
		in->off += put;
		out->off += put;
		total += (size_t)put;
		if (put < got)
			break;
	}
	mem_free(buf);
	if (total)
		return (ssize_t)total;
	return got < 0 ? got : put;
}

/* ---- into a pipe ---- */

/*
 * How much a pipe has room for, whether to wait for it, and for a reader: only the kernel can tell, and takes
 * no byte more. So the bytes go into a file without a name, at the same place in the page, and it splices
 * those: up to a pipe full, as it does with other files.
 */
static ssize_t copy_to_pipe(struct end *in, int pipe, size_t len, unsigned flags)
{
	int size = sys.fcntl(pipe, F_GETPIPE_SZ), fd;
	off_t start = in->off % PAGE, off = start;
	char *buf = NULL;
	ssize_t got, ret;
	unsigned depth;

	len = min_size(len, size > 0 ? (size_t)size : PAGE);
	fd = sys.memfd_create("pipe", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	buf = mem_alloc(len);
	got = buf ? end_read(in, buf, len) : -ENOMEM;
	if (got > 0 && sys.pwrite(fd, buf, (size_t)got, start) != got)
		got = -ENOMEM;
	mem_free(buf);
	ret = got;
	if (got >= 0) {
		depth = critical_pause();
		ret = sys.splice(fd, &off, pipe, NULL, len, flags);
		ret = ret < 0 ? -errno : ret;
		critical_resume(depth);
	}
	sys.close(fd);
	if (ret > 0)
		in->off += ret;
	return ret;
}

/* ---- sendfile ---- */

static ssize_t send_file(struct end *in, struct end *out, size_t len)
{
	int saved ERRNO_KEPT = errno;
	unsigned depth;
	off_t zero = 0;
	ssize_t ret;

	if (!may_read(in) || !may_write(out))
		return -EBADF;
	if (!in->given || *in->given >= 0) {
		depth = critical_pause(); /* a full pipe is waited for */
		ret = sys.sendfile(out->fd, in->fd, in->given ? &zero : NULL, 0) < 0 ? -errno : 0;
		critical_resume(depth);
		if (ret < 0)
			return ret;
	}
	ret = end_begin(in, len);
	if (!ret && out->f)
		ret = appends(out) ? -EINVAL : end_begin(out, min_size(len, IO_MAX));
	if (ret < 0)
		return ret;
	len = min_size(len, IO_MAX);
	if (!len)
		return 0;
	if (!out->f && sys.fcntl(out->fd, F_GETPIPE_SZ) >= 0)
		ret = copy_to_pipe(in, out->fd, len, 0);
	else
		ret = copy(in, out, true, len);
	if (ret > 0) {
		end_settle(in);
		if (out->f)
			end_settle(out);
	}
	return ret == -EISDIR ? -EINVAL : ret;
}

EXPORT ssize_t sendfile(int out, int in, off_t *off, size_t len)
{
	struct end from = end_of(in, off), to = end_of(out, NULL);

	if (!from.f && !to.f)
		return sys.sendfile(to.fd, from.fd, off, len);
	if (!given_is_good(&from))
		return ends_done(&from, &to, -EFAULT);
	return ends_done(&from, &to, send_file(&from, &to, len));
}
ALIAS(sendfile64, sendfile);

/* ---- copy_file_range ---- */

/* Whether both are one file and the ranges have bytes in common. */
static bool overlap(const struct end *in, const struct end *out, size_t len)
{
	struct stat a, b;

	if (!in->f || !out->f || out->off >= in->off + (off_t)len || in->off >= out->off + (off_t)len)
		return false;
	return !sys.fstat(in->fd, &a) && !sys.fstat(out->fd, &b) && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* The length of what there is to copy: none past the end of the file, which is also what must not overlap. */
static ssize_t range_len(const struct end *in, size_t len)
{
	struct stat st;
	off_t size;

	if (in->f)
		size = plfs_size(in->f->file);
	else
		size = sys.fstat(in->fd, &st) ? -errno : st.st_size;
	if (size < 0)
		return size;
	return (ssize_t)min_size(len, in->off < size ? (size_t)(size - in->off) : 0);
}

/* Whether @len bytes at @e would end beyond all numbers, as the kernel counts them here: unsigned. */
static bool wraps(const struct end *e, size_t len)
{
	uint64_t end;

	return __builtin_add_overflow((uint64_t)e->off, (uint64_t)len, &end);
}

static ssize_t copy_range(struct end *in, struct end *out, size_t len, unsigned flags)
{
	off_t zero_in = 0, zero_out = 0;
	int saved ERRNO_KEPT = errno;
	ssize_t ret;
	int r;

	if (sys.copy_file_range(in->fd, &zero_in, out->fd, &zero_out, 0, flags) < 0)
		return -errno;
	if (!may_read(in) || !may_write(out) || appends(out))
		return -EBADF;
	ret = end_begin(in, 0);
	r = end_begin(out, 0);
	if ((!in->given && ret < 0) || (!out->given && r < 0))
		return ret < 0 ? ret : r;
	if (wraps(in, len) || wraps(out, len))
		return -EOVERFLOW;
	if (ret < 0 || r < 0)
		return ret < 0 ? ret : r;
	ret = range_len(in, len);
	if (ret <= 0)
		return ret;
	len = (size_t)ret;
	if (len > (size_t)(INT64_MAX - out->off))
		return -EFBIG;
	if (overlap(in, out, len))
		return -EINVAL;
	ret = copy(in, out, false, min_size(len, IO_MAX));
	if (ret > 0) {
		end_settle(in);
		end_settle(out);
	}
	return ret;
}

EXPORT ssize_t copy_file_range(int in, off_t *in_off, int out, off_t *out_off, size_t len, unsigned flags)
{
	struct end from = end_of(in, in_off), to = end_of(out, out_off);

	if (!from.f && !to.f)
		return sys.copy_file_range(from.fd, in_off, to.fd, out_off, len, flags);
	return ends_done(&from, &to, copy_range(&from, &to, len, flags));
}

/* ---- splice ---- */

#define SPLICE_FLAGS (SPLICE_F_MOVE | SPLICE_F_NONBLOCK | SPLICE_F_MORE | SPLICE_F_GIFT)

static ssize_t splice_out(struct end *in, int pipe, size_t len, unsigned flags)
{
	ssize_t ret;

	if (sys.fcntl(pipe, F_GETPIPE_SZ) < 0)
		return errno == EBADF && sys.fcntl(pipe, F_GETFD) < 0 ? -EBADF : -EINVAL;
	ret = end_begin(in, len);
	if (ret < 0)
		return ret;
	ret = copy_to_pipe(in, pipe, len, flags);
	if (ret > 0)
		end_settle(in);
	return ret;
}

/* Take @len bytes, which have been written, out of the pipe. Fewer if somebody else reads it as well. */
static void drop(int pipe, char *buf, size_t len)
{
	ssize_t n = 1;

	for (; len && n > 0; len -= (size_t)n) {
		n = sys.read(pipe, buf, len);
		if (n < 0)
			n = errno == EINTR;
	}
}

/*
 * What is in the pipe is first seen in a copy of it, and taken out when it is written: a write that fails
 * leaves it there, as much as did not fit. (The kernel itself loses bytes that the file does not take.)
 */
static ssize_t copy_from_pipe(int pipe, int side[2], struct end *out, size_t len, unsigned flags)
{
	ssize_t got = 0, put = 0;
	size_t total = 0;
	unsigned depth;
	char *buf = mem_alloc(PIECE);

	if (!buf)
		return -ENOMEM;
	while (total < len) {
		depth = critical_pause();
		got = sys.tee(pipe, side[1], min_size(len - total, PIECE),
			      flags | (total ? SPLICE_F_NONBLOCK : 0));
		critical_resume(depth);
		if (got > 0)
			got = sys.read(side[0], buf, (size_t)got);
		if (got < 0)
			got = -errno;
		if (got <= 0)
			break;
		put = end_write(out, false, buf, (size_t)got);
		if (put <= 0)
			break;
		drop(pipe, buf, (size_t)put);
		out->off += put;
		total += (size_t)put;
		if (put < got)
			break;
	}
	mem_free(buf);
	if (total)
		return (ssize_t)total;
	return got < 0 ? got : put;
}

static ssize_t splice_in(int pipe, struct end *out, size_t len, unsigned flags)
{
	int side[2];
	ssize_t ret;

	if (sys.fcntl(pipe, F_GETPIPE_SZ) < 0) /* asked before the number may become one of side[] */
		return errno == EBADF && sys.fcntl(pipe, F_GETFD) < 0 ? -EBADF : -EINVAL;
	ret = appends(out) ? -EINVAL : end_begin(out, len);
	if (ret < 0)
		return ret;
	if (pipe2(side, O_CLOEXEC) < 0)
		return -errno;
	ret = copy_from_pipe(pipe, side, out, min_size(len, IO_MAX), flags);
	sys.close(side[0]);
	sys.close(side[1]);
	if (ret > 0)
		end_settle(out);
	return ret;
}

static ssize_t splice_ours(struct end *in, struct end *out, size_t len, unsigned flags)
{
	int saved ERRNO_KEPT = errno;

	if (flags & ~SPLICE_FLAGS)
		return -EINVAL;
	if (!len)
		return 0;
	if (!may_read(in) || !may_write(out))
		return -EBADF;
	if (in->f && out->f)
		return -EINVAL;
	if (in->f)
		return out->given ? -ESPIPE : splice_out(in, out->fd, len, flags);
	return in->given ? -ESPIPE : splice_in(in->fd, out, len, flags);
}

EXPORT ssize_t splice(int in, off_t *in_off, int out, off_t *out_off, size_t len, unsigned flags)
{
	struct end from = end_of(in, in_off), to = end_of(out, out_off);

	if (!from.f && !to.f)
		return sys.splice(from.fd, in_off, to.fd, out_off, len, flags);
	return ends_done(&from, &to, splice_ours(&from, &to, len, flags));
}
