/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From what a program calls a file to where it is: (dirfd, path) becomes a backend path and its mount,
 * or is left as it is. The working directory is tracked here.
 */
#ifndef PLFS_PATH_H
#define PLFS_PATH_H

#include "shim.h"

struct where {
	int dirfd;            /* for the real call */
	const char *path;     /* for the real call: the caller's own string, or @buf */
	struct plfs_mount *m; /* NULL: not below a mount */
	char buf[PATH_MAX];
};

/* path_find() once there are mounts. */
int path_find_mapped(struct where *w, int dirfd, const char *path);

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
	if (!shim_on())
		return 0;
	return path_find_mapped(w, dirfd, path);
}

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
 * Let @w lead to what is open at @fd, by its real path; w->m stays NULL if that is not below a mount. 0 or -errno:
 * -ENOENT inside the container directory.
 */
int path_of_fd(struct where *w, int fd);

/* Whether @path leads into a mount, or to a directory above one. Two system calls unless its text says it. */
bool path_is_near_mount(const char *path);

#define PATH_NOT_OPENED INT_MIN

/*
 * open(2) of what path_find() left to the kernel, unless a link on the way may lead below a mount. Returns
 * the descriptor or -errno; PATH_NOT_OPENED: the caller has to open it, by whichever way @w now says.
 */
int path_open_plain(struct where *w, int flags, mode_t mode);

/* The same for somebody who opens it inside the C library: at the cost of another open. 0 or -errno. */
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
