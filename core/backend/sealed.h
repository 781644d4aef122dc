/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sealed directories of logs in other backends (parity=1): all that a host has there is closed, and covered
 * by parity (parity.h). While that backend is gone its logs have these names.
 *
 *   BACKEND/.plfs/XX/ID/hostdir.K/sealed.N.HOST    text, a line each
 *     plfs-sealed 1 CRC           CRC-32C of all that follows, 8 hexadecimal digits
 *     data.HOST.PID.SEQ           a log in the backend to which spread.N.HOST leads
 *
 * Without it nobody could tell whether a log has gone with the backend of which no index says anything, as of
 * a process that was killed: its older bytes would be read.
 *
 * A process that makes a log there, or goes on with one, makes the live file and then removes sealed.N.HOST,
 * before it writes. Who seals makes the file empty, then looks at all logs, and then writes to it by the
 * handle that it has. So either it sees the new log, or what it writes has no name any more. An empty file,
 * or a damaged one, seals nothing.
 */
#ifndef PLFS_SEALED_H
#define PLFS_SEALED_H

#include "core/store/store.h"

/*
 * Call @fn for each name that is sealed in the hostdir @dir of the store @s, for its @spread, "spread.N.HOST".
 * 0; -ENOENT: it is not sealed; -errno; the first non-zero of @fn.
 */
int sealed_list(struct store *s, const char *dir, const char *spread,
		int (*fn)(void *arg, const char *name), void *arg);

/* Whether it is sealed. */
bool sealed_is(struct store *s, const char *dir, const char *spread);

/* Whether a file is one, by its beginning (container_proof). */
struct container;
bool sealed_is_one(const struct container *c, const struct stat *st, const uint8_t *head, size_t len);

/* Remove it. 0: also if there is none; -errno. */
int sealed_break(struct store *s, const char *dir, const char *spread);

/* Begin to seal: a handle of the empty file, of @mode. */
int sealed_begin(struct store *s, const char *dir, const char *spread, mode_t mode);

/* All is looked at: write @names, each with a newline, durably. 0; -errno: it is not sealed. */
int sealed_end(struct store *s, const char *dir, int h, const char *names, size_t len);

#endif
