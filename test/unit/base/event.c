/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events, and who listens to them.
 */
#include "core/base/event.h"

#include "core/base/critical.h"

#include <criterion/criterion.h>

struct counter {
	struct event_listener listener;
	unsigned nr[NR_EVENT_KINDS];
	uint64_t len;
	char name[16];
};

static void count(struct event_listener *l, const struct event *e)
{
	struct counter *c = container_of(l, struct counter, listener);

	__atomic_fetch_add(&c->nr[e->kind], 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&c->len, e->len, __ATOMIC_RELAXED);
	if (e->name)
		strncpy(c->name, e->name, sizeof(c->name) - 1);
	errno = EIO;
}

static unsigned nr_evaluated;

static uint64_t evaluated(void)
{
	return ++nr_evaluated;
}

Test(event, that_nobody_wants_is_not_evaluated)
{
	struct counter c = { .listener = { .kinds = 1 << EVENT_LOG_MADE, .fn = count } };

	event(EVENT_LOG_APPENDED, .len = evaluated());
	event_listen(&c.listener);
	event(EVENT_LOG_APPENDED, .len = evaluated());
	event_ignore(&c.listener);
	event(EVENT_LOG_MADE, .len = evaluated());
	cr_assert_eq(nr_evaluated, 0);
	cr_assert_eq(c.nr[EVENT_LOG_MADE] + c.nr[EVENT_LOG_APPENDED], 0);
	cr_assert_eq(event_kinds, 0);
}

Test(event, goes_to_each_that_wants_its_kind)
{
	struct counter a = { .listener = { .kinds = 1 << EVENT_LOG_MADE | 1 << EVENT_LOG_APPENDED,
					   .fn = count } };
	struct counter b = { .listener = { .kinds = 1 << EVENT_LOG_APPENDED, .fn = count } };

	event_listen(&a.listener);
	event_listen(&b.listener);
	errno = ENOENT;
	event(EVENT_LOG_MADE, .name = "data.a");
	event(EVENT_LOG_APPENDED, .len = 100);
	event(EVENT_LOG_APPENDED, .len = 11);
	cr_assert_eq(errno, ENOENT);
	cr_assert(a.nr[EVENT_LOG_MADE] == 1 && a.nr[EVENT_LOG_APPENDED] == 2 && a.len == 111);
	cr_assert_str_eq(a.name, "data.a");
	cr_assert(b.nr[EVENT_LOG_MADE] == 0 && b.nr[EVENT_LOG_APPENDED] == 2 && b.len == 111);
	event_ignore(&a.listener);
	event(EVENT_LOG_APPENDED, .len = 1);
	event_ignore(&a.listener);
	event_ignore(&b.listener);
	cr_assert(a.nr[EVENT_LOG_APPENDED] == 2 && b.nr[EVENT_LOG_APPENDED] == 3);
}

static void *emit_many(void *arg)
{
	for (int i = 0; i < 10000; i++)
		event(EVENT_LOG_APPENDED, .len = 1);
	return arg;
}

Test(event, of_many_threads_are_all_counted_while_others_begin_to_listen)
{
	static struct counter first, more[50];
	pthread_t threads[4];

	first.listener = (struct event_listener){ .kinds = ~0u, .fn = count };
	event_listen(&first.listener);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, emit_many, NULL), 0);
	for (int i = 0; i < 50; i++) {
		more[i].listener = (struct event_listener){ .kinds = ~0u, .fn = count };
		event_listen(&more[i].listener);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	cr_assert_eq(first.nr[EVENT_LOG_APPENDED], 40000);
	cr_assert_eq(first.len, 40000);
}
