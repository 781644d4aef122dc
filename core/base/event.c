/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The list of those that listen to events.
 */
#include "core/base/event.h"

#include "core/base/critical.h"

unsigned event_kinds;

static_assert(NR_EVENT_KINDS <= 8 * sizeof(event_kinds), "one bit for each kind");

static struct event_listener *listeners;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for changing the list; emitting takes none */

void event_listen(struct event_listener *l)
{
	mutex_lock(&lock);
	l->next = listeners;
	__atomic_store_n(&listeners, l, __ATOMIC_RELEASE);
	__atomic_fetch_or(&event_kinds, l->kinds, __ATOMIC_RELEASE);
	mutex_unlock(&lock);
}

void event_ignore(struct event_listener *l)
{
	struct event_listener **at = &listeners;
	unsigned kinds = 0;

	mutex_lock(&lock);
	while (*at)
		if (*at == l) {
			*at = l->next;
		} else {
			kinds |= (*at)->kinds;
			at = &(*at)->next;
		}
	__atomic_store_n(&event_kinds, kinds, __ATOMIC_RELEASE);
	mutex_unlock(&lock);
}

void event_emit(const struct event *e)
{
	int saved ERRNO_KEPT = errno;

	for (struct event_listener *l = __atomic_load_n(&listeners, __ATOMIC_ACQUIRE); l; l = l->next)
		if (l->kinds & 1u << e->kind)
			l->fn(l, e);
}
