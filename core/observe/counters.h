/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What one process counts of one file, and how a call is added to it. No file is touched here, and no clock
 * is read: the caller says what time it is.
 *
 * Calls that follow each other at one distance with one length are a *run*. A call that continues the run
 * costs three comparisons and an addition (way_expects(), way_again()). The run is folded into the sums when
 * another call comes, when a call is to be measured, and before the sums are read (way_fold()). So the
 * counters of a killed process are complete, with the run as it was.
 *
 * The struct lies in memory that is mapped from a file (part.h): this version's processes of one host read
 * it.
 */
#ifndef PLFS_COUNTERS_H
#define PLFS_COUNTERS_H

#include "core/base/base.h"

#define COUNTERS_SIZES 32	   /* bins of lengths: 1, 2 to 3, 4 to 7 ... bytes */
#define COUNTERS_COMMON 4	   /* pairs of a length and a distance that are remembered */
#define COUNTERS_BINS 64	   /* of time */
#define COUNTERS_WIDTH_NS 62500000 /* of a bin at first */
#define COUNTERS_MEASURED 256	   /* one of so many calls of a run is measured */
#define COUNTERS_PATH 1536

enum way_kind { WAY_WRITE, WAY_READ, NR_WAYS };

/* The calls of one direction. All times are CLOCK_REALTIME, in ns. */
struct way {
	/* The run. */
	uint64_t next; /* where its next call begins */
	uint64_t stop; /* the call that begins there is to be measured; of no run: next */
	uint64_t len;  /* of its calls; 0: there is none */
	int64_t stride;
	uint64_t begin;	  /* where the first call begins that the sums lack */
	uint64_t each_ns; /* what the last measured call of the run took */
	uint64_t off;	  /* where the last call that is in the sums began; with last_len, last_stride */
	uint64_t last_len;
	int64_t last_stride; /* from the call before it; 0: that was the first */

	/* The sums. */
	uint64_t calls, appends, bytes, ns, slowest_ns, slowest_at_ns, first_ns, last_ns;
	uint64_t sequential, strided, random;
	uint64_t sizes[COUNTERS_SIZES];
	struct common {
		uint64_t len, calls;
		int64_t stride;
	} common[COUNTERS_COMMON];
};

enum work_kind { WORK_WRITE, WORK_READ, WORK_OTHER, NR_WORKS };

struct counters {
	struct way ways[NR_WAYS];
	uint64_t first_ns, last_ns; /* of all calls */
	uint64_t opens, closes, syncs, truncates, errors;
	uint64_t open_ns, close_ns, sync_ns;
	uint64_t end;	  /* where the farthest byte ends */
	uint64_t records; /* in the index of its logs */
	struct work {	  /* what libplfs did in these calls */
		uint64_t calls, bytes, ns;
	} work[NR_WORKS];
	uint64_t files;	     /* that are counted here: 1, but for what there was no room for */
	uint64_t flags;	     /* COUNTERS_X */
	uint64_t bins_from;  /* number of the first bin since 1970, in bins; bins_width 0: there are none */
	uint64_t bins_width; /* ns */
	uint64_t bins[NR_WAYS][COUNTERS_BINS];
	char path[COUNTERS_PATH]; /* as programs see it; "": of the rest */
};

/* COUNTERS_ANYWHERE: a plain file that is below no mapping. */
enum { COUNTERS_LOGS = 1, COUNTERS_STREAM = 2, COUNTERS_ANYWHERE = 4 };

/* Whether a call of @len bytes at @off continues the run, and need not be measured. */
static inline bool way_expects(const struct way *w, uint64_t off, uint64_t len)
{
	return off == w->next && len == w->len && off != w->stop;
}

/* Count that call. */
static inline void way_again(struct way *w) { w->next += (uint64_t)w->stride; }

/*
 * Count a call that moved @len bytes at @off and ended at @now_ns, after @took_ns. @took_ns 0: it was not
 * measured. @is_short: the calls of the run that begins are likely to take as long.
 */
void counters_call(struct counters *c, enum way_kind kind, uint64_t off, uint64_t len, uint64_t now_ns,
		   uint64_t took_ns, bool is_short);

/* Fold the runs into the sums; they have ended at @now_ns, or with the bin of time that they began in. */
void counters_fold(struct counters *c, uint64_t now_ns);

/* Bytes were moved now, for the bins. */
void counters_bin(struct counters *c, enum way_kind kind, uint64_t bytes, uint64_t now_ns);

/* When the bin of @now_ns ends. */
static inline uint64_t counters_bin_end(const struct counters *c, uint64_t now_ns)
{
	return c->bins_width ? now_ns - now_ns % c->bins_width + c->bins_width : 0;
}

#endif
