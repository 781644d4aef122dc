/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kills at each system call of a removal. Who still has a way to the file, because he has it open where there
 * are no locks, or has a copy of its stub, finds all of its bytes or an error: never a container from which a
 * part has gone.
 */
#include "test/lib/scratch.h"

#include "test/lib/calls.h"

#include <criterion/criterion.h>

#define LEN 300000

TestSuite(crash_removal, .fini = scratch_remove, .timeout = 120);

static int die_without_locks(enum call call)
{
	return call == CALL_FCNTL ? EINVAL : die_at_last(call);
}

/*
 * Begun before the file is opened by who looks, whose inode it is not to have; it stops until that is done.
 */
static int unlink_original(void *arg)
{
	(void)arg;
	raise(SIGSTOP);
	be_single_threaded();
	calls_intercept();
	on_call = die_without_locks;
	return lunlink("a") ? 1 : 0;
}

static void make_original(void)
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	lclose(&l);
}

static int make_in_child(void *arg)
{
	(void)arg;
	make_original();
	return 0;
}

/* Every byte, or an error. */
static void assert_true_or_error(struct lfile *l, long nr)
{
	char buf[1000], right[1000];
	off_t size = plfs_size(l->f);

	cr_assert(size == LEN || size < 0, "killed at call %ld: size %lld", nr, (long long)size);
	for (off_t off = 0; off < LEN; off += 100000 - 1000) {
		ssize_t n = plfs_pread(l->f, buf, sizeof(buf), off);

		pattern_fill(right, sizeof(right), (uint64_t)off, 1);
		cr_assert(n < 0 || (n == sizeof(buf) && !memcmp(buf, right, sizeof(buf))),
			  "killed at call %ld: wrong bytes at %lld, read %zd", nr, (long long)off, n);
	}
}

static int gc_all(void *arg)
{
	struct plfs_gc gc = { .nr_threads = 1, .later_ns = 3600000000000u };
	char path[PATH_MAX];

	(void)arg;
	return plfs_gc(lpath("", path), &gc) || gc.nr_troubles;
}

/* @leave_way leaves a way to "a", and @take_way opens it by that when the remover is dead. */
static void kill_at_each(void (*leave_way)(struct lfile *l), void (*take_way)(struct lfile *l))
{
	int code = 1;

	scratch_in_memory = true;
	scratch_setup();
	for (long nr = 1; code; nr++) {
		struct lfile l = { .fd = -1 };
		pid_t pid;

		cr_assert_eq(in_child(make_in_child, NULL), 0);
		calls_left = nr;
		pid = start_child(unlink_original, NULL);
		cr_assert_eq(waitpid(pid, &code, WUNTRACED), pid);
		cr_assert(WIFSTOPPED(code));
		leave_way(&l);
		kill(pid, SIGCONT);
		code = wait_child(pid);
		cr_assert(code == 0 || code == 256 + SIGKILL, "call %ld: exit code %d", nr, code);
		take_way(&l);
		if (l.f) {
			assert_true_or_error(&l, nr);
			lclose(&l);
		}
		lunlink("a");
		lunlink("b");
		cr_assert_eq(in_child(gc_all, NULL), 0);
		cr_assert_eq(count_files("data.") + count_files("live.") + count_files("index."), 0,
			     "killed at call %ld: gc leaves something", nr);
	}
}

static void open_a(struct lfile *l) { *l = lopen("a", O_RDONLY); }
static void take_it(struct lfile *l) { (void)l; }

Test(crash_removal, a_process_that_has_it_open_reads_its_bytes_or_an_error) { kill_at_each(open_a, take_it); }

static void copy_stub(struct lfile *l)
{
	char a[PATH_MAX], b[PATH_MAX], command[3 * PATH_MAX];

	(void)l;
	lpath("a", a);
	lpath("b", b);
	snprintf(command, sizeof(command), "cp -p '%s' '%s'", a, b);
	cr_assert_eq(system(command), 0);
}

static void open_b(struct lfile *l) { *l = lopen("b", O_RDONLY); }

Test(crash_removal, a_copy_of_the_stub_reads_its_bytes_or_an_error) { kill_at_each(copy_stub, open_b); }
