/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes that do what they are asked, one thing after the other, and answer. What is asked and answered
 * are structs of one size each.
 */
#ifndef TEST_ASKED_H
#define TEST_ASKED_H

#include "test/lib/scratch.h"

enum { ASKED_MAX = 6 };

struct asked {
	int nr; /* of processes */
	size_t order_len, answer_len;
	void (*begin)(int who); /* in process @who, before it is asked anything */
	void (*act)(const void *order, void *answer);
	struct asked_process {
		int order[2], answer[2];
		pid_t pid;
	} procs[ASKED_MAX];
};

void asked_start(struct asked *a);
void asked_ask(struct asked *a, int who, const void *order, void *answer);

/* The two halves of it. False: no answer has come within @timeout_ms; -1: wait for it. */
void asked_order(struct asked *a, int who, const void *order);
bool asked_answer(struct asked *a, int who, void *answer, int timeout_ms);

/*
 * In a process: before the system call number @call from here on, answer with @answer, and wait for another
 * order, which is forgotten. 0: no more. Behind calls_intercept().
 */
void asked_stop_at(int call, const void *answer);

/* Kill it with SIGKILL. Another process comes in its place, and begins. */
void asked_kill(struct asked *a, int who);

/* Each must end well. */
void asked_end(struct asked *a);

#endif
