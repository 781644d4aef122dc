/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The live file of a log that is being written: its live index and its *stage*, the tail of the log that has
 * not been appended yet. Both are in one preallocated file, mapped shared, and readers read log plus stage.
 * So a killed process loses nothing. The owner removes the file when it closes the log. The bytes are in
 * live_layout.h.
 */
#ifndef PLFS_LIVE_H
#define PLFS_LIVE_H

#include "index/record/block.h"
#include "index/record/chunks.h"
#include "core/base/bytes.h"
#include "core/backend/container.h"
#include "core/base/guard.h"
#include "core/dropping/live_layout.h"

/* What the file has of a live index that is not shared, and what of that is to stay. */
struct live_saved {
	uint64_t nr_records, flushed_len, staged_len, nr_chunks;
	bool reset; /* live_reset_records() since then: it has more */
};

/* The writing side. Not thread-safe. */
struct live {
	struct store *store;
	char path[CONTAINER_PATH_LEN]; /* relative to the store's root */
	int h;
	uint8_t *map;
	bool shared;           /* map is of the file; else memory that live_save() writes out */
	uint64_t reserved_len; /* bytes of the stage that have space in the file */
	uint64_t limit;        /* staged_len may grow to this before live_prepare() is called */
	uint64_t nr_records, flushed_len, staged_len, first_chunk, nr_chunks;
	struct live_saved saved;
};

/* The end of a log that a process goes on with (resume.h). */
struct live_start {
	uint64_t flushed_len, first_chunk, last_trailer, last_table;
	/* checksums of the whole chunks from first_chunk on, and of the one under way */
	uint32_t whole[2], chunk_crc;
	unsigned nr_whole;
};

/*
 * Make the live file of the log @log_name. @start: the end of a log that the caller goes on with; NULL: a new
 * log. The space of the index is reserved here, that of the stage by live_prepare(): -ENOSPC now, not SIGBUS
 * later. With c->near the file is made near, and all its space is reserved. 0; -errno.
 */
int live_create(struct live *s, const struct container *c, const char *log_name,
		const struct live_start *start);

/*
 * Give up the mapping and the handle. @unlink: also remove the file, for its contents are elsewhere now;
 * processes that have it mapped see that it is over.
 */
void live_close(struct live *s, bool unlink);

/*
 * Write the state to the file, unless it is mapped, and let other hosts see it. No record may grow any more
 * (writer_break()). Without a mapping the file is true at each moment, a half-written one too. 0; -errno.
 */
int live_save(struct live *s);

/* Whether readers of the file see all of the stage at any moment. */
static inline bool live_is_open_to_all(const struct live *s) { return s->shared && !s->store->remote; }

/*
 * Whether the file was cut, or its file system failed, under a store through the mapping (guard.h). The file
 * is then as it was before, and the bytes in memory mean nothing.
 */
static inline bool live_is_broken(const struct live *s) { return s->shared && guard_is_broken(s->map); }

/* Why it is broken, as a call to the file system reports it: -ENOSPC, -EDQUOT, -EROFS, -EIO ... */
int live_why_broken(struct live *s);

/*
 * Give a stage without room more space in the file. Its limit is where the log, once flushed, ends at a
 * multiple of LIVE_CAP in its file. *@full: the stage has reached that limit. 0; -errno, such as -ENOSPC.
 */
int live_prepare(struct live *s, bool *full);

static inline uint64_t live_room(const struct live *s) { return s->limit - s->staged_len; }
static inline uint8_t *live_bytes(const struct live *s) { return s->map + LIVE_STAGE_OFF; }

/*
 * The caller has copied @len bytes (<= live_room()) behind the staged ones. A negative @len takes the last
 * ones back.
 */
static inline void live_put(struct live *s, ssize_t len)
{
	s->staged_len += (uint64_t)len;
	store_le64(s->map + LIVE_OFF_STAGED_LEN, live_word(s->staged_len));
}

/* The staged bytes are in the log now, and behind them @direct_len bytes that were not staged. */
void live_flushed(struct live *s, uint64_t direct_len);

/* The encoded record @i. The last one may lack its checksum. */
const uint8_t *live_record(const struct live *s, uint64_t i);

/* Append a record (nr_records < LIVE_RECORDS_CAP). */
void live_add_record(struct live *s, const struct index_record *rec);

/* Record number @i has grown (index_run_grow). */
void live_grow_record(struct live *s, uint64_t i, const struct index_record *rec);

/* The last record has been folded into the one before it, now @rec. */
void live_fold_record(struct live *s, const struct index_record *rec);

/* Give record @i its checksum. It does not grow any more. */
void live_seal_record(struct live *s, uint64_t i, const struct index_record *rec);

/* The checksums: the array, little-endian; a whole chunk; the chunk under way. */
const uint8_t *live_chunks(const struct live *s);
void live_put_chunk(struct live *s, uint32_t crc);
void live_set_chunk_crc(struct live *s, uint32_t crc, uint64_t len); /* with @len bytes in the log */

