/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random histories of processes of three hosts with a file whose logs, copies or parity are in several
 * backends (told_lost.h): some of them go away and come back, and logs are damaged.
 */
#include "test/lib/near.h"
#include "test/lib/rounds.h"
#include "test/lib/spoil.h"
#include "test/lib/three.h"
#include "test/lib/told_lost.h"
#include "test/lib/told_random.h"

#include <criterion/criterion.h>

enum { STEPS = 50 };

static enum lost_kind kind;

/* ---- what was wrong once ---- */

static int write_elsewhere(void *arg)
{
	be_host("elsewhere");
	return image_write_piece(arg);
}

/* This host has no log in the backend 2 when that is not mounted, and another host has one there. */
static void writes_nothing_below(void)
{
	three_write_into(2, 1, write_elsewhere);
	three_lose(2, true);
	three_write(1, 13, 2);
	cr_assert_eq(three_logs(2), 0);
	three_bring_back(2);
	cr_assert_eq(image_look(), 0);
}

static int write_and_sync_elsewhere(void *arg)
{
	struct lfile l;

	(void)arg;
	be_host("elsewhere");
	l = made("a");
	if (lfill(&l, 0, 1000, 1) != 1000 || plfs_sync(l.f))
		return 1;
	return lfill(&l, 1000, 1000, 1) != 1000 || lclose(&l);
}

/* Of a chunk that was synced in part another host cannot tell damage from what a power failure has left. */
static void reads_a_copy_of_what_was_synced_in_part(void)
{
	size_t step = 700;
	char log[PATH_MAX];

	cr_assert_eq(in_child(write_and_sync_elsewhere, NULL), 0);
	image_note(0, 2000, 1);
	cr_assert_gt(image_drain(), 0);
	cr_assert(find_file("data.", log) || near_find("data.", log));
	spoil_bit(log, 65536 + 1500);
	cr_assert_eq(in_child(image_read, &step), 0);
}

enum { NOT_THERE = 77 };

/* Its log is read by parity, and is there again when it goes on with it. */
static int go_on_with_what_was_rebuilt(void *arg)
{
	char path[PATH_MAX], aside[PATH_MAX];
	int before = three_logs(2);
	struct lfile l = made("a");

	(void)arg;
	if (lfill(&l, 0, 1000, 1) != 1000 || lclose(&l))
		return 1;
	if (three_logs(2) == before)
		return NOT_THERE;
	three_other(path, 2);
	snprintf(aside, sizeof(aside), "%s/aside", near_dir);
	if (image_drain_here() >= 50 || rename(path, aside))
		return 2;
	l = lopen("a", O_RDWR);
	if (lcheck(&l, 0, 1000, 1) || rename(aside, path))
		return 3;
	if (lfill(&l, 1000, 1000, 1) != 1000 || lcheck(&l, 0, 2000, 1))
		return 4;
	if (plfs_commit(l.f) || plfs_refresh(l.f) || lcheck(&l, 0, 2000, 1) || plfs_sync(l.f) ||
	    lcheck(&l, 0, 2000, 1))
		return 5;
	return lclose(&l) ? 6 : 0;
}

static void goes_on_with_what_was_rebuilt(void)
{
	int ret = NOT_THERE;

	for (int tries = 0; ret == NOT_THERE && tries < 60; tries++)
		ret = in_child(go_on_with_what_was_rebuilt, NULL);
	cr_assert_eq(ret, 0, "%d", ret);
}

/* The process @who writes, until it is one with its log in the backend 3. */
static void begin_with_log_there(int who)
{
	for (int tries = 0; tries < 60; tries++) {
		model_begin();
		cr_assert(model_step(who, OPEN, 0, 0));
		cr_assert(model_step(2, OPEN, 0, 0));
		cr_assert(model_step(who, WRITE, 300, 1056));
		if (lost_has_logs(3, who))
			return;
		model_step(who, KILL, 0, 0);
		model_step(2, CLOSE, 0, 0);
		tell(0, (struct told_order){ .act = UNLINK });
	}
	cr_assert(false);
}

static void appends_behind_what_is_away(void)
{
	lost_begin(kind);
	told_start();
	begin_with_log_there(1);
	cr_assert(model_step(1, KILL, 0, 0));
	cr_assert(model_step(0, AWAY, 3, 0));
	cr_assert(model_step(2, WRITE, 800, 2));
	cr_assert(model_step(2, SYNC, 0, 0));
	cr_assert(model_step(2, APPEND, 0, 30));
	told_end();
}

