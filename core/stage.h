/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The live file of a log that is being written: its live index and its *stage*, the tail of the log that
 * has not been appended to it yet. Both are in one preallocated file, mapped shared, so that a killed process
 * loses nothing: a reader always reads log plus stage. It is removed when the log is closed.
 *
 *   live.HOST.PID.SEQ             (little-endian)
 *   off size field
 *     0   8  magic          "PLFSLIV1"
 *     8   4  version        5
 *    12   4  crc            CRC-32C of bytes 0..255 with this field 0
 *    16  16  container id
 *    32   8  records_off    where the records are, 72 bytes each (record.h)
 *    40   8  records_cap    room for so many
 *    48   8  chunks_off     where the chunk checksums are, 4 bytes each
 *    56   8  chunks_cap
 *    64   8  stage_off      where the staged bytes are
 *    72   8  stage_cap
 *    80 128  log_name       the data log's file name, NUL-padded
 *   208   4  unmapped       1: its owner works on a copy, and sees no notice; what he has not released is not in the file
 *   212  44  zeros
 *  The numbers from 512 to 591, but for chunk_crc to chunk_no, are checked words: 48 bits, and above them the complement of the
 *  exclusive or of the three 16-bit words in them. One store changes both, and no flipped bit goes unseen.
 *   512   8  seq            odd while records are being changed other than by a growing count, or length of one element
 *   520   8  nr_records
 *   528   8  flushed_len    bytes in the log's data area; the stage begins there
 *   536   8  staged_len     bytes in the stage
 *   544   8  first_chunk    number of the chunk that the first checksum is for
 *   552   8  nr_chunks      whole chunks checksummed; staged bytes are not checksummed before they are appended
 *   560   4  chunk_crc      CRC-32C, so far, of the chunk that is not whole yet
 *   564   2  chunk_len      of so many bytes of it
 *   566   2  chunk_no       its number modulo 65536: these three words change at once, the others around them do not
 *   568   8  recorded_len   where in the log the bytes of the last record that is a write end
 *   576   8  last_trailer   position in the log of its latest trailer (index/trailer.h), which may be staged still; 0: none
 *   584   8  last_table     of the latest one whose block tells of a table of checksums, which is in the log; 0: none
 *   592   4  last_crc       that of the last record, as it was while it could grow
 *  1024   8  notify_ns      written by *other* processes: records begun at or before this must not grow any more
 *  1032   8  adopted        also: the digest of the records that one of them has put into the node index (durable.h)
 *  1040   8  telling        not 0: the owner is telling the stub how long the file is; who has written notify_ns waits for the end of that
 *
 * All records but the last carry their checksum. The last one may be growing: in its length if it has a count of 1,
 * else in its count. Its checksum is then that of the record with this number 0, and the number follows from
 * recorded_len, which is set last.
 *
 * Where other hosts write as well (store.h: remote) the owner holds a lock on the file. They see its pages as they
 * are written back, each at a time of its own, and all of them after a release and after the owner's end. So while it
 * lives they believe only records that carry their checksum and whose bytes are in the log, and do not look at the
 * stage.
 */
#ifndef PLFS_STAGE_H
#define PLFS_STAGE_H

#include "../index/block.h"
#include "../index/chunks.h"
#include "bytes.h"
#include "container.h"
#include "mapping.h"

#define STAGE_MAGIC "PLFSLIV1"
#define STAGE_VERSION 5
#define STAGE_RECORDS_CAP 512
#define STAGE_CHUNKS_CAP 2048
#define STAGE_CAP (512 * 1024)

#define STAGE_BYTES_OFF 49152
#define STAGE_STAGED_OFF 536
#define STAGE_NOTIFY_OFF 1024
#define STAGE_TELLING_OFF 1040

/* The writing side. Not thread-safe. */
struct stage {
	struct store *store;
	char path[CONTAINER_PATH_LEN]; /* relative to the store's root */
	int h;
	uint8_t *map;
	bool shared; /* mapped from the file; else memory that stage_save() writes out */
	uint64_t reserved_len; /* bytes of the stage that have space in the file */
	uint64_t limit;        /* what staged_len may reach to before stage_prepare() is asked */
	uint64_t nr_records, flushed_len, staged_len, first_chunk, nr_chunks;
};

