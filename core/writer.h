/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The writer: one process's log of one file, with its stage and live index. Nothing here is thread-safe; the inode's
 * lock (inode.h) is held around every call.
 */
#ifndef PLFS_WRITER_H
#define PLFS_WRITER_H

#include "dropping.h"
#include "stage.h"

struct writer {
	const struct container *c;
	int log; /* handle */
	char log_name[INDEX_LOG_NAME_LEN];
	char log_path[CONTAINER_PATH_LEN]; /* relative to the container, as container_list() names it */
	struct stage stage;
	struct index_record last, prev; /* the records that may still grow, and that it may be folded into */
	bool last_open, prev_open;
	uint64_t nr_pinned;      /* records that somebody has taken a copy of: not folded into any more */
	uint64_t last_write_ns;  /* coarse */
	uint32_t chunk_crc;      /* of the chunk under way */
	bool dirs_synced;
	/* Called before records leave the live index for the node index. */
	void (*before_spill)(void *arg);
	void *arg;
};

/* Make a log in @c, which must outlive the writer. -ENOSPC, -EACCES, -EROFS ...: nothing is left behind. */
int writer_open(struct writer *w, const struct container *c);

/*
 * Append @len bytes that belong at @logical_off and index them. Returns how many were taken (fewer than @len
 * only when an error came after some), or -errno: then none. What is returned survives the process.
 */
ssize_t writer_write(struct writer *w, const void *buf, size_t len, uint64_t logical_off);

/* Index a truncation to @size. */
int writer_truncate(struct writer *w, uint64_t size);

/* No record grows from here on: what comes next gets a stamp of its own. Part of every release and acquire. */
void writer_break(struct writer *w);

/* Append the staged bytes to the log. After an error they are still staged, and readable. */
int writer_flush(struct writer *w);

/* Release: writer_break(), writer_flush(), and the live index where others can read it. */
int writer_commit(struct writer *w);

/* Everything written so far on stable storage. */
int writer_sync(struct writer *w);

/*
 * Flush, move the records to the node index, remove the live file. Where there is no space for that, the live
 * file stays and serves readers as well; nothing is lost either way. The writer is gone afterwards.
 */
void writer_close(struct writer *w);

/* In the child of a fork: forget the parent's log without touching it. */
void writer_abandon(struct writer *w);

/* First byte of the log that is still staged. */
static inline uint64_t writer_flushed_len(const struct writer *w) { return w->stage.flushed_len; }

/* Copy staged bytes: [log_off, log_off + len) must lie in the stage. */
void writer_read_stage(const struct writer *w, void *buf, size_t len, uint64_t log_off);

/* Record number @i of the live index, as it is now. */
void writer_record(const struct writer *w, uint64_t i, struct index_record *rec);

#endif