/* ---- histories ---- */

static size_t any_other(void) { return 2 + rounds_rnd((size_t)near_last - 1); }

static enum told_act away_act(void)
{
	if (!lost_away || !rounds_rnd(6))
		return AWAY;
	return kind != LOST_MIRROR && !rounds_rnd(6) ? WIPE : BACK;
}

static size_t one_that_is_there(void)
{
	size_t i = 2;

	while (i < (size_t)near_last && lost_away >> i & 1)
		i++;
	return i;
}

static size_t one_that_is_away(void)
{
	size_t i = 2;

	while (i < (size_t)near_last && !(lost_away >> i & 1))
		i++;
	return i;
}

static struct model_act random_act(void)
{
	static const enum told_act acts[] = { CLOSE, CLOSE, CLOSE, WRITE, WRITE, WRITE, WRITE, APPEND, READ,
					      READ, READ, COMMIT, COMMIT, REFRESH, REFRESH, SYNC, CUT };
	static const enum told_act commands[] = { COMPACT, REPAIR, CHECK, COLLECT, LOOK, COPY,
						  BRING,   DRAIN,  DRAIN, DRAIN };
	int who = (int)rounds_rnd(TOLD_PROCS);
	struct model_act a = told_random_act(who, acts[rounds_rnd(ARRAY_SIZE(acts))]);

	if (a.act == PAUSE)
		return a;
	if (!rounds_rnd(lost_away ? 6 : 10))
		return (struct model_act){ 0, away_act(), any_other(), 0 };
	if (!rounds_rnd(30) && lost_may_be_forgotten((int)one_that_is_away()))
		return (struct model_act){ TOLD_PROCS, FORGET, one_that_is_away(), 0 };
	if (told_once && !rounds_rnd(15))
		return (struct model_act){ 0, FLIP, 0, 0 };
	if (!rounds_rnd(7))
		return (struct model_act){ TOLD_PROCS + (int)rounds_rnd(2),
					   commands[rounds_rnd(ARRAY_SIZE(commands))], 0, 0 };
	return told_random_possible(a);
}

/* All close it, what is away is made anew, and then another backend goes too. */
static bool repair_and_lose_another(void)
{
	int reader = (int)rounds_rnd(TOLD_PROCS);
	bool ok = true;

	for (int who = 0; who < TOLD_PROCS && ok; who++)
		ok = !model_is_open[who] || model_step(who, CLOSE, 0, 0);
	return ok && model_step(TOLD_PROCS, REPAIR, 0, 0) && model_step(TOLD_PROCS, DRAIN, 0, 0) &&
	       model_step(0, AWAY, one_that_is_there(), 0) && model_step(reader, OPEN, 0, 0) &&
	       model_step(reader, READ, 0, 0);
}

static bool random_step(void)
{
	struct model_act a;

	if (kind == LOST_PARITY && lost_away && !rounds_rnd(12))
		return repair_and_lose_another();
	a = random_act();
	if (!lost_amid || rounds_rnd(3) || a.act >= AWAY || a.act == PAUSE || a.act == KILL)
		return model_step(a.who, a.act, a.off, a.len);
	return model_beside(a, 1 + (int)rounds_rnd(rounds_rnd(2) ? 8 : 60),
			    (struct model_act){ 0, rounds_rnd(5) ? AWAY : KILL, any_other(), 0 });
}

static bool all_back(void)
{
	bool ok = true;

	for (size_t i = 2; i <= (size_t)near_last && ok; i++)
		ok = model_step(0, BACK, i, 0);
	return ok;
}

static bool is_played(const void *how)
{
	bool stays_away, ok;
	int nr, flattened;

	(void)how;
	model_begin();
	nr = 4 + (int)rounds_rnd(STEPS - 4);
	ok = model_step((int)rounds_rnd(TOLD_PROCS), OPEN, 0, 0);
	for (int i = 1; i < nr && ok; i++)
		ok = random_step();
	stays_away = !rounds_rnd(4);
	flattened = rounds_rnd(4) ? -1 : (int)rounds_rnd(2);
	ok = ok && (stays_away || all_back()) && model_ends(flattened);
	ok = tell(0, (struct told_order){ .act = UNLINK })->ret == 0 && ok;
	return all_back() && lost_leaves_nothing() && ok;
}

