/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events: what happened inside the library, for counters, traces and profiles. Code that does something rare
 * and worth knowing emits an event; each listener that wants events of this kind gets it. The debug lines of
 * msg.h are the first.
 *
 * An event that nothing listens to costs one load and a branch that is not taken; its values are not
 * evaluated. So there is none on the way of a small write, of a passed-through call, or of a read that finds
 * its bytes.
 *
 * A new event: a kind here, with what its values mean, one event() where it happens, and a line of what it
 * counts in the listeners that want it.
 */
#ifndef PLFS_EVENT_H
#define PLFS_EVENT_H

#include "core/base/base.h"

enum event_kind {               /* of the container @container, if no more is said */
	EVENT_CONTAINER_REMOVED, /* @result */
	EVENT_LOG_MADE,          /* @name: the log, made or gone on with */
	EVENT_LOG_APPENDED,      /* @name: the log; @len bytes in one call */
	EVENT_INDEX_LOADED,      /* @count records of @logs logs; @result */
	EVENT_MAP_KEPT,          /* of @logs logs; @result */
	NR_EVENT_KINDS,
};

struct event {
	enum event_kind kind;
	int result;            /* 0; -errno */
	const char *container; /* its directory, relative to the backend */
	const char *name;      /* relative to the container */
	uint64_t count, logs, len;
};

/*
 * @fn gets each event whose kind is in @kinds (1 << kind), in the thread in which it happens, with locks held
 * and signals of the program kept out: it is short, calls nothing of core above base/, and takes no lock that
 * is held around a call of core. Several threads may call it at once. The event and its strings live until it
 * returns. errno is kept.
 */
struct event_listener {
	unsigned kinds;
	void (*fn)(struct event_listener *l, const struct event *e);
	struct event_listener *next; /* event.c's */
};

extern unsigned event_kinds; /* that any listener wants */

/* Listen from here on; @l belongs to event.c until event_ignore(). Any thread, at any time. */
void event_listen(struct event_listener *l);

/*
 * Stop listening; nothing if @l does not listen. The caller makes sure that no other thread emits meanwhile.
 */
void event_ignore(struct event_listener *l);

void event_emit(const struct event *e);

static inline bool event_is_wanted(enum event_kind kind)
{
	return unlikely(__atomic_load_n(&event_kinds, __ATOMIC_RELAXED) & 1u << kind);
}

/* event(EVENT_LOG_MADE, .container = c->dir, .name = path); the values are evaluated if it is wanted. */
#define event(which, ...) \
	do { \
		if (event_is_wanted(which)) \
			event_emit(&(struct event){ .kind = (which), __VA_ARGS__ }); \
	} while (0)

#endif
