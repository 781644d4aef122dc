/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process of three hosts is stopped before a system call of what it does to a sound file, and plfs check,
 * repair or gc is run meanwhile; or a command is stopped, and others write. No damage is found, and
 * nothing is lost (told_model.h). Some calls have their turn (turn.h).
 */
#include "test/lib/near.h"
#include "test/lib/told_kinds.h"
#include "test/lib/told_model.h"
#include "test/lib/turn.h"

#include <criterion/criterion.h>

enum { CALLS = 160 };

/* FRESH: it has a length, and no logs. Else process 3 has closed a log, and 0 and 2 have some of theirs. */
enum before { OPENED, CLOSED, KILLED, FRESH };

struct stopped {
	struct model_act a;
	enum before before;
};

static bool begin_fresh(int who)
{
	return model_step(who, OPEN, 0, 0) && model_step(who, CUT, 700, 0) && model_step(who, SYNC, 0, 0);
}

static bool write_logs(enum before before, int who, size_t off)
{
	bool ok = model_step(who, OPEN, 0, 0) && model_step(who, WRITE, off, 500) &&
		  model_step(who, COMMIT, 0, 0) && model_step(who, WRITE, 1200, 30);

	if (before != OPENED)
		ok = ok && model_step(who, before == CLOSED ? CLOSE : KILL, 0, 0);
	return ok;
}

static bool begin(const struct stopped *s)
{
	if (s->before == FRESH)
		return begin_fresh(s->a.who);
	return model_step(3, OPEN, 0, 0) && model_step(3, WRITE, 100, 900) && model_step(3, CLOSE, 0, 0) &&
	       write_logs(s->before, 0, 0) && write_logs(s->before, 2, 400) &&
	       (s->before != OPENED || model_step(1, OPEN, 0, 0));
}

static const struct stopped open_acts[] = {
	{ { 1, WRITE, 300, 600 }, OPENED }, { { 1, APPEND, 0, 30 }, OPENED },
	{ { 0, WRITE, 300, 600 }, OPENED },
	{ { 0, APPEND, 0, 30 }, OPENED }, { { 0, CUT, 0, 0 }, OPENED }, { { 0, CUT, 450, 0 }, OPENED },
	{ { 0, CUT, 2000, 0 }, OPENED },    { { 1, CUT, 450, 0 }, OPENED },     { { 0, SYNC, 0, 0 }, OPENED },
	{ { 1, SYNC, 0, 0 }, OPENED }, { { 0, COMMIT, 0, 0 }, OPENED }, { { 0, CLOSE, 0, 0 }, OPENED },
	{ { 1, CLOSE, 0, 0 }, OPENED },     { { 1, READ, 0, 0 }, OPENED },      { { 1, OPEN, 0, 0 }, CLOSED },
	{ { 1, OPEN, 0, 0 }, KILLED }, { { 1, WRITE, 300, 600 }, FRESH }, { { 1, APPEND, 0, 30 }, FRESH },
	{ { 3, CUT, 300, 0 }, FRESH },      { { 3, SYNC, 0, 0 }, FRESH },
};

static const struct stopped commands[] = {
	{ { 4, COMPACT, 0, 0 }, CLOSED }, { { 4, COMPACT, 0, 0 }, KILLED }, { { 4, REPAIR, 0, 0 }, KILLED },
	{ { 4, COLLECT, 0, 0 }, KILLED }, { { 4, DRAIN, 0, 0 }, CLOSED }, { { 4, DRAIN, 0, 0 }, KILLED },
	{ { 4, BRING, 0, 0 }, CLOSED }, { { 4, BRING, 0, 0 }, KILLED }, { { 4, CHECK, 0, 0 }, OPENED },
	{ { 4, LOOK, 0, 0 }, OPENED }, { { 4, LOOK, 0, 0 }, CLOSED }, { { 4, REPAIR_ALL, 0, 0 }, KILLED },
	{ { 4, COLLECT, 0, 0 }, CLOSED },   { { 4, COPY, 0, 0 }, CLOSED },
};

