/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Backends that lie in one another: a directory was mapped once, and one below it another time. Each has its
 * own .plfs, and a stub that lies below both may have its container in either. The mapping's own is asked
 * first. Only where that has no such container are the directories above the stub looked at, the nearest
 * first, those above the mapping included; so files of one backend cost nothing.
 *
 * A .plfs of somebody who has nothing to do with the file is passed over (plfs_counts()). container_check()
 * holds for what is found.
 */
#ifndef PLFS_NESTED_H
#define PLFS_NESTED_H

#include "core/backend/container.h"
#include "core/backend/mount.h"

/*
 * The mount of the stub @fd, which was found below that of @m. That is @m, unless its path leads to another
 * directory by now than when this process began, and the stub is in that one: another file system is mounted
 * there, or the directory was moved away. The containers of what is in it are there too.
 */
struct plfs_mount *nested_now(struct plfs_mount *m, int fd);

/*
 * The mount that holds the stub @fd: another one if a symbolic link led out of the backend of @m, else as
 * nested_now(). @below: its name is of the directory that @m has open.
 */
struct plfs_mount *nested_holding(struct plfs_mount *m, int fd, bool below);

/* mount_has_dev(), also of a file system that is mounted over a backend by now. It makes calls for others. */
bool nested_has_dev(dev_t dev);

/*
 * The backend, other than @m, that has the container @c of the stub @fd. Its mount has the settings of @m,
 * lasts as long as the process, and is in no table of mounts unless it is mapped too. NULL: none has it.
 */
struct plfs_mount *nested_find(struct plfs_mount *m, const struct container *c, int fd);

/*
 * The same, but only between the stub and @m. That of a copy counts before @m's: the stub and its container
 * were copied together, without the library, to a place below the first.
 */
struct plfs_mount *nested_find_below(struct plfs_mount *m, const struct container *c, int fd);

/*
 * container_init_from() and container_look_at_list() for the stub @fd, in the backend that has its container.
 * Returns its mount; @m: also where none has it.
 */
struct plfs_mount *nested_init_container(struct plfs_mount *m, struct container *c, int fd,
					 const struct stub *stub, const struct stat *st);

/*
 * Whether (fromfd, from) can get the name (tofd, to), both below @m, by rename(2) or link(2). False: it would
 * lie outside of the backend below @m that has its container, or may have those of files in it.
 */
bool nested_may_move(struct plfs_mount *m, int fromfd, const char *from, int tofd, const char *to);

/* The nearest backend above @m; NULL: none. */
struct plfs_mount *nested_outer(struct plfs_mount *m);

/* The highest backend above @m whose containers belong to the same user as those of @m; @m: there is none. */
struct plfs_mount *nested_top(struct plfs_mount *m);

#endif
