/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who makes parity of logs (parity=), or makes logs anew by it, is killed at each of its system calls, or
 * each of them fails once. At every such moment the file has its bytes; the next drain or repair completes
 * the work; then any backend besides home may be lost, or any two.
 */
#include "test/lib/calls.h"
#include "test/lib/image.h"
#include "test/lib/near.h"
#include "test/lib/spoil.h"
#include "test/lib/turn.h"

#include <criterion/criterion.h>

#define LEN 200000

static void setup(void)
{
	scratch_in_memory = true;
	near_spread("process,parity=1");
}

static void setup_two(void)
{
	scratch_in_memory = true;
	near_last = 4;
	near_spread("process,parity=2");
}

TestSuite(crash_parity_two, .init = setup_two, .fini = near_remove, .timeout = 3600);
TestSuite(crash_parity, .init = setup, .fini = near_remove, .timeout = 3600);

/* ---- what is done ---- */

static int (*hook)(enum call call); /* NULL: it runs */

static int drain_it(void *arg)
{
	(void)arg;
	if (hook)
		calls_intercept();
	on_call = hook;
	return image_drain_here();
}

static int repair_it(void *arg)
{
	(void)arg;
	if (hook)
		calls_intercept();
	on_call = hook;
	return image_check_here(true);
}

static int remove_it(void *arg)
{
	(void)arg;
	if (hook)
		calls_intercept();
	on_call = hook;
	return lunlink("a") ? 1 : 0;
}

/* True: it came to its end before the call number @nr. */
static bool killed_at(int (*what)(void *arg), long nr)
{
	int status;

	hook = die_at_last;
	calls_left = nr;
	status = in_child(what, NULL);
	hook = NULL;
	cr_assert(status < 50 || status == 256 + SIGKILL, "call %ld: %d", nr, status);
	return status != 256 + SIGKILL;
}

static long step(void) { return turn_begin(near_last > 3 ? 97 : 29).step; }

/* ---- the file ---- */

static int logs_in(int i)
{
	char top[sizeof(near_dir)];
	int nr;

	memcpy(top, near_dir, sizeof(top));
	snprintf(near_dir, sizeof(near_dir), "%.50s/%d", top, i);
	nr = near_count("data.");
	memcpy(near_dir, top, sizeof(top));
	return nr;
}

static void make_file(void)
{
	image_len = 0;
	for (int nr = 0; nr < 3 || !logs_in(2) || !logs_in(near_last) || near_count("data.") == nr; nr++) {
		cr_assert_lt(nr, 200); /* of four backends one is not taken so often: once in many million */
		image_write((off_t)(nr % 30) * LEN, LEN - 3000 * (size_t)(nr % 3), 1);
	}
}

static int read_image(void)
{
	size_t step_len = 60000;

	return in_child(image_read, &step_len);
}

static void move(int i, bool away)
{
	char here[100], gone[100];

	snprintf(here, sizeof(here), "%s/%d", near_dir, i);
	snprintf(gone, sizeof(gone), "%s/%d.gone", near_dir, i);
	cr_assert_eq(away ? rename(here, gone) : rename(gone, here), 0);
}

/* With two parity files also another one at the same time. */
static void lose_each(long nr)
{
	for (int i = 2; i <= near_last; i++) {
		int other = near_last < 4 ? i : i == 2 ? near_last : i - 1;

		move(i, true);
		if (other != i)
			move(other, true);
		cr_assert_eq(read_image(), 0, "call %ld: without %d and %d", nr, i, other);
		move(i, false);
		if (other != i)
			move(other, false);
	}
}

static void remove_and_look(long nr)
{
	cr_assert_eq(in_child(remove_it, NULL), 0);
	cr_assert_eq(near_count("data.") + near_count("parity.") + count_files("parity"), 0,
		     "call %ld: left of a file that was removed", nr);
}

/* ---- killed ---- */

static void drain_killed(void)
{
	bool over = false;
	long nr = 1;

	for (; !over; nr += step()) {
		make_file();
		over = killed_at(drain_it, nr);
		cr_assert_eq(read_image(), 0, "call %ld", nr);
		for (int i = 2; i <= near_last; i++) { /* what is covered is read, and the rest is an error */
			move(i, true);
			cr_assert_lt(read_image(), 2, "call %ld: without %d", nr, i);
			move(i, false);
		}
		cr_assert_lt(image_check(NULL), 1, "call %ld: check", nr);
		cr_assert_lt(in_child(drain_it, NULL), 50, "call %ld: the next drain", nr);
		cr_assert_eq(image_check(NULL), 0, "call %ld: check", nr);
		lose_each(nr);
		remove_and_look(nr);
	}
	cr_assert_gt(nr, 100);
}

Test(crash_parity, drain_killed_at_any_call_loses_nothing_and_the_next_completes) { drain_killed(); }
Test(crash_parity_two, with_two_parity_files_a_drain_killed_at_any_call_loses_nothing) { drain_killed(); }

