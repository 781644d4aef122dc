/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The writer: one process's log of one file, with its stage and live index. Nothing here is thread-safe; the inode's
 * lock (inode.h) is held around every call.
 */
#ifndef PLFS_WRITER_H
#define PLFS_WRITER_H

#include "../index/shapes.h"
#include "dropping.h"
#include "lease.h"
#include "stage.h"

#define WRITER_PIECE_LEN (512 * 1024) /* a large write goes to the log in pieces that stay in the cache */
#define WRITER_CHUNKS_MAX ((STAGE_CAP + WRITER_PIECE_LEN / 4 * 5) / INDEX_CHUNK_LEN + 2)

/* How far the checksums have got, which may be beyond what is flushed. */
struct writer_sums {
	uint64_t len; /* so many of the staged bytes */
	uint32_t crc; /* of the chunk under way, so far */
	unsigned nr;  /* whole chunks that are not in the live file yet */
};

/* By which a writer guesses where it needs its next lease. */
struct writer_habits {
	struct index_shapes shapes;
	uint64_t seen_count, seen_len; /* of the last record, when it was last taken into @shapes */
	uint64_t leased_at, leased_len; /* position of the log when the lease began, and bytes of its first write */
	bool crowded;                  /* others have ended a lease: none is on all of the file from here on */
	unsigned bad_luck;             /* leases in a row that were ended before they paid */
	unsigned skip;                 /* so many leases are not even tried for */
};

struct writer {
	const struct container *c;
	int log; /* handle */
	char log_name[INDEX_LOG_NAME_LEN];
	char log_path[CONTAINER_PATH_LEN]; /* relative to the container, as container_list() names it */
	struct stage stage;
	/* The record that may still grow, what it may be folded into, and that one. */
	struct index_record last, prev, before;
	bool last_open, prev_open, before_open;
	uint64_t nr_pinned;      /* records that somebody has taken a copy of: not folded into any more */
	/* The write that @last waits for, UINT64_MAX: none; of @next_len bytes, 0: of any, but none beyond @next_end. */
	uint64_t next_off, next_len, next_end;
	uint64_t last_write_ns;  /* coarse, as is the next */
	uint64_t grows_until_ns; /* @last may: what other hosts write later has a later stamp */
	struct lease lease;      /* where @last may grow, and be folded into @prev */
	struct writer_habits habits;
	struct writer_sums summed;
	uint32_t chunk_crc[WRITER_CHUNKS_MAX]; /* of the chunks that summed.nr counts */
	uint64_t last_trailer, last_table; /* in the log: of the latest block, and of the latest one with a table; 0: none */
	bool names_synced; /* that of the log, and that the kept map has lost its own */
	bool lost; /* see writer_close() */
	/* Of the log: bytes that were written to it did not arrive, as a network file system may say only then. */
	int close_error;
	uint64_t allocated_end; /* offset in the log file up to which it has been given space; UINT64_MAX: it gets none */
	/* Called before records leave the live index for the node index. */
	void (*before_spill)(void *arg);
	void *arg;
};

/*
 * Make a log in @c, which must outlive the writer, or go on with one of this process (resume.h). -ENOSPC, -EACCES,
 * -EROFS ...: nothing is left behind.
 */
int writer_open(struct writer *w, const struct container *c);

/*
 * Append @len bytes that belong at @logical_off and index them. Returns how many were taken (fewer than @len
 * only when an error came after some), or -errno: then none. What is returned survives the process.
 */
ssize_t writer_write(struct writer *w, const void *buf, size_t len, uint64_t logical_off);

/*
 * The same for a small write that goes on where the last one had it expected, with no notice later than @notified_ns:
 * nothing but the copy and a count. False: use writer_write(), also if a notice has come meanwhile and the bytes are
 * there already.
 */
bool writer_write_next(struct writer *w, const void *buf, size_t len, uint64_t logical_off, uint64_t notified_ns);

/* From here on a write is a large one, which goes past the stage. */
#define WRITER_DIRECT_LEN (64 * 1024)

/* Index a truncation to @size, at @stamp_ns, which is later than all that this process has written. */
int writer_truncate(struct writer *w, uint64_t size, uint64_t stamp_ns);

/*
 * No record grows from here on, once the last has been folded where it belongs: what comes next gets a stamp of its
 * own. Part of every release and acquire. The lease is kept: in it there is still nobody else.
 */
void writer_break(struct writer *w);

/* Append the staged bytes to the log. After an error they are still staged, and readable. */
int writer_flush(struct writer *w);

/* Release: writer_break(), writer_flush(), and the live index where others can read it. */
int writer_commit(struct writer *w);

/*
 * Everything written so far in the log, on stable storage, and in the node index, for durable_sync(). -ENOSPC and the
 * like: there was no room for it; -EIO also if somebody has removed the log.
 */
int writer_sync(struct writer *w);

/*
 * Flush, move the records to the node index, remove the live file. Where there is no space for that, the live file
 * stays and serves readers as well, and the error is returned; nothing is lost either way. But if w->lost is set the
 * live file has been cut, or removed with its container, and acknowledged bytes with it. The writer is gone
 * afterwards.
 */
int writer_close(struct writer *w);

/*
 * The mapping of the live file is broken (stage_is_broken()): leave log and live file as a killed process does. What
 * was acknowledged is in them, and is brought to stable storage; *@sync_error: 0, or why that failed. Returns why the
 * mapping broke, -errno.
 */
int writer_give_up(struct writer *w, int *sync_error);

/* Let go of the log without touching it: it stays as a killed process leaves it, if it is not gone. */
void writer_abandon(struct writer *w);

/* The same in the child of a fork, of its parent's. */
void writer_forget(struct writer *w);

/* First byte of the log that is still staged. */
static inline uint64_t writer_flushed_len(const struct writer *w) { return w->stage.flushed_len; }

/* Copy staged bytes. -EIO, and one line, if [log_off, log_off + len) is not in the stage: a stranger's index may say so. */
int writer_read_stage(const struct writer *w, void *buf, size_t len, uint64_t log_off);

/* Record number @i of the live index, as it is now. */
void writer_record(const struct writer *w, uint64_t i, struct index_record *rec);

#endif
