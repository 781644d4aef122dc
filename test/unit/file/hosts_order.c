/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random histories of processes of three hosts that keep one file open (told_model.h), with the command
 * beside. One call comes after the other, or is made in the midst of another one; of the latter there is a
 * third as many (rounds.h). Or a process is stopped in the midst of a call while others go on.
 */
#include "test/lib/near.h"
#include "test/lib/rounds.h"
#include "test/lib/told_kinds.h"
#include "test/lib/told_random.h"

#include <criterion/criterion.h>

enum { STEPS = 40 };

/* ---- what was wrong once ---- */

/*
 * Process 1 has read the file before any process of its host wrote it. There was nothing by which it could
 * learn that process 0 began; @writes: and then it wrote itself.
 */
static void reads_what_another_of_its_host_begins(bool writes)
{
	told_start();
	model_begin();
	cr_assert(model_step(3, OPEN, 0, 0) && model_step(3, WRITE, 1000, 180) && model_step(3, CLOSE, 0, 0));
	cr_assert(model_step(1, OPEN, 0, 0) && model_step(1, READ, 0, 0));
	cr_assert(model_step(0, OPEN, 0, 0) && model_step(0, WRITE, 900, 49));
	cr_assert(!writes || model_step(1, WRITE, 0, 10));
	cr_assert(model_step(1, READ, 0, 0));
	told_end();
}

/* Its unlock has learnt of the truncation; the map of its last read has not. */
static void reads_nothing_that_was_cut(void)
{
	told_start();
	model_begin();
	cr_assert(model_step(0, OPEN, 0, 0) && model_step(0, READ, 0, 0));
	cr_assert(model_step(1, OPEN, 0, 0) && model_step(1, WRITE, 800, 56) && model_step(1, READ, 0, 0));
	cr_assert(model_step(0, CUT, 0, 0));
	cr_assert(model_step(1, COMMIT, 0, 0) && model_step(1, READ, 0, 0));
	told_end();
}

/*
 * Host three, whose clock is ahead, truncates it; host two does so after that, and writes, without a look in
 * between. When it truncates that away, no host has lost anything.
 */
static void truncates_behind_one_that_is_ahead(void)
{
	told_start();
	model_begin();
	cr_assert(model_step(1, OPEN, 0, 0) && model_step(1, WRITE, 200, 106));
	cr_assert(model_step(2, OPEN, 0, 0) && model_step(3, OPEN, 0, 0) && model_step(3, READ, 0, 0));
	cr_assert(model_step(3, WRITE, 900, 67) && model_step(3, CUT, 0, 0));
	cr_assert(model_step(2, CUT, 0, 0) && model_step(1, CLOSE, 0, 0));
	cr_assert(model_step(2, WRITE, 496, 171) && model_step(3, WRITE, 1432, 66));
	cr_assert(model_step(2, CUT, 0, 0) && model_step(3, WRITE, 0, 27) && model_step(2, CLOSE, 0, 0));
	cr_assert(model_ends(-1));
	told_end();
}

/*
 * Process 0 has written, and closes the file in the midst of an append by process 1 of its host: the append
 * looked at the stub before, and for live files behind it.
 */
static void appends_behind_what_is_closed_meanwhile(void)
{
	told_start();
	for (int call = 1; call <= 100; call++) {
		model_begin();
		cr_assert(model_step(3, OPEN, 0, 0) && model_step(3, WRITE, 400, 191));
		cr_assert(model_step(3, CLOSE, 0, 0));
		cr_assert(model_step(0, OPEN, 0, 0) && model_step(1, OPEN, 0, 0));
		cr_assert(model_step(0, WRITE, 600, 925));
		cr_assert(model_beside((struct model_act){ 1, APPEND, 0, 30 }, call,
				       (struct model_act){ 0, CLOSE, 0, 0 }),
			  "at call %d", call);
		cr_assert(model_ends(-1), "at call %d", call);
		cr_assert_eq(tell(0, (struct told_order){ .act = UNLINK })->ret, 0);
	}
	told_end();
}

/*
 * Process 1 has appended, and keeps the container's lock file open, which a purge of old files removes.
 * Process 0 makes it anew, and is in the midst of an append when process 1 appends again.
 */
static void appends_behind_each_other_when_the_lock_was_purged(void)
{
	char lock[PATH_MAX];

	told_start();
	for (int call = 1; call <= 100; call += 2) {
		model_begin();
		cr_assert(model_step(1, OPEN, 0, 0) && model_step(1, APPEND, 0, 30));
		cr_assert(find_file("lock", lock) && !unlink(lock));
		cr_assert(model_step(0, OPEN, 0, 0));
		cr_assert(model_beside((struct model_act){ 0, APPEND, 0, 30 }, call,
				       (struct model_act){ 1, APPEND, 0, 30 }),
			  "at call %d", call);
		cr_assert(model_ends(-1), "at call %d", call);
		cr_assert_eq(tell(0, (struct told_order){ .act = UNLINK })->ret, 0);
	}
	told_end();
}

