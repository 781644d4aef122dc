// SPDX-License-Identifier: BSD-3-Clause
/*
 * Calls that would act on the stub's bytes instead of the file's: refused on a logical file, with the errno
 * that makes programs fall back to read and write.
 */
#include "fdtable.h"

#include <aio.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

static bool is_logical(int fd)
{
	struct ofile *f = fd_get(fd);

	if (f)
		fd_put(f);
	return f != NULL;
}

/* ---- ioctl: those about where a file's blocks are ---- */

/* Bytes left to read, as FIONREAD counts them. */
static int bytes_left(struct ofile *f, int fd, int *out)
{
	off_t size = plfs_size(f->file), off = ofile_tell(f, fd);

	if (size < 0 || off < 0)
		return (int)(size < 0 ? size : off);
	*out = (int)(size > off ? size - off : 0);
	return 0;
}

static int ioctl_ours(struct ofile *f, int fd, unsigned long request, void *arg)
{
	int r;

	switch (request) {
	case FICLONE:
	case FICLONERANGE:
	case FIDEDUPERANGE:
	case FS_IOC_FIEMAP:
	case FIBMAP:
		return (int)refused("ioctl about extents", EOPNOTSUPP);
	case FIONREAD:
		return bytes_left(f, fd, arg);
	default:
		r = sys.ioctl(fd, request, arg);
		return r < 0 ? -errno : r;
	}
}

/* The other descriptor of a clone, or -1. */
static int clone_source(unsigned long request, void *arg)
{
	if (request == FICLONE)
		return (int)(intptr_t)arg;
	if (request == FICLONERANGE && arg)
		return (int)((struct file_clone_range *)arg)->src_fd;
	return -1;
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
	struct ofile *f = fd_get(fd);
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (f)
		return (int)fd_done(f, ioctl_ours(f, fd, request, arg));
	if (unlikely(request == FICLONE || request == FICLONERANGE) && is_logical(clone_source(request, arg)))
		return (int)done(refused("ioctl about extents", EOPNOTSUPP));
	return sys.ioctl(fd, request, arg);
}

/* ---- asynchronous I/O ---- */

EXPORT int aio_read(struct aiocb *cb)
{
	if (is_logical(cb->aio_fildes))
		return (int)done(refused("aio_read", ENOSYS));
	return sys.aio_read(cb);
}
ALIAS64(aio_read64, aio_read);

EXPORT int aio_write(struct aiocb *cb)
{
	if (is_logical(cb->aio_fildes))
		return (int)done(refused("aio_write", ENOSYS));
	return sys.aio_write(cb);
}
ALIAS64(aio_write64, aio_write);

EXPORT int aio_fsync(int op, struct aiocb *cb)
{
	if (is_logical(cb->aio_fildes))
		return (int)done(refused("aio_fsync", ENOSYS));
	return sys.aio_fsync(op, cb);
}
ALIAS64(aio_fsync64, aio_fsync);

EXPORT int lio_listio(int mode, struct aiocb *const list[], int nr, struct sigevent *event)
{
	int i;

	for (i = 0; i < nr; i++) {
		if (list[i] && is_logical(list[i]->aio_fildes))
			return (int)done(refused("lio_listio", ENOSYS));
	}
	return sys.lio_listio(mode, list, nr, event);
}
ALIAS64(lio_listio64, lio_listio);
