/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One index record: where bytes of the logical file lie in a data log. Records are written to node indexes,
 * kept in live files, and merged into maps. These functions turn bytes into records and back, and no more.
 *
 *   off size field          (little-endian)
 *     0   1  type           1 write, 2 truncate; others: skip by the length
 *     1   1  words          length of the record in units of 8 bytes, 9 in this version; a reader skips the
 *                           fields behind those that it knows
 *     2   2  flags          0; a set bit that a reader does not know makes the record unreadable
 *     4   4  crc            CRC-32C of the whole record with this field 0
 *     8   8  logical_off    first byte of the first element; truncate: the new size
 *    16   8  length         bytes of each element; truncate: 0
 *    24   8  stride         from the start of one element to the start of the next; 0 if count is 1
 *    32   8  count          number of elements, 1 or more; truncate: 0
 *    40   8  log_off        position of the first element in the log's data area; element i
 *                           is at log_off + i * length
 *    48   8  stamp_ns       order of overwrites: nanoseconds since 1970, made monotonic
 *    56   8  outer_stride   nested: from the start of one run to the start of the next
 *    64   8  outer_count    nested: number of runs, 2 or more; 0: not nested. Run j is at logical_off +
 *                           j * outer_stride, and at log_off + j * count * length
 */
#ifndef PLFS_RECORD_H
#define PLFS_RECORD_H

#include "core/base/stamp.h"

#define INDEX_RECORD_LEN 72

enum index_record_type { INDEX_WRITE = 1, INDEX_TRUNCATE = 2 };

/*
 * A record in memory. A *run* is one with count > 1: stride >= length. A *nested* run is one with outer_count
 * > 0 too: the rows of a block in an array of three dimensions. Either each run ends before the next begins,
 * or all runs have their element i before any has its element i + 1.
 */
struct index_record {
	uint8_t type;
	uint64_t logical_off;
	uint64_t length;
	uint64_t stride;
	uint64_t count;
	uint64_t log_off;
	uint64_t stamp_ns;
	uint64_t outer_stride;
	uint64_t outer_count;
};

/* Encode @rec into the INDEX_RECORD_LEN bytes at @buf. */
void index_record_encode(const struct index_record *rec, void *buf);

/*
 * Decode the record at @buf, of which @len bytes may be read. > 0: the bytes it takes up, rec->type as found;
 * -EBADMSG: cut off, a wrong checksum, an unknown flag, or an impossible record (overflowing offsets,
 * stride < length, count or length 0).
 */
int index_record_decode(struct index_record *rec, const void *buf, size_t len);

/* Whether the fields are possible; logical and log ends stay below INT64_MAX. */
bool index_record_valid_at_all(const struct index_record *rec);

/* The same; quick for one element that is far from all limits. */
static inline bool index_record_valid(const struct index_record *rec)
{
	return likely(rec->type == INDEX_WRITE && rec->count == 1 && !rec->outer_count &&
		      rec->stamp_ns < STAMP_MAX && rec->length > 0 &&
		      !((rec->logical_off | rec->log_off | rec->length) >> 61)) ||
	       index_record_valid_at_all(rec);
}

/* First byte after the last element (of a truncate record: the new size). */
uint64_t index_record_end(const struct index_record *rec);

/* First position of the log behind all elements. */
uint64_t index_record_log_end(const struct index_record *rec);

#endif
