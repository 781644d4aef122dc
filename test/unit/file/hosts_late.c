/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host opens a file, and another begins a new generation of it: by a truncation, or a compact. What the
 * first writes then is of that generation. If all of that is lost later it must not read as zeros.
 */
#include "core/base/sys.h"
#include "test/lib/scratch.h"

#include <criterion/criterion.h>
#include <sys/mman.h>

#define LEN 20000

/* Shared with the children. */
static struct {
	time_t later_s;
} *kept;

static void setup(void)
{
	kept = mmap(NULL, sizeof(*kept), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(kept, MAP_FAILED);
	scratch_setup();
}

TestSuite(hosts_late, .init = setup, .fini = scratch_remove);

struct job {
	const char *host;
	off_t off;
	int flags;
	bool stops; /* between its open and its write */
};

/* The file is so old then that a purge could have taken something. */
static int clock_later(clockid_t clock, struct timespec *now)
{
	int ret = clock_gettime(clock, now);

	now->tv_sec += kept->later_s;
	return ret;
}

/* In a child, which has the name of a host of its own. */
static int write_as(void *arg)
{
	const struct job *j = arg;
	struct lfile l;

	be_host(j->host);
	l = lopen("a", O_RDWR | O_CREAT | j->flags);
	if (j->stops)
		raise(SIGSTOP);
	sys.clock_gettime = clock_later;
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

static int empty(void *arg)
{
	struct lfile l = lopen("a", O_RDWR | O_TRUNC);

	(void)arg;
	return lclose(&l);
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

/* Two opens the empty file; another process of it writes, and loses that; the first writes elsewhere. */
Test(hosts_late, that_opened_an_empty_file_do_not_hide_a_loss)
{
	struct job j = { "two", 3 * LEN, 0, true };
	int status;
	pid_t pid;

	written("one", 0, 0);
	cr_assert_eq(in_child(empty, NULL), 0);
	pid = start_child(write_as, &j);
	cr_assert(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
	kept->later_s = 100;
	written("two", 2 * LEN, 0);
	written("one", 0, 0);
	shell("rm %s/.plfs/[0-9a-f]*/*/hostdir.*/*.two-*", scratch);
	kill(pid, SIGCONT);
	cr_assert_eq(wait_child(pid), 0);
	cr_assert_eq(in_child(look, NULL), 0);
}
