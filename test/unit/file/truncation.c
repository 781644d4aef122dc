/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Truncations, by one process and by another while writers and readers go on.
 */
#include "test/lib/scratch.h"

#include "core/file/file.h"

#include <criterion/criterion.h>

TestSuite(file_truncate, .init = scratch_setup, .fini = scratch_remove);

Test(file_truncate, cuts_and_what_grows_again_is_zeros)
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, 100000, 1), 100000);
	cr_assert_eq(plfs_truncate(l.f, 300), 0);
	cr_assert_eq(plfs_size(l.f), 300);
	cr_assert_eq(plfs_truncate(l.f, 5000), 0);
	cr_assert_eq(plfs_size(l.f), 5000);
	cr_assert_eq(lcheck(&l, 0, 300, 1), 0);
	cr_assert(lzeros(&l, 300, 4700));
	lclose(&l);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 300, 1), 0);
	cr_assert(lzeros(&l, 300, 4700));
	lclose(&l);
}

Test(file_truncate, to_nothing_frees_the_logs)
{
	struct lfile l = made("a");

	for (int i = 0; i < 3; i++) {
		cr_assert_eq(lfill(&l, 0, 300000, (unsigned)i), 300000);
		cr_assert_eq(lcheck(&l, 0, 300000, (unsigned)i), 0);
		cr_assert_eq(plfs_truncate(l.f, 0), 0);
		cr_assert_eq(plfs_size(l.f), 0);
		cr_assert_eq(count_files("data."), 0);
		cr_assert_eq(count_files("live."), 0);
	}
	cr_assert_eq(lfill(&l, 1000, 10, 9), 10);
	cr_assert(lzeros(&l, 0, 1000));
	lclose(&l);
	l = lopen("a", O_RDWR | O_TRUNC);
	cr_assert_eq(plfs_size(l.f), 0);
	lclose(&l);
	cr_assert_eq(count_files("data."), 0);
}

static int truncate_to(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);
	int ret = plfs_truncate(l.f, *(off_t *)arg);

	lclose(&l);
	return ret ? 1 : 0;
}

/* A writer that has told nobody of its size yet must not bring it back. */
static void truncated_by_another(off_t size)
{
	struct lfile l = made("a");
	int pipefd[2];
	char c;
	pid_t pid;

	cr_assert_eq(pipe(pipefd), 0);
	cr_assert_eq(lfill(&l, 0, 10, 0), 10);
	cr_assert_eq(plfs_sync(l.f), 0);
	pid = fork_child();
	if (!pid) { /* another program: it does not know that the parent has the file open */
		struct lfile other;

		plfs_fork_child();
		close(pipefd[1]);
		if (read(pipefd[0], &c, 1) != 1)
			_exit(3);
		other = lopen("a", O_RDWR);
		c = (char)plfs_truncate(other.f, size);
		lclose(&other);
		_exit(c);
	}
	cr_assert_eq(lfill(&l, 0, 60000, 1), 60000);
	cr_assert_eq(write(pipefd[1], "x", 1), 1);
	cr_assert_eq(wait_child(pid), 0);
	cr_assert_eq(plfs_sync(l.f), 0);
	cr_assert_eq(plfs_size(l.f), size);
	if (size)
		cr_assert_eq(lcheck(&l, 0, (size_t)size, 1), 0);
	cr_assert_eq(lfill(&l, size, 100, 2), 100);
	cr_assert_eq(lcheck(&l, size, 100, 2), 0);
	lclose(&l);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(plfs_size(l.f), size + 100);
	cr_assert_eq(lcheck(&l, size, 100, 2), 0);
	lclose(&l);
}

Test(file_truncate, to_nothing_by_another_process_stays_while_a_writer_goes_on)
{
	truncated_by_another(0);
}

Test(file_truncate, by_another_process_stays_while_a_writer_goes_on)
{
	truncated_by_another(1000);
}

