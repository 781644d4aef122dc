/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Acts at random. Seeds stand for histories: the order of the numbers that are drawn stays.
 */
#include "test/lib/told_random.h"

#include "test/lib/rounds.h"

struct model_act told_random_act(int who, enum told_act act)
{
	struct model_act a = { .who = who, .act = act };

	a.off = rounds_rnd(8) ? rounds_rnd(12) * 100 : rounds_rnd(TOLD_LEN - 1200);
	a.len = a.act == APPEND ? 30 : 1 + rounds_rnd(rounds_rnd(2) ? 200 : 1200);
	if (a.act == CUT && rounds_rnd(2))
		a.off = 0;
	if (!rounds_rnd(60)) /* longer than a lease lasts, or than clocks differ */
		return (struct model_act){ a.who, PAUSE, rounds_rnd(2) ? 9000 : 25000, 0 };
	return a;
}

struct model_act told_random_possible(struct model_act a)
{
	if (!model_is_open[a.who])
		a.act = rounds_rnd(4) ? OPEN : OPEN_READ;
	else if (!rounds_rnd(30))
		a.act = KILL;
	else if (model_only_reads[a.who] && (a.act == WRITE || a.act == APPEND || a.act == CUT))
		a.act = READ;
	return a;
}
