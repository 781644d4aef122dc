/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether other processes of this host have written a file since its map was made, told by a few loads from memory: their
 * live files are mapped, and two words: one that everybody changes who begins to write, or truncates, and that by which who begins
 * to write revokes a kept map. That one is there for readers on whose host nobody has written yet.
 *
 *   notice.HOST                   the word: 8 bytes, another value after each change
 *
 * What other hosts write is not watched.
 */
#ifndef PLFS_WATCH_H
#define PLFS_WATCH_H

#include "globalindex.h"

#define WATCH_LIVES_MAX 256 /* of more nothing is told */

struct watched {
	char *path; /* relative to the container */
	const uint8_t *map;
	uint64_t digest;
};

struct watch {
	const uint64_t *word; /* mapped, or NULL: there is none */
	uint64_t seen;
	const uint64_t *revoked; /* of the kept map that is in use (globalcache.h), or NULL: it has told already */
	struct watched *lives; /* sorted by path */
	uint32_t nr_lives;
};

/* Change the word: a log has been made, or the file was truncated. Best effort. */
void watch_raise(const struct container *c);

/* The same; returns a handle of the file, which is the caller's for now, or -errno. */
int watch_raise_in(const struct container *c);

/* The file's handle alone, or -errno. It is made if it is missing. */
int watch_open(const struct container *c);

/*
 * Remember how things are now: before the inputs of a map are listed, and, those of @in, before they are read. @make: the word may be made
 * if it is missing. Where something cannot be mapped it is not watched.
 */
void watch_word(struct watch *w, const struct container *c, bool make);
void watch_lives(struct watch *w, const struct container *c, const struct index_inputs *in);

/* Whether what was remembered last is what @in says, which was listed before; and so is what could not be watched. */
bool watch_agrees(const struct watch *w, const struct container *c, const struct index_inputs *in);

/* Whether anything has changed since. */
static inline bool watch_is_idle(const struct watch *w) { return !w->word && !w->revoked && !w->nr_lives; }
bool watch_changed(const struct watch *w);

/* Whether the kept map that is in use has been revoked. */
static inline bool watch_is_revoked(const struct watch *w)
{
	return w->revoked && __atomic_load_n(w->revoked, __ATOMIC_ACQUIRE);
}

void watch_release(struct watch *w, const struct container *c);

#endif
