/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of mappings. The handler takes its lock: the fault is the thread's own doing, and nobody touches
 * a mapping with the lock held.
 */
#include "core/base/guard.h"

#include "core/base/alloc.h"
#include "core/base/critical.h"
#include "core/base/sys.h"

#include <signal.h>

#define BUCKETS 256

struct mapping {
	struct mapping *next;
	uint8_t *start;
	size_t len, broken_at;
	bool broken;
};

unsigned guard_nr_broken;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* innermost; for all that follows */
static struct mapping *table[BUCKETS];

/* Where the pointer to the one that begins at @p is, or the NULL at the end of its bucket. */
static struct mapping **place_of(const void *p)
{
	struct mapping **at = &table[(uintptr_t)p / 4096 % BUCKETS];

	while (*at && (*at)->start != p)
		at = &(*at)->next;
	return at;
}

bool guard_add(void *p, size_t len)
{
	struct mapping *m = mem_alloc(sizeof(*m)), **at;

	if (!m)
		return false;
	*m = (struct mapping){ .start = p, .len = len };
	mutex_lock(&lock);
	at = &table[(uintptr_t)p / 4096 % BUCKETS];
	m->next = *at;
	*at = m;
	mutex_unlock(&lock);
	return true;
}

void guard_remove(void *p)
{
	struct mapping **at, *m;

	mutex_lock(&lock);
	at = place_of(p);
	m = *at;
	if (m) {
		*at = m->next;
		if (m->broken)
			__atomic_sub_fetch(&guard_nr_broken, 1, __ATOMIC_RELAXED);
	}
	mutex_unlock(&lock);
	mem_free(m);
}

bool guard_find_broken(const void *p, size_t *at)
{
	const struct mapping *m;
	bool broken;

	mutex_lock(&lock);
	m = *place_of(p);
	broken = m && m->broken;
	if (broken && at)
		*at = m->broken_at;
	mutex_unlock(&lock);
	return broken;
}

/* Another thread may have been here first: then the instruction is only to be done again. */
static bool replace(struct mapping *m, size_t at)
{
	if (m->broken)
		return true;
	if (sys.mmap(m->start, m->len, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) ==
	    MAP_FAILED)
		return false;
	m->broken = true;
	m->broken_at = at;
	__atomic_add_fetch(&guard_nr_broken, 1, __ATOMIC_RELAXED);
	return true;
}

bool guard_fault(const void *addr)
{
	int saved ERRNO_KEPT = errno;
	bool done = false;

	mutex_lock(&lock);
	for (unsigned i = 0; i < BUCKETS && !done; i++)
		for (struct mapping *m = table[i]; m && !done; m = m->next)
			if ((uintptr_t)addr - (uintptr_t)m->start < m->len)
				done = replace(m, (size_t)((const uint8_t *)addr - m->start));
	mutex_unlock(&lock);
	return done;
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	struct sigaction act = { .sa_handler = SIG_DFL };

	(void)context;
	if (info->si_code <= 0 || !guard_fault(info->si_addr))
		sys.sigaction(sig, &act, NULL); /* and the instruction is done again */
}

void guard_handle_faults(void)
{
	struct sigaction act = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };

	sys.sigaction(SIGBUS, &act, NULL);
}

void guard_freeze(void) { mutex_lock(&lock); }

void guard_thaw(void) { mutex_unlock(&lock); }
