/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs stage, and a drain that keeps copies, killed or stopped at its system calls (turn.h). New readers get
 * the file's bytes at every such moment, with the place and without it; check finds no damage; the next call
 * goes on, and leaves no temporary file. What others write, truncate or remove meanwhile is as they left it.
 */
#include "test/lib/calls.h"
#include "test/lib/near.h"
#include "test/lib/turn.h"

#include <criterion/criterion.h>

#define LEN 400000
#define W_OFF 150000 /* what is written while it stands still */
#define W_LEN 3000

TestSuite(crash_stage, .timeout = 1200);

static unsigned char image[LEN];

enum meanwhile { NOTHING, WRITES, TRUNCATES, REMOVES };

struct plan {
	bool home; /* --to home */
	enum meanwhile meanwhile;
};

/* ---- the file ---- */

static int fill(off_t off, size_t len, unsigned round, int flags)
{
	struct lfile l = lopen("f", O_RDWR | O_CREAT | flags);

	if (lfill(&l, off, len, round) != (ssize_t)len)
		return 1;
	return lclose(&l) ? 2 : 0;
}

static void note(off_t off, size_t len, unsigned round)
{
	pattern_fill(image + off, len, (uint64_t)off, round);
}

static int write_first(void *arg) { return (void)arg, fill(0, LEN, 1, 0); }
static int write_second(void *arg) { return (void)arg, fill(100000, 200000, 2, 0); }
static int write_newly(void *arg) { return (void)arg, fill(W_OFF, W_LEN, 9, 0); }
static int empty_and_fill(void *arg) { return (void)arg, fill(0, LEN, 7, O_TRUNC); }
static int remove_it(void *arg) { return (void)arg, lunlink("f") ? 1 : 0; }

/* ---- looking ---- */

static int look(void *arg)
{
	static unsigned char buf[LEN + 1];
	struct lfile l = lopen("f", O_RDONLY);

	(void)arg;
	for (off_t off = 0, n; off < LEN; off += n) {
		n = plfs_pread(l.f, buf, 60000, off);
		if (n <= 0 || memcmp(buf, image + off, (size_t)n)) {
			fprintf(stderr, "wrong bytes in what was read at %lld: %lld\n", (long long)off,
				(long long)n);
			return 1;
		}
	}
	return plfs_size(l.f) != LEN || lclose(&l);
}

/* A place that is elsewhere: the name of the node is the same, and it is as if it had been lost. */
static int look_without(void *arg)
{
	char aside[100];
	int ret;

	snprintf(aside, sizeof(aside), "%s.aside", near_dir);
	if (rename(near_dir, aside))
		return 3;
	ret = look(arg);
	return rename(aside, near_dir) ? 4 : ret;
}

static void found(void *arg, const struct plfs_finding *f)
{
	(void)arg;
	if (f->severity != PLFS_NOTED && f->severity != PLFS_REPAIRED)
		fprintf(stderr, "check: %s: %s: %s\n", f->code, f->path, f->text);
}

static int check(void *arg)
{
	struct plfs_check c = { .found = found };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("f", path);

	(void)arg;
	return plfs_check(m, AT_FDCWD, path, &c);
}

/* ---- staging ---- */

struct how {
	const struct plan *p;
	int (*hook)(enum call call);
};

static void trouble(void *arg, const char *path, const char *why)
{
	(void)arg;
	fprintf(stderr, "%s: %s\n", path, why);
}

static int stage(void *arg)
{
	struct how *how = arg;
	struct plfs_drain d = { .trouble = how->hook ? NULL : trouble, .keep = how->p->home };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("f", path);
	int ret;

	if (how->hook) {
		calls_intercept();
		on_call = how->hook;
	}
	ret = how->p->home ? plfs_drain_file(m, AT_FDCWD, path, &d) :
			     plfs_stage_file(m, AT_FDCWD, path, false, &d);
	if (ret && !how->hook)
		fprintf(stderr, "stage: %s\n", strerror(-ret));
	return d.nr_lost ? 1 : ret || d.nr_left ? 75 : 0;
}

/* Two logs, which are at home unless they are to be moved there. */
static void make_file(const struct plan *p)
{
	static const struct plan drained = { .home = true };
	struct how how = { .p = &drained };
	char path[PATH_MAX];

	cr_assert_eq(in_child(write_first, NULL), 0);
	note(0, LEN, 1);
	cr_assert_eq(in_child(write_second, NULL), 0);
	note(100000, 200000, 2);
	if (p->home)
		return;
	cr_assert_eq(in_child(stage, &how), 0);
	while (near_find("data.", path))
		cr_assert(!unlink(path));
}

