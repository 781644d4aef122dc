/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between copy.c and flatten.c: what both tell who watches them. plfs_copy_out() itself is in plfs.h.
 */
#ifndef PLFS_COPY_H
#define PLFS_COPY_H

#include "plfs.h"

/* Tell @watch, which may be NULL, of the first error: @what could not be done, with the errno's text. Returns @ret. */
int watch_failed(struct plfs_watch *watch, int ret, const char *what);

/* The same in whole words. */
int watch_explained(struct plfs_watch *watch, int ret, const char *why);

#endif
