/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A logical file as the kernel and the dynamic loader need it: bytes that they can map.
 */
#ifndef PLFS_IMAGE_H
#define PLFS_IMAGE_H

#include "path.h"

/* Whether @w, which lies below a mount, is a stub. One system call. */
bool image_is_logical(const struct where *w, int at_flags);

/* Whether @w is the link of a descriptor (/proc/self/fd/N), not a name of the file. */
bool image_is_fd_link(const struct where *w);

/*
 * Make the logical file at @w plain for good. Where that fails (the file is open, it has several names, the
 * directory is read-only), make a private copy. *@copy: the copy's descriptor, close-on-exec; -1: the file is
 * plain now. 0; -errno.
 */
int image_make(const struct where *w, int *copy);

/* Make the copy only. *@copy: its descriptor; -1: the file was plain. 0; -errno. */
int image_copy(const struct where *w, int *copy);

/*
 * Read up to @len bytes from the start of the file, logical or plain. *@logical: which it is. The count;
 * -errno.
 */
ssize_t image_head(const struct where *w, char *buf, size_t len, bool *logical);

#endif
