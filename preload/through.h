/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Paths that lead below a backend by a symbolic link somewhere else: their text does not show it, so
 * path_find() leaves them to the kernel. Calls that would harm a stub ask here first.
 */
#ifndef PLFS_THROUGH_H
#define PLFS_THROUGH_H

#include "path.h"

/* path_find() of the two paths of link(). -EXDEV: different mounts, or only one is below a mount. */
int path_find_linked(struct where *a, int fd_a, const char *path_a, struct where *b, int fd_b,
                     const char *path_b);

/*
 * The same for rename(). -EBUSY: one of them is what a mount hangs on, or a directory above that; then the
 * mapping would lead to another directory, or to none.
 */
int path_find_moved(struct where *a, int fd_a, const char *path_a, struct where *b, int fd_b,
                    const char *path_b);

/*
 * For a call that would harm a stub. If a path that path_find() left to the kernel reaches one by a link, @w
 * becomes its real path. One system call unless @w is below a mount already. 0; -errno.
 */
int path_through(struct where *w, int at_flags);

/*
 * @w becomes the real path of the file open at @fd. w->m stays NULL if that is not below a mount. 0; -ENOENT:
 * inside the container directory; another -errno.
 */
int path_of_fd(struct where *w, int fd);

/* Whether @path leads into a mount or to a directory above one. Two system calls unless its text decides. */
bool path_is_near_mount(const char *path);

/*
 * For a path that goes, or may go, by links: if it leads below a mount, @w becomes the real path. @flags: of
 * open(), O_NOFOLLOW for a call on the name itself. Some system calls. 0; -errno.
 */
int path_follow(struct where *w, int flags);

/*
 * The same, but the file is looked at first: most links lead to no stub and no directory, and then nothing
 * more is asked. 0; -errno.
 */
int path_look(struct where *w, int flags);

/* The same for a path of which nothing is known yet: an open finds out whether there are links. */
int path_before_open(struct where *w, int flags);

#endif
