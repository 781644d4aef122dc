/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Continuing a log: a process that opens, writes and closes a file again and again makes one log, not one
 * each time. It remembers the ends of the last few logs that it has closed.
 */
#ifndef PLFS_RESUME_H
#define PLFS_RESUME_H

#include "core/dropping/trailers.h"
#include "core/write/tail.h"

/*
 * Remember the end of @t's log, which is closed: it is complete, ends with @piece, and the node index has its
 * records. @added: bytes that it has got since it was opened.
 */
void resume_remember(const struct tail *t, const struct trailer_piece *piece, uint64_t added);

/* Whether there may be one of @c. True also if that cannot be told. */
bool resume_may(const struct container *c);

/* Whether this process has gone on with a log of @c, and may do so once more. */
bool resume_again(const struct container *c);

/*
 * Open a log of @c that this process has closed, with a new live file. @t is all zeros. -ENOENT: there is
 * none, or none that can be used: make a new one.
 */
int resume_open(struct tail *t, const struct container *c);

/*
 * This process is about to write over what the file has. A log of @c that got a good part of its bytes the
 * last time is forgotten: a process that writes the whole file, or its share of it, again and again makes a
 * new log each time, and the old ones can go (file/sweep.h). A log of more than @most bytes is forgotten as
 * well: then this is true of a process that writes a little here and there.
 */
void resume_overwrite(const struct container *c, uint64_t most);

/* Forget the logs of @c: the next one is new. */
void resume_forget(const struct container *c);

#endif
