/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Spare bytes: whole copies of closed data logs in other backends (mirror=).
 *
 *   BACKEND/.plfs/XX/ID/hostdir.K/copies.HOST       at home: directories with copies of the host's logs
 *   S/plfs.UID/copies.BACKEND-ID/home               the way back: the backend's path, and a newline
 *   S/plfs.UID/copies.BACKEND-ID/XX/ID/hostdir.K/   the copies, under the names of the logs
 *
 *   copies.HOST                   text, a line each
 *     "plfs-copies 1 CRC"         CRC-32C of all that follows, 8 hexadecimal digits
 *     DIRECTORY                   S/plfs.UID/copies.BACKEND-ID; at most 15
 *
 * A log at home is the log; a copy is looked for when that is missing, shorter than its index says, or
 * damaged. A copy is a beginning of its log, for what was appended to a log never changes, and no other log
 * gets its name. Its header, its length and its checksums say what it is worth: nothing else is believed. So
 * a copy that was made before the log was continued is right as far as it goes.
 *
 * Copies go before what they are copies of. With the container they go after it.
 */
#ifndef PLFS_SPARE_H
#define PLFS_SPARE_H

#include "core/backend/container.h"
#include "core/backend/option.h"
#include "core/backend/place.h"

#define SPARE_DIRS_MAX 15

/* Where copies are to be, by the mapping. */
struct spare_settings {
	unsigned nr; /* of places; 0: no copies are wanted */
	unsigned parity; /* so many parity files are (parity.h); then places[0] has what a helper is told */
	struct place_settings places[CONFIG_BACKENDS_MAX - 1];
	unsigned drain; /* enum place_drain: who makes them */
	char *map;      /* the mapping, for a helper; mem_alloc()ed */
};

/*
 * What the mapping @spec says, of the backend @home: the copies are in the first of @others; with parity= it
 * is spread_setup() that says where. The strings stay the caller's. -ENOMEM.
 */
int spare_setup(struct spare_settings *ss, const struct mount_spec *spec, const char *home,
		char *const *others);

/* Of copies.HOST. */
struct spare_dirs {
	unsigned nr;
	char path[SPARE_DIRS_MAX][PLACE_PATH_LEN];
};

/* The directories for the logs of the host of the log @path, relative to the container. -ENOENT: there is no
 * copies.HOST; -EBADMSG: it is damaged; -errno. */
int spare_read(const struct container *c, const char *path, struct spare_dirs *dirs);

/* The hostdir of the log @path in the directory @top, of copies.HOST. -ENOENT; -errno. */
int spare_enter(const struct container *c, const char *path, const char *top, struct place_dir *dir);

/*
 * The same to make a copy, in the place @ps: what is missing is made, and copies.HOST names it, durably.
 * @top: PLACE_PATH_LEN, the directory.
 */
int spare_begin(const struct container *c, const char *path, const struct place_settings *ps,
		struct place_dir *dir, char *top);

/* Whether the directory @top is one of copies, and no place. */
bool spare_is_top(const char *top);

/* Whether a file is a copies.HOST, by its beginning (container_proof). */
bool spare_is_one(const struct container *c, const struct stat *st, const uint8_t *head, size_t len);

/* Whether logs of the container may have copies. */
static inline bool spare_may_be(const struct container *c) { return unlikely(c->copied || c->store->spares); }

/* Remove all copies of the log @path, which is about to go. Best effort: plfs gc removes what is left. */
void spare_unlink(const struct container *c, const char *path);

/*
 * The copies of a whole container, and its parity: found before it is removed, removed after it.
 * spare_find(): mem_alloc()ed, or NULL.
 */
struct spare_removal {
	unsigned nr;
	char path[SPARE_DIRS_MAX][PLACE_PATH_LEN];
};
struct spare_removal *spare_find(const struct container *c);
void spare_remove(const struct container *c, const struct spare_removal *r);

#endif
