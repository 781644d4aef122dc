/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wait at exit for logs that are near, and a fork meanwhile.
 */
#include "test/lib/near.h"

#include "test/lib/flags.h"

#include "core/file/file.h"
#include "core/write/exit_wait.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <unistd.h>

static void setup(void)
{
	near_setup(",drain=none,exit-wait=600");
}

TestSuite(exit_wait, .init = setup, .fini = near_remove, .timeout = 60);

static struct container c;
static char log_path[CONTAINER_PATH_LEN];
static int (*real_nanosleep)(const struct timespec *req, struct timespec *rem);

/* The wait goes on until the test says so. */
static int sleep_till_done(const struct timespec *req, struct timespec *rem)
{
	(void)req, (void)rem;
	raise_flag(&shared->started);
	await(&shared->done);
	near_lose();
	return 0;
}

static void *wait_for_it(void *arg)
{
	exit_wait_for(&c, log_path);
	exit_wait();
	return arg;
}

static int closes_one(void *arg)
{
	(void)arg;
	alarm(10);
	exit_wait_for(&c, log_path);
	_exit(0); /* without a wait of its own */
}

Test(exit_wait, a_child_that_is_forked_meanwhile_closes_logs_of_its_own)
{
	struct lfile l = made("a");
	pthread_t thread;

	cr_assert_eq(lfill(&l, 0, 1000, 1), 1000);
	c = l.f->ino->c;
	snprintf(log_path, sizeof(log_path), "%s", l.f->ino->w.tail.log_path);
	lclose(&l);
	cr_assert_eq(near_count("data."), 1);
	share();
	real_nanosleep = sys.nanosleep;
	sys.nanosleep = sleep_till_done;
	cr_assert_eq(pthread_create(&thread, NULL, wait_for_it, NULL), 0);
	while (!shared->started)
		real_nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	cr_assert_eq(in_child(closes_one, NULL), 0);
	raise_flag(&shared->done);
	pthread_join(thread, NULL);
}
