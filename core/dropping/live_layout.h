/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bytes of a live file: offsets, the codec of its header, checked words. No file is touched here. The
 * writing side is live.c, the reading side live_read.h; live.h is what other rooms see of both.
 *
 *   live.HOST.PID.SEQ             (little-endian)
 *   off size field
 *     0   8  magic          "PLFSLIV1"
 *     8   4  version        6
 *    12   4  crc            CRC-32C of bytes 0..255 with this field 0
 *    16  16  id             of the container
 *    32   8  records_off    where the records are, 72 bytes each (record.h)
 *    40   8  records_cap    room for so many
 *    48   8  chunks_off     where the chunk checksums are, 4 bytes each
 *    56   8  chunks_cap     room for so many
 *    64   8  stage_off      where the staged bytes are
 *    72   8  stage_cap      room for so many
 *    80 128  log_name       the data log's file name, NUL-padded
 *   208   4  unmapped       1: the owner works on a copy in memory: it sees no notice, and the file lacks
 *                           what it has not released
 *   212   4  boot           host_boot() of the owner, 0: not known
 *   216   4  compat         features that a reader may ignore: 0
 *   220   4  incompat       features that a reader must know: 0
 *   224  32  zeros
 *   256 256  zeros
 *   512   8  seq            odd while records are being changed other than by a growing count, or length of
 *                           one element
 *   520   8  nr_records
 *   528   8  flushed_len    bytes in the log's data area; the stage begins there
 *   536   8  staged_len     bytes in the stage
 *   544   8  first_chunk    number of the chunk that the first checksum is for
 *   552   8  nr_chunks      whole chunks checksummed; staged bytes are not checksummed before they are
 *                           appended
 *   560   4  chunk_crc      CRC-32C, so far, of the chunk that is not whole yet
 *   564   2  chunk_len      of so many bytes of it
 *   566   2  chunk_no       its number modulo 65536: these three change at once, the others around them do
 *                           not
 *   568   8  recorded_len   where in the log the bytes of the last record that is a write end
 *   576   8  last_trailer   position in the log of its latest trailer (index/record/trailer.h), which may be
 *                           staged; 0: none
 *   584   8  last_table     of the latest one whose block has a table of checksums, which is in the log; 0:
 *                           none
 *   592   4  last_crc       crc of the last record, as it was while it could grow
 *   596 428  zeros
 *  1024   8  notify_ns      written by *other* processes: records begun at or before this must not grow any
 *                           more
 *  1032   8  adopted        also: the digest of the records that one of them has put into the node index
 *                           (durable.h)
 *  1040   8  telling        not 0: the owner is publishing the file's size in the stub; the notifying process
 *                           waits
 *  1048   .  zeros up to 4096
 *
 * The first 256 bytes are written once. The numbers of 8 bytes from 512 to 591 are *checked words*: 48 bits,
 * and above them the complement of the exclusive or of the three 16-bit words in them. One store changes
 * both, and no flipped bit goes unseen. The words from 1024 on are plain.
 *
 * All records but the last carry their checksum. The last one may be growing: in its length if it has a count
 * of 1, else in its count. Its checksum is then that of the record with this number 0, and the number follows
 * from recorded_len, which is set last.
 *
 * On a store that other hosts write to (store.h: remote) the owner holds a lock on the file. Other hosts see
 * its pages as they are written back, each at a time of its own, and all of them after a release and after
 * the owner's end. So while the owner lives they believe only records that carry their checksum and whose
 * bytes are in the log. They ignore the stage.
 */
#ifndef PLFS_LIVE_LAYOUT_H
#define PLFS_LIVE_LAYOUT_H

#include "index/record/block.h"
#include "core/backend/stub.h"
#include "core/base/bytes.h"

#define LIVE_MAGIC "PLFSLIV1"
#define LIVE_VERSION 6
#define LIVE_INCOMPAT_KNOWN 0u

enum {
	LIVE_OFF_MAGIC = 0,
	LIVE_OFF_VERSION = 8,
	LIVE_OFF_CRC = 12,
	LIVE_OFF_ID = 16,
	LIVE_OFF_RECORDS_OFF = 32,
	LIVE_OFF_RECORDS_CAP = 40,
	LIVE_OFF_CHUNKS_OFF = 48,
	LIVE_OFF_CHUNKS_CAP = 56,
	LIVE_OFF_STAGE_OFF = 64,
	LIVE_OFF_STAGE_CAP = 72,
	LIVE_OFF_LOG_NAME = 80,
	LIVE_OFF_UNMAPPED = 208,
	LIVE_OFF_BOOT = 212,
	LIVE_OFF_COMPAT = 216,
	LIVE_OFF_INCOMPAT = 220,
	LIVE_FIXED_LEN = 256, /* what crc covers */

