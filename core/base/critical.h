/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Critical sections: code of ours that a signal handler of the program must not interrupt, because the
 * handler may call us. A handler that calls write() while its own thread holds one of our locks would wait
 * for itself.
 *
 * mutex_lock() and the allocator enter a section by themselves. A caller that holds a reference or a
 * descriptor for the length of a call enters one too (fd_get() in preload/): a handler may leave by
 * siglongjmp(), and these would be lost.
 *
 * Waits for other processes are not in a section (critical_pause()), nor are exec and spawn: the new image
 * would inherit the blocked signals. fork() is in one, which the child leaves as well. A thread of our own
 * blocks all signals.
 *
 * Entering costs an increment of a thread's variable. preload/signal.c decides which handlers wait, and how;
 * this module has the count and the end of the wait. Code without signal handlers (the tools, the tests) only
 * counts.
 */
#ifndef PLFS_CRITICAL_H
#define PLFS_CRITICAL_H

#include "core/base/base.h"

#include <pthread.h>

struct critical {
	unsigned depth;   /* sections that this thread is in, one inside the other; 0: handlers may run */
	unsigned paused;  /* critical_pause() without critical_resume(): descriptors must not be moved */
	uint64_t pending; /* signals blocked until depth is 0, bit N - 1 for signal N */
};

extern __thread struct critical critical __attribute__((tls_model("initial-exec")));

/* Unblock the pending signals: their handlers run in this call. */
void critical_deliver(void);

/* The fences are for the compiler: the count is read by handlers of the same thread. */
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
 * Leave all sections, and enter them again: around a system call that may wait without end, and that signals
 * must be able to end. The caller holds no lock. Anything else it holds is lost if a handler leaves by
 * siglongjmp().
 */
static inline unsigned critical_pause(void)
{
	unsigned depth = critical.depth;

	critical.paused++;
	if (depth) {
		critical.depth = 1;
		critical_leave();
	}
	return depth;
}

static inline void critical_resume(unsigned depth)
{
	critical.paused--;
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
