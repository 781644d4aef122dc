/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A store whose data logs and live files may lie in several backends (spread.h). To all that is above, a log
 * has its path in the container, wherever its bytes are.
 */
#ifndef PLFS_SPREAD_STORE_H
#define PLFS_SPREAD_STORE_H

#include "core/backend/spread_enter.h"

/*
 * From here on look for logs in other backends: the mapping has spread=, or a stub has the feature "spread".
 * For a store on a directory. Thread-safe. What changes is as in placed_enable(), but list() tells all names
 * that it finds, also if another backend is not there. It is -EIO then (one line) if that may have live
 * files, and -EREMOTE if there are none by the notes (spread_open.h).
 */
void spread_enable(struct store *s);

/*
 * The directory OTHER/plfs.UID/BACKEND-ID-shared of the backend in which the log @path of the store is, into
 * @top (PLACE_PATH_LEN); "": at home. 0; -ENOENT; -EREMOTE: it may be in a backend that is not there; -errno.
 */
int spread_where(struct store *s, const char *path, char *top);

/*
 * Open the log @path of the store, if it is in another backend: a handle, *@to the directory that has it, for
 * place_leave(), and "spread.N.HOST" into @file (STORE_PATH_LEN). -ENOENT: it is at home, or nowhere;
 * -EREMOTE: it may be in a backend that is not there; -errno.
 */
int spread_open_there(struct store *s, const char *path, struct place_dir *to, char *file);

/* Whether the log at @path may be in a backend that is not there, or cannot be read. *@p: which. */
bool spread_is_elsewhere(struct store *s, const char *path, struct place *p);

#endif
