/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Going on with a log: a process that opens a file, writes and closes it again and again has one log of it, not one for
 * each time. The ends of a few logs that this process has closed are remembered.
 */
#ifndef PLFS_RESUME_H
#define PLFS_RESUME_H

#include "trailers.h"
#include "writer.h"

/* @w's log is closed: all of it is in the log, which ends with @piece, and in the node index. */
void resume_remember(const struct writer *w, const struct trailer_piece *piece);

/*
 * Open a log that this process closed, with a new live file. @w is empty but for its container. -ENOENT: there is
 * none, or it cannot be used: make a new one.
 */
int resume_open(struct writer *w);

#endif
