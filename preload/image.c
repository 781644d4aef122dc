/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Making files fit to be executed or loaded. Programs and libraries are no checkpoints: the first use turns
 * them into plain files, and from then on they cost nothing.
 */
#include "image.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x10U /* Linux 6.3 */
#endif

bool image_is_logical(const struct where *w, int at_flags)
{
	struct stat st;
	int saved = errno;
	bool is = w->m && !sys.fstatat(w->dirfd, w->path, &st, at_flags) &&
		  plfs_is_stub(&st, w->dirfd, w->path, at_flags);

	errno = saved;
	return is;
}

bool image_is_fd_link(const struct where *w) { return w->m && w->path != w->buf && w->path[0] == '/'; }

static int new_memory(const char *path)
{
	const char *slash = strrchr(path, '/');
	char name[200];
	int fd;

	snprintf(name, sizeof(name), "%s", slash ? slash + 1 : path);
	if (!sys.memfd_create)
		return -ENOSYS;
	fd = sys.memfd_create(name, MFD_CLOEXEC | MFD_EXEC);
	if (fd < 0 && errno == EINVAL)
		fd = sys.memfd_create(name, MFD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int image_copy(const struct where *w, int *copy)
{
	int saved ERRNO_KEPT = errno;
	bool section CRITICAL = critical_begin();
	struct plfs_file *file = NULL;
	int r, fd = plfs_open(w->m, w->dirfd, w->path, O_RDONLY | O_CLOEXEC, 0, &file);
	off_t size;

	*copy = -1;
	if (fd < 0)
		return fd;
	size = file ? plfs_size(file) : 0;
	r = size < 0 ? (int)size : 0;
	if (file && !r) {
		*copy = r = new_memory(w->path);
		if (r >= 0)
			r = plfs_copy_out(file, fd, *copy, (uint64_t)size, false, NULL);
	}
	if (r < 0 && *copy >= 0) {
		sys.close(*copy);
		*copy = -1;
	}
	sys.close(fd);
	if (file)
		plfs_close(file);
	return r < 0 ? r : 0;
}

int image_make(const struct where *w, int *copy)
{
	int r = image_is_fd_link(w) ? -EBUSY : plfs_flatten(w->dirfd, w->path, NULL);

	*copy = -1;
	if (!r)
		return 0;
	msg_debug(MSG_OPEN, "%s: cannot be made a plain file (%s): a copy is loaded", w->path, strerror(-r));
	return image_copy(w, copy);
}

ssize_t image_head(const struct where *w, char *buf, size_t len, bool *logical)
{
	int saved ERRNO_KEPT = errno;
	bool section CRITICAL = critical_begin();
	const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	struct plfs_file *file = NULL;
	ssize_t n;
	int fd;

	if (w->m)
		fd = plfs_open(w->m, w->dirfd, w->path, flags, 0, &file);
	else
		fd = sys.openat(w->dirfd, w->path, flags);
	if (fd < 0)
		return w->m ? fd : -errno;
	n = file ? plfs_pread(file, buf, len, 0) : sys.pread(fd, buf, len, 0);
	if (n < 0 && !file)
		n = -errno;
	sys.close(fd);
	if (file)
		plfs_close(file);
	*logical = file;
	return n;
}
