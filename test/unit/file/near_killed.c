/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A killed process leaves bytes in a place that no record at home tells of. If the place is lost, they are as
 * if they had not been written: no size covers them, for there they would be zeros.
 */
#include "test/lib/calls.h"
#include "test/lib/near.h"

#include "core/backend/mount.h"
#include "core/base/sys.h"

#include <criterion/criterion.h>

#include <signal.h>
#include <sys/stat.h>

#define LEN 300000

static void setup(void) { near_setup(",drain=none"); }

TestSuite(near_killed, .init = setup, .fini = near_remove, .timeout = 120);

#define BEGUN 1000

static int what_else; /* the process does before it is killed */

enum { NOTHING, LOOKS, RELEASES, APPENDS, CUTS };

/* At home is something of this host, so it does not look as if all of that were lost. */
static int begin(void *arg)
{
	struct lfile l = made("a");

	(void)arg;
	return lfill(&l, 0, BEGUN, 1) != BEGUN || plfs_sync(l.f) || lclose(&l);
}

static ssize_t append(struct lfile *l)
{
	static char buf[LEN - BEGUN];
	const struct iovec iov = { buf, sizeof(buf) };
	off_t end;

	pattern_fill(buf, sizeof(buf), BEGUN, 1);
	return plfs_appendv(l->f, &iov, 1, &end);
}

static int write_and_die(void *arg)
{
	int flags = *(int *)arg;
	struct lfile l = lopen("a", O_RDWR | flags);
	ssize_t n = flags & O_APPEND ? append(&l) : lfill(&l, BEGUN, LEN - BEGUN, 1);

	if (n != LEN - BEGUN)
		return 1;
	if (what_else == LOOKS && stat_size("a") != LEN)
		return 2;
	if (what_else == RELEASES && plfs_commit(l.f))
		return 3;
	return raise(SIGKILL);
}

enum found { BEGINNING = 1, ALL, ERROR, WRONG };

/* What of the file there is. */
static int look(void *arg)
{
	struct lfile l = lopen("a", O_RDONLY);
	off_t size = plfs_size(l.f);
	int rest = size == LEN ? lcheck(&l, BEGUN, LEN - BEGUN, 1) : 0;

	(void)arg;
	if ((size != LEN && size != BEGUN) || lcheck(&l, 0, BEGUN, 1))
		return WRONG;
	return size == BEGUN ? BEGINNING : !rest ? ALL : rest == -EIO ? ERROR : WRONG;
}

static int stat_a(void *arg)
{
	(void)arg;
	return stat_size("a") != LEN;
}

static int open_and_close(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	return plfs_size(l.f) != LEN || lclose(&l);
}

/* @shared: hosts share the backend. There a stat() does not ask live files. */
static void kill_one(int flags, int what, bool shared)
{
	char path[PATH_MAX];

	lpath("a", path)->store.remote = shared;
	what_else = what;
	cr_assert_eq(in_child(begin, NULL), 0);
	cr_assert_eq(in_child(write_and_die, &flags), 256 + SIGKILL);
	cr_assert_eq(in_child(look, NULL), ALL);
	cr_assert(shared || !in_child(stat_a, NULL));
}

static void lose(enum found found)
{
	near_lose();
	cr_assert_eq(in_child(look, NULL), (int)found);
	cr_assert_eq(lunlink("a"), 0);
}

Test(near_killed, what_was_not_released_is_as_if_it_had_not_been_written)
{
	for (int shared = 0; shared < 2; shared++) {
		kill_one(0, NOTHING, shared);
		lose(BEGINNING);
	}
}

Test(near_killed, after_another_process_has_published_it_it_is_an_error)
{
	for (int shared = 0; shared < 2; shared++) {
		kill_one(0, NOTHING, shared);
		cr_assert_eq(in_child(open_and_close, NULL), 0);
		cr_assert_eq(in_child(look, NULL), ALL);
		cr_assert_eq(in_child(stat_a, NULL), 0);
		lose(ERROR);
	}
}

Test(near_killed, after_the_process_has_looked_at_its_size_it_is_an_error)
{
	for (int shared = 0; shared < 2; shared++) {
		kill_one(0, LOOKS, shared);
		lose(ERROR);
	}
}

Test(near_killed, what_was_released_is_an_error)
{
	for (int shared = 0; shared < 2; shared++) {
		kill_one(0, RELEASES, shared);
		lose(ERROR);
	}
}

/* Who appends behind it is to know the size. */
Test(near_killed, what_was_appended_is_an_error)
{
	for (int shared = 0; shared < 2; shared++) {
		kill_one(O_APPEND, NOTHING, shared);
		lose(ERROR);
	}
}

static int append_behind(void *arg)
{
	static char buf[1000];
	const struct iovec iov = { buf, sizeof(buf) };
	struct lfile l = lopen("a", O_RDWR | O_APPEND);
	off_t end = 0;

	(void)arg;
	return plfs_appendv(l.f, &iov, 1, &end) != sizeof(buf) || end != LEN + 1000 || lclose(&l);
}

static int look_before_the_end(void *arg)
{
	struct lfile l = lopen("a", O_RDONLY);

	(void)arg;
	return plfs_size(l.f) != LEN + 1000 ? WRONG : -lcheck(&l, BEGUN, LEN - BEGUN, 1);
}

