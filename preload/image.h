/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A logical file as the kernel and the dynamic loader want it: bytes that can be mapped.
 */
#ifndef PLFS_IMAGE_H
#define PLFS_IMAGE_H

#include "path.h"

/* Whether @w, below a mount, is a stub. One system call. */
bool image_is_logical(const struct where *w, int at_flags);

/* Whether @w names a descriptor's file (/proc/self/fd/N), not a name of it. */
bool image_is_fd_link(const struct where *w);

/*
 * Make the logical file at @w a plain one for good. If that cannot be, because somebody has it open, it has several names,
 * the directory is not ours to write, give a private copy instead: *@copy is its descriptor, close-on-exec, or -1. 0 or -errno.
 */
int image_make(const struct where *w, int *copy);

/* The copy alone; *@copy is -1 if the file is plain. */
int image_copy(const struct where *w, int *copy);

/* Up to @len bytes from the start of the file, logical or plain, and whether it is logical. The count, or -errno. */
ssize_t image_head(const struct where *w, char *buf, size_t len, bool *logical);

#endif
