/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The logs of a set (logset.h) as open files: few descriptors, a budget for windows, and what is read in the
 * place of a log: a staged copy, or one in another backend. The inode's lock is held around every call but
 * log_handle_put().
 */
#ifndef PLFS_OPEN_LOGS_H
#define PLFS_OPEN_LOGS_H

#include "core/backend/container.h"
#include "core/read/compared.h"
#include "core/read/turned.h"

#define WINDOW_UNIT 512

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
	bool rebuilt;         /* a log is made of parity: from here on all that is read is compared */
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

/* ---- for logset.c ---- */

/* Open the log, unless it is. 0; -errno, with a line where it is damaged or elsewhere. */
int logset_open_anew(struct logset *set, struct logset_log *log);
static inline int logset_open_log(struct logset *set, struct logset_log *log)
{
	return log->handle ? 0 : logset_open_anew(set, log);
}

/* Let @h be what is read of the log, which is not open. @handle: mem_alloc()ed. */
void logset_take_handle(struct logset *set, struct logset_log *log, struct log_handle *handle, int h);

/* @h is to be what is read of a log: what is made of parity proves nothing by itself. */
void logset_use_rebuilt(struct logset *set, int h);

void logset_close(struct logset *set, struct logset_log *log);
void logset_close_others(struct logset *set, const struct logset_log *keep);

/* Take descriptors or windows from other logs, in turn, until there is room for a window so long. */
void logset_make_room(struct logset *set, const struct logset_log *keep, size_t window);
void logset_drop_window(struct logset *set, struct logset_log *log);
uint32_t logset_window_min(const struct logset *set);

/*
 * 0: no part of the log is in a place that is not on this host; -EIO: it is, and one line says where;
 * -EREMOTE: the same for a caller that waits.
 */
int logset_find_elsewhere(struct logset *set, const struct logset_log *log);

#endif
