/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading, writing, seeking; sizes and persistence of open files.
 */
#include "fdtable.h"
#include "path.h"
#include "stream.h"
#include "through.h"

EXPORT HOT ssize_t read(int fd, void *buf, size_t len)
{
	struct ofile *f = fd_get_io(&fd);
	struct iovec iov = {buf, len};

	if (!f)
		return sys.read(fd, buf, len);
	return fd_done(f, ofile_readv(f, fd, &iov, 1));
}
ALIAS(__read, read);
SHIM_NAME(shim_read, read);

EXPORT HOT ssize_t write(int fd, const void *buf, size_t len)
{
	struct ofile *f = fd_get_io(&fd);
	struct iovec iov = {(void *)buf, len};

	if (!f)
		return sys.write(fd, buf, len);
	return fd_done(f, ofile_writev(f, fd, &iov, 1));
}
ALIAS(__write, write);
SHIM_NAME(shim_write, write);

EXPORT HOT ssize_t pread(int fd, void *buf, size_t len, off_t off)
{
	struct ofile *f = fd_get_io(&fd);
	struct iovec iov = {buf, len};

	if (!f)
		return sys.pread(fd, buf, len, off);
	return fd_done(f, ofile_preadv(f, &iov, 1, off));
}
ALIAS(pread64, pread);
ALIAS(__pread64, pread);
ALIAS(__libc_pread, pread);

EXPORT HOT ssize_t pwrite(int fd, const void *buf, size_t len, off_t off)
{
	struct ofile *f = fd_get_io(&fd);
	struct iovec iov = {(void *)buf, len};

	if (!f)
		return sys.pwrite(fd, buf, len, off);
	return fd_done(f, ofile_pwritev(f, fd, &iov, 1, off));
}
ALIAS(pwrite64, pwrite);
ALIAS(__pwrite64, pwrite);
ALIAS(__libc_pwrite, pwrite);

/* Whether the array itself can be read; a count that makes no sense is judged later. */
static bool has_iov(const struct iovec *iov, int cnt)
{
	size_t len = cnt > 0 && cnt <= IOV_MAX ? (size_t)cnt * sizeof(*iov) : 0;

	return user_readable(iov, len) == len;
}

EXPORT ssize_t readv(int fd, const struct iovec *iov, int cnt)
{
	struct ofile *f = fd_get_io(&fd);

	if (!f)
		return sys.readv(fd, iov, cnt);
	return fd_done(f, has_iov(iov, cnt) ? ofile_readv(f, fd, iov, cnt) : -EFAULT);
}

EXPORT ssize_t writev(int fd, const struct iovec *iov, int cnt)
{
	struct ofile *f = fd_get_io(&fd);

	if (!f)
		return sys.writev(fd, iov, cnt);
	return fd_done(f, has_iov(iov, cnt) ? ofile_writev(f, fd, iov, cnt) : -EFAULT);
}

EXPORT ssize_t preadv(int fd, const struct iovec *iov, int cnt, off_t off)
{
	struct ofile *f = fd_get_io(&fd);

	if (!f)
		return sys.preadv(fd, iov, cnt, off);
	return fd_done(f, has_iov(iov, cnt) ? ofile_preadv(f, iov, cnt, off) : -EFAULT);
}
ALIAS(preadv64, preadv);

EXPORT ssize_t pwritev(int fd, const struct iovec *iov, int cnt, off_t off)
{
	struct ofile *f = fd_get_io(&fd);

	if (!f)
		return sys.pwritev(fd, iov, cnt, off);
	return fd_done(f, has_iov(iov, cnt) ? ofile_pwritev(f, fd, iov, cnt, off) : -EFAULT);
}
ALIAS(pwritev64, pwritev);

/* ---- the same with flags ---- */

static ssize_t readv_flags(struct ofile *f, int fd, const struct iovec *iov, int cnt, off_t off, int flags)
{
	if (!has_iov(iov, cnt))
		return -EFAULT;
	if (flags & ~(RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_APPEND)) /* the latter are of writes */
		return refused("preadv2 with flags", EOPNOTSUPP);
	return off == -1 ? ofile_readv(f, fd, iov, cnt) : ofile_preadv(f, iov, cnt, off);
}

static ssize_t writev_flags(struct ofile *f, int fd, const struct iovec *iov, int cnt, off_t off, int flags)
{
	ssize_t ret;
	int r;

	if (flags & ~(RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_APPEND))
		return refused("pwritev2 with flags", EOPNOTSUPP);
	if (off < -1 || !has_iov(iov, cnt))
		ret = off < -1 ? -EINVAL : -EFAULT;
	else if (flags & RWF_APPEND)
		ret = ofile_appendv(f, off == -1 ? fd : -1, iov, cnt);
	else
		ret = off == -1 ? ofile_writev(f, fd, iov, cnt) : ofile_pwritev(f, fd, iov, cnt, off);
	if (ret > 0 && (flags & (RWF_DSYNC | RWF_SYNC))) {
		r = plfs_sync(f->file);
		ret = r < 0 ? r : ret;
	}
	return ret;
}

EXPORT ssize_t preadv2(int fd, const struct iovec *iov, int cnt, off_t off, int flags)
{
	struct ofile *f = fd_get_io(&fd);

	if (!f)
		return sys.preadv2(fd, iov, cnt, off, flags);
	return fd_done(f, readv_flags(f, fd, iov, cnt, off, flags));
}
ALIAS(preadv64v2, preadv2);

