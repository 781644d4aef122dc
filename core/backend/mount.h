/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mounts: which paths are ours, and the backend directories behind them. The table is made once, at start,
 * and is read without a lock.
 */
#ifndef PLFS_MOUNT_H
#define PLFS_MOUNT_H

#include "core/backend/config.h"
#include "core/backend/place.h"
#include "core/backend/spare.h"
#include "core/backend/spread.h"
#include "core/store/store.h"

struct plfs_mount {
	struct mount_spec *spec;
	char backend[PATH_MAX]; /* canonical; the first of several */
	size_t backend_len;
	struct store store; /* of the containers */
	struct place_settings near; /* what the mapping says of places; near.near NULL: nothing */
	struct spare_settings spares; /* what it says of copies of logs; nr 0: nothing */
	char *others[CONFIG_BACKENDS_MAX]; /* canonical; the second backend and those behind it */
	struct spread_settings spread; /* spread.rule SPREAD_NONE: they are not used */
	int dirfd;          /* the kernel's descriptor of the backend's directory, in which the stubs are */
	dev_t dev;          /* of the backend's root directory */
	dev_t dev_now;      /* of what was mounted over it since (nested_has_dev()); 0: nothing */
	ino_t ino;
	mode_t mode;        /* of the root directory, as the owner */
	uid_t uid;
	gid_t gid;
	bool prepared;      /* mount_prepare() has succeeded in this process */
	struct writer_tables *writers; /* writer_table.c's; NULL: not yet */
};

/*
 * Make mounts of the specs in @c, which the caller owns and keeps. Every backend must be a directory, outside
 * of container directories. The number of mounts; -errno: one sentence in @err.
 */
int mount_setup(struct config *c, char *err, size_t err_len);

/* All of them. */
int mount_count(void);
struct plfs_mount *mount_at(int i);

/* As plfs_path_map(), plfs_path_unmap(), plfs_cwd_class() in plfs.h. */
int mount_path_map(const char *path, char *out, struct plfs_mount **m);
int mount_path_unmap(const char *path, char *out);
int mount_cwd_class(const char *cwd, struct plfs_mount **m);

/* The mount whose backend holds the canonical absolute path @path, or NULL. */
struct plfs_mount *mount_of_backend_path(const char *path);

/* The same of the open file @fd, by the kernel's name of it. */
struct plfs_mount *mount_of_file(int fd);

/*
 * The mount that holds what has the canonical absolute path @path, and was reached by a name below @m: @m,
 * unless a symbolic link led out of its backend; NULL: no backend has it. @m if @path is not known, or the
 * backend has been moved.
 */
struct plfs_mount *mount_holding(struct plfs_mount *m, const char *path);

/* The same of the open file @fd; @m also where no backend has it. */
struct plfs_mount *mount_followed(struct plfs_mount *m, int fd);

/* Whether no backend has it. */
bool mount_lacks_file(struct plfs_mount *m, int fd);

/* Whether a file system (st_dev) holds a backend. */
bool mount_has_dev(dev_t dev);
bool mount_is_root(dev_t dev, ino_t ino);

/* Whether a directory is mapped onto itself, where programs without the library find the same names. */
bool mount_any_in_place(void);

/* Whether it is the root of a backend that has a container directory. */
bool mount_has_containers(dev_t dev, ino_t ino);

/* Whether a new file with this path below the backend is to be log-structured. */
bool mount_wants_log(const struct plfs_mount *m, const char *path);

/*
 * Check the backend's format file. 0; -ENOENT: it has not been used yet; others as mount_prepare().
 * prepare.c.
 */
int mount_check_format(struct plfs_mount *m);

/*
 * Whether all files without a container that have a body have the sentence in their header (stub.h), by the
 * format file. False: not those of older versions. Makes system calls each time. prepare.c.
 */
bool mount_explains_bare(struct plfs_mount *m);

/*
 * Make BACKEND/.plfs with its format file, or check the one that is there. 0; -EPERM: it belongs to a user
 * who could remove the files of others; -EROFS, -EACCES, -EPROTONOSUPPORT ... One line reports each error.
 * prepare.c.
 */
int mount_prepare(struct plfs_mount *m);

/*
 * The directory @path as a backend without a mapping, into *@m; store_posix_close() of its store ends it. 0;
 * -errno: reported in one line. prepare.c.
 */
int mount_open_unmapped(struct plfs_mount *m, const char *path);

#endif