/* ---- histories ---- */

static struct model_act random_act(bool cuts)
{
	static const enum told_act acts[] = { CLOSE, WRITE, WRITE, WRITE, WRITE, APPEND, READ, READ, READ,
					 COMMIT, COMMIT, REFRESH, REFRESH, SYNC, COMPACT, CUT };
	static const enum told_act commands[] = { COMPACT, REPAIR, CHECK, REPAIR_ALL, LOOK, COLLECT, DRAIN,
						  BRING,   COPY };
	static const enum told_act near[] = { COMPACT, REPAIR,	   CHECK, LOOK, COLLECT,
					      DRAIN,   DRAIN_KEEP, STAGE, DROP, COPY };
	int who = (int)rounds_rnd(TOLD_PROCS);
	struct model_act a = told_random_act(who, acts[rounds_rnd(ARRAY_SIZE(acts) - !cuts)]);

	if (a.act == PAUSE)
		return a;
	if (told_near && !rounds_rnd(60))
		return (struct model_act){ 0, LOSE, 0, 0 };
	if (told_near && !rounds_rnd(60))
		return (struct model_act){ TOLD_PROCS, FORGET, 0, 0 };
	if (!rounds_rnd(12))
		return (struct model_act){ TOLD_PROCS + (int)rounds_rnd(2),
					   told_near ? near[rounds_rnd(ARRAY_SIZE(near))] :
						       commands[rounds_rnd(ARRAY_SIZE(commands))], 0, 0 };
	return told_random_possible(a);
}

static bool can_be_beside(struct model_act a) { return a.act != PAUSE && a.act != LOSE; }

enum { OTHERS_MAX = 8 };

/* Whether what @who can do is known no more when it has done these. */
static bool is_unknown(const struct model_act *acts, int nr, int who)
{
	for (int i = 0; i < nr; i++)
		if (acts[i].who == who && (acts[i].act == OPEN || acts[i].act == OPEN_READ ||
					   acts[i].act == CLOSE || acts[i].act == KILL))
			return true;
	return false;
}

/* One is stopped in the midst of a call, and goes on when others have done this and that. */
static bool stopped_step(bool cuts)
{
	struct model_act a = random_act(cuts), others[OTHERS_MAX];
	int nr = 0, call = 1 + (int)rounds_rnd(rounds_rnd(2) ? 8 : 60);

	if (!can_be_beside(a) || a.act == KILL)
		return model_step(a.who, a.act, a.off, a.len);
	for (int left = 1 + (int)rounds_rnd(2 * OTHERS_MAX); left && nr < OTHERS_MAX; left--) {
		others[nr] = random_act(cuts);
		nr += others[nr].who != a.who && others[nr].act != LOSE &&
		      !is_unknown(others, nr, others[nr].who);
	}
	return nr ? model_stands(a, call, others, nr) : model_step(a.who, a.act, a.off, a.len);
}

static bool random_step(bool cuts, bool beside)
{
	struct model_act a = random_act(cuts), b = random_act(cuts);
	int call = 1 + (int)rounds_rnd(rounds_rnd(2) ? 8 : 60);

	if (beside && a.who != b.who && can_be_beside(a) && a.act != KILL && can_be_beside(b))
		return model_beside(a, call, b);
	return model_step(a.who, a.act, a.off, a.len);
}

struct kind {
	bool cuts, beside, stops;
};

static bool is_played(const void *how)
{
	const struct kind *k = how;
	int nr;
	bool ok;

	model_begin();
	nr = 4 + (int)rounds_rnd(STEPS - 3 * TOLD_PROCS - 4);
	ok = model_step((int)rounds_rnd(TOLD_PROCS), OPEN, 0, 0);
	for (int i = 1; i < nr && ok; i++)
		ok = k->stops && !rounds_rnd(3) ? stopped_step(k->cuts) : random_step(k->cuts, k->beside);
	ok = ok && model_ends(rounds_rnd(4) ? -1 : (int)rounds_rnd(2));
	return tell(0, (struct told_order){ .act = UNLINK })->ret == 0 && ok;
}

static void play_kind(struct kind k)
{
	told_start();
	cr_assert(rounds_play(100, k.stops ? 6 : k.beside ? 3 : 1, is_played, &k));
	told_end();
}

static void play(bool cuts, bool beside) { play_kind((struct kind){ cuts, beside, false }); }
static void play_with_stops(void) { play_kind((struct kind){ true, false, true }); }

static void setup_at_once(void)
{
	setenv("PLFS_CONSISTENCY", "posix", 1);
	model_at_once = true;
	kind_shared();
}

static void setup_near_at_once(void)
{
	setenv("PLFS_CONSISTENCY", "posix", 1);
	model_at_once = true;
	kind_near();
}

static void setup_copies(void)
{
	scratch_in_memory = true;
	near_setup_copies("");
}

static void setup_apart(void)
{
	told_apart = true;
	kind_shared();
}

