/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the store on a directory (store_posix.c) does with names; as the functions of struct store_ops, see store.h.
 */
#ifndef PLFS_STORE_NAMES_H
#define PLFS_STORE_NAMES_H

#include "store.h"
#include "sys.h"

/* The kernel's descriptor or -1 and errno: -ELOOP, -EXDEV for what leads elsewhere. */
int names_open(struct store *s, const char *path, int flags, mode_t mode);

int names_mkdir(struct store *s, const char *path, mode_t mode);
int names_grant(struct store *s, const char *path, const struct store_grant *g);
int names_chmod(struct store *s, const char *path, mode_t mode);
int names_chown(struct store *s, const char *path, uid_t uid, gid_t gid);
int names_unlink(struct store *s, const char *path);
int names_rmdir(struct store *s, const char *path);
int names_rename(struct store *s, const char *from, const char *to);
int names_list(struct store *s, const char *path, int (*fn)(void *arg, const char *name), void *arg);
int names_remove_tree(struct store *s, const char *path);

#endif