/* Compacting leaves groups of which logs have gone. */
Test(crash_parity, a_drain_that_makes_groups_anew_may_be_killed_at_any_call)
{
	bool over = false;

	for (long nr = 1; !over; nr += step()) {
		make_file();
		cr_assert_lt(in_child(drain_it, NULL), 50);
		image_write(0, LEN, 2);
		image_write(LEN, LEN, 2);
		cr_assert_eq(lcompact("a"), 0);
		over = killed_at(drain_it, nr);
		cr_assert_eq(read_image(), 0, "call %ld", nr);
		cr_assert_lt(in_child(drain_it, NULL), 50, "call %ld: the next drain", nr);
		cr_assert_eq(image_check(NULL), 0, "call %ld: check", nr);
		lose_each(nr);
		remove_and_look(nr);
	}
}

static void spoil_all(const char *prefix, bool removes)
{
	char path[PATH_MAX];

	if (!near_find(prefix, path))
		return;
	if (removes)
		unlink(path);
	else
		spoil_bit(path, 100000);
}

static void repair_killed(const char *prefix, bool removes)
{
	bool over = false;
	long nr = 1;

	for (; !over; nr += step()) {
		make_file();
		cr_assert_lt(in_child(drain_it, NULL), 50);
		spoil_all(prefix, removes);
		over = killed_at(repair_it, nr);
		cr_assert_eq(read_image(), 0, "call %ld", nr);
		cr_assert_eq(in_child(repair_it, NULL), 0, "call %ld: the next repair", nr);
		cr_assert_eq(image_check(NULL), 0, "call %ld: check", nr);
		lose_each(nr);
		remove_and_look(nr);
	}
	cr_assert_gt(nr, 60);
}

Test(crash_parity, repair_killed_at_any_call_makes_missing_logs_the_next_time)
{
	repair_killed("data.", true);
}

Test(crash_parity, repair_killed_at_any_call_makes_damaged_logs_the_next_time)
{
	repair_killed("data.", false);
}

Test(crash_parity, repair_killed_at_any_call_makes_missing_parity_the_next_time)
{
	repair_killed("parity.", true);
}

Test(crash_parity, repair_killed_at_any_call_makes_damaged_parity_the_next_time)
{
	repair_killed("parity.", false);
}

Test(crash_parity_two, with_two_parity_files_a_repair_killed_at_any_call_loses_nothing)
{
	repair_killed("parity.", true);
}

/* ---- a process that writes, killed: its bytes are there, or their loss is known ---- */

static int write_more(void *arg)
{
	const struct image_piece *p = arg;

	if (hook)
		calls_intercept();
	on_call = hook;
	return image_write_piece((void *)p);
}

/* Whichever call was its last: without a backend nobody reads older bytes for those that it wrote. */
Test(crash_parity, what_a_killed_writer_wrote_is_there_or_an_error_without_a_backend)
{
	struct image_piece p = { 0, LEN, 2 };
	bool over = false;

	for (long nr = 1; !over; nr += step()) {
		static unsigned char before[LEN];

		make_file();
		memcpy(before, image, LEN);
		cr_assert_lt(in_child(drain_it, NULL), 50);
		hook = die_at_last;
		calls_left = nr;
		over = in_child(write_more, &p) != 256 + SIGKILL;
		hook = NULL;
		if (read_image()) /* all of it, or a part: the new bytes are the image, if all are there */
			image_note(0, LEN, 2);
		if (read_image() == 0)
			for (int i = 2; i < 4; i++) {
				move(i, true);
				cr_assert_lt(read_image(), 2, "call %ld: without %d", nr, i);
				move(i, false);
			}
		cr_assert_eq(in_child(remove_it, NULL), 0);
	}
}

/* ---- failing ---- */

static int bad_errno;

static int fail_at_last(enum call call)
{
	(void)call;
	return --calls_left ? 0 : bad_errno;
}

#define CALLS_MAX 2500 /* more than a drain makes */

static void drain_fails(int err)
{
	bad_errno = err;
	for (long nr = 1; nr < CALLS_MAX; nr += step()) {
		int status;

		make_file();
		hook = fail_at_last;
		calls_left = nr;
		status = in_child(drain_it, NULL);
		hook = NULL;
		cr_assert_lt(status, 200, "call %ld: %d", nr, status);
		cr_assert_eq(read_image(), 0, "call %ld", nr);
		cr_assert_lt(in_child(drain_it, NULL), 50, "call %ld: the next drain", nr);
		cr_assert_eq(image_check(NULL), 0, "call %ld: check", nr);
		lose_each(nr);
		remove_and_look(nr);
	}
}

Test(crash_parity, whichever_call_of_a_drain_fails_the_next_completes) { drain_fails(EIO); }
Test(crash_parity, whichever_call_of_a_drain_finds_the_disk_full_the_next_completes) { drain_fails(ENOSPC); }
Test(crash_parity_two, with_two_parity_files_and_a_full_disk_the_next_drain_completes)
{
	drain_fails(ENOSPC);
}
