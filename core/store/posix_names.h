/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The names of the store on a directory (posix.c): functions of struct store_ops, whose contract is in
 * store.h.
 */
#ifndef PLFS_POSIX_NAMES_H
#define PLFS_POSIX_NAMES_H

#include "core/store/store.h"
#include "core/base/sys.h"

/* The kernel's descriptor; -1 and errno: ELOOP, EXDEV if the path leads elsewhere. */
int names_open(struct store *s, const char *path, int flags, mode_t mode);

int names_mkdir(struct store *s, const char *path, mode_t mode);
int names_grant(struct store *s, int h, const struct stat *now, const struct store_grant *g);
int names_unlink(struct store *s, const char *path);
int names_rmdir(struct store *s, const char *path);
int names_rename(struct store *s, const char *from, const char *to);
int names_rename_new(struct store *s, const char *from, const char *to);
int names_list(struct store *s, const char *path, int (*fn)(void *arg, const char *name), void *arg);
int names_remove_tree(struct store *s, const char *path, dirs_known *known);

#endif
