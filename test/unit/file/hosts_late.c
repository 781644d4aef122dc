/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host opens a file, and another begins a new generation of it: by a truncation, or a compact. What the
 * first writes then is of that generation. If all of that is lost later it must not read as zeros.
 */
#include "test/lib/scratch.h"

#include <criterion/criterion.h>

#define LEN 20000

TestSuite(hosts_late, .init = scratch_setup, .fini = scratch_remove);

struct job {
	const char *host;
	off_t off;
	int flags;
	bool stops; /* between its open and its write */
};

/* In a child, which has the name of a host of its own. */
static int write_as(void *arg)
{
	const struct job *j = arg;
	struct lfile l;

	be_host(j->host);
	l = lopen("a", O_RDWR | O_CREAT | j->flags);
	if (j->stops)
		raise(SIGSTOP);
	return lfill(&l, j->off, LEN, 1) != LEN || lclose(&l);
}

static void written(const char *name, off_t off, int flags)
{
	struct job j = { name, off, flags, false };

	cr_assert_eq(in_child(write_as, &j), 0);
}

static int look(void *arg)
{
	struct lfile l = lopen("a", O_RDONLY);
	char byte;

	(void)arg;
	if (lcheck(&l, 0, LEN, 1))
		return 1;
	for (off_t off = LEN; off < 3 * LEN; off += LEN)
		if (plfs_pread(l.f, &byte, 1, off + 10) != -EIO)
			return 2;
	return lclose(&l);
}

static int compact(void *arg)
{
	(void)arg;
	return lcompact("a");
}

/* Two opens the file; one begins a generation; two writes; all that it has goes. */
static void loses_what_it_wrote_late(void (*begin)(void))
{
	struct job j = { "two", 2 * LEN, 0, true };
	int status;
	pid_t pid;

	written("one", 0, 0);
	written("one", 0, 0);
	pid = start_child(write_as, &j);
	cr_assert(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
	begin();
	kill(pid, SIGCONT);
	cr_assert_eq(wait_child(pid), 0);
	shell("rm %s/.plfs/[0-9a-f]*/*/hostdir.*/*.two-*", scratch);
	cr_assert_eq(in_child(look, NULL), 0);
}

static void truncate_it(void) { written("one", 0, O_TRUNC); }
static void compact_it(void) { cr_assert_eq(in_child(compact, NULL), 0); }

Test(hosts_late, that_write_behind_a_truncation_are_missed) { loses_what_it_wrote_late(truncate_it); }
Test(hosts_late, that_write_behind_a_compact_are_missed) { loses_what_it_wrote_late(compact_it); }
