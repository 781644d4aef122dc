/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A sync (sync=home) with its 1st, 2nd, 3rd... system call failing once. Where it returns 0 all the same,
 * what it covers is in the backend: it is read without the place. Where it does not, the next sync brings it
 * there. An EIO has a line that says so.
 */
#include "test/lib/calls.h"
#include "test/lib/image.h"
#include "test/lib/near.h"
#include "test/lib/turn.h"

#include "core/backend/host.h"

#include <criterion/criterion.h>

#define LEN 300000

static void setup(void)
{
	scratch_in_memory = true;
	near_setup(",drain=none");
	host_name(); /* a process learns once which host it is on */
}

TestSuite(near_sync_fails, .init = setup, .fini = near_remove, .timeout = 900);

static int bad_errno;

static int fail(enum call call)
{
	(void)call;
	return --calls_left ? 0 : bad_errno;
}

/* Who syncs has written a part of it himself. */
static struct image_piece own;

/* 0: the first sync said so; 1: the second, the first did not. 2 more: no call failed. */
static int sync_it(void *arg)
{
	struct lfile l = made("a");
	static char line[400];
	int ret;

	(void)arg;
	if (own.len && lfill(&l, own.off, own.len, own.round) != (ssize_t)own.len)
		return 10;
	calls_intercept();
	on_call = fail;
	msg_catch(line, sizeof(line));
	ret = plfs_sync(l.f);
	on_call = NULL;
	if (ret == -EIO && !*line)
		return 13;
	if (ret && plfs_sync(l.f))
		return 11;
	ret = (ret ? 1 : 0) | (calls_left > 0 ? 2 : 0);
	return lclose(&l) ? 12 : ret;
}

static int read_without_the_place(void)
{
	size_t step = 60000;
	char aside[100];
	int ret;

	snprintf(aside, sizeof(aside), "%s.aside", near_dir);
	cr_assert_eq(rename(near_dir, aside), 0);
	ret = in_child(image_read, &step);
	cr_assert_eq(rename(aside, near_dir), 0);
	return ret;
}

/* @again: some of it was synced before, so that the backend has the beginning of the log. */
static void at_each_call(int err, bool again)
{
	struct turn turn = turn_begin(3);
	int status = 0;

	bad_errno = err;
	for (long nr = turn.nr; !(status & 2); nr += turn.step) {
		image_len = 0;
		image_write(0, LEN, 1);
		if (again) {
			calls_left = 100000;
			cr_assert_eq(in_child(sync_it, NULL), 2);
		}
		image_write(100000, LEN, 2);
		if (own.len)
			image_note(own.off, own.len, own.round);
		calls_left = nr;
		status = in_child(sync_it, NULL);
		cr_assert_lt(status, 4, "call %ld: %d", nr, status);
		cr_assert_eq(read_without_the_place(), 0, "call %ld: it said %d", nr, status);
		cr_assert_eq(lunlink("a"), 0);
	}
}

#define SYNCS(name, err) \
	Test(near_sync_fails, what_others_wrote_is_home_or_it_says_so_##name) { at_each_call(err, false); } \
	Test(near_sync_fails, the_rest_of_what_others_wrote_is_home_or_it_says_so_##name) \
	{ \
		at_each_call(err, true); \
	} \
	Test(near_sync_fails, what_it_wrote_is_home_or_it_says_so_##name) \
	{ \
		own = (struct image_piece){ 50000, 200000, 3 }; \
		at_each_call(err, false); \
	}

SYNCS(eio, EIO)
SYNCS(estale, ESTALE)
SYNCS(enospc, ENOSPC)
SYNCS(emfile, EMFILE)