TestSuite(hosts_order, .init = kind_shared, .fini = scratch_remove, .timeout = 3600);
TestSuite(hosts_order_at_once, .init = setup_at_once, .fini = scratch_remove, .timeout = 3600);
TestSuite(hosts_order_near, .init = kind_near, .fini = near_remove, .timeout = 3600);
TestSuite(hosts_order_near_at_once, .init = setup_near_at_once, .fini = near_remove, .timeout = 3600);
TestSuite(hosts_order_near_home, .init = kind_near_home, .fini = near_remove, .timeout = 3600);
TestSuite(hosts_order_copies, .init = setup_copies, .fini = near_remove, .timeout = 3600);
TestSuite(hosts_order_apart, .init = setup_apart, .fini = scratch_remove, .timeout = 3600);
TestSuite(hosts_order_local, .init = kind_local, .fini = scratch_remove, .timeout = 3600);
TestSuite(hosts_order_small, .init = kind_small, .fini = scratch_remove, .timeout = 3600);
TestSuite(hosts_order_spread, .init = kind_spread, .fini = near_remove, .timeout = 3600);

Test(hosts_order, what_another_of_the_host_begins_is_read) { reads_what_another_of_its_host_begins(false); }
Test(hosts_order, what_another_of_the_host_began_is_read_by_one_that_writes)
{
	reads_what_another_of_its_host_begins(true);
}
Test(hosts_order, what_another_of_the_host_cut_off_is_not_read) { reads_nothing_that_was_cut(); }
Test(hosts_order, what_was_acquired_is_read_and_the_later_write_wins) { play(false, false); }
Test(hosts_order, also_if_it_is_truncated) { play(true, false); }
Test(hosts_order_at_once, is_that_of_all_calls_with_posix) { play(true, false); }
Test(hosts_order_near, is_the_same_or_an_error_with_logs_that_are_near) { play(true, false); }
Test(hosts_order_near_at_once, is_the_same_or_an_error_also_with_posix) { play(true, false); }
Test(hosts_order_near_home, is_the_same_with_logs_that_a_release_brings_home) { play(true, false); }
Test(hosts_order_copies, is_the_same_with_copies_of_the_logs) { play(true, false); }
Test(hosts_order_spread, is_the_same_with_logs_in_several_backends) { play(true, false); }
Test(hosts_order_local, is_the_same_on_a_local_file_system) { play(true, false); }
Test(hosts_order_small, is_the_same_with_bytes_in_the_stub) { play(true, false); }
Test(hosts_order_apart, is_the_same_with_clocks_that_differ_if_it_is_closed_and_opened) { play(true, false); }
Test(hosts_order_apart, a_truncation_behind_that_of_a_host_that_is_ahead_loses_nothing)
{
	truncates_behind_one_that_is_ahead();
}
Test(hosts_order, also_with_a_call_in_the_midst_of_another) { play(true, true); }
Test(hosts_order_at_once, also_with_a_call_in_the_midst_of_another) { play(true, true); }
Test(hosts_order_near, also_with_a_call_in_the_midst_of_another) { play(true, true); }
Test(hosts_order_near_at_once, also_with_a_call_in_the_midst_of_another) { play(true, true); }
Test(hosts_order_near_home, also_with_a_call_in_the_midst_of_another) { play(true, true); }
Test(hosts_order_copies, also_with_a_call_in_the_midst_of_another) { play(true, true); }
Test(hosts_order_apart, also_with_a_call_in_the_midst_of_another) { play(true, true); }
Test(hosts_order, an_append_is_behind_what_is_closed_meanwhile) { appends_behind_what_is_closed_meanwhile(); }
Test(hosts_order_near, an_append_is_behind_what_is_closed_meanwhile)
{
	appends_behind_what_is_closed_meanwhile();
}
Test(hosts_order_local, also_with_a_call_in_the_midst_of_another) { play(true, true); }
Test(hosts_order_small, also_with_a_call_in_the_midst_of_another) { play(true, true); }
Test(hosts_order_spread, also_with_a_call_in_the_midst_of_another) { play(true, true); }
Test(hosts_order, also_if_a_process_is_stopped_for_a_while) { play_with_stops(); }
Test(hosts_order_local, also_if_a_process_is_stopped_for_a_while) { play_with_stops(); }
Test(hosts_order_small, also_if_a_process_is_stopped_for_a_while) { play_with_stops(); }
Test(hosts_order_near, also_if_a_process_is_stopped_for_a_while) { play_with_stops(); }
Test(hosts_order_near_home, also_if_a_process_is_stopped_for_a_while) { play_with_stops(); }
Test(hosts_order_spread, also_if_a_process_is_stopped_for_a_while) { play_with_stops(); }
Test(hosts_order_at_once, also_if_a_process_is_stopped_for_a_while) { play_with_stops(); }
Test(hosts_order, appends_do_not_meet_when_the_lock_file_was_purged)
{
	appends_behind_each_other_when_the_lock_was_purged();
}
Test(hosts_order_local, appends_do_not_meet_when_the_lock_file_was_purged)
{
	appends_behind_each_other_when_the_lock_was_purged();
}