/* What a log has that is not new (resume.h). */
struct stage_start {
	uint64_t flushed_len, first_chunk, last_trailer, last_table;
	uint32_t whole[2], chunk_crc; /* of the whole chunks from first_chunk on, and of the one under way */
	unsigned nr_whole;
};

/*
 * Make the live file of the log @log_name; @start, or NULL: the log is new. Its space, for the stage that of
 * stage_prepare(), is reserved: -ENOSPC now, never SIGBUS later.
 */
int stage_create(struct stage *s, const struct container *c, const char *log_name, const struct stage_start *start);

/*
 * Give up the mapping and the handle; @unlink: and remove the file, its contents being elsewhere. Who has it mapped
 * sees that it is over.
 */
void stage_close(struct stage *s, bool unlink);

/* At release points: write the state to the file where nothing is mapped, and let other hosts see it. */
int stage_save(struct stage *s);

/* Whether who reads the file sees at any moment all that is in the stage. */
static inline bool stage_is_open_to_all(const struct stage *s) { return s->shared && !s->store->remote; }

/*
 * Whether the file was cut, or its file system failed, under a store (mapping.h): the file is as it was before that,
 * what is in memory is nothing.
 */
static inline bool stage_is_broken(const struct stage *s) { return s->shared && mapping_is_broken(s->map); }

/* Why that is, as the file system says if asked by a call: -ENOSPC, -EDQUOT, -EROFS, -EIO ... */
int stage_why_broken(struct stage *s);

/*
 * Give the stage more room if it has none: more of it gets space in the file, up to where the log, flushed then, ends at
 * a multiple of STAGE_CAP. *@full: it is there. -ENOSPC...
 */
int stage_prepare(struct stage *s, bool *full);

static inline uint64_t stage_room(const struct stage *s) { return s->limit - s->staged_len; }
static inline uint8_t *stage_bytes(const struct stage *s) { return s->map + STAGE_BYTES_OFF; }

/* A checked word, and the number in one. */
#define STAGE_WORD_MAX (((uint64_t)1 << 48) - 1)
static inline uint64_t stage_word(uint64_t v) { return v | (~(v ^ v >> 16 ^ v >> 32) & 0xffff) << 48; }
static inline uint64_t stage_number(uint64_t word) { return word & STAGE_WORD_MAX; }

/* @len bytes (<= stage_room()) have been copied behind the staged ones. With @len below 0 the last are taken back. */
static inline void stage_put(struct stage *s, ssize_t len)
{
	s->staged_len += (uint64_t)len;
	store_le64(s->map + STAGE_STAGED_OFF, stage_word(s->staged_len));
}

/* The staged bytes, and @direct_len that were appended to the log directly behind them, are in the log now. */
void stage_flushed(struct stage *s, uint64_t direct_len);

/* Record @i as it is encoded; the last may lack its checksum. */
const uint8_t *stage_record(const struct stage *s, uint64_t i);

/* Append a record (nr_records < STAGE_RECORDS_CAP). */
void stage_add_record(struct stage *s, const struct index_record *rec);

/* Record number @i has grown (index_run_grow). */
void stage_grow_record(struct stage *s, uint64_t i, const struct index_record *rec);

/* The last record has been folded into the one before it, now @rec. */
void stage_fold_record(struct stage *s, const struct index_record *rec);

/* Give record @i its checksum: it will not grow any more. */
void stage_seal_record(struct stage *s, uint64_t i, const struct index_record *rec);

/* The checksums: the array (host order is the caller's: get_le32), whole chunks, and the one under way. */
const uint8_t *stage_chunks(const struct stage *s);
void stage_put_chunk(struct stage *s, uint32_t crc);
void stage_set_chunk_crc(struct stage *s, uint32_t crc, uint64_t len); /* which the log's data area is so long for */

/* Write a checksum where that of chunk first_chunk + @i would be, which is not counted yet. */
void stage_note_chunk(struct stage *s, uint64_t i, uint32_t crc);

/* The positions of the log's latest trailer and of the latest one that tells of a table, 0: none. */
void stage_set_trailers(struct stage *s, uint64_t last, uint64_t last_table);

/* All records have been moved to the node index, and the first @nr_chunks checksums to the log: start anew. */
void stage_reset_records(struct stage *s, uint64_t nr_chunks);

/* The latest moment that another process asked all growing records to end at, 0 if none. One load. */
static inline uint64_t stage_notified(const struct stage *s) { return load_le64(s->map + STAGE_NOTIFY_OFF); }