/* What is done whole in the midst of a command. */
enum { IN_A_ROW = 4 };
static const struct model_act rows[][IN_A_ROW] = {
	{ { 1, OPEN, 0, 0 }, { 1, WRITE, 300, 600 }, { 1, CLOSE, 0, 0 } },
	{ { 1, OPEN, 0, 0 }, { 1, WRITE, 300, 600 }, { 1, KILL, 0, 0 } },
	{ { 3, OPEN, 0, 0 }, { 3, APPEND, 0, 30 }, { 3, CLOSE, 0, 0 } },
	{ { 1, OPEN, 0, 0 }, { 1, CUT, 450, 0 }, { 1, APPEND, 0, 30 }, { 1, CLOSE, 0, 0 } },
	{ { 3, OPEN, 0, 0 }, { 3, CUT, 0, 0 }, { 3, WRITE, 100, 50 }, { 3, CLOSE, 0, 0 } },
	{ { 1, OPEN, 0, 0 }, { 1, CUT, 0, 0 }, { 1, WRITE, 100, 50 }, { 1, SYNC, 0, 0 } },
	{ { 5, COMPACT, 0, 0 }, { 3, OPEN_READ, 0, 0 }, { 3, READ, 0, 0 }, { 3, CLOSE, 0, 0 } },
	{ { 5, REPAIR, 0, 0 }, { 5, CHECK, 0, 0 }, { 5, LOOK, 0, 0 }, { 5, COLLECT, 0, 0 } },
};

/* @b does its act at call @call of @s, and all is well then. */
static bool meets(const struct stopped *s, int call, struct model_act b)
{
	bool ok;

	model_begin();
	ok = begin(s) && model_beside(s->a, call, b) && model_ends(-1);
	return tell(0, (struct told_order){ .act = UNLINK })->ret == 0 && ok;
}

static void meet(const struct stopped *s, size_t nr, enum told_act act)
{
	for (size_t i = 0; i < nr; i++) {
		struct turn t = turn_begin(151);

		for (; t.nr <= CALLS; t.nr += t.step) {
			struct model_act b = { s[i].a.who == 4 || t.nr % 2 ? 5 : 4, act, 0, 0 };

			cr_assert(meets(&s[i], (int)t.nr, b), "%s by %d, at call %ld",
				  told_act_names[s[i].a.act], s[i].a.who, t.nr);
		}
	}
}

static void meet_all(enum told_act act)
{
	told_start();
	meet(open_acts, ARRAY_SIZE(open_acts), act);
	meet(commands, ARRAY_SIZE(commands), act);
	told_end();
}

static bool is_met(const struct stopped *s, int call, const struct model_act *row)
{
	int nr = 1;
	bool ok;

	while (nr < IN_A_ROW && (row[nr].who || row[nr].act))
		nr++;
	model_begin();
	ok = begin(s) && model_stands(s->a, call, row, nr) && model_ends(-1);
	return tell(0, (struct told_order){ .act = UNLINK })->ret == 0 && ok;
}

static void meet_commands(void)
{
	told_start();
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		for (size_t j = 0; j < ARRAY_SIZE(rows); j++)
			for (struct turn t = turn_begin(301); t.nr <= CALLS; t.nr += t.step)
				if (commands[i].before != OPENED || rows[j]->who != 1)
					cr_assert(is_met(&commands[i], (int)t.nr, rows[j]),
						  "%s, and row %zu, at call %ld",
						  told_act_names[commands[i].a.act], j, t.nr);
	told_end();
}

static void setup_copies(void)
{
	scratch_in_memory = true;
	near_setup_copies(",drain=none");
}

static void setup_parity(void)
{
	scratch_in_memory = true;
	near_spread("process,parity=1,drain=none");
}

TestSuite(hosts_check, .init = kind_shared, .fini = scratch_remove, .timeout = 3600);
TestSuite(hosts_check_local, .init = kind_local, .fini = scratch_remove, .timeout = 3600);
TestSuite(hosts_check_small, .init = kind_small, .fini = scratch_remove, .timeout = 3600);
TestSuite(hosts_check_near, .init = kind_near, .fini = near_remove, .timeout = 3600);
TestSuite(hosts_check_near_home, .init = kind_near_home, .fini = near_remove, .timeout = 3600);
TestSuite(hosts_check_copies, .init = setup_copies, .fini = near_remove, .timeout = 3600);
TestSuite(hosts_check_spread, .init = kind_spread, .fini = near_remove, .timeout = 3600);
TestSuite(hosts_check_parity, .init = setup_parity, .fini = near_remove, .timeout = 3600);

