/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Logs in a place that near.HOST does not lead to.
 */
#ifndef PLFS_MEND_H
#define PLFS_MEND_H

#include "core/admin/places/listed.h"
#include "core/backend/container.h"
#include "core/plfs_admin.h"

/*
 * Before a drain, of a container with logs in the place @top (NEAR/plfs.UID/BACKEND-ID), where they are in
 * @name in the directory @fd: mend the near.HOSTs that should lead there, and do not, since a power failure,
 * say. Where that cannot be done @d says so, and counts what stays.
 */
void drain_mend(const struct container *c, const char *top, int fd, const char *name, struct plfs_drain *d);

/*
 * Count a log that could not be moved or copied, for @ret. False: there is nothing to tell: another attempt
 * may do it, or it is gone.
 */
bool drain_counts(struct plfs_drain *d, int ret);

/* Add the log @log of @c, which has a live file, to *@open. One whose end is lost is damaged, and named. */
void drain_note_open(struct plfs_drain *d, const struct container *c, const char *log,
		     struct drain_open *open);

/* Report that @path in the directory @dir stays, and why. */
void drain_trouble(struct plfs_drain *d, const char *dir, const char *path, const char *why);

/*
 * Report that the log of the live file @live, whose process was killed, cannot be closed: in which place, and
 * why; @text if that cannot be told.
 */
void drain_unfinished(struct plfs_drain *d, const struct container *c, const char *live, const char *text);

/*
 * Count @dir/@name, which no file has any more: it was removed, or would be, with @ret 0; else it stays, and
 * that is reported.
 */
void drain_count_orphan(struct plfs_drain *d, const char *dir, const char *name, int ret);

/* Report that the log @log has no copy in the backend @to, for the error @err. */
void drain_not_copied(struct plfs_drain *d, const struct container *c, const char *log, const char *to,
		      int err);

#endif
