/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/lib/asked.h"

#include "core/base/alloc.h"

#include <criterion/criterion.h>

#include <signal.h>

struct part {
	struct asked *a;
	int who;
};

static int obey(void *arg)
{
	struct part *p = arg;
	struct asked *a = p->a;
	struct asked_process *mine = &a->procs[p->who];
	void *order = mem_alloc(a->order_len), *answer = mem_alloc(a->answer_len);

	for (int i = 0; i < a->nr; i++)
		if (a->procs[i].order[1])
			close(a->procs[i].order[1]);
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

void asked_ask(struct asked *a, int who, const void *order, void *answer)
{
	if (write(a->procs[who].order[1], order, a->order_len) != (ssize_t)a->order_len)
		die("write");
	for (size_t have = 0; have < a->answer_len;) {
		ssize_t n = read(a->procs[who].answer[0], (char *)answer + have, a->answer_len - have);

		if (n <= 0)
			die("read");
		have += (size_t)n;
	}
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