static void play(bool amid)
{
	lost_amid = amid;
	lost_begin(kind);
	told_start();
	cr_assert(rounds_play(40, 1, is_played, NULL));
	told_end();
}

static void setup_spread(void)
{
	kind = LOST_SPREAD;
	scratch_in_memory = true;
	near_spread("process");
}

static void setup_parity(void)
{
	kind = LOST_PARITY;
	scratch_in_memory = true;
	near_spread("process,parity=1,drain=none");
}

static void setup_two(void)
{
	kind = LOST_PARITY;
	lost_survives = 2;
	near_last = 4;
	scratch_in_memory = true;
	near_spread("process,parity=2,drain=none");
}

static void setup_two_damaged(void)
{
	told_once = true;
	setup_two();
}

static void setup_parity_damaged(void)
{
	told_once = true;
	setup_parity();
}

static void setup_mirror(void)
{
	kind = LOST_MIRROR;
	scratch_in_memory = true;
	near_share("mirror=3,drain=none");
}

static void setup_mirror_damaged(void)
{
	told_once = true;
	setup_mirror();
}

TestSuite(hosts_lost_spread, .init = setup_spread, .fini = near_remove, .timeout = 3600);
TestSuite(hosts_lost_parity, .init = setup_parity, .fini = near_remove, .timeout = 3600);
TestSuite(hosts_lost_two, .init = setup_two, .fini = near_remove, .timeout = 3600);
TestSuite(hosts_lost_two_damaged, .init = setup_two_damaged, .fini = near_remove, .timeout = 3600);
TestSuite(hosts_lost_parity_damaged, .init = setup_parity_damaged, .fini = near_remove, .timeout = 3600);
TestSuite(hosts_lost_mirror_damaged, .init = setup_mirror_damaged, .fini = near_remove, .timeout = 3600);
TestSuite(hosts_lost_mirror, .init = setup_mirror, .fini = near_remove, .timeout = 3600);

Test(hosts_lost_spread, nothing_is_written_where_a_backend_of_other_hosts_is_not_mounted)
{
	writes_nothing_below();
}
Test(hosts_lost_spread, nothing_is_appended_before_an_end_that_only_a_lost_backend_knows)
{
	appends_behind_what_is_away();
}
Test(hosts_lost_spread, what_is_read_is_right_or_an_error_while_a_backend_is_away) { play(false); }
Test(hosts_lost_parity, what_is_covered_is_read_while_a_backend_is_away) { play(false); }
Test(hosts_lost_mirror, no_call_fails_while_backends_are_away) { play(false); }
Test(hosts_lost_parity, a_log_that_was_synced_in_part_is_rebuilt_for_other_hosts)
{
	reads_a_copy_of_what_was_synced_in_part();
}
Test(hosts_lost_mirror, a_log_that_was_synced_in_part_is_read_from_its_copy_by_other_hosts)
{
	reads_a_copy_of_what_was_synced_in_part();
}
Test(hosts_lost_parity, a_process_that_read_its_log_by_parity_goes_on_with_it)
{
	goes_on_with_what_was_rebuilt();
}
Test(hosts_lost_parity_damaged, what_is_there_twice_is_read_and_the_rest_is_right_or_an_error)
{
	play(false);
}
Test(hosts_lost_mirror_damaged, what_is_there_twice_is_read_and_the_rest_is_right_or_an_error)
{
	play(false);
}
Test(hosts_lost_spread, also_in_the_midst_of_a_call_that_may_be_the_last) { play(true); }
Test(hosts_lost_parity, also_in_the_midst_of_a_call_that_may_be_the_last) { play(true); }
Test(hosts_lost_two, what_is_covered_is_read_while_two_backends_are_away) { play(false); }
Test(hosts_lost_two, also_in_the_midst_of_a_call_that_may_be_the_last) { play(true); }
Test(hosts_lost_two_damaged, what_is_there_twice_is_read_and_the_rest_is_right_or_an_error) { play(false); }
Test(hosts_lost_mirror, also_in_the_midst_of_a_call_that_may_be_the_last) { play(true); }
