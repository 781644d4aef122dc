/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Carrying bytes of logs that are near (core/backend/place.h) home. What has been appended to a log never
 * changes, so any process may copy it, and two may do so at once.
 */
#ifndef PLFS_CARRY_H
#define PLFS_CARRY_H

#include "core/dropping/carried.h"

/*
 * Have the first @len bytes of the log @path, relative to the container, at home; with @durably on stable
 * storage there. The copy has the log's name, and is continued by the next call; until the log is moved,
 * readers of this host take the log near. 0; -ENOENT: there is no such log near, and nothing was done;
 * -errno.
 */
int carry_part(const struct container *c, const char *path, uint64_t len, bool durably);

/* The log @path was closed at home, where all of it is durable: remove it near. 0; -errno. */
int carry_leave(const struct container *c, const char *path);

/*
 * Move the log @path home: copied under a temporary name and compared with the log's checksums, synced,
 * renamed, the directory synced; then removed near. Killed after any call, the file has all its bytes, and
 * the next call goes on. Its blocks are in the node index, as the caller knows.
 * 0; -ENOENT: it is not near; -EBUSY: it is being made, written or continued; -EIO: its bytes are
 * not those that were written (one line); -EROFS: with carry->stays it is home, and cannot go near; -errno.
 */
int carry_log(const struct container *c, const char *path, struct carry *carry);

/*
 * Copy the closed log @path to @to, in the same way, and leave it where it is. As carry_log(), but -ENOENT:
 * there is no such log.
 */
int carry_copy(const struct container *c, const char *path, struct place_dir *to, struct carry *carry);

/*
 * Copy the log @path from the open copy @from, and from @other what is damaged there (-1: none), home, in
 * place of what is there. Returns as that.
 */
int carry_back(const struct container *c, const char *path, int from, int other, struct carry *carry);

/* The same into the directory @to, where the log was or should be. */
int carry_there(const struct container *c, const char *path, int from, struct place_dir *to,
		struct carry *carry);

/*
 * Make a staged copy of the closed log @path of the container, which is at home, or put it in the place of
 * one that is shorter. staged_lock() is held. 0; -EALREADY: there is one, or the log is near; -EBUSY: it is
 * being written; -ENOSPC, -EDQUOT: the place is full; -EIO: as carry_log(); -errno.
 */
int carry_stage(const struct container *c, const char *path, struct carry *carry);

/*
 * Move the closed log @path from another backend home (core/backend/spread.h): copied as by carry_log(), then
 * removed there. Killed after any call, the file has all its bytes, and the next call goes on. 0; -ENOENT: it
 * is at home, or nowhere; -EREMOTE: it may be in a backend that is not there; -EBUSY: it is written, or logs
 * are being made there; -EIO: as carry_log(); -errno.
 */
int carry_home(const struct container *c, const char *path, struct carry *carry);

/*
 * Remove the file @path of the container, "hostdir.K/spread.N.HOST", and its counterpart in that backend, if
 * no log of the host is there. 0; -EBUSY: there are some, or one is being made; -EREMOTE: that backend is not
 * there; -errno.
 */
int carry_home_end(const struct container *c, const char *path);

/* Remove the directories there, @dir of the container and those above it, that are empty. */
void carry_remove_way(const char *dir, struct place_dir *top);

/*
 * Remove near.HOST, in the place and at home, if no log of it is there. @hostdir: "hostdir.K". 0; -EBUSY:
 * there are logs; -ENOENT: there was none; -EREMOTE: the place is not on this host; -errno.
 */
int carry_end(const struct container *c, const char *hostdir, const char *host, size_t host_len);

#endif