/*
 * Around a look at stage_notified() and what is told the stub because of it: either we see the notice, or who wrote it sees this and waits.
 */
static inline void stage_begin_telling(struct stage *s)
{
	store_le64(s->map + STAGE_TELLING_OFF, 1);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline void stage_end_telling(struct stage *s) { store_le64(s->map + STAGE_TELLING_OFF, 0); }

/* ---- the reading side, of any process: @path is relative to the container ---- */

struct stage_state {
	char log_name[INDEX_LOG_NAME_LEN];
	uint64_t seq, nr_records, flushed_len, staged_len, last_trailer, last_table;
	/* Its host was started anew since, perhaps without having written all that was in memory (stranded.h). */
	bool stranded;
};

/*
 * Read a live file's records in order; those of a consistent moment, even while its owner writes. *@records is
 * mem_alloc()ed. -ENOENT: its log was closed meanwhile. -EBADMSG: damaged (one line says so).
 */
int stage_load(const struct container *c, const char *path, struct stage_state *state, struct index_record **records);

/*
 * Copy up to @len staged bytes from position @log_off of the log on. Returns how many (0: not in the stage, so in the
 * log), -errno, -ENOENT as above.
 */
ssize_t stage_load_bytes(const struct container *c, const char *path, uint64_t log_off, void *buf, size_t len);

/* The checksums in a live file, of chunks that are in the log. */
struct stage_sums {
	uint64_t first_chunk, nr_chunks;
	uint8_t *crcs;      /* get_le32(); mem_alloc()ed */
	uint32_t chunk_crc; /* of the beginning of the next chunk, as far as it is in the log */
	uint32_t chunk_len; /* how far that is; 0: not known */
	uint64_t last_table; /* position of the latest trailer that tells of a table; 0: none */
};

/* Those of one moment. -EAGAIN: the owner was changing them, or is of another host; -ENOENT, -EBADMSG as stage_load(). */
int stage_load_sums(const struct container *c, const char *path, struct stage_sums *sums);

/*
 * How far the log @log, from @from on, has what the checksums in its live file @path vouch for; both relative to the
 * container.
 */
uint64_t stage_sure_len(const struct container *c, const char *path, const char *log, uint64_t from);

/* What stage_set_adopted() was told last of the live file, 0: nothing. Best effort. */
uint64_t stage_adopted(const struct container *c, const char *path);
void stage_set_adopted(const struct container *c, const char *path, uint64_t digest);

/*
 * A number that changes whenever a live file's records do. -ENOENT: its log was closed meanwhile.
 */
int stage_digest(const struct container *c, const char *path, uint64_t *digest);

/* Whether the file is as long as a live file is: its first STAGE_INDEX_LEN bytes, header and records, can be mapped. */
#define STAGE_INDEX_LEN (4096 + STAGE_RECORDS_CAP * INDEX_RECORD_LEN)
bool stage_is_whole(struct store *s, int h);

/* Whether the owner has removed it, from a mapping: there may be another one by its name. */
bool stage_mapped_is_over(const uint8_t *map);

/* The sequence number (struct stage_state). It changes whenever the records move to the node index, and at other times. */
uint64_t stage_mapped_seq(const uint8_t *map);

/* The same as stage_digest(), though not the same number, from a mapping of these bytes. */
uint64_t stage_mapped_digest(const uint8_t *map);

/* The very number of stage_digest(). */
uint64_t stage_mapped_file_digest(const uint8_t *map);

/*
 * Copy the records from number @first on, at most @max and 16, as they are at one moment. Returns how many, -ENODATA:
 * there are not so many any more, -E2BIG: more than @max, -EAGAIN: the owner is too busy, or was killed in the middle
 * of a change, -EBADMSG.
 */
int stage_mapped_records(const uint8_t *map, uint64_t first, struct index_record *records, unsigned max);

/*
 * Whether the owner of a live file is on another host and has released nothing: what it maps, the header as well, may not
 * have come here yet.
 */
bool stage_is_unborn(const struct container *c, const char *path);

/* Whether the owner of a live file cannot be notified. */
bool stage_is_unmapped(const struct container *c, const char *path);

/*
 * Ask the owner to let no record grow that began at or before @stamp_ns. When it returns an owner on this host either has seen that or tells the stub
 * no size from before; one that stands still in the midst of telling is not waited for for more than a second.
 */
int stage_notify(const struct container *c, const char *path, uint64_t stamp_ns);

#endif
