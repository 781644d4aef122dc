/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queue of containers with logs that are to get copies (spare.h): who closes such a log adds its
 * container, a helper takes them. There is one of each host and user.
 *
 *   BACKEND/.plfs/queue.HOST.UID       text, a line each
 *     ID                               the container's id, 32 hexadecimal digits
 *
 * Its first byte is locked while a helper runs. The helper removes the file when all is done, and then reads
 * it once more. Who has added a line looks whether the file still has its name, and else adds it to a new
 * one. So each line is seen by a helper, or its writer finds the lock free.
 */
#ifndef PLFS_QUEUE_H
#define PLFS_QUEUE_H

#include "core/backend/stub.h"
#include "core/store/store.h"

#define QUEUE_LINE_LEN (2 * STUB_ID_LEN + 1)

/* The path of this host's and user's queue, relative to the backend, into @path of STORE_PATH_LEN bytes. */
void queue_path(char *path);

/* Add the container @id. >= 0: a handle of the file; -errno. */
int queue_add(struct store *home, const uint8_t *id);

/* The id in the line at @line; false: it is none. */
bool queue_parse(const char *line, uint8_t *id);

#endif