Test(hosts_check, a_check_finds_no_damage_whichever_call_it_meets) { meet_all(CHECK); }
Test(hosts_check_local, a_check_finds_no_damage_whichever_call_it_meets) { meet_all(CHECK); }
Test(hosts_check_small, a_check_finds_no_damage_whichever_call_it_meets) { meet_all(CHECK); }
Test(hosts_check_near, a_check_finds_no_damage_whichever_call_it_meets) { meet_all(CHECK); }
Test(hosts_check_near_home, a_check_finds_no_damage_whichever_call_it_meets) { meet_all(CHECK); }
Test(hosts_check_copies, a_check_finds_no_damage_whichever_call_it_meets) { meet_all(CHECK); }
Test(hosts_check_spread, a_check_finds_no_damage_whichever_call_it_meets) { meet_all(CHECK); }
Test(hosts_check_parity, a_check_finds_no_damage_whichever_call_it_meets) { meet_all(CHECK); }
Test(hosts_check, a_repair_loses_nothing_whichever_call_it_meets) { meet_all(REPAIR); }
Test(hosts_check_local, a_repair_loses_nothing_whichever_call_it_meets) { meet_all(REPAIR); }
Test(hosts_check_small, a_repair_loses_nothing_whichever_call_it_meets) { meet_all(REPAIR); }
Test(hosts_check_near, a_repair_loses_nothing_whichever_call_it_meets) { meet_all(REPAIR); }
Test(hosts_check_near_home, a_repair_loses_nothing_whichever_call_it_meets) { meet_all(REPAIR); }
Test(hosts_check_copies, a_repair_loses_nothing_whichever_call_it_meets) { meet_all(REPAIR); }
Test(hosts_check_spread, a_repair_loses_nothing_whichever_call_it_meets) { meet_all(REPAIR); }
Test(hosts_check_parity, a_repair_loses_nothing_whichever_call_it_meets) { meet_all(REPAIR); }
Test(hosts_check, a_command_loses_nothing_of_what_is_done_at_any_call_of_it) { meet_commands(); }
Test(hosts_check_local, a_command_loses_nothing_of_what_is_done_at_any_call_of_it) { meet_commands(); }
Test(hosts_check_small, a_command_loses_nothing_of_what_is_done_at_any_call_of_it) { meet_commands(); }
Test(hosts_check_near, a_command_loses_nothing_of_what_is_done_at_any_call_of_it) { meet_commands(); }
Test(hosts_check_near_home, a_command_loses_nothing_of_what_is_done_at_any_call_of_it) { meet_commands(); }
Test(hosts_check_copies, a_command_loses_nothing_of_what_is_done_at_any_call_of_it) { meet_commands(); }
Test(hosts_check_spread, a_command_loses_nothing_of_what_is_done_at_any_call_of_it) { meet_commands(); }
Test(hosts_check_parity, a_command_loses_nothing_of_what_is_done_at_any_call_of_it) { meet_commands(); }
Test(hosts_check, a_collection_loses_nothing_whichever_call_it_meets) { meet_all(COLLECT); }
Test(hosts_check_local, a_collection_loses_nothing_whichever_call_it_meets) { meet_all(COLLECT); }
Test(hosts_check_small, a_collection_loses_nothing_whichever_call_it_meets) { meet_all(COLLECT); }
Test(hosts_check_near, a_collection_loses_nothing_whichever_call_it_meets) { meet_all(COLLECT); }
Test(hosts_check_near_home, a_collection_loses_nothing_whichever_call_it_meets) { meet_all(COLLECT); }
Test(hosts_check_copies, a_collection_loses_nothing_whichever_call_it_meets) { meet_all(COLLECT); }
Test(hosts_check_spread, a_collection_loses_nothing_whichever_call_it_meets) { meet_all(COLLECT); }
Test(hosts_check_parity, a_collection_loses_nothing_whichever_call_it_meets) { meet_all(COLLECT); }
