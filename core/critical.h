/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Critical sections: the stretches of our code that a signal handler of the program must not interrupt, because
 * it may call us. A handler that called write() while its own thread holds one of our locks would wait for itself.
 *
 * Every lock of the library is taken by mutex_lock(), and every block of memory by alloc.c: both are critical sections by
 * themselves, so that no handler can meet them. Code that holds a reference or a descriptor for the length of a call is
 * made one by whoever calls it (fd_get() in preload/): a handler may leave by siglongjmp() and would take these along.
 *
 * Not in a section: waits for other processes (critical_pause()); exec and spawn, since the new image would inherit
 * what is blocked. fork() is, for the child leaves it as well. A thread of our own blocks all signals.
 *
 * Entering costs an increment of a thread's variable. Which handlers wait, and how, is preload/signal.c's; here is
 * only the count and the end of the wait. Code without signal handlers (the tools, the tests) just counts.
 */
#ifndef PLFS_CRITICAL_H
#define PLFS_CRITICAL_H

#include "base.h"

#include <pthread.h>

struct critical {
	unsigned depth;   /* sections that this thread is in, one inside the other; 0: handlers may run */
	uint64_t pending; /* signals blocked until depth is 0, bit N - 1 for signal N */
};

extern __thread struct critical critical __attribute__((tls_model("initial-exec")));

/* Unblock what is pending: the handlers run in here. */
void critical_deliver(void);

/* The fences are for the compiler: whoever looks is a handler of the same thread. */
static inline void critical_enter(void)
{
	critical.depth++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void critical_leave(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	critical.depth--;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (unlikely(critical.pending) && !critical.depth)
		critical_deliver();
}

/*
 * Around a system call that may wait for as long as it likes, and that signals must be able to end: leave all sections,
 * and enter them again. No lock may be held then; what else is held, a siglongjmp() out of a handler loses.
 */
static inline unsigned critical_pause(void)
{
	unsigned depth = critical.depth;

	if (depth) {
		critical.depth = 1;
		critical_leave();
	}
	return depth;
}

static inline void critical_resume(unsigned depth)
{
	critical.depth = depth;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* bool section CRITICAL = critical_begin();  the rest of the scope is a critical section. */
#define CRITICAL __attribute__((unused, cleanup(critical_end)))
static inline bool critical_begin(void)
{
	critical_enter();
	return true;
}

static inline void critical_end(const bool *section)
{
	(void)section;
	critical_leave();
}

/* The only ways in which the library takes a lock. */
static inline void mutex_lock(pthread_mutex_t *mutex)
{
	critical_enter();
	pthread_mutex_lock(mutex);
}

static inline bool mutex_trylock(pthread_mutex_t *mutex)
{
	critical_enter();
	if (likely(!pthread_mutex_trylock(mutex)))
		return true;
	critical_leave();
	return false;
}

static inline void mutex_unlock(pthread_mutex_t *mutex)
{
	pthread_mutex_unlock(mutex);
	critical_leave();
}

#endif