Test(file_truncate, by_another_process_to_what_was_published_is_the_size)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	off_t size = 1000;

	lfill(&l, 0, 1000, 1);
	plfs_commit(l.f);
	lfill(&l, 1000, 1000, 1); /* of this the stub does not know */
	cr_assert_eq(in_child(truncate_to, &size), 0);
	cr_assert_eq(plfs_size(l.f), 1000);
	lclose(&l);
}

/* Its log is one that a truncation leaves: its process goes on. */
static int writes_and_waits(void *arg)
{
	const int *pipes = arg; /* told at [1], tells at [2] */
	struct lfile l = lopen("a", O_RDWR);
	char c;

	close(pipes[1]);
	if (lfill(&l, 1000, 30000, 1) != 30000 || plfs_commit(l.f) || write(pipes[3], "x", 1) != 1)
		return 1;
	return read(pipes[0], &c, 1) < 0;
}

static pid_t start_writer(int pipes[4])
{
	pid_t pid;
	char c;

	cr_assert_eq(pipe(pipes) | pipe(pipes + 2), 0);
	pid = start_child(writes_and_waits, pipes);
	cr_assert_eq(read(pipes[2], &c, 1), 1);
	return pid;
}

Test(file_truncate, to_nothing_by_another_process_is_heeded_when_a_map_is_made)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	off_t none = 0;
	int pipes[4];
	pid_t pid;

	lfill(&l, 0, 10, 1);
	cr_assert_eq(plfs_truncate(l.f, 0), 0); /* a length of 0, and no map */
	pid = start_writer(pipes);
	cr_assert_eq(in_child(truncate_to, &none), 0);
	cr_assert_eq(plfs_size(l.f), 0);
	close(pipes[1]);
	cr_assert_eq(wait_child(pid), 0);
	lclose(&l);
}

Test(file_truncate, to_nothing_by_another_process_is_heeded_by_an_append)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	off_t none = 0, end;
	int pipes[4];
	pid_t pid;

	lfill(&l, 0, 10, 1);
	plfs_commit(l.f);
	pid = start_writer(pipes);
	cr_assert_eq(in_child(truncate_to, &none), 0);
	lfill(&l, 0, 5, 2);
	plfs_commit(l.f); /* knows the length again */
	cr_assert_eq(lappend(&l, "end", 3, &end), 3);
	cr_assert_eq(end, 8);
	cr_assert_eq(plfs_size(l.f), 8);
	close(pipes[1]);
	cr_assert_eq(wait_child(pid), 0);
	lclose(&l);
}

Test(file_truncate, to_nothing_by_another_process_is_the_end_of_file_for_a_reader)
{
	struct lfile l = made("a"), r;
	off_t zero = 0;
	char c;

	cr_assert_eq(lfill(&l, 0, 300000, 1), 300000);
	lclose(&l);
	r = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&r, 0, 10, 1), 0);
	cr_assert_eq(in_child(truncate_to, &zero), 0);
	/* Nobody told the reader; what it gets may be old or the end, but no error. */
	cr_assert_geq(plfs_pread(r.f, &c, 1, 250000), 0);
	cr_assert_eq(plfs_refresh(r.f), 0);
	cr_assert_eq(plfs_pread(r.f, &c, 1, 0), 0);
	lclose(&r);
}

/* The logs are gone and the reader had not opened all of them yet. */
Test(file_truncate, to_nothing_by_another_process_is_no_missing_log_for_a_reader)
{
	struct lfile l = made("a"), r;
	off_t zero = 0;
	char c;

	cr_assert_eq(lfill(&l, 0, 1000, 1), 1000);
	lclose(&l);
	r = lopen("a", O_RDONLY);
	cr_assert_eq(plfs_size(r.f), 1000);
	cr_assert_eq(in_child(truncate_to, &zero), 0);
	cr_assert_eq(plfs_pread(r.f, &c, 1, 0), 0);
	lclose(&r);
}
