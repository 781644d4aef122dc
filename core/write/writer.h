/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The writer: it appends what one process writes to one file to a log (tail.h), and indexes it with records
 * that grow. Nothing here is thread-safe; the inode's lock (inode.h) is held around every call.
 */
#ifndef PLFS_WRITER_H
#define PLFS_WRITER_H

#include "core/write/leased.h"
#include "core/write/tail.h"

struct writer {
	struct tail tail;
	/* The record that may still grow, the one that it may be folded into, and the one before that. */
	struct index_record last, prev, before;
	bool last_open, prev_open, before_open;
	/* records that the reader has copied: nothing is folded into them any more */
	uint64_t nr_pinned;
	/*
	 * @last grows by a write at next_off (UINT64_MAX: by none) of next_len bytes (0: of any length), up
	 * to next_end.
	 */
	uint64_t next_off, next_len, next_end;
	uint64_t last_write_ns;  /* or truncation; coarse, as is the next. 0: none yet */
	/* @last grows no longer than this: what other hosts write later has a later stamp */
	uint64_t grows_until_ns;
	struct leased leased;    /* where @last may grow, and be folded into @prev */
	uint64_t begun_len;    /* of the log, when it was opened */
	uint64_t indexed_len;  /* bytes that this process has appended to the node index for it */
	uint64_t nr_spilled;   /* records that have left the live index for the node index */
	struct lease_sums host; /* after writer_close(): what lease_close_log() returned */
	bool names_synced; /* the log's name, and the kept map's loss of its own, are on stable storage */
	bool is_ended; /* writer_tell_last() was called; end_error: what writer_close() is to return */
	int end_error;
	bool lost; /* see writer_close() */
	int close_error; /* see tail_close() */
	int release_error; /* with release=home: why what was written is not home after writer_close() */
	/* Called before records leave the live index for the node index, and with them afterwards. */
	void (*before_spill)(void *arg);
	void (*after_spill)(void *arg, const struct index_record *records, size_t nr);
	void *arg;
};

/*
 * Make a log in @c, which must outlive the writer, or continue one of this process (resume.h). -EIDRM: the
 * container has gone, or was purged; -ENOSPC, -EACCES, -EROFS ...: nothing but the notice is left behind.
 */
int writer_open(struct writer *w, const struct container *c);

/*
 * Append @len bytes that belong at @logical_off and index them. The bytes that it returns survive the
 * process. Returns the number of bytes taken, fewer than @len only if an error came after some; -errno: none
 * were taken.
 */
ssize_t writer_write(struct writer *w, const void *buf, size_t len, uint64_t logical_off);

/*
 * The fast path: a small write at the place that the last one predicted costs the copy and a count.
 * @notified_ns: the latest notice that the caller has heeded. False: use writer_write(). False may mean that
 * the bytes are in the log but that a notice came meanwhile: the second write of the same bytes does no harm.
 */
bool writer_write_next(struct writer *w, const void *buf, size_t len, uint64_t logical_off,
		       uint64_t notified_ns);

/* From here on a write is a large one, for which the above is of no use. */
#define WRITER_DIRECT_LEN TAIL_DIRECT_LEN

/*
 * Append @len bytes, at most 1 MiB, without a record; *@log_off: where they are in the log. Returns as
 * writer_write().
 */
ssize_t writer_put(struct writer *w, const void *buf, size_t len, uint64_t *log_off);

/* All that was appended is on stable storage, and after a power failure readers will know that. 0; -errno. */
int writer_settle(struct writer *w);

/*
 * Add records of bytes that writer_put() has appended, with the stamps that they have, to the node index,
 * which is synced, and to the log: one that has more than its index after a kill or a power failure seems to
 * be damaged. The live file has none of them: there, the last one could seem to be longer. After -errno some
 * may be there.
 */
int writer_index(struct writer *w, const struct index_record *records, size_t nr);

/* Remove the log, which has no records, with its live file. */
void writer_discard(struct writer *w);

/* Index a truncation to @size at @stamp_ns, which is later than the stamps of all writes of this process. */
int writer_truncate(struct writer *w, uint64_t size, uint64_t stamp_ns);

/*
 * Fold the last record where it belongs, and let no record grow any more: the next write gets a stamp of its
 * own. Part of every release and acquire. The lease is kept: no other process has written inside it.
 */
void writer_break(struct writer *w);

/* tail_flush() of its log. */
static inline int writer_flush(struct writer *w) { return tail_flush(&w->tail); }

/*
 * Release: writer_break(), writer_flush(), and the live index where others can read it. With release=home
 * bytes and records of a log near are at home then.
 */
int writer_commit(struct writer *w);

/*
 * Where the live file cannot be mapped: writer_break(), and others can read all that was written, which is
 * what a kill leaves; in the log, or staged if that has no space. Before anything else says that there is
 * more: a size, a block in the log, a load of this process's records. Elsewhere nothing is done. 0; -errno.
 */
int writer_save(struct writer *w);

/*
 * Put the log on stable storage and its records into the node index, for durable_sync(). -ENOSPC and the
 * like: there was no room for that; -EIO: also if the log was removed, or its live file was cut.
 * writer_tell_lost(): one line for either. A mover removes the log as well, and then nothing is lost.
 */
int writer_sync(struct writer *w);
void writer_tell_lost(const struct writer *w);

/*
 * Before anything at home says that there is more, a size say: of a log near, the records go to the node
 * index. Else what the place alone tells of would read as zeros, or as what was before, when that is lost.
 * writer_tell_last(): by the block that ends the log; nothing is written after it but writer_close(). Of a
 * log at home nothing is done. 0; -errno: they are not there.
 */
int writer_tell(struct writer *w);
int writer_tell_last(struct writer *w);

/*
 * Flush, move the records to the node index, remove the live file. The writer is gone afterwards. 0; -errno:
 * there was no space for that. Then the live file stays, serves readers as well, and nothing is lost, unless
 * w->lost is set: the live file was cut, or removed with its container, and acknowledged bytes are gone.
 */
int writer_close(struct writer *w);

/*
 * The mapping of the live file is broken (live_is_broken()): leave log and live file as a killed process
 * does. They have all acknowledged bytes, and are synced; *@sync_error: 0, or why that failed. Returns why
 * the mapping broke, -errno.
 */
int writer_give_up(struct writer *w, int *sync_error);

/* Close the log without a change to it: it stays as a killed process leaves it, unless it was removed. */
void writer_abandon(struct writer *w);

/* The same for the parent's writer in the child of a fork. */
void writer_forget(struct writer *w);

/* Record number @i of the live index, as it is now. */
void writer_record(const struct writer *w, uint64_t i, struct index_record *rec);

#endif
