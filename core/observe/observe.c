/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tallies, the ends of calls, and the ends of the process.
 */
#include "core/observe/observe.h"

#include "core/backend/mount.h"
#include "core/backend/stub.h"
#include "core/base/alloc.h"
#include "core/base/io.h"
#include "core/base/msg.h"
#include "core/observe/join.h"
#include "core/observe/part.h"
#include "core/observe/settings.h"

#include <stdio.h>
#include <stdlib.h>

bool observing;
__thread struct tally *observe_now __attribute__((tls_model("initial-exec")));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for all that follows */
static struct tally *tallies;
static struct part part = { .fd = -1 };
static bool given_up; /* there can be no part, as one line has said */

static struct job job;
static char *stats_file;  /* as the kernel knows it */
static uint64_t start_ns; /* when this process began */
static int64_t real_ns;	  /* CLOCK_REALTIME less the clock of intervals */
static bool exiting;

/* What the counters of a tally are until it has a slot: no run goes on here. */
static struct counters none;

static uint64_t real_of(uint64_t mono_ns) { return mono_ns + (uint64_t)real_ns; }

/* ---- the start ---- */

static void find_offset(void)
{
	struct timespec now;

	if (!sys.clock_gettime(CLOCK_REALTIME, &now))
		real_ns = now.tv_sec * 1000000000LL + now.tv_nsec - (int64_t)stamp_fine_ns();
}

void observe_setup(void)
{
	uint64_t trace_max = 0;
	char *trace_dir;

	stats_file = settings_stats_file();
	trace_dir = settings_trace_dir(&trace_max);
	if (!stats_file && !trace_dir)
		return;
	job_find(&job);
	find_offset();
	start_ns = real_of(stamp_fine_ns());
	if (trace_dir)
		trace_setup(trace_dir, trace_max, &job, real_ns);
	mem_free(trace_dir);
	observing = stats_file || tracing;
}

const char *observe_stats_file(void) { return stats_file; }

/* ---- tallies; with the lock ---- */

static void give_up(int err, const char *what)
{
	given_up = true;
	if (job.rank <= 0) /* one of a job is enough */
		msg_error(
			"PLFS_STATS: %s: %s: nothing is counted in this job; name a file in a directory that can be written to",
			what, strerror(-err));
}

/* A slot for the tally. False: what it counts is lost. */
static bool attach(struct tally *t)
{
	char what[PATH_MAX];
	int ret;

	if (!stats_file) { /* a trace alone */
		t->c = mem_zalloc(sizeof(*t->c));
		t->c = t->c ? t->c : &none;
		return t->c != &none;
	}
	if (given_up)
		return false;
	if (!part.head) {
		ret = part_open(&part, stats_file, &job, start_ns, what);
		if (ret) {
			give_up(ret, what);
			return false;
		}
	}
	t->c = part_slot(&part);
	if (t->c != part_counters(part.head, 0)) {
		size_t len = strlen(t->path), skip = len < COUNTERS_PATH ? 0 : len - COUNTERS_PATH + 1;

		memcpy(t->c->path, t->path + skip, len - skip); /* the end says more */
		t->c->flags = t->logical ? COUNTERS_LOGS : t->anywhere ? COUNTERS_ANYWHERE : 0;
	}
	return true;
}

static struct tally *new_tally(const char *path, const struct stat *st, bool logical, pthread_mutex_t *its)
{
	struct tally *t = mem_zalloc(sizeof(*t));

	if (!t)
		return NULL;
	t->path = mem_strdup(path);
	if (!t->path) {
		mem_free(t);
		return NULL;
	}
	pthread_mutex_init(&t->own, NULL);
	t->c = &none;
	t->lock = its ? its : &t->own;
	t->logical = logical;
	t->dev = st->st_dev;
	t->ino = st->st_ino;
	t->next = tallies;
	tallies = t;
	return t;
}

struct tally *observe_file(int fd, bool logical, pthread_mutex_t *its)
{
	int saved ERRNO_KEPT = errno;
	char name[PATH_MAX], seen[PATH_MAX];
	struct tally *t;
	struct stat st;

	if (!observing || (given_up && !tracing) || sys.fstat(fd, &st))
		return NULL;
	stub_name(fd, name, sizeof(name));
	if (mount_path_unmap(name, seen) != 1)
		memcpy(seen, name, sizeof(seen));
	mutex_lock(&lock);
	for (t = tallies; t; t = t->next)
		if (t->ino == st.st_ino && t->dev == st.st_dev && t->logical == logical &&
		    !strcmp(t->path, seen))
			break;
	if (!t)
		t = new_tally(seen, &st, logical, its);
	else if (its)
		t->lock = its;
	mutex_unlock(&lock);
	return t;
}

