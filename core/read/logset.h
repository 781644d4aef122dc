/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The data logs of a reader: few descriptors and little memory, however many logs there are. Small pieces are
 * read through *windows*: strided data that is read in order is in order in every log too, so one window
 * serves many small reads. Large pieces go from the log straight to the program's memory, without the lock.
 * The inode's lock is held around every call but log_handle_put().
 */
#ifndef PLFS_LOGSET_H
#define PLFS_LOGSET_H

#include "core/backend/container.h"
#include "core/read/compared.h"
#include "core/read/turned.h"

/* An open log. It never moves, and the last user closes it. */
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
	struct compared_log compared;
	struct turned turned;
};

struct logset {
	bool waits; /* -EREMOTE for what is on another host, without a line: the caller waits for it */
	bool reopened; /* a log that was too short: logset_read() */
	bool missing_is_lost; /* a log that is missing in a map of now: a copy of it is read */
	bool told_copy;       /* that one is read */
	unsigned turns;       /* from a log to a copy, in this read */
	const struct container *c;
	struct logset_log *logs;
	size_t cap;
	uint32_t nr;
	uint32_t hand;              /* where to look next for a log to close */
	uint32_t nr_open, max_open; /* descriptors; max 0: not known yet */
	uint32_t missing;           /* after -ENOENT: the log that is missing */
	unsigned nr_taken;          /* references that logset_take() has given; atomic */
	size_t window_bytes, sums_bytes;
	unsigned crowded;           /* this many reads avoid windows: other threads wait for the lock */
	struct log_handle *let_go;
	bool looked, far;           /* far: reads go over a network; looked: far is known */
	struct compared compared;   /* compared.how: PLFS_VERIFY */
	unsigned age;               /* changes when the logs get other numbers */
};

void logset_init(struct logset *set, const struct container *c);

/* Compare so from here on, whatever PLFS_VERIFY says. For whoever throws the checksums away: SUMS_ALWAYS. */
void logset_set_verify(struct logset *set, enum sums_verify how);

/* Forget all logs. Handles that are being read from stay with the set until logset_bury(). */
void logset_clear(struct logset *set);
void logset_release(struct logset *set);

/* Take over @path, which is mem_alloc()ed. Returns the log's number, or -ENOMEM. */
int logset_add(struct logset *set, char *path);

/*
 * Read all of [log_off, log_off + len) of log @no: from the log, and bytes that its owner has not flushed
 * from the live file. 0; -EIO: neither has the bytes, or a checksum differs (one line names the log);
 * -ENOENT: the log is missing; another -errno.
 */
int logset_read(struct logset *set, uint32_t no, void *buf, size_t len, uint64_t log_off);

/*
 * Choose how to read [log_off, log_off + len) in @nr_pieces pieces. 1: the caller reads from *@out, a
 * reference to the log's handle, by datalog_preadv(), and gets bytes that the log lacks from logset_read();
 * 0: use logset_read(); -errno as that.
 */
int logset_take(struct logset *set, uint32_t no, uint64_t log_off, size_t len, unsigned nr_pieces,
		struct log_handle **out);

/*
 * The checksums to compare the bytes with that logset_take() was asked for: *@chunks, for sums_read(),
 * mem_alloc()ed; NULL: they are not compared. -errno. logset_compared(): they have been compared.
 */
int logset_sums(struct logset *set, uint32_t no, uint64_t log_off, size_t len, struct sums_chunk **chunks);
void logset_compared(struct logset *set, uint32_t no, uint64_t log_off, size_t len,
		     const struct sums_chunk *chunks);

/*
 * Compare [log_off, log_off + len) with its checksums, unless that has been done. Returns as logset_read();
 * the bytes are dropped.
 */
int logset_verify(struct logset *set, uint32_t no, uint64_t log_off, uint64_t len);

/* Return a reference. True: it was the last one to a handle that the set has dropped: call logset_bury(). */
bool log_handle_put(struct log_handle *handle);
void logset_bury(struct logset *set);

/* Close the logs without a reader. True: there was one. */
bool logset_give_back(struct logset *set);

/* In the child of a fork: no thread reads. */
void logset_after_fork(struct logset *set);

/* The log's descriptor, which stays the set's. -errno */
int logset_open(struct logset *set, uint32_t no);

/*
 * How many logs the next read may take: half of the descriptors that are left, so that others get some. 0:
 * none, use logset_read(), which needs one at a time.
 */
uint32_t logset_at_once(struct logset *set);

#endif
