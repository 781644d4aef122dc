/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process that is stopped while it appends to a file, or truncates it, has the others wait. A line names
 * it, and when it goes on all is as if it had not been stopped.
 */
#include "test/lib/scratch.h"

#include "test/lib/calls.h"
#include "core/file/end_wait.h"

#include <criterion/criterion.h>

TestSuite(end_wait, .init = scratch_setup, .fini = scratch_remove, .timeout = 60);

#define LEN 1000

/* The size is published with the lock held, after the write. */
static int stop_at_publishing(enum call call)
{
	if (call == CALL_FALLOCATE)
		raise(SIGSTOP);
	return 0;
}

static int append_and_stop(void *arg)
{
	struct lfile l = lopen("a", O_WRONLY | O_APPEND);
	char bytes[LEN];
	off_t end;

	(void)arg;
	memset(bytes, 's', LEN);
	calls_intercept();
	on_call = stop_at_publishing;
	return lappend(&l, bytes, LEN, &end) != LEN || lclose(&l);
}

static int truncate_and_stop(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	calls_intercept();
	on_call = stop_at_publishing;
	return plfs_truncate(l.f, 5 * LEN) || lclose(&l);
}

struct waiting {
	pthread_t thread;
	struct lfile l;
	bool cut;
	off_t end;
};

static void *append_or_cut(void *arg)
{
	struct waiting *w = arg;
	char bytes[LEN];

	memset(bytes, 'w', LEN);
	if (w->cut)
		return (void *)(intptr_t)plfs_truncate(w->l.f, 2 * LEN);
	return (void *)(intptr_t)(lappend(&w->l, bytes, LEN, &w->end) != LEN);
}

static pid_t start_stopped(int (*fn)(void *arg))
{
	struct lfile l = made("a");
	pid_t pid;
	int status;

	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	cr_assert_eq(lclose(&l), 0);
	pid = start_child(fn, NULL);
	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	cr_assert(WIFSTOPPED(status));
	return pid;
}

/* Begin @w, which waits, until a line names the process @pid. Then let that go on, and end both. */
static void wait_for_line(struct waiting *w, pid_t pid)
{
	FILE *out = tmpfile();
	int was = dup(2);
	char said[8192] = "", name[32];
	void *ret;

	snprintf(name, sizeof(name), "process %d on host ", (int)pid);
	plfs_end_patience_ms = 50;
	dup2(fileno(out), 2);
	cr_assert_eq(pthread_create(&w->thread, NULL, append_or_cut, w), 0);
	while (!strstr(said, "is stopped")) {
		usleep(1000);
		cr_assert_geq(pread(fileno(out), said, sizeof(said) - 1, 0), 0);
	}
	dup2(was, 2);
	cr_assert(strstr(said, name), "%s", said);
	cr_assert(strstr(said, "/a: "), "%s", said);
	kill(pid, SIGCONT);
	cr_assert_eq(wait_child(pid), 0);
	pthread_join(w->thread, &ret);
	cr_assert_null(ret);
}

Test(end_wait, of_an_append_for_a_stopped_append_has_a_line_and_no_byte_is_lost)
{
	pid_t pid = start_stopped(append_and_stop);
	struct waiting w = { .l = lopen("a", O_WRONLY | O_APPEND) };
	struct lfile l = lopen("a", O_RDONLY);
	char buf[LEN];

	wait_for_line(&w, pid);
	cr_assert_eq(w.end, 3 * LEN);
	cr_assert_eq(lcheck(&l, 0, LEN, 1), 0);
	cr_assert_eq(plfs_pread(l.f, buf, LEN, LEN), LEN);
	cr_assert(buf[0] == 's' && buf[LEN - 1] == 's');
	cr_assert_eq(plfs_pread(l.f, buf, LEN, 2 * LEN), LEN);
	cr_assert(buf[0] == 'w' && buf[LEN - 1] == 'w');
	lclose(&l);
	lclose(&w.l);
}

Test(end_wait, of_a_truncation_for_a_stopped_one_has_a_line_and_comes_after_it)
{
	pid_t pid = start_stopped(truncate_and_stop);
	struct waiting w = { .l = lopen("a", O_RDWR), .cut = true };

	cr_assert_eq(lcheck(&w.l, 0, LEN, 1), 0); /* reads do not wait */
	wait_for_line(&w, pid);
	cr_assert_eq(plfs_size(w.l.f), 2 * LEN);
	cr_assert_eq(lcheck(&w.l, 0, LEN, 1), 0);
	cr_assert(lzeros(&w.l, LEN, LEN));
	lclose(&w.l);
}
