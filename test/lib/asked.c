/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/lib/asked.h"

#include "core/base/alloc.h"
#include "test/lib/calls.h"

#include <criterion/criterion.h>

#include <poll.h>
#include <signal.h>

struct part {
	struct asked *a;
	int who;
};

static struct part me;

static int obey(void *arg)
{
	struct part *p = arg;
	struct asked *a = p->a;
	struct asked_process *mine = &a->procs[p->who];
	void *order = mem_alloc(a->order_len), *answer = mem_alloc(a->answer_len);

	for (int i = 0; i < a->nr; i++)
		if (a->procs[i].order[1])
			close(a->procs[i].order[1]);
	me = *p;
	a->begin(p->who);
	while (read(mine->order[0], order, a->order_len) == (ssize_t)a->order_len) {
		a->act(order, answer);
		if (write(mine->answer[1], answer, a->answer_len) != (ssize_t)a->answer_len)
			return 1;
	}
	return 0;
}

static void start(struct asked *a, int who)
{
	struct part p = { a, who };

	cr_assert(!pipe(a->procs[who].order) && !pipe(a->procs[who].answer));
	a->procs[who].pid = start_child(obey, &p);
}

void asked_start(struct asked *a)
{
	for (int who = 0; who < a->nr; who++)
		start(a, who);
}

void asked_order(struct asked *a, int who, const void *order)
{
	if (write(a->procs[who].order[1], order, a->order_len) != (ssize_t)a->order_len)
		die("write");
}

bool asked_answer(struct asked *a, int who, void *answer, int timeout_ms)
{
	struct pollfd answers = { .fd = a->procs[who].answer[0], .events = POLLIN };

	if (poll(&answers, 1, timeout_ms) != 1)
		return false;
	for (size_t have = 0; have < a->answer_len;) {
		ssize_t n = read(answers.fd, (char *)answer + have, a->answer_len - have);

		if (n <= 0)
			die("read");
		have += (size_t)n;
	}
	return true;
}

void asked_ask(struct asked *a, int who, const void *order, void *answer)
{
	asked_order(a, who, order);
	if (!asked_answer(a, who, answer, -1))
		die("poll");
}

static const void *stopped;

static int stop_there(enum call call)
{
	struct asked_process *mine = &me.a->procs[me.who];
	char order[256];

	(void)call;
	if (--calls_left)
		return 0;
	if (write(mine->answer[1], stopped, me.a->answer_len) != (ssize_t)me.a->answer_len ||
	    read(mine->order[0], order, me.a->order_len) != (ssize_t)me.a->order_len)
		die("stop");
	return 0;
}

void asked_stop_at(int call, const void *answer)
{
	stopped = answer;
	calls_left = call;
	on_call = call ? stop_there : NULL;
}

void asked_kill(struct asked *a, int who)
{
	struct asked_process *p = &a->procs[who];

	kill(p->pid, SIGKILL);
	cr_assert_eq(wait_child(p->pid), 256 + SIGKILL);
	for (int i = 0; i < 2; i++) {
		close(p->order[i]);
		close(p->answer[i]);
	}
	start(a, who);
}

void asked_end(struct asked *a)
{
	for (int who = 0; who < a->nr; who++)
		close(a->procs[who].order[1]);
	for (int who = 0; who < a->nr; who++)
		cr_assert_eq(wait_child(a->procs[who].pid), 0);
}
