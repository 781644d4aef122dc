/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The notice of a host: one small file in each container, shared by all processes of the host that use the
 * file. It holds the notice word and the sync mark. The lease table behind them is lease.h's.
 *
 *   notice.HOST                   (little-endian)
 *   off size field
 *     0   8  magic          "PLFSNTC1"
 *     8   4  host           CRC-32C of HOST
 *    12   4  zeros
 *    16  16  id             of the container
 *    32   8  word           another value after each change
 *    40   8  index_id       the node index that the next field describes (store_identity)
 *    48   8  index_len      so many bytes of it, and the logs that they name, are on stable storage
 *    56   8  check          index_id exclusive-or index_len exclusive-or "PLFSDUR2"; else nothing is known
 *    64   64 zeros
 *   128   72 publications   (published.h)
 *   200 3896 zeros
 *  4096   .  leases         their table (lease.h)
 *
 * In index_id the complement of an identity stands for the same, with logs near on stable storage near alone
 * (sync=near).
 *
 * What comes before the mark is written with each change of the word. An empty notice has the set-group-ID
 * bit (CONTAINER_UNBORN).
 *
 * Other hosts ignore the file. It can be removed while no process has the logical file open.
 */
#ifndef PLFS_NOTICE_H
#define PLFS_NOTICE_H

#include "core/backend/container.h"

#define NOTICE_MAGIC "PLFSNTC1"
#define NOTICE_OFF_WORD 32
#define NOTICE_HEADER_LEN 40 /* up to the mark */

/*
 * Open the notice of this host. @flags: O_RDONLY or O_RDWR; with O_CREAT a missing file is made.
 * >= 0: a handle, owned by the caller; -EIO, and one line: it is none, and is not to be written; -errno:
 * -ENOENT if it or its directory is missing; -EIDRM if it would be the first of what was purged
 * (container_is_purged()).
 */
int notice_open(const struct container *c, int flags);

/* A container_proof. */
bool notice_is_one(const struct container *c, const struct stat *st, const uint8_t *head, size_t len);

/* Whether @head, of NOTICE_HEADER_LEN bytes, is that of the notice of this host and container. */
bool notice_has_header(const struct container *c, const uint8_t *head);

/*
 * Change the word of the open notice @h. Two processes may do so at once: both values are new.
 * 0: changed; -errno: it may have its old value.
 */
int notice_change(const struct container *c, int h);

/* Open the notice, make it if it is missing, and change the word. Best effort. */
void notice_raise(const struct container *c);

/* Open it to write, and make it and its hostdir if they are missing. As notice_open(). */
int notice_open_here(const struct container *c);

/*
 * The first @index_len bytes of the node index @index_id, and the logs that they name, have been synced. 0,
 * 0: unknown.
 */
struct notice_mark {
	uint64_t index_id, index_len;
};

/*
 * The mark in the open notice @h. Writing is best effort: without the mark the next sync repeats the work of
 * this one.
 */
struct notice_mark notice_read_mark(struct store *s, int h);
void notice_write_mark(struct store *s, int h, struct notice_mark mark);

#endif
