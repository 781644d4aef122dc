/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors of files by other ways than open(): openat2(), which only has a number, file handles, and
 * descriptors taken from another process.
 */
#include "adopt.h"
#include "bynumber.h"
#include "fdtable.h"
#include "open_path.h"
#include "path.h"
#include "through.h"

#include <sys/syscall.h>

/* ---- openat2 ---- */

static int real_openat2(int dirfd, const char *path, const struct open_how *how, size_t size)
{
	int fd = (int)sys.syscall(SYS_openat2, dirfd, path, how, size);

	return fd < 0 ? -errno : fd;
}

/* Whether the kernel takes @how: asked with a path that it refuses last of all. 0 or -errno. */
static int check_how(const struct open_how *how, size_t size)
{
	int r = real_openat2(AT_FDCWD, "", how, size);

	return r == -ENOENT ? how->flags >> 32 ? -EINVAL : 0 : r;
}

/*
 * Let @w lead to the new name that it has, below the directory that the kernel finds by @rules. 0 or -errno.
 */
static int find_new(struct where *w, uint64_t rules)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = rules};
	const char *slash = strrchr(w->path, '/'), *name = slash ? slash + 1 : w->path;
	size_t len = strlen(name), dir_len = (size_t)(name - w->path);
	char dir[PATH_MAX] = ".", new_name[NAME_MAX + 1];
	int fd, r;

	if (!len)
		return dir_len ? -EISDIR : -ENOENT;
	if (len > NAME_MAX || dir_len >= sizeof(dir))
		return -ENAMETOOLONG;
	memcpy(new_name, name, len + 1);
	if (dir_len) {
		memcpy(dir, w->path, dir_len);
		dir[dir_len] = '\0';
	}
	fd = real_openat2(w->dirfd, dir, &how, sizeof(how));
	if (fd < 0)
		return fd;
	r = path_of_fd(w, fd);
	sys.close(fd);
	if (r || !w->m)
		return r;
	dir_len = strlen(w->buf);
	if (dir_len + 1 + len >= sizeof(w->buf))
		return -ENAMETOOLONG;
	w->buf[dir_len] = '/';
	memcpy(w->buf + dir_len + 1, new_name, len + 1);
	return 0;
}

/*
 * With rules on how to get there: the kernel is asked where that is, and then it is opened by its real path.
 * The descriptor, -errno, or PATH_NOT_OPENED: it is not ours.
 */
static int open_by_rules(struct where *w, const struct open_how *how)
{
	struct open_how look = {.flags = O_PATH | O_CLOEXEC | (how->flags & (O_NOFOLLOW | O_DIRECTORY)),
	                        .resolve = how->resolve};
	int r, flags = (int)how->flags | O_NOFOLLOW,
	       fd = real_openat2(w->dirfd, w->path, &look, sizeof(look));

	if (fd >= 0) {
		r = (flags & O_CREAT) && (flags & O_EXCL) ? -EEXIST : path_of_fd(w, fd);
		flags &= ~O_CREAT;
		sys.close(fd);
	} else {
		r = fd == -ENOENT && (flags & O_CREAT) ? find_new(w, how->resolve) : fd;
	}
	if (r < 0)
		return r;
	return w->m ? ofile_open(w, flags, (mode_t)how->mode, NULL) : PATH_NOT_OPENED;
}

/* The descriptor or -errno. */
static int openat2_mapped(int dirfd, const char *path, const struct open_how *how, size_t size)
{
	struct where w;
	int r = check_how(how, size);

	w.dirfd = dirfd;
	w.path = path;
	w.m = NULL;
	if (r < 0)
		return r;
	if (!how->resolve)
		r = ofile_find_and_open(&w, dirfd, path, (int)how->flags, (mode_t)how->mode, -ENOSYS);
	/* else it is the kernel's name, from @dirfd */
	else if (!(how->resolve & (RESOLVE_IN_ROOT | RESOLVE_BENEATH)))
		r = path_find(&w, dirfd, path);
	if (!r && how->resolve)
		r = open_by_rules(&w, how);
	return r == PATH_NOT_OPENED ? real_openat2(w.dirfd, w.path, how, size) : r;
}

long bynumber_openat2(int dirfd, const char *path, const struct open_how *how, size_t size)
{
	int saved = errno, fd = openat2_mapped(dirfd, path, how, size);

	errno = saved;
	return done(fd);
}

/* ---- handles ---- */

/* A stub is opened by its path; one that has none any more is gone. */
static int open_handle(int mount_fd, struct file_handle *handle, int flags)
{
	int r, fd = sys.open_by_handle_at(mount_fd, handle, O_PATH | O_CLOEXEC);
	struct where w;
	struct stat st;

	w.m = NULL;
	if (fd < 0)
		return -errno;
	r = sys.fstat(fd, &st) ? -errno :
	    plfs_maybe_stub(st.st_mode) || plfs_maybe_unmarked(&st, false) ? path_of_fd(&w, fd) : 0;
	sys.close(fd);
	if (r < 0)
		return -ESTALE;
	if (w.m)
		return ofile_open(&w, flags | O_NOFOLLOW, 0, NULL);
	fd = sys.open_by_handle_at(mount_fd, handle, flags);
	if (fd < 0)
		return -errno;
	fd_adopt(fd); /* a directory of ours */
	return fd;
}

EXPORT int open_by_handle_at(int mount_fd, struct file_handle *handle, int flags)
{
	int fd;

	if (!shim_on())
		return sys.open_by_handle_at(mount_fd, handle, flags);
	fd = open_handle(mount_fd, handle, flags);
	return (int)done(fd == -ENOENT ? -ESTALE : fd);
}

/* ---- taken from another process ---- */

EXPORT int pidfd_getfd(int pidfd, int fd, unsigned flags)
{
	bool on = shim_on();
	int got = sys.pidfd_getfd ? sys.pidfd_getfd(pidfd, fd, flags) :
				    (int)sys.syscall(SYS_pidfd_getfd, pidfd, fd, flags);

	if (got >= 0 && on)
		fd_adopt(got);
	return got;
}
