/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which of a log and its copies in other backends (core/dropping/copies.h) a reader has open. It is the log,
 * until that cannot be read; then the next copy, and after the last of them the log once more.
 */
#ifndef PLFS_TURNED_H
#define PLFS_TURNED_H

#include "core/backend/container.h"

#define TURNS_MAX 24 /* in one read: a log, its copies, and the ways to make it of parity */

/* Of one log. Zeros to begin with: the log itself. */
struct turned {
	unsigned no; /* 0: the log; else the number of the copy, from 1 on */
};

/* Whether a failure with @err may be of the one file alone. */
bool turned_may_help(int err);

/*
 * Open the next one. >= 0: a handle of the container's store; -ENOENT: there is none, and nothing has
 * changed. One line names the log, the copy and @why, unless *@told.
 */
int turned_next(struct turned *t, const struct container *c, const char *path, const char *why, bool *told);

/* Open the same one once more; @growing: as datalog_open(). */
int turned_open(struct turned *t, const struct container *c, const char *path, bool growing);

/*
 * The bytes at @iov, of one chunk of the log from @log_off on, are wrong in what is open: find them in any
 * other. @chunk: its checksum. True: they are at @iov.
 */
struct iovec;
struct sums_chunk;
bool turned_patch(const struct turned *t, const struct container *c, const char *path,
		  const struct iovec *iov, uint64_t log_off, const struct sums_chunk *chunk);

#endif
