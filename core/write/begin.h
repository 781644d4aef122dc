/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a writer needs before it makes its log: the notice, and with near= the place.
 */
#ifndef PLFS_BEGIN_H
#define PLFS_BEGIN_H

#include "core/backend/placed.h"

struct begin {
	const struct container *c;
	int notice;            /* open, when begin_notice() has returned 0; -ENOENT at first */
	bool held;             /* @near is: */
	struct place_dir near; /* of placed_hold() */
};

/* Open the notice, unless it is. 0; as notice_open_here(). */
int begin_notice(struct begin *b);

/*
 * With c->near: hold the place, if there can be one. The first of a host opens the notice before anything
 * leads there, while the others wait.
 */
void begin_near(struct begin *b);

/* Release all. */
void begin_end(struct begin *b);

#endif
