/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes that are killed, at each call in turn, while they make, remove, replace or move containers.
 * Whatever they leave: the files are as they were or as they should become, and plfs gc removes the rest and
 * nothing else.
 */
#include "test/lib/scratch.h"

#include "test/lib/calls.h"

#include "core/backend/stub.h"

#include <criterion/criterion.h>
#include <sched.h>

#define LEN 200000
#define HOUR_NS 3600000000000ULL

TestSuite(crash_gc, .timeout = 300);

/* ---- what is done when the process dies ---- */

static int do_create(void)
{
	struct lfile l = made("new");

	return lfill(&l, 0, LEN, 3) != LEN || lclose(&l);
}

static int do_unlink(void)
{
	return lunlink("a");
}

static int do_replace(void)
{
	return lrename("b", "a");
}

static int do_unlink_open(void)
{
	struct lfile l = lopen("a", O_RDWR);

	return lfill(&l, LEN, 10, 1) != 10 || lunlink("a") || lclose(&l);
}

static int do_move(void)
{
	struct lfile l = lopen("a", O_RDWR);

	return plfs_in_body(l.f, PLFS_MAP_WRITE) != 1 || lclose(&l);
}

static int do_flatten(void)
{
	char path[PATH_MAX];

	lpath("a", path);
	return plfs_flatten(AT_FDCWD, path, NULL);
}

static int do_truncate(void)
{
	struct lfile l = lopen("a", O_RDWR | O_TRUNC);

	return lclose(&l);
}

/* ---- what may be found ---- */

/* Whether the file, logical or plain, has @size bytes of the pattern; or there is none, with size -1. */
static bool is(const char *name, off_t size, unsigned round)
{
	struct lfile l;
	char *buf = malloc(LEN + 100);
	ssize_t n;
	bool ok;

	if (ltry(&l, name, O_RDONLY)) {
		free(buf);
		return size < 0;
	}
	n = l.f ? plfs_pread(l.f, buf, LEN + 100, 0) : pread(l.fd, buf, LEN + 100, 0);
	ok = n == size && pattern_check(buf, (size_t)size, 0, round) == (size_t)size;
	lclose(&l);
	free(buf);
	return ok;
}

/* Bytes of a writer that was killed may be there or not. */
static bool is_new_right(void)
{
	struct lfile l;
	off_t size;
	bool ok;

	if (ltry(&l, "new", O_RDONLY))
		return true;
	size = plfs_size(l.f);
	ok = size <= LEN && !lcheck(&l, 0, (size_t)size, 3);
	lclose(&l);
	return ok;
}

static const struct action {
	const char *name;
	int (*run)(void);
	bool a_may_go, a_may_be_b, a_may_be_empty, a_may_grow;
} actions[] = {
	{ .name = "create", .run = do_create },
	{ .name = "unlink", .run = do_unlink, .a_may_go = true },
	{ .name = "replace", .run = do_replace, .a_may_be_b = true },
	{ .name = "unlink an open one", .run = do_unlink_open, .a_may_go = true, .a_may_grow = true },
	{ .name = "move into its body", .run = do_move },
	{ .name = "flatten", .run = do_flatten },
	{ .name = "truncate", .run = do_truncate, .a_may_be_empty = true },
};

static int look(void *arg)
{
	const struct action *action = arg;
	bool ok = is("a", LEN, 1);

	ok |= action->a_may_go && is("a", -1, 0);
	ok |= action->a_may_be_b && is("a", LEN, 2);
	ok |= action->a_may_be_empty && is("a", 0, 0);
	ok |= action->a_may_grow && is("a", LEN + 10, 1);
	return !ok || (!is("b", LEN, 2) && !(action->a_may_be_b && is("b", -1, 0))) || !is_new_right();
}

/* ---- killing ---- */

static int run_and_die(void *arg)
{
	on_call = die_at_last;
	return ((const struct action *)arg)->run();
}

static int make_files(void *arg)
{
	(void)arg;
	for (unsigned i = 1; i <= 2; i++) {
		struct lfile l = made(i == 1 ? "a" : "b");

		if (lfill(&l, 0, LEN, i) != LEN || lclose(&l))
			return 1;
	}
	return 0;
}

static void clear(void)
{
	char command[300];

	snprintf(command, sizeof(command), "rm -rf %s/a %s/b %s/new %s/.plfs/??", scratch, scratch, scratch,
		 scratch);
	cr_assert_eq(system(command), 0);
}

static struct plfs_gc gc(void)
{
	struct plfs_gc g = { .later_ns = HOUR_NS };
	char path[PATH_MAX];

	cr_assert_eq(plfs_gc(lpath("", path), &g), 0);
	cr_assert_eq(g.nr_troubles + g.nr_left, 0);
	return g;
}

/* Files that have a container. */
static unsigned count_with_container(void)
{
	static const char *const names[] = { "a", "b", "new" };
	unsigned nr = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char path[PATH_MAX];
		struct stat st;
		struct stub stub;
		int fd;

		lpath(names[i], path);
		fd = open(path, O_RDONLY);
		nr += fd >= 0 && !fstat(fd, &st) && plfs_maybe_stub(st.st_mode) && !stub_read(fd, &stub) &&
		      stub.has_container;
		close(fd);
	}
	return nr;
}

/* Returns how much was left over, of all kills. */
static uint64_t kill_at_each(const struct action *action)
{
	int code = 256 + SIGKILL, n;
	uint64_t left = 0;

	for (n = 1; code; n++) {
		struct plfs_gc g;

		clear();
		cr_assert_eq(in_child(make_files, NULL), 0);
		calls_left = n;
		code = in_child(run_and_die, (void *)action);
		cr_assert(!code || code == 256 + SIGKILL, "%s, call %d: exit code %d", action->name, n, code);
		cr_assert_eq(in_child(look, (void *)action), 0, "%s, killed at call %d", action->name, n);
		g = gc();
		left += g.nr_removed;
		cr_assert_eq(in_child(look, (void *)action), 0, "%s, killed at call %d, collected",
			     action->name, n);
		g = gc();
		cr_assert(!g.nr_removed && g.nr_containers == count_with_container(), "%s, killed at call %d",
			  action->name, n);
		cr_assert_eq(count_files(".plfs-flatten"), 0, "%s, killed at call %d", action->name, n);
	}
	cr_assert_gt(n, 5);
	return left;
}

Test(crash_gc, what_a_kill_leaves_is_found_and_nothing_else)
{
	scratch_in_memory = true;
	scratch_setup();
	calls_intercept();
	for (size_t i = 0; i < ARRAY_SIZE(actions); i++) {
		uint64_t left = kill_at_each(&actions[i]);

		cr_log_info("%s: %d left", actions[i].name, (int)left);
		cr_assert(left || actions[i].run == do_truncate, "%s", actions[i].name);
	}
	scratch_remove();
}
