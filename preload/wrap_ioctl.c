/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ioctl(). On a logical file, what is about where its blocks are is refused with the errno that makes
 * programs fall back to read and write: the kernel would act on the stub.
 */
#include "fdtable.h"

#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <sys/ioctl.h>

#ifndef LOOP_CONFIGURE /* of Linux 5.8; its argument begins with the descriptor */
#define LOOP_CONFIGURE 0x4C0A
#endif

/* Bytes left to read, as FIONREAD counts them. */
static int bytes_left(struct ofile *f, int fd, int *out)
{
	off_t size = plfs_size(f->file), off = ofile_tell(f, fd);

	if (user_writable(out, sizeof(*out)) < sizeof(*out))
		return -EFAULT;
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
	if (request == FICLONERANGE &&
	    user_readable(arg, sizeof(struct file_clone_range)) == sizeof(struct file_clone_range))
		return (int)((struct file_clone_range *)arg)->src_fd;
	return -1;
}

/* The file that is to become a block device, whose kernel side would read and write the stub, or -1. */
static int loop_file(unsigned long request, void *arg)
{
	if (request == LOOP_SET_FD || request == LOOP_CHANGE_FD)
		return (int)(intptr_t)arg;
	if (request == LOOP_CONFIGURE && user_readable(arg, sizeof(uint32_t)) == sizeof(uint32_t))
		return (int)*(uint32_t *)arg;
	return -1;
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
	struct ofile *f = fd_get(&fd);
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (f)
		return (int)fd_done(f, ioctl_ours(f, fd, request, arg));
	if (unlikely(request == FICLONE || request == FICLONERANGE) &&
	    fd_is_logical(clone_source(request, arg)))
		return (int)done(refused("ioctl about extents", EOPNOTSUPP));
	if (unlikely(request >> 8 == LOOP_SET_FD >> 8) && fd_is_logical(loop_file(request, arg)))
		return (int)done(refused("loop device", EINVAL));
	return sys.ioctl(fd, request, arg);
}
