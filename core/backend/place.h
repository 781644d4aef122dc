/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Places: directories besides the backend in which data logs and live files may lie, near the host that
 * writes them. Everything in the container itself is *at home*.
 *
 *   BACKEND/.plfs/XX/ID/hostdir.K/near.HOST         at home: where the host's logs may be
 *   NEAR/plfs.UID/BACKEND-ID/home                   the way back: the backend's path, and a newline
 *   NEAR/plfs.UID/BACKEND-ID/XX/ID/hostdir.K/       the logs and live files, under their names
 *       near.HOST                                   the same bytes as at home, and the lock (near_host.h)
 *
 * A place counts as there if both files have the same bytes. So no name or number of a host is believed. The
 * directory plfs.UID belongs to the user UID, and nobody else may write it: what is in it is his. Who writes
 * near.HOST at home may write the file.
 *
 * Who makes a log near has a shared lock on the near.HOST there, and looks that both files are there. Who
 * removes them has it exclusively, and looks that no log is there.
 */
#ifndef PLFS_PLACE_H
#define PLFS_PLACE_H

#include "core/backend/container.h"
#include "core/backend/place_settings.h"

/*
 * Read near.HOST in the hostdir @dir, relative to the store's root, at home. 0; -ENOENT: there is none;
 * -EBADMSG: it is damaged, or of another version; *@p has the host, and words for the place; -errno.
 */
int place_read(struct store *home, const char *dir, const char *host, size_t host_len, struct place *p);

/*
 * Open the hostdir @dir, near, as near.HOST at home says. 0; -ENOENT: there is no near.HOST, or none any
 * more: all logs are at home; -EREMOTE: there is, and the place is not on this host, or is gone, or cannot be
 * read, or near.HOST is damaged; -errno.
 */
int place_enter(struct store *home, const char *dir, const char *host, size_t host_len,
		struct place_dir *near);

/* The directory of BACKEND-ID there, if place_enter() would succeed: its container is "XX/ID" in that. */
int place_enter_top(struct store *home, const char *dir, const char *host, size_t host_len,
		    struct place_dir *near);

/*
 * What is done where this host has no place for a hostdir as yet, before anything leads there, and by one
 * process at a time: the others wait, and find it done. What @make returns but 0 ends that.
 */
struct place_first {
	int (*make)(void *arg);
	void *arg;
};

/*
 * The same to make a log: what is missing of it is made, with near.HOST at home of @mode. The caller is the
 * owner of the file. @first may be NULL. -EREMOTE: near.HOST at home is of another place; -EPERM: somebody
 * else may write there (one line); -errno.
 */
int place_begin(struct store *home, const char *dir, mode_t mode, const struct place_first *first,
		struct place_dir *near);

/*
 * The hostdir @dir, or with the name of a container that, in the place @top (NEAR/plfs.UID/BACKEND-ID),
 * whether or not a near.HOST leads there. -errno.
 */
int place_open_top(struct store *home, const char *top, const char *dir, struct place_dir *near);

/*
 * The hostdir @dir, or with the name of a container that, in the place that @ps says, of the user @uid.
 * place_make(): what is missing of it is made.
 */
int place_find(struct store *home, const struct place_settings *ps, uid_t uid, const char *dir,
	       struct place_dir *near);
int place_make(struct store *home, const struct place_settings *ps, uid_t uid, const char *dir,
	       struct place_dir *near);

void place_leave(struct place_dir *near);

/* "XX/ID/hostdir.K" of ".plfs/XX/ID/hostdir.K". */
static inline const char *place_below(const char *dir) { return strchr(dir, '/') + 1; }

/* The directory plfs.UID at @path, if it is @uid's and nobody else may write it: a descriptor; -errno. */
int place_open_user_at(const char *path, uid_t uid);

/* A store like @home on what is called @path below the directory @fd, which is closed. */
int place_enter_below(struct store *home, int fd, const char *path, struct place_dir *near);

/*
 * The same three with @file, "near.HOST" or "spread.N.HOST", for the file that leads there, and @ps for where
 * that is to be. -EREMOTE of the last: also if it leads to a place with other features. Without @make it
 * makes nothing; -ENODATA: @file does not lead there as yet.
 */
int place_read_as(struct store *home, const char *dir, const char *file, struct place *p);
int place_enter_as(struct store *home, const char *dir, const char *file, struct place_dir *near, bool top);
int place_begin_as(struct store *home, const struct place_settings *ps, const char *dir, const char *file,
		   mode_t mode, bool make, const struct place_first *first, struct place_dir *near);

/* One line for the error @ret, once in a process: no log is made in the place of @ps. */
void place_tell_refused(const struct place_settings *ps, int ret);

/* Whether a sync of this process leaves bytes of logs near where they are. */
static inline bool place_syncs_near(const struct store *s)
{
	return s->near && s->near->sync == SYNC_NEAR;
}

/* Whether what a process releases, a close above all, is to be home for other hosts. */
static inline bool place_releases_home(const struct store *s)
{
	return s->near && s->near->release == RELEASE_HOME;
}

/*
 * Put the log or live file at @path of the container, as it is near, on stable storage there. 0; -ENOENT: it
 * is not near; -EREMOTE: as place_enter(); -errno.
 */
int place_sync_file(struct store *home, const char *path);

/*
 * Put on stable storage what leads to the files in the hostdir @dir of @host, near, and near.HOST: here and
 * at home, but for the name at home. 0; -ENOENT: there is no near.HOST; -EREMOTE: as place_enter(); -errno.
 */
int place_sync_names(struct store *home, const char *dir, const char *host, size_t host_len);
int place_sync_names_as(struct store *home, const char *dir, const char *file);

/* The directory plfs.UID there, if it is this user's alone: a hidden descriptor; -errno. */
int place_open_user(const struct place_settings *ps);

/*
 * Have the near.HOST of @host, at home of @mode, lead to the hostdir @dir in the place @top
 * (NEAR/plfs.UID/BACKEND-ID), in which there are logs of that host: one that is missing or damaged is made
 * from the other, or both anew. 0; -EREMOTE: that at home leads to another place; -errno.
 */
int place_mend(struct store *home, const char *top, const char *dir, const char *host, mode_t mode);

/* Make NEAR/plfs.UID/BACKEND-ID with its file "home". 0; -errno. */
int place_make_top(struct store *home);

/* What one user has there, in bytes: of all backends. UINT64_MAX: that cannot be told. */
uint64_t place_used(const struct place_settings *ps);

#endif
