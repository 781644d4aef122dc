/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The size of a file that other processes of the host have open and write: no call of the system is needed to
 * know that it is still the same, and none of their writes is missed.
 */
#include "test/lib/scratch.h"

#include "test/lib/calls.h"

#include "core/file/file.h"

#include <criterion/criterion.h>

TestSuite(watched, .init = scratch_setup, .fini = scratch_remove, .timeout = 60);

#define NR_WRITERS 3
#define PIECE_LEN 5000

static struct writer_process {
	pid_t pid;
	int ask[2], answer[2];
} writers[NR_WRITERS];

/* A piece at each offset that it is asked for, the first at its own; below 0: the end. None is published. */
static int write_when_asked(void *arg)
{
	struct writer_process *w = arg;
	struct lfile l = lopen("file", O_RDWR);
	off_t at = (w - writers) * PIECE_LEN;

	do {
		if (lfill(&l, at, PIECE_LEN, 1) != PIECE_LEN || write(w->answer[1], "d", 1) != 1)
			return 1;
	} while (read(w->ask[0], &at, sizeof(at)) == sizeof(at) && at >= 0);
	if (lclose(&l))
		return 1;
	return write(w->answer[1], "e", 1) != 1;
}

static void ask(int nr, off_t at)
{
	char c;

	cr_assert_eq(write(writers[nr].ask[1], &at, sizeof(at)), (ssize_t)sizeof(at));
	cr_assert_eq(read(writers[nr].answer[0], &c, 1), 1);
}

static void start_writers(void)
{
	char c;

	for (int i = 0; i < NR_WRITERS; i++) {
		cr_assert(!pipe(writers[i].ask) && !pipe(writers[i].answer));
		writers[i].pid = start_child(write_when_asked, &writers[i]);
		cr_assert_eq(read(writers[i].answer[0], &c, 1), 1);
	}
}

static int nr_calls;

/* That of the stub's own length is for what other programs do to it. */
static int count_call(enum call call)
{
	nr_calls += call != CALL_FSTAT;
	return 0;
}

Test(watched, a_size_takes_no_call_until_a_writer_writes_dies_or_closes)
{
	struct lfile l = made("file");
	off_t size = (off_t)NR_WRITERS * PIECE_LEN;

	start_writers();
	cr_assert_eq(plfs_size(l.f), size);
	calls_intercept();
	on_call = count_call;
	for (int i = 0; i < 10; i++)
		cr_assert_eq(plfs_size(l.f), size);
	cr_assert_eq(nr_calls, 0);
	ask(1, 2 * size); /* a new record */
	cr_assert_eq(plfs_size(l.f), 2 * size + PIECE_LEN);
	ask(1, 2 * size + PIECE_LEN); /* which grows */
	cr_assert_eq(plfs_size(l.f), 2 * size + 2 * PIECE_LEN);
	cr_assert_gt(nr_calls, 0);
	cr_assert_eq(kill(writers[0].pid, SIGKILL), 0);
	waitpid(writers[0].pid, NULL, 0);
	cr_assert_eq(plfs_size(l.f), 2 * size + 2 * PIECE_LEN);
	ask(2, 4 * size);
	ask(2, -1);
	cr_assert_eq(wait_child(writers[2].pid), 0);
	cr_assert_eq(plfs_size(l.f), 4 * size + PIECE_LEN);
	ask(1, -1);
	cr_assert_eq(wait_child(writers[1].pid), 0);
	cr_assert_eq(plfs_size(l.f), 4 * size + PIECE_LEN);
	on_call = NULL;
	cr_assert_eq(lclose(&l), 0);
}
