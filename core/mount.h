/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mounts: which paths are ours, and the backend directories behind them. The table is made once at
 * start and never changes, so it is read without a lock.
 */
#ifndef PLFS_MOUNT_H
#define PLFS_MOUNT_H

#include "config.h"
#include "store.h"

struct plfs_mount {
	struct mount_spec *spec;
	char backend[PATH_MAX]; /* canonical; the first of several */
	size_t backend_len;
	struct store store; /* on the backend */
	dev_t dev;          /* of the backend's root directory */
	ino_t ino;
	mode_t mode;        /* and owner, of that */
	uid_t uid;
	gid_t gid;
	bool prepared;      /* mount_prepare() has succeeded in this process */
	uint8_t *writers, *writers_seen; /* the table of writers.h, mapped for writing and for reading; NULL: not yet */
	uint64_t writers_tried_ns;       /* when it was looked for last, to be read */
};

/*
 * Make mounts of the specs in @c (which stays owned by the caller and must live on). Checks that every backend
 * is a directory and not inside a container directory. Returns their number, or -errno with one sentence in @err.
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

/* Whether a file system (st_dev) holds a backend. */
bool mount_has_dev(dev_t dev);
bool mount_is_root(dev_t dev, ino_t ino);

/* Whether it is the root of a backend that has a container directory. */
bool mount_has_containers(dev_t dev, ino_t ino);

/* Whether a new file with this path below the backend is to be log-structured. */
bool mount_wants_log(const struct plfs_mount *m, const char *path);

/*
 * Whether the backend is one that we can work with. -ENOENT: it has not been used yet; others as mount_prepare(),
 * with one line. prepare.c.
 */
int mount_check_format(struct plfs_mount *m);

/*
 * Make BACKEND/.plfs with its format file, or check the one that is there. -EROFS, -EACCES, -EPROTONOSUPPORT ...;
 * -EPERM: it belongs to somebody who could take away what others write (one line says so). prepare.c.
 */
int mount_prepare(struct plfs_mount *m);

#endif
