/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies of backends. `cp -a` copies near.HOST with the rest, and the copy would lead to the logs of the
 * original: it would show what is written there later, and a drain or a removal would take the original's
 * bytes. So a place belongs to the backend whose path is in its file "home", as long as that one leads to it.
 */
#ifndef PLFS_ORIGIN_H
#define PLFS_ORIGIN_H

#include "core/store/store.h"

#define ORIGIN_HOME "home" /* lines: the path of the backend; origin_identity() as 16 hex digits */
#define ORIGIN_ID_LEN 17   /* bytes of the second line */

/*
 * A number for a backend, which no other has: none that was at its path before, that comes there later, or is
 * there for processes with other mounts. 0: it cannot be told.
 */
uint64_t origin_identity(struct store *home);

/* The second line of "home", with its newline, into @line (ORIGIN_ID_LEN and a zero). */
void origin_line(struct store *home, char *line);

/*
 * Read "@id/home" below the directory @user: the path into @path (PATH_MAX); *@identity, unless that is NULL.
 * 0; -ENODATA: there is none, or it is damaged.
 */
int origin_read(int user, const char *id, char *path, uint64_t *identity);

/* Whether the directory at @path is that of @home: 1, 0; -ENOENT: there is none; -errno. */
int origin_is_at(struct store *home, const char *path);

/*
 * Whether @home is the backend to which the place "@id" below the directory @user belongs, and still at its
 * path: no other has come there. False also if that cannot be told.
 */
bool origin_is(struct store *home, int user, const char *id);

/*
 * Whether @home, which has the near.HOST @name (relative to its root) with these @len bytes, is a copy of the
 * backend to which the place "@id" below the directory @user belongs. A backend that was moved is none: its
 * old path has no such file. False without a system call if @home was opened by the path that @id stands for.
 */
bool origin_is_other(struct store *home, int user, const char *id, const char *name, const uint8_t *bytes,
		     size_t len);

#endif
