/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A container's directories: making, listing, removing them.
 */
#ifndef PLFS_CONTAINER_DIRS_H
#define PLFS_CONTAINER_DIRS_H

#include "core/backend/container.h"
#include "core/backend/names.h"

/* Whether @name, of @len bytes, is that of a hostdir: "hostdir.K", K being below CONFIG_HOSTDIRS_MAX. */
bool container_is_hostdir(const char *name, size_t len);

/* Whether the directory @h has nothing in it but what a hostdir has. */
bool container_is_own_hostdir(const struct container *c, int h);

/*
 * Make the container's directory, hostdir.@hostdir, and the lock. Several processes may do so at once. 0:
 * they are there; -EACCES: this user may not (one line names who can); -errno.
 */
int container_make(struct container *c, unsigned hostdir);

/*
 * The stub has got another owner since this process, of another user, made the container: say that it is for
 * that one. 0; -errno.
 */
int container_say_for(const struct container *c);

/* Make hostdir.@hostdir in a container that is there. 0; -EIDRM: it has gone, or was purged; -errno. */
int container_add_hostdir(const struct container *c, unsigned hostdir);

/*
 * Whether a purge of old files, or whoever else, has removed all of the container, or all files in it, and
 * the stub has a length (c->filled). A container has its lock before a stub names it; one of an older version
 * has a log, a live file, a node index or the kept map if the stub has a length. Nothing may be the first of
 * these where bytes were lost: they would read as zeros.
 */
bool container_is_purged(const struct container *c);

/*
 * Call @fn for each dropping. @path is relative to the container ("hostdir.3/data..."), @name its last
 * component. Names that no dropping can have are skipped. 0; the first non-zero that @fn returned, which ends
 * the listing; -ENOENT: there is no such container, or no hostdir in it, which each container has that a stub
 * names; -EIO: a backend with logs of it is not there (spread_store.h), and @fn was called for all others
 * (one line); -errno.
 */
int container_list(const struct container *c,
		   int (*fn)(void *arg, const char *path, const char *name, enum dropping_kind kind),
		   void *arg);

/*
 * The same; but closed logs in a backend that is not there are no error. All live files and node indexes are
 * listed.
 */
int container_list_there(const struct container *c,
			 int (*fn)(void *arg, const char *path, const char *name, enum dropping_kind kind),
			 void *arg);

/* What a container has: a dirs_known. */
bool container_has(const char *name, int depth, bool dir);

#endif