static int (*beside(enum meanwhile m))(void *arg)
{
	return m == WRITES ? write_newly : m == TRUNCATES ? empty_and_fill : remove_it;
}

/* What waits for who stands still, with a lock on the index, goes on when that does. */
static void do_meanwhile(const struct plan *p, pid_t stopped, long nr)
{
	pid_t pid = start_child(beside(p->meanwhile), NULL);
	int status;

	for (int i = 0; i < 200; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid) {
			cr_assert(WIFEXITED(status) && !WEXITSTATUS(status), "call %ld: %x", nr, status);
			pid = 0;
			break;
		}
		usleep(1000);
	}
	kill(stopped, SIGCONT);
	cr_assert(!pid || !wait_child(pid), "call %ld", nr);
	if (p->meanwhile == WRITES)
		note(W_OFF, W_LEN, 9);
	else
		note(0, LEN, 7);
}

static bool at_call(const struct plan *p, long nr)
{
	struct how how = { .p = p, .hook = p->meanwhile ? stop_at_last : die_at_last };
	struct how again = { .p = p };
	bool over;
	int status;
	pid_t pid;

	make_file(p);
	calls_left = nr;
	pid = start_child(stage, &how);
	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	over = WIFEXITED(status);
	cr_assert(over ? !WEXITSTATUS(status) : p->meanwhile ? WIFSTOPPED(status) : WIFSIGNALED(status),
		  "call %ld: %x", nr, status);
	cr_assert_eq(in_child(look, NULL), 0, "call %ld", nr);
	cr_assert(p->home || !in_child(look_without, NULL), "call %ld, the place lost", nr);
	cr_assert_eq(in_child(check, NULL), 0, "call %ld: check", nr);
	if (p->meanwhile) {
		do_meanwhile(p, pid, nr);
		if (!over)
			cr_assert(wait_child(pid) != 1, "call %ld: lost", nr);
	}
	if (p->meanwhile != REMOVES) {
		cr_assert_eq(in_child(look, NULL), 0, "call %ld, gone on with", nr);
		cr_assert_eq(in_child(stage, &again), 0, "call %ld: the next one", nr);
		cr_assert_eq(in_child(look, NULL), 0, "call %ld, staged", nr);
		cr_assert(p->meanwhile || !in_child(look_without, NULL), "call %ld, staged, the place lost",
			  nr);
		cr_assert_eq(in_child(check, NULL), 0, "call %ld: check, staged", nr);
		cr_assert_gt(near_count("data."), 0, "call %ld", nr);
		cr_assert(p->meanwhile || near_count("data.") == 2, "call %ld: a temporary file, or none",
			  nr);
		cr_assert_eq(in_child(remove_it, NULL), 0);
	}
	cr_assert_eq(count_files("data."), 0, "call %ld: logs of a file that was removed", nr);
	cr_assert(p->meanwhile || !near_count("data."), "call %ld: copies of a file that was removed", nr);
	return over;
}

static void at_each_call(struct plan p)
{
	struct turn turn = turn_begin(23);

	scratch_in_memory = true;
	near_setup("");
	while (!at_call(&p, turn.nr))
		turn.nr += turn.step;
	cr_assert_gt(turn.nr, 60);
	cr_log_info("%ld calls\n", turn.nr);
	near_remove();
}

Test(crash_stage, the_bytes_are_there_whichever_call_was_the_last)
{
	at_each_call((struct plan){ .home = false });
}

Test(crash_stage, the_bytes_are_there_whichever_call_was_the_last_of_a_drain_that_keeps_copies)
{
	at_each_call((struct plan){ .home = true });
}

Test(crash_stage, what_is_written_meanwhile_is_there_whichever_call_it_met)
{
	at_each_call((struct plan){ .meanwhile = WRITES });
}

Test(crash_stage, what_is_written_while_a_drain_keeps_copies_is_there_whichever_call_it_met)
{
	at_each_call((struct plan){ .home = true, .meanwhile = WRITES });
}

Test(crash_stage, a_truncation_meanwhile_holds_whichever_call_it_met)
{
	at_each_call((struct plan){ .meanwhile = TRUNCATES });
}

Test(crash_stage, a_removal_meanwhile_holds_whichever_call_it_met)
{
	at_each_call((struct plan){ .meanwhile = REMOVES });
}
