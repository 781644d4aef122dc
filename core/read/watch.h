/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The watch: whether other processes of this host have changed a file since its map was made. It costs a few
 * loads from mapped memory: the live files of the writers, the word of the notice (notice.h), and the word
 * that revokes a kept map. Each writer that begins a log changes both words; each truncation changes the
 * first. The second also serves a host without a notice, where no process has written yet.
 *
 * What other hosts write is not watched.
 */
#ifndef PLFS_WATCH_H
#define PLFS_WATCH_H

#include "core/gather/inputs.h"

#define WATCH_LIVES_MAX 256 /* with more live files, none is watched */

struct watched {
	char *path; /* relative to the container */
	const uint8_t *map;
	uint64_t digest;
};

struct watch {
	const uint8_t *notice; /* mapped, or NULL: there is none */
	const uint64_t *word;  /* in it */
	uint64_t seen;
	const uint64_t *revoked; /* of the kept map in use (kept_map.h), or NULL: none, or already reported */
	struct watched *lives; /* sorted by path */
	uint32_t nr_lives;
};

/*
 * Remember the words, before the inputs of a map are listed, and the live files of @in, before they are read.
 * @make: a missing notice may be made. Files that cannot be mapped are not watched.
 */
void watch_word(struct watch *w, const struct container *c, bool make);
void watch_lives(struct watch *w, const struct container *c, const struct index_inputs *in);

/*
 * Whether the live files still are as @in says, which was listed before they were remembered, unwatched ones
 * included.
 */
bool watch_agrees(const struct watch *w, const struct container *c, const struct index_inputs *in);

/* Whether nothing is watched. */
static inline bool watch_is_idle(const struct watch *w) { return !w->word && !w->revoked && !w->nr_lives; }

/* Whether anything has changed since. */
bool watch_changed(const struct watch *w);

/* Whether the kept map in use has been revoked. */
static inline bool watch_is_revoked(const struct watch *w)
{
	return w->revoked && __atomic_load_n(w->revoked, __ATOMIC_ACQUIRE);
}

void watch_release(struct watch *w, const struct container *c);

#endif
