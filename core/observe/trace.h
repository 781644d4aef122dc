/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The trace of this process: each call as a word of 16 bytes, calls of one length at one distance as three
 * (man/plfs-stats.5 has the bytes). The words are stored where they are to be, in memory that is mapped from
 * the file: a killed process's trace is complete.
 *
 * A run grows in place. Of its calls each 16th is measured; the others only add to the count, unless the
 * coarse clock shows a pause.
 */
#ifndef PLFS_TRACE_H
#define PLFS_TRACE_H

#include "core/observe/job.h"

#include <pthread.h>

#define TRACE_MAGIC "PLFSTRC1"
#define TRACE_VERSION 1
#define TRACE_HEADER_LEN 4096
#define TRACE_TICK_NS 64
#define TRACE_MAX (64ULL << 20) /* bytes, if no max= is given */
#define TRACE_MEASURED 16	/* one of so many calls of a run */
#define TRACE_PAUSE_NS 8000000	/* a longer one ends a run; the coarse clock may be 4 ms behind */
#define TRACE_RUN_NS 100000000	/* a run is no longer */

enum {
	TRACE_FAILED = 64,
	TRACE_PAGES = 128,
	TRACE_RUN = 16,
	TRACE_BUSY = 17,
	TRACE_STREAM = 32,
	TRACE_NAME = 33,
	TRACE_BASE = 34,
	TRACE_CLOCK = 35,
	TRACE_LENGTH = 36,
	TRACE_FULL = 47,
};

struct trace_word {
	uint64_t lo, hi;
};

/* Calls of one thread on one file. Only that thread changes it. */
struct trace_stream {
	struct trace_stream *next; /* of the same file */
	pthread_t thread;
	uint8_t nr;
	uint64_t base;
	/* The run: calls of @kind and @len, each @stride behind the one before; @next_off: the next one. */
	struct trace_word *run; /* its three words; NULL: there is none */
	uint64_t len, next_off, coarse_ns, begin_ns;
	int64_t stride;
	uint32_t left; /* so many may be added before one is measured */
	uint32_t unmeasured;
	int kind;
	/* The last two words, if they are calls that may become a run. */
	uint64_t nr_single, first_word;
	uint64_t offs[2], begins_ns[2];
	uint64_t busy_ns, end_ns;
};

/* A file in the trace. */
struct trace_file {
	struct trace_stream *streams;
	uint32_t nr; /* 0: it is not in the trace yet, else its number + 1 */
};

/* Whether calls are traced. */
extern bool tracing;

/*
 * Trace into the directory @dir, which is made if it is missing, up to @max bytes. The file is made with the
 * first call.
 */
void trace_setup(const char *dir, uint64_t max, const struct job *j, int64_t real_ns);

/* One call; the lock of the file is held. Times are those of the exact clock of intervals. */
struct trace_call {
	int kind; /* enum seen_kind */
	uint64_t off, len;
	uint64_t begin_ns, end_ns;
	bool failed; /* @len: the error */
};
void trace_call(struct trace_file *f, const char *path, bool logical, const struct trace_call *call);

/* Whether a write of @len bytes at @off goes on with the run of @s, the last stream of its file or NULL, and
 * need not be measured. */
static inline bool trace_expects(const struct trace_stream *s, int kind, uint64_t off, uint64_t len)
{
	return s && s->run && off == s->next_off && len == s->len && s->left && s->kind == kind &&
	       pthread_equal(s->thread, pthread_self());
}

/* Count it. False: there was a pause; it has to be traced as another call. */
static inline bool trace_again(struct trace_stream *s, uint64_t coarse_ns)
{
	if (unlikely((int64_t)(coarse_ns - s->coarse_ns) > TRACE_PAUSE_NS))
		return false;
	s->coarse_ns = coarse_ns;
	s->next_off += (uint64_t)s->stride;
	s->left--;
	s->unmeasured++;
	s->run[1].lo += 1ULL << 32; /* count */
	return true;
}

/* Nothing more is to come: its length is that of its words. What comes all the same is added. */
void trace_end(void);

/* In the child of a fork: the parent's trace is not this process's. Each file is forgotten by itself. */
void trace_fork_child(void);
void trace_forget(struct trace_file *f);

#endif