Test(near_killed, where_another_process_has_appended_behind_it_it_is_an_error)
{
	for (int shared = 0; shared < 2; shared++) {
		kill_one(0, NOTHING, shared);
		cr_assert_eq(in_child(append_behind, NULL), 0);
		cr_assert_eq(in_child(look_before_the_end, NULL), 0);
		near_lose();
		cr_assert_eq(in_child(look_before_the_end, NULL), EIO);
		cr_assert_eq(lunlink("a"), 0);
	}
}

/* ---- a move into the body ---- */

static ssize_t (*real_pwrite)(int fd, const void *buf, size_t len, off_t off);

static ino_t stub_number;

static ssize_t die_at_body(int fd, const void *buf, size_t len, off_t off)
{
	struct stat st;

	if (off >= PLFS_BODY_OFF && !sys.fstat(fd, &st) && st.st_ino == stub_number)
		raise(SIGKILL);
	return real_pwrite(fd, buf, len, off);
}

static int die_in_move(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);
	char path[PATH_MAX];
	struct stat st;

	(void)arg;
	lpath("a", path);
	if (stat(path, &st))
		return 1;
	stub_number = st.st_ino;
	real_pwrite = sys.pwrite;
	sys.pwrite = die_at_body;
	plfs_in_body(l.f, PLFS_MAP_WRITE);
	return 2;
}

Test(near_killed, what_was_not_moved_is_an_error)
{
	for (int shared = 0; shared < 2; shared++) {
		kill_one(0, NOTHING, shared);
		cr_assert_eq(in_child(die_in_move, NULL), 256 + SIGKILL);
		lose(ERROR);
	}
}

/* ---- truncation ---- */

static int write_and_sync(void *arg)
{
	struct lfile l = made("a");

	(void)arg;
	return lfill(&l, 0, 2 * LEN, 1) != 2 * LEN || plfs_sync(l.f) || lclose(&l);
}

static int cut_and_die(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	return plfs_truncate(l.f, LEN) || raise(SIGKILL);
}

static int grow(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	return plfs_truncate(l.f, 2 * LEN) || lcheck(&l, 0, LEN, 1) || !lzeros(&l, LEN, LEN) || lclose(&l);
}

Test(near_killed, what_was_cut_off_does_not_come_back)
{
	for (int shared = 0; shared < 2; shared++) {
		char path[PATH_MAX];

		lpath("a", path)->store.remote = shared;
		cr_assert_eq(in_child(write_and_sync, NULL), 0);
		cr_assert_eq(in_child(cut_and_die, NULL), 256 + SIGKILL);
		near_lose();
		cr_assert_eq(in_child(grow, NULL), 0);
		cr_assert_eq(lunlink("a"), 0);
	}
}

/* ---- a sync by another process ---- */

#define SMALL 100 /* stays in the stage */

static int write_little_and_die(void *arg)
{
	struct lfile l = made("a");
	off_t end;

	(void)arg;
	if (what_else == LOOKS && (lfill(&l, 0, SMALL, 1) != SMALL || stat_size("a") != SMALL))
		return 1;
	if (what_else == RELEASES && (lfill(&l, 0, SMALL, 1) != SMALL || plfs_commit(l.f)))
		return 2;
	if (what_else == APPENDS && lappend(&l, "little", 6, &end) != 6)
		return 3;
	if (what_else == CUTS && (lfill(&l, 0, LEN, 1) != LEN || plfs_truncate(l.f, SMALL)))
		return 4;
	return raise(SIGKILL);
}

static int sync_a(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	return plfs_sync(l.f) || lclose(&l);
}

static int read_little(void *arg)
{
	struct lfile l = lopen("a", O_RDONLY);
	char buf[6];

	(void)arg;
	if (what_else == APPENDS)
		return plfs_size(l.f) != 6 || plfs_pread(l.f, buf, 6, 0) != 6 || memcmp(buf, "little", 6);
	return plfs_size(l.f) != SMALL || lcheck(&l, 0, SMALL, 1);
}

Test(near_killed, what_another_process_has_synced_is_home)
{
	for (what_else = LOOKS; what_else <= CUTS; what_else++) {
		cr_assert_eq(in_child(write_little_and_die, NULL), 256 + SIGKILL);
		cr_assert_eq(in_child(sync_a, NULL), 0);
		near_lose();
		cr_assert_eq(in_child(read_little, NULL), 0, "%d", what_else);
		cr_assert_eq(lunlink("a"), 0);
	}
}

/* ---- whatever it was at, nothing stays in the place ---- */

static int write_and_die_at(void *arg)
{
	struct lfile l = made("a");

	calls_intercept();
	calls_left = *(long *)arg;
	on_call = die_at_last;
	return lfill(&l, 0, BEGUN, 1) != BEGUN;
}

static int drain_all(void *arg)
{
	struct plfs_drain d = { 0 };

	(void)arg;
	return ldrain("a", &d) ? 1 : d.nr_left ? 2 : d.nr_lost ? 3 : 0;
}

Test(near_killed, at_any_call_of_its_first_write_it_leaves_nothing_that_a_drain_cannot_take)
{
	int ret = 256 + SIGKILL;

	for (long call = 1; ret; call++) {
		ret = in_child(write_and_die_at, &call);
		cr_assert(!ret || ret == 256 + SIGKILL);
		cr_assert_eq(in_child(drain_all, NULL), 0, "killed at call %ld", call);
		cr_assert_eq(near_count("data."), 0, "killed at call %ld", call);
		cr_assert_eq(lunlink("a"), 0);
	}
}
