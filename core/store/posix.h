/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The store on a directory of a mounted file system, and what holds for files there that are opened past the
 * store: the stubs. A handle of it is a descriptor of the kernel, but only this module may know that.
 */
#ifndef PLFS_STORE_POSIX_H
#define PLFS_STORE_POSIX_H

#include "core/store/store.h"

/* A store on the directory @path. -ENOENT, -ENOTDIR, ... */
int store_posix_open(struct store *s, const char *path);
void store_posix_close(struct store *s);

/* For @s, which has the table of such a store and a directory as its root: what file system that is on. */
void store_posix_set_kind(struct store *s);

/*
 * Files of @other are used by handles of @s as well: be as careful as both need. @one: both are on one file
 * system.
 */
void store_posix_join(struct store *s, const struct store *other, bool one);

/* forget() the first @len bytes (0: all) of the file @fd: nothing while no store of the process is remote. */
void store_posix_forget(int fd, off_t len);

/*
 * fcntl() of @wait_cmd, F_SETLKW or F_OFD_SETLKW, so that a process killed meanwhile leaves no lock behind.
 * -1 and errno.
 */
int store_posix_lock(int fd, int wait_cmd, struct flock *lk);

/* locked() of the file @fd. */
bool store_posix_locked(int fd);

#endif
