/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs gc -a 0 in the midst of the first write to a backend, before each of its calls: what is being made may
 * go, and then is made anew.
 */
#include "test/lib/calls.h"
#include "test/lib/gc.h"

TestSuite(gc_claims, .init = scratch_setup, .fini = scratch_remove);
TestSuite(gc_claims_small, .init = scratch_setup_small, .fini = scratch_remove);

static struct {
	bool appends;
	bool synced; /* its length has been, before */
	long call;
} first;

/* 0: written; 1: not. */
static int write_first(void *arg)
{
	struct lfile l;
	off_t end;

	(void)arg;
	calls_intercept();
	calls_left = first.call;
	on_call = stop_at_last;
	l = made("a");
	if (first.synced && (plfs_truncate(l.f, LEN) || plfs_sync(l.f)))
		return 1;
	if (first.appends ? lappend(&l, "x", 1, &end) != 1 : lfill(&l, 0, LEN, 1) != LEN)
		return 1;
	return lclose(&l) != 0;
}

static bool was_whole(void)
{
	struct lfile l = lopen("a", O_RDONLY);
	bool is = first.appends ? stat_size("a") == 1 : !lcheck(&l, 0, LEN, 1);

	return !lclose(&l) && is;
}

/* True: it was stopped at that call, and not before its end. */
static bool collected_at(long call)
{
	int status, code;
	pid_t pid;

	first.call = call;
	pid = start_child(write_first, NULL);
	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	if (WIFSTOPPED(status)) {
		gc_now();
		kill(pid, SIGCONT);
		code = wait_child(pid);
	} else {
		code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	}
	cr_assert_eq(code, 0, "%s, call %ld", first.appends ? "append" : "write", call);
	cr_assert(was_whole(), "%s, call %ld", first.appends ? "append" : "write", call);
	cr_assert_eq(lunlink("a"), 0);
	gc_now();
	cr_assert_eq(count_files("hostdir."), 0);
	shell("rm -r %s/.plfs", scratch);
	return WIFSTOPPED(status);
}

static void collected_at_each(bool appends)
{
	long call = 1;

	first.appends = appends;
	while (collected_at(call))
		call++;
	cr_assert_gt(call, 20);
}

Test(gc_claims, a_write_is_kept) { collected_at_each(false); }

Test(gc_claims, a_write_to_a_file_whose_length_was_synced_is_kept)
{
	first.synced = true;
	collected_at_each(false);
}

Test(gc_claims, an_append_is_kept) { collected_at_each(true); }

Test(gc_claims_small, an_append_is_kept) { collected_at_each(true); }
