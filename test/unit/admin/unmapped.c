/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process that cannot map files is killed. What it had released is there; what it wrote later has no place
 * in the file, for the process alone knew it. check says how much of that is in the log, and a repair that it
 * goes.
 */
#include "test/lib/calls.h"
#include "test/lib/scratch.h"

#include <criterion/criterion.h>

#define RELEASED 1000
#define LATER 200000 /* goes straight to the log, the first 300 of them over a trailer */

static void setup(void)
{
	scratch_in_memory = true;
	scratch_setup();
}

TestSuite(unmapped, .init = setup, .fini = scratch_remove);

static int cannot_map(enum call call)
{
	return call == CALL_MMAP ? ENODEV : 0;
}

struct writer {
	off_t later; /* bytes that are written behind the last release */
	bool maps;
};

static int write_and_die(void *arg)
{
	const struct writer *w = arg;
	struct lfile l;

	calls_intercept();
	on_call = w->maps ? NULL : cannot_map;
	l = made("f");
	if (lfill(&l, 0, RELEASED, 1) != RELEASED || plfs_commit(l.f))
		return 1;
	if (w->later && lfill(&l, RELEASED, (size_t)w->later, 1) != w->later)
		return 2;
	return kill(getpid(), SIGKILL);
}

static void killed(off_t later, bool maps)
{
	struct writer w = { later, maps };

	cr_assert_eq(in_child(write_and_die, &w), 256 + SIGKILL);
}

static int look(void *size)
{
	struct lfile l = lopen("f", O_RDONLY);
	off_t want = *(off_t *)size;

	return stat_size("f") != want || plfs_size(l.f) != want || lcheck(&l, 0, (size_t)want, 1) ||
	       lclose(&l);
}

static void assert_there(off_t size) { cr_assert_eq(in_child(look, &size), 0); }

/* ---- what is told ---- */

static char told[4096];

static void take(void *arg, const struct plfs_finding *f)
{
	size_t len = strlen(told);

	(void)arg;
	snprintf(told + len, sizeof(told) - len, "%d %s %s: %s\n", f->severity, f->code, f->path, f->text);
}

static int run(bool repair, bool dry)
{
	struct plfs_check check = { .found = take, .repair = repair, .dry_run = dry };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("f", path);

	*told = '\0';
	return plfs_check(m, AT_FDCWD, path, &check);
}

#define assert_told(text) cr_assert(strstr(told, text), "not told: %s\n%s", text, told)
#define assert_untold(text) cr_assert(!strstr(told, text), "told: %s\n%s", text, told)

Test(unmapped, what_a_killed_process_had_not_released_is_counted)
{
	killed(LATER, false);
	assert_there(RELEASED);
	cr_assert_eq(run(false, false), 0);
	assert_told("everything that it had released can be read");
	assert_told("about 199");
	assert_untold("everything written can be read");
	cr_assert_eq(run(true, true), 0);
	assert_told("the log of a killed process is closed, without about 199");
	cr_assert_eq(run(true, false), 0);
	assert_told("the log of a killed process is closed, without about 199");
	assert_there(RELEASED);
	cr_assert_eq(run(false, false), 0);
	assert_untold("about");
}

Test(unmapped, a_killed_process_that_had_released_all_loses_nothing)
{
	killed(0, false);
	assert_there(RELEASED);
	cr_assert_eq(run(false, false), 0);
	assert_told("everything that it had released can be read");
	assert_untold(" bytes are in the log");
	cr_assert_eq(run(true, false), 0);
	assert_told("the log of a killed process is closed\n");
	assert_there(RELEASED);
}

Test(unmapped, a_killed_process_that_could_map_files_loses_nothing)
{
	killed(LATER, true);
	assert_there(RELEASED + LATER);
	cr_assert_eq(run(false, false), 0);
	assert_told("everything written can be read");
	cr_assert_eq(run(true, false), 0);
	assert_told("the log of a killed process is closed\n");
	assert_there(RELEASED + LATER);
}
