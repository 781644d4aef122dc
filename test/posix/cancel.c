// SPDX-License-Identifier: BSD-3-Clause
/*
 * Threads that are cancelled in the middle of calls on files.
 */
#include "signals.h"

#include <pthread.h>

static void *writes_until_cancelled(void *arg)
{
	char buf[100000] = "big";

	for (int i = 0;; i++) {
		append_line('h');
		pwrite(*(int *)arg, buf, i % 8 ? 64 : sizeof buf, 0);
		if (i % 16 == 0)
			close(open(at("other"), O_RDWR | O_CREAT, 0644));
		hits++;
	}
	return NULL;
}

CASE(cancelled_threads_leave_no_lock_behind)
{
	void *ended;
	pthread_t t;
	int fd = open(at("other"), O_RDWR | O_CREAT, 0644), cancelled = 0;

	start("lines");
	for (int i = 0; i < 50; i++) {
		hits = 0;
		pthread_create(&t, NULL, writes_until_cancelled, &fd);
		while (!hits)
			usleep(100);
		usleep((useconds_t)(i * 37 % 1000));
		pthread_cancel(t);
		pthread_join(t, &ended);
		cancelled += ended == PTHREAD_CANCELED;
		append_line('m');
		pwrite(fd, "x", 1, i);
	}
	T(cancelled);
	T(close(fd));
	T(close(shared_fd));
	T(unlink(at("other")));
	T(unlink(at("lines")));
}
