/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tail of a log: the log that this process appends to, its live file with the stage, and the checksums
 * and trailers of the appended bytes. Bytes reach the log through the stage or past it, and the checksums
 * take them in on the way. The records are the writer's (writer.h). Not thread-safe; the inode's lock is held
 * around every call.
 */
#ifndef PLFS_TAIL_H
#define PLFS_TAIL_H

#include "core/base/bytes.h"
#include "core/dropping/datalog.h"
#include "core/dropping/live.h"
#include "core/dropping/trailers.h"

#define TAIL_PIECE_LEN (512 * 1024) /* a large write goes to the log in pieces that stay in the cache */
#define TAIL_CHUNKS_MAX ((LIVE_CAP + TAIL_PIECE_LEN / 4 * 5) / INDEX_CHUNK_LEN + 2)

/* Writes of this length and more are large: they go past the stage. */
#define TAIL_DIRECT_LEN (64 * 1024)

/* How far the checksums reach, which may be beyond the flushed bytes. */
struct tail_sums {
	uint64_t len; /* number of staged bytes that they include */
	uint32_t crc; /* of the chunk under way, so far */
	unsigned nr;  /* whole chunks that are not in the live file yet */
};

struct tail {
	const struct container *c;
	int log; /* handle */
	char log_name[INDEX_LOG_NAME_LEN];
	char log_path[CONTAINER_PATH_LEN]; /* relative to the container, as container_list() names it */
	struct tail_sums summed;
	uint32_t chunk_crc[TAIL_CHUNKS_MAX]; /* of the chunks that summed.nr counts */
	/*
	 * Positions in the log of the latest trailer, and of the latest one whose block has a table; 0: none.
	 */
	uint64_t last_trailer, last_table;
	uint64_t allocated_end; /* position in the log up to which space is allocated; UINT64_MAX: none is */
	bool near;      /* the log is near (core/backend/place.h): space is reserved before it is written */
	uint64_t released_len; /* so much of it is at home too (tail_release()) */
	unsigned backend; /* with spread=: its number in the mapping, home being 0 */
	bool near_full; /* there is no more space: the log takes no more writes, and can be closed */
	bool resumed;   /* a log of this process that it goes on with (core/write/resume.h) */
	struct live live; /* last, so that the fields of each write are neighbours of the writer's */
};

/*
 * Make a log and its live file. With @near, of placed_hold(), both are near, if they can be; else at home.
 * With c->spreads both are in the backend that the rule picks, or another one. -errno: nothing is left
 * behind.
 */
int tail_create(struct tail *t, const struct container *c, struct place_dir *near);

/*
 * The log @t->log was opened, to be continued at @start: make its live file, beside it. 0; -errno: such as
 * -ENOSPC, if it is near and the place is full.
 */
int tail_continue(struct tail *t, const struct live_start *start);

/* Undo tail_create(), before any byte was written. */
void tail_remove(struct tail *t);

/* Remove a log whose live file has no records, and close it. */
void tail_discard(struct tail *t);

/*
 * Close log and live file; @unlink: and remove the live file, since its contents are elsewhere. 0; -errno:
 * bytes that were written to the log did not arrive, which a network file system may report only now.
 */
int tail_close(struct tail *t, bool unlink);

/*
 * Writes of this length and more are copied and checksummed in one pass. Shorter ones would wait for the
 * checksum before them.
 */
#define FUSED_LEN 2048

/*
 * The bytes of the next write most often follow in memory, and are not in the cache. A prefetch this far
 * ahead makes 512-byte writes a tenth faster. A prefetch of an invalid address does no harm.
 */
#define NEXT_LEN 2048

/* Bytes in the log, staged ones included. */
static inline uint64_t tail_len(const struct tail *t)
{
	return t->live.flushed_len + t->live.staged_len;
}

/*
 * Copy @len bytes into the stage, which has room, and add them and all staged bytes before them to the
 * checksums.
 */
void tail_fused(struct tail *t, const void *buf, size_t len);

/*
 * All that was appended has been flushed, and is to be noted as synced: the end of the log to @block, and the
 * checksum up to there of the chunk under way.
 */
void tail_note_sum(const struct tail *t, struct index_block *block);

/* Stage @len bytes, for which there is room. */
static inline void tail_put(struct tail *t, const void *buf, size_t len)
{
	struct live *s = &t->live;

	if (len < FUSED_LEN) {
		for (size_t i = 0; i < len; i += 64)
			__builtin_prefetch((const char *)buf + NEXT_LEN + i);
		copy_to_pages(live_bytes(s) + s->staged_len, buf, len);
	} else {
		tail_fused(t, buf, len);
	}
	live_put(s, (ssize_t)len);
}

/*
 * Append @len bytes: small writes to the stage, large ones to the log file behind the staged bytes. Returns
 * the number of bytes taken, fewer than @len only if an error came after some; -errno: none were taken. A log
 * near whose place is full gives -ENOSPC, and can be closed.
 */
ssize_t tail_bytes(struct tail *t, const void *buf, size_t len);

/* State saved by tail_block() for tail_undo(). */
struct tail_undo {
	uint64_t flushed_len, last_trailer, last_table;
	struct tail_sums summed;
};

/*
 * Append @block, complete but for log_len, and its trailer (index/record/trailer.h) to the log: staged, as
 * any bytes. With @table, for which the stage must be empty, a table of the live file's checksums precedes
 * the block, and the piece, padded to one chunk, is written to the log file. *@p describes the piece; the
 * caller frees p->buf (mem_free()), after an error too. *@undo is for tail_undo(). -errno: the log is as
 * before.
 */
int tail_block(struct tail *t, struct index_block *block, bool table, struct tail_undo *undo,
	       struct trailer_piece *p);

/* Undo tail_block(), if the piece is still in the stage: the block got into no node index. */
void tail_undo(struct tail *t, const struct tail_undo *undo, const struct trailer_piece *p);

/*
 * tail_block() for the end of the log: with a table unless the log is empty, and in one call with the staged
 * bytes. The chunk under way ends here, and the piece is in no chunk.
 */
int tail_last_block(struct tail *t, struct index_block *block, struct trailer_piece *p);

/*
 * What was appended to the log file comes to stable storage. Of a log near: with SYNC_HOME at home, so that
 * it survives the host; with SYNC_NEAR where it is, but for its name (place_sync_names()).
 */
int tail_sync(struct tail *t, enum place_sync where);

/* What was appended to the log file, if that is near, can be read at home. 0; -errno: not all of it. */
int tail_release(struct tail *t);

/* Append the staged bytes to the log file. After an error they are still staged, and readable. */
int tail_flush(struct tail *t);

/*
 * Copy staged bytes. -EIO, and one line, if [log_off, log_off + len) is not in the stage: a damaged index may
 * name it.
 */
int tail_read_staged(const struct tail *t, void *buf, size_t len, uint64_t log_off);

/* The log is complete: release the space that was allocated ahead and not used. */
void tail_give_back(struct tail *t);

#endif
