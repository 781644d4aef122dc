/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trailers: whenever an index block is made of a log, a copy of it goes into that log itself, and behind it a
 * trailer that says where the block begins and where the trailer before is. So a log describes itself.
 *
 *   off size field          (little-endian; at a multiple of 8 of the data area)
 *     0   8  magic          "PLFSEND1"
 *     8   4  crc            CRC-32C of the 64 bytes with this field 0
 *    12   4  block_len      the block ends where the trailer begins: [self - block_len, self)
 *    16  16  id             of the container
 *    32   8  self           where the trailer itself is in the data area
 *    40   8  prev           where the one before it is; 0: none
 *    48   8  prev_table     where the latest one before it is whose block has chunks_off; 0: none
 *    56   4  compat         features that a reader may ignore: 0
 *    60   4  incompat       features that a reader must know: 0
 */
#ifndef PLFS_TRAILER_H
#define PLFS_TRAILER_H

#include "index/record/block.h"

#define INDEX_TRAILER_MAGIC "PLFSEND1"
#define INDEX_TRAILER_LEN 64
#define INDEX_TRAILER_BLOCK_MAX (1u << 20) /* a longer block has no trailer */

struct index_trailer {
	uint64_t self, prev, prev_table;
	uint32_t block_len;
};

/* Encode @trailer, of a log of the container @id (16 bytes), to the INDEX_TRAILER_LEN bytes at @buf. */
void index_trailer_encode(const struct index_trailer *trailer, const uint8_t *id, void *buf);

/*
 * Parse the INDEX_TRAILER_LEN bytes at @buf, which are at position @self of the data area. 0; -EBADMSG when
 * they are no trailer, damaged, of another container or another place, or say what cannot be: block and
 * trailers before lie in front of it, in this order. -EPROTONOSUPPORT: a whole trailer with a feature in
 * incompat that is not known here.
 */
int index_trailer_parse(struct index_trailer *trailer, const uint8_t *id, uint64_t self, const void *buf);

#endif