/* Write the checksum of chunk first_chunk + @i to its place. live_put_chunk() counts it later. */
void live_note_chunk(struct live *s, uint64_t i, uint32_t crc);

/* The positions of the log's latest trailer, and of the latest one whose block has a table. 0: none. */
void live_set_trailers(struct live *s, uint64_t last, uint64_t last_table);

/* The records are in the node index now, and the first @nr_chunks checksums in the log: drop them here. */
void live_reset_records(struct live *s, uint64_t nr_chunks);

/* The notify word: records begun at or before this moment must not grow any more. 0: none. One load. */
static inline uint64_t live_notified(const struct live *s) { return load_le64(s->map + LIVE_OFF_NOTIFY_NS); }

/*
 * The owner brackets live_notified(), and the publishing of the size that follows, with these two. Either the
 * owner sees the notify word, or the notifying process sees this word and waits.
 */
static inline void live_begin_telling(struct live *s)
{
	store_le64(s->map + LIVE_OFF_TELLING, 1);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline void live_end_telling(struct live *s) { store_le64(s->map + LIVE_OFF_TELLING, 0); }

/* ---- the reading side, of any process: @path is relative to the container ---- */

struct live_state {
	char log_name[INDEX_LOG_NAME_LEN];
	uint64_t seq, nr_records, flushed_len, staged_len, last_trailer, last_table;
	/* The owner ran under an earlier boot of its host: pages may be missing (live_stranded.h). */
	bool stranded;
};

/*
 * Read the records of a live file in order, all of one moment, even while its owner writes. *@records is
 * mem_alloc()ed. 0; -ENOENT: its log was closed meanwhile; -EBADMSG: damaged (one line says so);
 * -EPROTONOSUPPORT: of another version, or with unknown features (one line says so); -errno.
 */
int live_load(const struct container *c, const char *path, struct live_state *state,
	      struct index_record **records);

/*
 * Copy up to @len staged bytes from position @log_off of the log on.
 * > 0: the bytes copied; 0: they are not staged, so they are in the log; -ENOENT: as above; -errno.
 */
ssize_t live_load_bytes(const struct container *c, const char *path, uint64_t log_off, void *buf, size_t len);

/* The checksums in a live file, for chunks that are in the log. */
struct live_sums {
	uint64_t first_chunk, nr_chunks;
	uint8_t *crcs;      /* get_le32(); mem_alloc()ed */
	uint32_t chunk_crc; /* of the beginning of the next chunk, as far as it is in the log */
	uint32_t chunk_len; /* how far that is; 0: not known */
	uint64_t last_table; /* position of the latest trailer whose block has a table; 0: none */
};

/*
 * All of one moment. 0; -EAGAIN: the owner was changing them, or lives on another host; others as
 * live_load().
 */
int live_load_sums(const struct container *c, const char *path, struct live_sums *sums);

/* The position up to which the log @log, from @from on, matches the checksums in its live file @path. */
uint64_t live_sure_len(const struct container *c, const char *path, const char *log, uint64_t from);

/* The digest of the records that a sync has put into the node index; 0: none. Best effort. */
uint64_t live_adopted(const struct container *c, const char *path);
void live_set_adopted(const struct container *c, const char *path, uint64_t digest);

/* A number that changes whenever the records do. 0; -ENOENT: the log was closed meanwhile; -errno. */
int live_digest(const struct container *c, const char *path, uint64_t *digest);

/* Whether the file is long enough for its first LIVE_INDEX_LEN bytes, header and records, to be mapped. */
bool live_is_whole(struct store *s, int h);

/* From a mapping: whether the owner has removed the file. Another file may have its name. */
bool live_mapped_is_over(const uint8_t *map);

/* The sequence number. It changes when the records move to the node index, and at other times. */
uint64_t live_mapped_seq(const uint8_t *map);

/* The purpose of live_digest(), from a mapping, by another number that costs less. */
uint64_t live_mapped_digest(const uint8_t *map);

/* The number of live_digest(), from a mapping. */
uint64_t live_mapped_file_digest(const uint8_t *map);

/*
 * Copy the records from number @first on, at most @max, all of one moment. >= 0: the number copied; -ENODATA:
 * there are fewer than @first; -E2BIG: more than @max; -EAGAIN: the owner is too busy, or was killed during a
 * change; -EBADMSG; -ENOMEM.
 */
int live_mapped_records(const uint8_t *map, uint64_t first, struct index_record *records, unsigned max);

/* Whether the owner lives on another host and has released nothing: not even the header may be here yet. */
bool live_is_unborn(const struct container *c, const char *path);

/* Whether the owner of a live file cannot be notified. */
bool live_is_unmapped(const struct container *c, const char *path);

/*
 * Set the notify word: the owner lets no record grow that began at or before @stamp_ns. On return an owner on
 * this host has seen the word, or publishes no size from before it. The wait for an owner that is stopped
 * while it publishes ends after a second. 0; -errno.
 */
int live_notify(const struct container *c, const char *path, uint64_t stamp_ns);

#endif
