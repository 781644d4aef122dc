/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs drain and plfs stage where a system call fails (turn.h), on the side of the place or of the backend:
 * once, or it and all that follow. The file has its bytes then, and check finds no damage. A drain says that
 * all is home only if it is: then the place may go. The next one, where nothing fails, brings the rest.
 */
#include "test/lib/calls.h"
#include "test/lib/image.h"
#include "test/lib/near.h"
#include "test/lib/turn.h"

#include <criterion/criterion.h>

#define LEN 300000

static void setup(void)
{
	scratch_in_memory = true;
	near_setup("");
}

TestSuite(crash_drain_fails, .init = setup, .fini = near_remove, .timeout = 3600);

struct plan {
	int err;
	bool on;     /* and from there on */
	bool killed; /* a writer was killed */
	bool place;  /* all of it is drained */
	bool stages, keeps;
};

/* ---- calls that fail ---- */

static int bad_errno;
static bool goes_on;

static int fail(enum call call)
{
	(void)call;
	calls_left--;
	return !calls_left || (goes_on && calls_left < 0) ? bad_errno : 0;
}

/* ---- the file ---- */

static int write_and_die(void *arg)
{
	const struct image_piece *p = arg;
	struct lfile l = made("a");

	if (lfill(&l, p->off, p->len, p->round) != (ssize_t)p->len)
		return 1;
	return kill(getpid(), SIGKILL);
}

static void make_file(const struct plan *p)
{
	struct image_piece last = { 250000, 90000, 3 };

	image_len = 0;
	image_write(0, LEN, 1);
	image_write(100000, 100000, 2);
	if (!p->killed)
		return;
	cr_assert_eq(in_child(write_and_die, &last), 256 + SIGKILL);
	image_note(last.off, last.len, last.round);
}

static int read_image(void)
{
	size_t len = 60000;

	return in_child(image_read, &len);
}

static int read_without_the_place(void)
{
	char aside[100];
	int ret;

	snprintf(aside, sizeof(aside), "%s.aside", near_dir);
	cr_assert_eq(rename(near_dir, aside), 0);
	ret = read_image();
	cr_assert_eq(rename(aside, near_dir), 0);
	return ret;
}

static int remove_it(void *arg) { return (void)arg, lunlink("a") ? 1 : 0; }

/* ---- drains ---- */

#define SAID 3    /* what it says: 0 all is home, 1 something is lost, 2 something is left */
#define NONE_FAILED 4

struct how {
	const struct plan *p;
	bool fails, stages, keeps;
};

static int drain_top(void *arg, const char *top, const char *home)
{
	struct plfs_mount *m = plfs_mount_at(0);

	return strcmp(home, plfs_backend(m)) ? -ENOENT : plfs_drain_place(m, top, false, arg);
}

static int drain(void *arg)
{
	const struct how *how = arg;
	struct plfs_drain d = { .keep = how->keeps };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("a", path);
	int ret;

	msg_is_muted = how->fails;
	if (how->fails) {
		calls_intercept();
		on_call = fail;
	}
	ret = how->stages   ? plfs_stage_file(m, AT_FDCWD, path, false, &d) :
	      how->p->place ? plfs_places_in(near_dir, drain_top, &d) :
			      plfs_drain_file(m, AT_FDCWD, path, &d);
	on_call = NULL;
	if (ret && !how->fails)
		fprintf(stderr, "drain: %s\n", strerror(-ret));
	return (d.nr_lost ? 1 : ret || d.nr_left || d.nr_elsewhere ? 2 : 0) |
	       (how->fails && calls_left > 0 ? NONE_FAILED : 0);
}

/* Nothing of it is near any more; with @keeps, copies alone. */
static void drain_the_rest(const struct plan *p, long nr)
{
	struct how how = { .p = p, .keeps = p->keeps };

	cr_assert_eq(in_child(drain, &how), 0, "call %ld: the next drain", nr);
	cr_assert_eq(read_without_the_place(), 0, "call %ld: drained, without the place", nr);
	cr_assert(p->keeps || near_count("data.") == 0, "call %ld: something is left near", nr);
	cr_assert_eq(count_files("near.") + count_files("live."), 0, "call %ld", nr);
}

/* Returns whether it came to its end before that call. */
static bool at_call(const struct plan *p, long nr)
{
	struct how how = { .p = p, .fails = true, .stages = p->stages, .keeps = p->keeps };
	struct how again = { .p = p, .stages = true };
	int status;

	make_file(p);
	if (p->stages)
		drain_the_rest(p, nr);
	calls_left = nr;
	status = in_child(drain, &how);
	cr_assert_lt(status, 8, "call %ld: %d", nr, status);
	cr_assert_eq(read_image(), 0, "call %ld", nr);
	cr_assert_eq(image_check(NULL), 0, "call %ld: check", nr);
	if (p->stages || !(status & SAID))
		cr_assert_eq(read_without_the_place(), 0, "call %ld: it said %d, without the place", nr,
			     status);
	if (p->stages) {
		cr_assert((status & SAID) || near_count("data.") == 2, "call %ld: it said that it is staged",
			  nr);
		cr_assert_eq(in_child(drain, &again), 0, "call %ld: the next one", nr);
		cr_assert_eq(near_count("data."), 2, "call %ld: a temporary file, or none", nr);
	} else {
		drain_the_rest(p, nr);
	}
	cr_assert_eq(read_image(), 0, "call %ld, gone on with", nr);
	cr_assert_eq(image_check(NULL), 0, "call %ld: check, gone on with", nr);
	cr_assert_eq(in_child(remove_it, NULL), 0);
	cr_assert_eq(count_files("data.") + near_count("data."), 0, "call %ld: logs of a removed file", nr);
	return status & NONE_FAILED;
}

static void at_each_call(struct plan p)
{
	struct turn turn = turn_begin(p.on ? 61 : 37);

	bad_errno = p.err;
	goes_on = p.on;
	while (!at_call(&p, turn.nr))
		turn.nr += turn.step;
	cr_assert_gt(turn.nr, 60);
	cr_log_info("%ld calls\n", turn.nr);
}

#define DRAINS(name, ...) \
	Test(crash_drain_fails, name) { at_each_call((struct plan){ .err = EIO, __VA_ARGS__ }); } \
	Test(crash_drain_fails, name##_where_the_disk_is_full) \
	{ \
		at_each_call((struct plan){ .err = ENOSPC, __VA_ARGS__ }); \
	} \
	Test(crash_drain_fails, name##_over_quota) \
	{ \
		at_each_call((struct plan){ .err = EDQUOT, __VA_ARGS__ }); \
	} \
	Test(crash_drain_fails, name##_of_stale_files) \
	{ \
		at_each_call((struct plan){ .err = ESTALE, __VA_ARGS__ }); \
	} \
	Test(crash_drain_fails, name##_for_good) \
	{ \
		at_each_call((struct plan){ .err = EIO, .on = true, __VA_ARGS__ }); \
	} \
	Test(crash_drain_fails, name##_where_the_disk_is_full_for_good) \
	{ \
		at_each_call((struct plan){ .err = ENOSPC, .on = true, __VA_ARGS__ }); \
	}

DRAINS(a_drain_loses_nothing, .place = false)
DRAINS(a_drain_of_a_place_loses_nothing, .place = true)
DRAINS(a_drain_that_closes_a_killed_writers_log_loses_nothing, .killed = true)
DRAINS(a_drain_that_keeps_copies_loses_nothing, .keeps = true)
DRAINS(a_staging_loses_nothing, .stages = true)
