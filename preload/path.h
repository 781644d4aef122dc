/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a program's (dirfd, path) to a backend path and its mount. A path outside all mounts is left as it is.
 * The working directory is tracked here.
 */
#ifndef PLFS_PATH_H
#define PLFS_PATH_H

#include "fdtable.h"
#include "raw.h"
#include "scan.h"

struct where {
	int dirfd;            /* of the real call */
	const char *path;     /* of the real call: the caller's own string, or @buf */
	struct plfs_mount *m; /* NULL: not below a mount */
	char buf[PATH_MAX];
};

enum { OUTSIDE = 0, INSIDE = 1, ABOVE = 2 }; /* as plfs_cwd_class() answers */
extern int path_cwd_class;                   /* of the working directory */

/*
 * Whether (@dirfd, @path) is outside all mounts, seen from its text alone. true, as for most paths:
 * path_find() would leave it as it is. The caller then needs no struct where, whose size alone takes time.
 * false: path_find() decides.
 */
static inline bool path_is_far(int dirfd, const char *path)
{
	size_t len;

	if (!shim_on())
		return true;
	len = likely(user_has_byte(path)) ? scan_tidy(path) : 0;
	if (unlikely(!len))
		return false;
	if (*path != '/')
		return dirfd == AT_FDCWD ? __atomic_load_n(&path_cwd_class, __ATOMIC_RELAXED) == OUTSIDE :
		                           fd_is_far(dirfd);
	/* the last two: files of descriptors, see find_fd_link() */
	return !plfs_path_near(path, len) &&
	       (len < 6 || (memcmp(path, "/dev/", 5) && memcmp(path, "/proc/", 6)));
}

/* path_find() of a path that is not far. */
int path_find_mapped(struct where *w);

/*
 * Find where (@dirfd, @path) leads, and fill @w. 0: the real call is on (w->dirfd, w->path), below a mount or
 * not; -ENOENT: inside the container directory, or the link of a descriptor of the library's own;
 * -ENAMETOOLONG. NULL and "" pass through to the kernel.
 */
static inline int path_find(struct where *w, int dirfd, const char *path)
{
	w->dirfd = dirfd;
	w->path = path;
	w->m = NULL;
	return path_is_far(dirfd, path) ? 0 : path_find_mapped(w);
}

/*
 * The same for a call with a directory descriptor. For a tidy absolute path below a mount, w->dirfd becomes
 * the mount's directory and w->path the rest of the program's own string. That saves a copy here, and steps
 * of the path in the kernel.
 */
int path_find_at(struct where *w, int dirfd, const char *path);

/* After a chroot(): from here on backends are reached by path, no more by the mount's directory. */
void path_root_changed(void);

/*
 * Whether @name, found in the directory @dirfd, stands for one of the library's own descriptors: the
 * directory is /proc/self/fd or the like. No system call unless the name is the number of one.
 */
bool path_lists_hidden(int dirfd, const char *name);

/*
 * The kernel's name of the file open at @fd, into @out (PATH_MAX bytes). It is a path, or some other text for
 * a file without a name. Its length; -errno. errno stays.
 */
ssize_t path_read_fd(int fd, char *out);

/* raw_openat2() as a cancellation point, like open(). */
int path_openat2_cancellable(int dirfd, const char *path, const struct open_how *how);

#define PATH_NOT_OPENED INT_MIN

/*
 * open(2) of a path that path_find() left to the kernel, by openat2(2) without following links. The kernel
 * opens exactly the path, or refuses. Returns the descriptor; -errno. After an -errno of path_is_undecided()
 * the caller asks path_look().
 */
static inline int path_open_plain(int dirfd, const char *path, int flags, mode_t mode)
{
	struct open_how how = {.flags = (uint32_t)flags, .resolve = RESOLVE_NO_SYMLINKS};

	if (unlikely(!raw_open_ok))
		return -ENOSYS;
	if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE)
		how.mode = mode & 07777;
	if (unlikely(!__libc_single_threaded))
		return path_openat2_cancellable(dirfd, path, &how);
	return raw_openat2(dirfd, path, &how);
}

static inline bool path_is_undecided(int r)
{
	return unlikely(r < 0) &&
	       (r == -ELOOP || r == -ENOSYS || r == -EPERM || r == -EINVAL || r == -EAGAIN);
}

/*
 * The path that programs see of the canonical real path @path of @len bytes (which needs no zero behind it).
 * The length of @out (PATH_MAX bytes, terminated); 0: not below a backend, or the same path.
 */
size_t path_show(const char *path, size_t len, char *out);

/* The st_size of the link at @w, which is @len to the kernel: the length that readlink() returns. */
off_t path_shown_link_len(const struct where *w, off_t len);

/* Look up the working directory: called at start and after each change. */
void path_cwd_changed(void);

/* In the child of a fork by a process with threads. */
void path_fork_child(void);

/* Whether the working directory is below a backend. */
bool path_cwd_inside(void);

/* The mount of the directory open at @dirfd; NULL: none. One system call. */
struct plfs_mount *path_mount_of_dir(int dirfd);

#endif