void observe_leave(struct tally *t, const pthread_mutex_t *its)
{
	mutex_lock(&lock);
	if (t->lock == its)
		t->lock = &t->own;
	mutex_unlock(&lock);
}

/*
 * With the tally's lock: its slot; NULL: it has none. At exit another thread may take it away at any moment.
 */
static struct counters *slot_of(struct tally *t)
{
	struct counters *c = __atomic_load_n(&t->c, __ATOMIC_RELAXED);

	if (likely(c != &none))
		return c;
	mutex_lock(&lock);
	c = t->c != &none || attach(t) ? t->c : NULL;
	mutex_unlock(&lock);
	return c;
}

/* ---- calls ---- */

static void set_bin_end(struct tally *t, const struct counters *c, uint64_t real)
{
	t->bin_end_ns = counters_bin_end(c, real) - (uint64_t)real_ns;
}

void seen_begin_counted(struct seen *call, struct tally *t, enum seen_kind kind)
{
	if (observe_now)
		return;
	observe_now = call->t = t;
	call->kind = kind;
	call->begin_ns = stamp_fine_ns();
}

static void note(struct counters *c, uint64_t *calls, uint64_t *ns, uint64_t real, uint64_t took_ns)
{
	++*calls;
	if (ns)
		*ns += took_ns;
	if (!c->first_ns)
		c->first_ns = real - took_ns;
	c->last_ns = max_u64(c->last_ns, real);
}

static void count(struct tally *t, struct counters *c, enum seen_kind kind, uint64_t off, int64_t ret,
		  uint64_t real, uint64_t took_ns)
{
	uint64_t others = 0;

	counters_fold(c, real - took_ns);
	if (ret < 0)
		c->errors++;
	if (ret < 0 && kind != SEEN_OPEN && kind != SEEN_CLOSE) {
		note(c, &others, NULL, real, took_ns);
		return;
	}
	switch (kind) {
	case SEEN_OPEN:
		note(c, &c->opens, &c->open_ns, real, took_ns);
		break;
	case SEEN_CLOSE:
		note(c, &c->closes, &c->close_ns, real, took_ns);
		break;
	case SEEN_SYNC:
		note(c, &c->syncs, &c->sync_ns, real, took_ns);
		break;
	case SEEN_TRUNCATE:
		note(c, &c->truncates, NULL, real, took_ns);
		break;
	case SEEN_OTHER:
		note(c, &others, NULL, real, took_ns);
		break;
	case SEEN_APPEND:
		c->ways[WAY_WRITE].appends++; /* fallthrough */
	case SEEN_WRITE:
	case SEEN_READ:
		counters_call(c, kind == SEEN_READ ? WAY_READ : WAY_WRITE, off, (uint64_t)ret, real, took_ns,
			      false);
		set_bin_end(t, c, real);
		break;
	}
}

static void trace(struct tally *t, enum seen_kind kind, uint64_t off, int64_t ret, uint64_t begin_ns,
		  uint64_t end_ns)
{
	struct trace_call call = { .kind = (int)kind, .off = off, .begin_ns = begin_ns, .end_ns = end_ns };

	call.failed = ret < 0;
	call.len = (uint64_t)(ret < 0 ? -ret : ret);
	trace_call(&t->trace, t->path, t->logical, &call);
}

static void count_locked(struct tally *t, enum seen_kind kind, uint64_t off, int64_t ret, uint64_t begin_ns)
{
	uint64_t now_ns = stamp_fine_ns();
	struct counters *c;

	mutex_lock(t->lock);
	c = slot_of(t);
	if (c)
		count(t, c, kind, off, ret, real_of(now_ns), now_ns - begin_ns);
	if (unlikely(tracing))
		trace(t, kind, off, ret, begin_ns, now_ns);
	mutex_unlock(t->lock);
	if (unlikely(exiting))
		observe_exit();
}

void seen_end_counted(struct seen *call, uint64_t off, int64_t ret)
{
	int saved ERRNO_KEPT = errno;

	observe_now = NULL;
	count_locked(call->t, call->kind, off, ret, call->begin_ns);
}

void seen_end_open(struct tally *t, uint64_t begin_ns, int64_t ret)
{
	int saved ERRNO_KEPT = errno;

	if (t)
		count_locked(t, SEEN_OPEN, 0, ret, begin_ns);
}

