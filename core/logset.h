/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The data logs that a reader reads: few descriptors and little memory, whatever the number of logs. A log is read in
 * *windows*: strided data that is read in order is in order in every log too, so a window makes one large read of many small
 * ones. What is large enough goes from the log to where it is wanted, and then no lock need be held.
 * The inode's lock is held around every call but log_handle_put().
 */
#ifndef PLFS_LOGSET_H
#define PLFS_LOGSET_H

#include "container.h"
#include "sums.h"

/* An open log. It never moves, and is closed by whoever lets go of it last. */
struct log_handle {
	struct logset *set;
	int h;
	unsigned refs;           /* the set's, and one for each read under way */
	struct log_handle *next; /* of those that the set has let go of */
};

struct logset_log {
	char *path;                /* relative to the container: "hostdir.K/data..." */
	bool growing;              /* it has a live file, or had one when the map was made */
	struct log_handle *handle; /* NULL: not open */
	uint8_t *window;           /* bytes [win_off, win_off + win_len) of the data area, or NULL */
	uint64_t win_off;
	uint64_t next_off;         /* where a sequential reader would go on */
	uint32_t win_len, win_cap;
	uint32_t ahead;            /* how much to read at once there */
	struct log_sums sums;      /* if what is read is checked */
};

struct logset {
	const struct container *c;
	struct logset_log *logs;
	uint32_t nr, cap;
	uint32_t hand;              /* where to look next for a log to close */
	uint32_t nr_open, max_open; /* descriptors; max 0: not known yet */
	uint32_t missing;           /* the log that was not there when something said -ENOENT */
	unsigned nr_taken;          /* references that logset_take() has given; atomic */
	size_t window_bytes, sums_bytes;
	/* So many of the next reads had better not use windows: other threads wait for the lock. */
	unsigned crowded;
	struct log_handle *let_go;
	bool looked, far;           /* far: a read may be a message; looked: whether it is has been found out */
	bool verify;                /* what is read is checked (sums.h) */
};

void logset_init(struct logset *set, const struct container *c);

/* Forget all logs. Handles that are being read from stay with the set until logset_bury(). */
void logset_clear(struct logset *set);
void logset_release(struct logset *set);

/* Take over @path, which is mem_alloc()ed. Returns the log's number, or -ENOMEM. */
int logset_add(struct logset *set, char *path);

/*
 * Read all of [log_off, log_off + len) of log @no: from the log or, where that is shorter because its owner has not
 * flushed yet, from the owner's live file. -EIO: it is in neither, or is not what was written (one line names the
 * log), -ENOENT: the log is missing, or another -errno.
 */
int logset_read(struct logset *set, uint32_t no, void *buf, size_t len, uint64_t log_off);

/*
 * Whether [log_off, log_off + len), wanted in @nr_pieces pieces, had better be read by the caller himself: 1 and a
 * reference to the log's handle, whose data area begins at DROPPING_DATA_OFF; 0: by logset_read(); -errno as that.
 * Bytes that the log lacks are to be had from logset_read() then.
 */
int logset_take(struct logset *set, uint32_t no, uint64_t log_off, size_t len, unsigned nr_pieces, struct log_handle **out);

/* The checksums of what was taken, for sums_read(), mem_alloc()ed; NULL: -ENOMEM. */
struct sums_chunk *logset_sums(struct logset *set, uint32_t no, uint64_t log_off, size_t len);

/* Whether all that is known of [log_off, log_off + len) is right, as logset_read() of it would say. Nothing is kept. */
int logset_verify(struct logset *set, uint32_t no, uint64_t log_off, uint64_t len);

/* Give it back. True: it was the last one of a handle that the set has let go of, logset_bury() is to be called. */
bool log_handle_put(struct log_handle *handle);
void logset_bury(struct logset *set);

/* Close the logs that nobody reads from. Whether there were any. */
bool logset_give_back(struct logset *set);

/* In the child of a fork: nobody reads. */
void logset_after_fork(struct logset *set);

/* The log's descriptor, which stays the set's. -errno */
int logset_open(struct logset *set, uint32_t no);

/*
 * How many logs the next reader may take: half of the descriptors that are left, so that there are some for others.
 * 0: none, he is to use logset_read(), which needs one at a time.
 */
uint32_t logset_at_once(struct logset *set);

#endif
