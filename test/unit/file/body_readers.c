/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who has read a file, and reads it again after another process has moved it into its body and stored there:
 * without anything that would be an acquire, whatever tells this reader of others.
 */
#include "test/lib/kept_map.h"

#include "test/lib/flags.h"

SUITE(body_readers);

static int moves_and_stores(void *arg)
{
	struct lfile l = lopen(kept_name, O_RDWR);

	(void)arg;
	return plfs_in_body(l.f, PLFS_MAP_WRITE) != 1 || lfill(&l, 0, PART, 2) != PART || lclose(&l);
}

static void remove_dropping(const char *prefix)
{
	char path[PATH_MAX];

	if (find_file(prefix, path))
		cr_assert_eq(unlink(path), 0);
	cr_assert_not(find_file(prefix, path));
}

static void reads_what_is_stored(int flags)
{
	struct lfile l = lopen(kept_name, flags);

	cr_assert_eq(lcheck(&l, 0, PART, 1), 0);
	cr_assert_eq(in_child(moves_and_stores, NULL), 0);
	cr_assert_eq(lcheck(&l, 0, PART, 2), 0);
	lclose(&l);
}

Test(body_readers, a_reader_that_watches_a_notice_sees_what_is_stored_there)
{
	int no = 0;

	cr_assert_eq(in_child(make_part, &no), 0);
	reads_what_is_stored(O_RDONLY);
}

Test(body_readers, a_reader_that_may_write_sees_what_is_stored_there)
{
	int no = 0;

	cr_assert_eq(in_child(make_part, &no), 0);
	remove_dropping("notice.");
	reads_what_is_stored(O_RDWR);
}

Test(body_readers, a_reader_with_a_kept_map_alone_sees_what_is_stored_there)
{
	char path[PATH_MAX];

	cr_assert_eq(make_file(NULL), 0);
	cr_assert_eq(in_child(check_as_made, NULL), 0);
	cr_assert(find_file("index.global", path));
	remove_dropping("notice.");
	reads_what_is_stored(O_RDONLY);
}

Test(body_readers, a_reader_that_watches_nothing_sees_what_is_stored_there)
{
	int no = 0;

	cr_assert_eq(in_child(make_part, &no), 0);
	remove_dropping("notice.");
	reads_what_is_stored(O_RDONLY);
}

static int reads_during_the_move(enum call call)
{
	static bool done;

	if (call == CALL_FDATASYNC && !done) { /* of the body, before the header says that it is there */
		done = true;
		raise_flag(&shared->moved);
		await(&shared->claimed);
	}
	return 0;
}

static int moves_slowly(void *arg)
{
	on_call = reads_during_the_move;
	return moves_and_stores(arg);
}

Test(body_readers, a_reader_that_makes_a_map_during_the_move_sees_what_is_stored_there)
{
	struct lfile l;
	int no = 0;
	pid_t pid;

	share();
	calls_intercept();
	cr_assert_eq(in_child(make_part, &no), 0);
	l = lopen(kept_name, O_RDONLY);
	pid = start_child(moves_slowly, NULL);
	await(&shared->moved);
	cr_assert_eq(lcheck(&l, 0, PART, 1), 0);
	raise_flag(&shared->claimed);
	cr_assert_eq(wait_child(pid), 0);
	cr_assert_eq(lcheck(&l, 0, PART, 2), 0);
	lclose(&l);
}

/* ---- the mover is killed ---- */

static int only_moves(void *arg)
{
	struct lfile l = lopen(kept_name, O_RDWR);

	calls_left = *(int *)arg;
	on_call = die_at_last;
	return plfs_in_body(l.f, PLFS_MAP_WRITE) != 1;
}

/* @between: the reader reads after the kill. Then another process stores. */
static void kill_at_each_call(int flags, bool between)
{
	int no = 0, killed = 1;

	calls_intercept();
	for (int nr = 1; killed; nr++) {
		struct lfile l;

		cr_assert_eq(in_child(make_part, &no), 0);
		l = lopen(kept_name, flags);
		cr_assert_eq(lcheck(&l, 0, PART, 1), 0);
		killed = in_child(only_moves, &nr);
		if (between)
			cr_assert_eq(lcheck(&l, 0, PART, 1), 0, "killed at call %d", nr);
		cr_assert_eq(in_child(moves_and_stores, NULL), 0);
		cr_assert_eq(lcheck(&l, 0, PART, 2), 0, "killed at call %d", nr);
		lclose(&l);
		cr_assert_eq(lunlink(kept_name), 0);
	}
}

Test(body_readers, a_reader_after_the_mover_was_killed_sees_what_another_stores)
{
	kill_at_each_call(O_RDONLY, true);
}
Test(body_readers, a_reader_that_does_not_read_after_the_kill_sees_what_another_stores)
{
	kill_at_each_call(O_RDONLY, false);
}
Test(body_readers, a_reader_that_may_write_and_reads_after_the_kill_sees_what_another_stores)
{
	kill_at_each_call(O_RDWR, true);
}