EXPORT ssize_t pwritev2(int fd, const struct iovec *iov, int cnt, off_t off, int flags)
{
	struct ofile *f = fd_get_io(&fd);

	if (!f)
		return sys.pwritev2(fd, iov, cnt, off, flags);
	return fd_done(f, writev_flags(f, fd, iov, cnt, off, flags));
}
ALIAS(pwritev64v2, pwritev2);

/* ---- fortified: the compiler knew the size of the buffer ---- */

EXPORT ssize_t __read_chk(int fd, void *buf, size_t len, size_t room)
{
	if (len > room)
		__chk_fail();
	return shim_read(fd, buf, len);
}

EXPORT ssize_t __pread_chk(int fd, void *buf, size_t len, off_t off, size_t room)
{
	if (len > room)
		__chk_fail();
	return pread(fd, buf, len, off);
}
ALIAS(__pread64_chk, __pread_chk);

/* ---- offsets ---- */

EXPORT HOT off_t lseek(int fd, off_t off, int whence)
{
	struct ofile *f = fd_get(&fd);

	if (!f)
		return sys.lseek(fd, off, whence);
	return fd_done(f, ofile_lseek(f, fd, off, whence));
}
ALIAS(lseek64, lseek);
ALIAS(__lseek, lseek);
ALIAS(llseek, lseek);
SHIM_NAME(shim_lseek, lseek);

/* ---- sizes ---- */

EXPORT int ftruncate(int fd, off_t len)
{
	struct ofile *f = fd_get(&fd);

	if (!f)
		return sys.ftruncate(fd, len);
	return (int)fd_done(f, ofile_can_write(f) ? plfs_truncate(f->file, len) : -EINVAL);
}
ALIAS(ftruncate64, ftruncate);

EXPORT int truncate(const char *path, off_t len)
{
	struct where w;
	int r = path_find(&w, AT_FDCWD, path);

	if (!r)
		r = path_through(&w, 0);
	if (r < 0)
		return (int)done(r);
	return w.m ? (int)done(plfs_truncate_at(w.m, w.dirfd, w.path, len)) : sys.truncate(w.path, len);
}
ALIAS(truncate64, truncate);

/* The range is judged first, as the kernel does. */
static int allocate(struct ofile *f, int mode, off_t off, off_t len)
{
	if (off < 0 || len <= 0)
		return -EINVAL;
	return ofile_can_write(f) ? plfs_fallocate(f->file, mode, off, len) : -EBADF;
}

EXPORT int fallocate(int fd, int mode, off_t off, off_t len)
{
	struct ofile *f = fd_get(&fd);

	if (!f)
		return sys.fallocate(fd, mode, off, len);
	return (int)fd_done(f, allocate(f, mode, off, len));
}
ALIAS(fallocate64, fallocate);

/* Returns its error, and leaves errno alone. */
EXPORT int posix_fallocate(int fd, off_t off, off_t len)
{
	struct ofile *f = fd_get(&fd);
	int r;

	if (!f)
		return sys.posix_fallocate(fd, off, len);
	r = allocate(f, 0, off, len);
	fd_put(f);
	return -r;
}
ALIAS(posix_fallocate64, posix_fallocate);

/* ---- hints, which have nothing to act on here ---- */

EXPORT int posix_fadvise(int fd, off_t off, off_t len, int advice)
{
	struct ofile *f = fd_get(&fd);

	if (!f)
		return sys.posix_fadvise(fd, off, len, advice);
	fd_put(f);
	return len < 0 || advice < POSIX_FADV_NORMAL || advice > POSIX_FADV_NOREUSE ? EINVAL : 0;
}
ALIAS(posix_fadvise64, posix_fadvise);

EXPORT ssize_t readahead(int fd, off_t off, size_t len)
{
	struct ofile *f = fd_get(&fd);

	if (!f)
		return sys.readahead(fd, off, len);
	return fd_done(f, ofile_can_read(f) ? 0 : -EBADF);
}

/* ---- persistence ---- */

EXPORT int fsync(int fd)
{
	struct ofile *f = fd_get_io(&fd);

	if (!f)
		return sys.fsync(fd);
	return (int)fd_done(f, plfs_sync(f->file));
}

EXPORT int fdatasync(int fd)
{
	struct ofile *f = fd_get_io(&fd);

	if (!f)
		return sys.fdatasync(fd);
	return (int)fd_done(f, plfs_sync(f->file));
}

EXPORT int sync_file_range(int fd, off_t off, off_t len, unsigned flags)
{
	struct ofile *f = fd_get(&fd);

	if (!f)
		return sys.sync_file_range(fd, off, len, flags);
	/* Promises nothing about the metadata that would be needed to find the bytes. */
	return (int)fd_done(f, off < 0 || len < 0 || off > INT64_MAX - len || flags > 7 ? -EINVAL : 0);
}

EXPORT void sync(void)
{
	if (shim_on())
		plfs_sync_all();
	sys.sync();
}

EXPORT int syncfs(int fd)
{
	if (shim_on())
		plfs_sync_all();
	return sys.syncfs(fd_seen(fd));
}
