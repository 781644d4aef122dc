/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether this process counts and traces its calls on files, and the two ends of each call.
 *
 * A *tally* is what this process counts of one file; it has the counters in the part (part.h). While nothing
 * is counted there are no tallies: a call then costs the test of a pointer that is NULL.
 *
 * Locks: the counters of a tally are added to under its lock, which for a logical file is the inode's. The
 * lock of this module, around the list of tallies and the part, is taken inside of it; under it nothing of
 * core above base/ is called but host_name().
 */
#ifndef PLFS_OBSERVE_H
#define PLFS_OBSERVE_H

#include "core/base/critical.h"
#include "core/base/stamp.h"
#include "core/observe/counters.h"
#include "core/observe/trace.h"

enum seen_kind {
	SEEN_OPEN = 1,
	SEEN_CLOSE,
	SEEN_READ,
	SEEN_WRITE,
	SEEN_APPEND,
	SEEN_SYNC,
	SEEN_TRUNCATE,
	SEEN_OTHER,
};

struct tally {
	struct counters *c; /* never NULL; nothing there that a run could go on with: there is no slot yet */
	pthread_mutex_t *lock;
	uint64_t bin_end_ns; /* of the bin of time that the run is in, by the coarse clock */
	struct trace_file trace;
	struct tally *next;
	pthread_mutex_t own; /* of a plain file */
	dev_t dev;
	ino_t ino;
	bool logical, anywhere;
	char *path;
};

/* Whether anything is counted or traced in this process. Written once, at start. */
extern bool observing;

/*
 * Read PLFS_STATS and PLFS_TRACE, once. One line reports what is wrong with them; the process goes on
 * without.
 */
void observe_setup(void);

/* ---- tallies ---- */

/* That of the file @fd; NULL: nothing is counted, or no memory. @lock: NULL, its own. */
struct tally *observe_file(int fd, bool logical, pthread_mutex_t *lock);

/* The lock @its goes with its inode. */
void observe_leave(struct tally *t, const pthread_mutex_t *its);

/* ---- calls ---- */

/* One call, on the stack of the thread that makes it. */
struct seen {
	struct tally *t; /* NULL: it is not counted, or is part of another that is */
	uint64_t begin_ns;
	enum seen_kind kind;
};

/* The tally whose call this thread is in. */
extern __thread struct tally *observe_now __attribute__((tls_model("initial-exec")));

void seen_begin_counted(struct seen *call, struct tally *t, enum seen_kind kind);
void seen_end_counted(struct seen *call, uint64_t off, int64_t ret);

static inline void seen_begin(struct seen *call, struct tally *t, enum seen_kind kind)
{
	call->t = NULL;
	if (unlikely(t != NULL))
		seen_begin_counted(call, t, kind);
}

/* @ret: bytes that were moved at @off, or 0; -errno: it failed. The lock is not held. */
static inline void seen_end(struct seen *call, uint64_t off, int64_t ret)
{
	if (unlikely(call->t != NULL))
		seen_end_counted(call, off, ret);
}

/* The same of an open, before whose end the file was not known. */
void seen_end_open(struct tally *t, uint64_t begin_ns, int64_t ret);

/*
 * A small write that goes on with the run, as seen_expects() has said before it, at @coarse_ns. With the
 * lock.
 */
static inline bool seen_expects(const struct tally *t, uint64_t off, uint64_t len)
{
	return way_expects(&t->c->ways[WAY_WRITE], off, len) &&
	       (!tracing || trace_expects(t->trace.streams, SEEN_WRITE, off, len));
}

void seen_again_slow(struct tally *t, uint64_t off, uint64_t len, uint64_t coarse_ns);
static inline void seen_again(struct tally *t, uint64_t off, uint64_t len, uint64_t coarse_ns)
{
	if (likely(coarse_ns < t->bin_end_ns && (!tracing || trace_again(t->trace.streams, coarse_ns))))
		way_again(&t->c->ways[WAY_WRITE]);
	else
		seen_again_slow(t, off, len, coarse_ns);
}

/* One that began at @begin_ns (stamp_fine_ns()), and is likely to be one of many. With the lock. */
void seen_short(struct tally *t, uint64_t off, uint64_t len, uint64_t begin_ns);

/* libplfs did this in a call on the file. Needs no lock. */
void observe_work(struct tally *t, enum work_kind kind, uint64_t bytes, uint64_t took_ns);

/* A stream on it moved so far, if its calls were not seen one by one. */
void observe_stream(struct tally *t, enum way_kind kind, uint64_t bytes);

/* Its log got so many records. With the lock. */
void observe_records(struct tally *t, uint64_t nr);

/* ---- the process ---- */

/* Around a fork, the lock; in the child: the parent's part is not this process's. */
void observe_fork_prepare(void);
void observe_fork_parent(void);
void observe_fork_child(void);

/* What was counted until now is in the stats file, or in the part for another process to put there. */
void observe_exit(void);

/* The same before an exec; what is counted after one that failed is another part. */
void observe_exec(void);

/* The stats file, or NULL. */
const char *observe_stats_file(void);

#endif
