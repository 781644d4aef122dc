/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From what a program calls a file to where it is: (dirfd, path) becomes a backend path and its mount,
 * or is left as it is. The working directory is tracked here.
 */
#ifndef PLFS_PATH_H
#define PLFS_PATH_H

#include "fdtable.h"
#include "raw.h"
#include "scan.h"

struct where {
	int dirfd;            /* for the real call */
	const char *path;     /* for the real call: the caller's own string, or @buf */
	struct plfs_mount *m; /* NULL: not below a mount */
	char buf[PATH_MAX];
};

enum { OUTSIDE = 0, INSIDE = 1, ABOVE = 2 }; /* as plfs_cwd_class() answers */
extern int path_cwd_class;                   /* of the working directory */

/*
 * Whether (@dirfd, @path) is seen at once to be none of our business, as most paths are: then path_find() would leave it
 * as it is, and there is no need to have a struct where, whose size alone takes time. false: path_find() knows.
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

/* path_find() once there are mounts, for what is not seen at once to be far. */
int path_find_mapped(struct where *w);

/*
 * Find out where (@dirfd, @path) leads. Returns 0 with @w filled, whether it is ours or not: the real
 * call on (w->dirfd, w->path) is right in both cases. -errno: -ENOENT inside the container directory,
 * -ENAMETOOLONG. NULL and "" are passed through for the kernel to judge.
 */
static inline int path_find(struct where *w, int dirfd, const char *path)
{
	w->dirfd = dirfd;
	w->path = path;
	w->m = NULL;
	return path_is_far(dirfd, path) ? 0 : path_find_mapped(w);
}

/*
 * The same for a call that takes a directory: where a path that is as the kernel would say it leads below a mount, w->dirfd is the
 * mount's directory and w->path what follows in the program's own string. That spares a copy here and a walk there.
 */
int path_find_at(struct where *w, int dirfd, const char *path);

/* The root directory is another one now: from here on paths say where a backend is. */
void path_root_changed(void);

/* Two paths of one call. Returns -EXDEV if they lie in different mounts, or only one in a mount. */
int path_find_two(struct where *a, int fd_a, const char *path_a, struct where *b, int fd_b,
                  const char *path_b);

/*
 * For a call that would do harm to a stub: if what path_find() left to the kernel is one, reached through a
 * link elsewhere, let
 * @w lead there. One system call, for paths that are not ours. 0 or -errno.
 */
int path_through(struct where *w, int at_flags);

/*
 * What the kernel calls the file that is open at @fd, into @out (PATH_MAX bytes); no path, but a text, of what has none. Its
 * length, or -errno; errno stays.
 */
ssize_t path_read_fd(int fd, char *out);

/*
 * Let @w lead to what is open at @fd, by its real path; w->m stays NULL if that is not below a mount. 0 or -errno:
 * -ENOENT inside the container directory.
 */
int path_of_fd(struct where *w, int fd);

/* Whether @path leads into a mount, or to a directory above one. Two system calls unless its text says it. */
bool path_is_near_mount(const char *path);

/* raw_openat2(), and a cancellation point as open() is. */
int path_openat2_cancellable(int dirfd, const char *path, const struct open_how *how);

#define PATH_NOT_OPENED INT_MIN

/*
 * open(2) of what path_find() left to the kernel, by openat2(2) that follows no links: it opens what the path
 * says, or refuses. Returns the descriptor or -errno; one for which path_is_undecided() means nothing: the
 * caller goes by path_look().
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
 * There are links on the way of an open(), or of a call that goes by the name itself (O_NOFOLLOW), or may be: if they lead below
 * a mount, let @w lead there. Some system calls. 0 or -errno.
 */
int path_follow(struct where *w, int flags);

/*
 * Before somebody opens by whatever call what path_find() left to the kernel, and there are links on the way
 * or may be: if it lies below a mount, let @w lead there. 0 or -errno.
 */
int path_look(struct where *w, int flags);

/* The same when nothing is known of links yet: at the cost of another open. */
int path_before_open(struct where *w, int flags);

/*
 * Turn the canonical real path @path of @len bytes (need not be terminated) into the one that programs see.
 * Returns the length of @out (PATH_MAX bytes, terminated), or 0: not below a backend, or nothing changes.
 */
size_t path_show(const char *path, size_t len, char *out);

/* What st_size should be of the link at @w, where the kernel says @len: the length of what readlink() shows.
 */
off_t path_shown_link_len(const struct where *w, off_t len);

/* Look up again where the working directory is: at start, and after every change of it. */
void path_cwd_changed(void);

/* Whether the working directory is below a backend. */
bool path_cwd_inside(void);

/* The mount that the real directory behind @dirfd belongs to, or NULL. One system call. */
struct plfs_mount *path_mount_of_dir(int dirfd);

#endif
