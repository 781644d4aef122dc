/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * open(2) by path, for all calls that open: path.h says where a path leads, core opens it, and a logical file
 * or a directory of a backend gets its slot in the table of descriptors.
 */
#ifndef PLFS_OPEN_PATH_H
#define PLFS_OPEN_PATH_H

#include "path.h"

/*
 * open(2) of a path below a mount. Enters a logical file or a directory into the table. The descriptor;
 * -errno. *@logical, unless NULL: whether it is a logical file.
 */
int ofile_open(const struct where *w, int flags, mode_t mode, bool *logical);

/*
 * All of open(2): find where the path leads, fill @w, and open the file if it is below a mount or no link is
 * on the way. @r: the result of path_open_plain(); -ENOSYS: not tried. The descriptor; -errno;
 * PATH_NOT_OPENED: the caller makes the real call on (w->dirfd, w->path).
 */
int ofile_find_and_open(struct where *w, int dirfd, const char *path, int flags, mode_t mode, int r);

#endif