	LIVE_OFF_SEQ = 512,
	LIVE_OFF_NR_RECORDS = 520,
	LIVE_OFF_FLUSHED_LEN = 528,
	LIVE_OFF_STAGED_LEN = 536,
	LIVE_OFF_FIRST_CHUNK = 544,
	LIVE_OFF_NR_CHUNKS = 552,
	LIVE_OFF_CHUNK_CRC = 560,
	LIVE_OFF_CHUNK_LEN = 564,
	LIVE_OFF_CHUNK_NO = 566,
	LIVE_OFF_RECORDED_LEN = 568,
	LIVE_OFF_LAST_TRAILER = 576,
	LIVE_OFF_LAST_TABLE = 584,
	LIVE_OFF_LAST_CRC = 592,
	LIVE_WORDS_END = 596,

	LIVE_OFF_NOTIFY_NS = 1024,
	LIVE_OFF_ADOPTED = 1032,
	LIVE_OFF_TELLING = 1040,
	LIVE_HEADER_LEN = 4096,
};

/* The checked words. */
static const int LIVE_WORDS[] = {
	LIVE_OFF_SEQ,	       LIVE_OFF_NR_RECORDS,   LIVE_OFF_FLUSHED_LEN,
	LIVE_OFF_STAGED_LEN,   LIVE_OFF_FIRST_CHUNK,  LIVE_OFF_NR_CHUNKS,
	LIVE_OFF_RECORDED_LEN, LIVE_OFF_LAST_TRAILER, LIVE_OFF_LAST_TABLE,
};

/* Where this version puts the parts. Readers take the places from the header. */
#define LIVE_RECORDS_CAP 512
#define LIVE_CHUNKS_CAP 2048
#define LIVE_CAP (512 * 1024) /* of the stage */
#define LIVE_RECORDS_OFF LIVE_HEADER_LEN
#define LIVE_RECORDS_LEN (LIVE_RECORDS_CAP * INDEX_RECORD_LEN)
#define LIVE_CHUNKS_OFF (LIVE_RECORDS_OFF + LIVE_RECORDS_LEN)
#define LIVE_CHUNKS_LEN (LIVE_CHUNKS_CAP * 4)
#define LIVE_STAGE_OFF 49152
#define LIVE_FILE_LEN (LIVE_STAGE_OFF + LIVE_CAP)
#define LIVE_INDEX_LEN (LIVE_RECORDS_OFF + LIVE_RECORDS_LEN) /* header and records: what watchers map */

static_assert(LIVE_STAGE_OFF % 4096 == 0 && LIVE_STAGE_OFF >= LIVE_CHUNKS_OFF + LIVE_CHUNKS_LEN,
	      "the stage is behind the checksums, on a page");

/* Offsets inside a record, for the stores that make it grow in place. */
enum { REC_CRC = 4, REC_LENGTH = 16, REC_STRIDE = 24, REC_COUNT = 32, REC_LOG_OFF = 40, REC_OUTER_STRIDE = 56,
	REC_OUTER_COUNT = 64 };

/* A checked word, and the number in one. */
#define LIVE_WORD_MAX (((uint64_t)1 << 48) - 1)
static inline uint64_t live_word(uint64_t v) { return v | (~(v ^ v >> 16 ^ v >> 32) & 0xffff) << 48; }
static inline uint64_t live_number(uint64_t word) { return word & LIVE_WORD_MAX; }

/* The first LIVE_FIXED_LEN bytes. */
struct live_header {
	uint8_t id[STUB_ID_LEN];
	uint64_t records_off, records_cap, chunks_off, chunks_cap, stage_off, stage_cap;
	char log_name[INDEX_LOG_NAME_LEN];
	uint32_t unmapped, boot;
};

/* Encode @lh to the LIVE_FIXED_LEN bytes at @p. */
void live_header_encode(const struct live_header *lh, uint8_t *p);

/*
 * Decode the LIVE_FIXED_LEN bytes at @p, those of a live file of the container @id. *@lh is valid after 0
 * alone.
 * 0: a header; -ENODATA: its first byte is zero, the file has just been made or is over; -EBADMSG: damaged,
 *    of another
 * container, or with a number that is larger than it can be; -EPROTONOSUPPORT: whole, and of another version,
 * or with a feature in incompat that is not known here.
 */
int live_header_decode(struct live_header *lh, const uint8_t *p, const uint8_t *id);

/* The words that change. */
struct live_words {
	uint64_t seq, nr_records, flushed_len, staged_len, first_chunk, nr_chunks, recorded_len, last_trailer,
		last_table;
	uint32_t chunk_crc, last_crc;
	uint16_t chunk_len, chunk_no;
};

/*
 * Decode the words of the header at @p, of which those from LIVE_OFF_SEQ to LIVE_WORDS_END are there.
 * 0: right; -EBADMSG: a checked word is damaged; *@lw then has the numbers as they are.
 */
int live_words_decode(struct live_words *lw, const uint8_t *p);

#endif