void seen_again_slow(struct tally *t, uint64_t off, uint64_t len, uint64_t coarse_ns)
{
	struct counters *c = t->c;
	uint64_t now_ns;

	if (tracing && !trace_again(t->trace.streams, coarse_ns)) {
		now_ns = stamp_fine_ns();
		trace(t, SEEN_WRITE, off, (int64_t)len, now_ns, now_ns);
	}
	counters_fold(c, real_of(t->bin_end_ns) - 1); /* the calls before it were in that bin */
	way_again(&c->ways[WAY_WRITE]);
	c->last_ns = c->ways[WAY_WRITE].last_ns = real_of(coarse_ns);
	set_bin_end(t, c, real_of(coarse_ns));
}

void seen_short(struct tally *t, uint64_t off, uint64_t len, uint64_t begin_ns)
{
	uint64_t now_ns = stamp_fine_ns();
	struct counters *c = slot_of(t);

	if (!c)
		return;
	counters_call(c, WAY_WRITE, off, len, real_of(now_ns), now_ns - begin_ns, true);
	set_bin_end(t, c, real_of(now_ns));
	if (unlikely(tracing))
		trace(t, SEEN_WRITE, off, (int64_t)len, begin_ns, now_ns);
}

void observe_work(struct tally *t, enum work_kind kind, uint64_t bytes, uint64_t took_ns)
{
	struct counters *c = __atomic_load_n(&t->c, __ATOMIC_RELAXED);

	if (c == &none)
		return;
	__atomic_fetch_add(&c->work[kind].calls, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&c->work[kind].bytes, bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&c->work[kind].ns, took_ns, __ATOMIC_RELAXED);
}

void observe_stream(struct tally *t, enum way_kind kind, uint64_t bytes)
{
	struct counters *c;

	mutex_lock(t->lock);
	c = slot_of(t);
	if (c && !c->ways[kind].calls) {
		c->flags |= COUNTERS_STREAM;
		c->ways[kind].bytes += bytes;
		c->end = max_u64(c->end, bytes);
	}
	mutex_unlock(t->lock);
}

void observe_records(struct tally *t, uint64_t nr)
{
	struct counters *c = t && nr ? slot_of(t) : NULL;

	if (c)
		c->records += nr;
}

/* ---- the process ---- */

void observe_fork_prepare(void) { mutex_lock(&lock); }

void observe_fork_parent(void) { mutex_unlock(&lock); }

static void detach_all(void)
{
	for (struct tally *t = tallies; t; t = t->next)
		__atomic_store_n(&t->c, &none, __ATOMIC_RELAXED);
}

void observe_fork_child(void)
{
	bool section CRITICAL = critical_begin();
	for (struct tally *t = tallies; t; t = t->next) {
		trace_forget(&t->trace);
		pthread_mutex_init(&t->own, NULL); /* another thread of the parent may have had it */
	}
	trace_fork_child();
	detach_all();
	part_forget(&part);
	observe_now = NULL;
	start_ns = real_of(stamp_fine_ns());
	job_find(&job);
	mutex_unlock(&lock);
}

static void fold_all(void)
{
	uint64_t now = real_of(stamp_fine_ns());

	for (uint32_t i = 0; i < part.head->nr_slots; i++)
		counters_fold((struct counters *)part_counters(part.head, i), now);
}

/* What was counted until now is complete. */
static void end_part(void)
{
	if (!part.head)
		return;
	fold_all();
	detach_all();
	part_end(&part);
}

void observe_exec(void)
{
	bool section CRITICAL = critical_begin(); /* hooks take what is outside of one for the program's */
	int saved ERRNO_KEPT = errno;

	mutex_lock(&lock);
	end_part();
	mutex_unlock(&lock);
	trace_end();
}

#define EXITS_MAX 64 /* parts that calls behind the last handler of the program get */

void observe_exit(void)
{
	bool section CRITICAL = critical_begin();
	int saved ERRNO_KEPT = errno;
	static unsigned nr_exits;
	struct joined j;
	int ret;

	trace_end();
	if (!stats_file)
		return;
	mutex_lock(&lock);
	exiting = true;
	given_up |= ++nr_exits > EXITS_MAX;
	end_part();
	mutex_unlock(&lock);
	ret = join_parts(stats_file, false, &j);
	if (ret && ret != -EBUSY && !given_up && job.rank <= 0)
		msg_error("PLFS_STATS: %s: %s: what was counted is in %s" PART_DIR
			  ", from where plfs stats %s takes it",
			  stats_file, strerror(-ret), stats_file, stats_file);
}
