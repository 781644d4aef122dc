/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A history whose last call is killed at each of its system calls. A plain directory says what it is without
 * that call, and with it: what is then read, by those who live on and by a process that comes later, is byte
 * by byte one or the other, and stays so. Acknowledged bytes are in both. A command of ours that is killed
 * changes nothing that anybody sees, whatever he does then.
 */
#define _GNU_SOURCE
#include "histories.h"

#include <stdio.h>
#include <string.h>

enum { CALLS_MAX = 120, COMMAND_CALLS_MAX = 1500, BYTES_MAX = 4096 };

static struct outcome before[STEPS_MAX], after[STEPS_MAX], got[STEPS_MAX];

struct bytes {
	long len; /* -1: there is no such file */
	unsigned char at[BYTES_MAX];
};

static void bytes_of(struct bytes *b, const struct outcome *o)
{
	long off = 0;

	memset(b, 0, sizeof(*b));
	b->len = o->err ? -1 : (long)o->ret;
	for (uint32_t i = 0; i < o->nr_runs && i < RUNS_MAX; i++)
		for (uint32_t k = 0; k < o->runs[i].len && off < BYTES_MAX; k++)
			b->at[off++] = o->runs[i].byte;
}

/*
 * Between the two: a size between the sizes, each byte that of one of them, or zero where one of them has
 * none.
 */
static bool is_between(const struct outcome *x, const struct outcome *y, const struct outcome *o)
{
	static struct bytes a, b, c;

	if (o->err || x->err || y->err)
		return false;
	bytes_of(&a, x);
	bytes_of(&b, y);
	bytes_of(&c, o);
	if ((c.len < a.len && c.len < b.len) || (c.len > a.len && c.len > b.len))
		return false;
	for (long i = 0; i < c.len && o->nr_runs; i++) {
		bool cut = i >= a.len || i >= b.len;

		if (!(i < a.len && c.at[i] == a.at[i]) && !(i < b.len && c.at[i] == b.at[i]) &&
		    !(cut && !c.at[i]))
			return false;
	}
	return true;
}

static bool is_cut(enum call call)
{
	return call == CUT0 || call == CUT70 || call == FCUT30 || call == FCUT200 || call == TRUNC;
}

/* The first step that cannot be; -1: none. */
static int judge_kill(const struct history *h, int last, int again, int apart)
{
	int i;

	for (i = 0; i < last; i++)
		if (!outcome_equal(&before[i], &got[i]))
			return -1; /* it differs without a kill already, and is told then */
	for (i = last + 1; i < h->nr; i++) {
		if (outcome_equal(&before[i], &got[i]) || outcome_equal(&after[i], &got[i]))
			continue;
		if (is_cut(h->steps[last].call) || !is_between(&before[i], &after[i], &got[i]))
			return i;
		allow(A_PART_OF_A_WRITE);
	}
	for (i = again; i < h->nr; i++) /* what was seen once stays */
		if (h->steps[i].slot == S && !outcome_equal(&got[i], &got[i - apart]))
			return i;
	return -1;
}

/* Those who have the file open look, write and look again, and so does one who opens it anew. */
static void add_what_follows(struct history *h, struct scene *sc)
{
	static const enum call anew[] = { STAT, OPEN, PREAD, WRITE, PREAD, FSTAT, CLOSE, STAT, LOOK, LOOK_G };

	for (int s = P; s <= R; s++) {
		int d = sc->depth[s], n = sc->at[s][d].nr_fds;

		if (!n)
			continue;
		history_add(h, (enum slot)s, FSTAT);
		history_add(h, (enum slot)s, PREAD);
		if (sc->at[s][d].writable[n - 1])
			history_add(h, (enum slot)s, WRITE);
		history_add(h, (enum slot)s, PREAD);
	}
	for (size_t i = 0; i < sizeof(anew) / sizeof(anew[0]); i++)
		history_add(h, S, anew[i]);
	history_add_looks(h, sc);
}

static void killed_command_try(const struct variant *v, const struct history *h)
{
	struct history whole = *h;
	int last = h->nr - 1, i;
	struct scene sc = { 0 };
	bool done = false;

	for (i = 0; i < last; i++)
		scene_step(&sc, h->steps[i]);
	add_what_follows(&whole, &sc);
	__atomic_fetch_add(&tally()->histories, 1, __ATOMIC_RELAXED);
	drive(&variants[0], &whole, before);
	for (int nr = 1; nr <= COMMAND_CALLS_MAX && !done; nr++) {
		__atomic_fetch_add(&tally()->kills, 1, __ATOMIC_RELAXED);
		drive_and_kill(v, &whole, last, nr, got, &done);
		for (i = 0; i < whole.nr && outcome_equal(&before[i], &got[i]); i++)
			;
		if (i == whole.nr)
			continue;
		inner_found(v, &whole, (struct inner){ KILLED, last, nr, 0 }, i, &before[i], &before[i],
			    &got[i]);
		return;
	}
}

/* @h without its looks; its last step is the one that is killed in. */
void killed_try(const struct variant *v, const struct history *h)
{
	int last = h->nr - 1, first, again, at;
	struct history whole = *h, without;
	enum call call = h->steps[last].call;
	struct scene sc = { 0 };
	bool done = false;

	if (call_command(call))
		return killed_command_try(v, h);
	if (call == EXIT || call == KILL || call == FORK || call == BOTH || call_looks(call))
		return;
	for (int i = 0; i < last; i++)
		scene_step(&sc, h->steps[i]);
	history_add(&whole, (enum slot)h->steps[last].slot, KILL);
	scene_step(&sc, whole.steps[last + 1]);
	without = whole;
	without.steps[last] = (struct step){ S, STAT }; /* in its place, so that calls keep their letters */
	history_add_looks(&whole, &sc);
	history_add_looks(&without, &sc);
	first = whole.nr - 3;
	for (int s = P; s <= R; s++)
		if (sc.at[s][0].nr_fds && !sc.depth[s]) {
			history_add(&whole, (enum slot)s, DONE);
			history_add(&without, (enum slot)s, DONE);
		}
	again = whole.nr;
	for (int i = 0; i < 3; i++) {
		history_add(&whole, S, (enum call[]){ STAT, LOOK, LOOK_G }[i]);
		history_add(&without, S, (enum call[]){ STAT, LOOK, LOOK_G }[i]);
	}
	__atomic_fetch_add(&tally()->histories, 1, __ATOMIC_RELAXED);
	drive(&variants[0], &without, before);
	drive(&variants[0], &whole, after);
	for (int nr = 1; nr <= CALLS_MAX && !done; nr++) {
		__atomic_fetch_add(&tally()->kills, 1, __ATOMIC_RELAXED);
		drive_and_kill(v, &whole, last, nr, got, &done);
		at = judge_kill(&whole, last, again, again - first);
		if (at < 0)
			continue;
		if (at >= again &&
		    (outcome_equal(&before[at], &got[at]) || outcome_equal(&after[at], &got[at]) ||
		     is_between(&before[at], &after[at], &got[at])))
			before[at] = after[at] = got[at - (again - first)];
		inner_found(v, &whole, (struct inner){ KILLED, last, nr, 0 }, at, &before[at], &after[at],
			    &got[at]);
		break;
	}
}
