/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A note in a container: its file is being given to another user or group. It is there before the stub
 * changes, and goes when all in the container has followed. So a change that was killed in between can be
 * finished by whoever repeats it, and is not taken for a header that was forged.
 *
 *   for.UID                       UID: the stub's new owner; (little-endian)
 *   off size field
 *     0   8  magic          "PLFSGIV1"
 *     8   4  crc            CRC-32C of these 48 bytes with this field 0
 *    12   4  from           who owned the container
 *    16  16  id             of the container
 *    32   8  number         the stub's inode number
 *    40   4  gid            the stub's new group
 *    44   4  zeros
 *
 * It is believed if it is root's, or for a group alone the owner's, and has the bit of a dropping that is
 * being made (container.h), which a copy of such bytes does not get. A for.UID that another user's container
 * has is empty.
 */
#ifndef PLFS_GIVEN_H
#define PLFS_GIVEN_H

#include "core/backend/stub.h"
#include "core/store/store.h"

#define GIVEN_MAGIC "PLFSGIV1"
#define GIVEN_LEN 48

struct given {
	uint32_t from;
	uint8_t id[STUB_ID_LEN];
	uint64_t number;
	uint32_t gid;
};

/* Write it as the file @path, in the place of another. 0; -errno. */
int given_write(struct store *s, const char *path, const struct given *g);

/* Whether @path is such a note. *@by: who has written it. */
bool given_read(struct store *s, const char *path, struct given *g, uid_t *by);

#endif
