/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two calls at once: one process stands before a system call of its call, at each in turn, while another carries out a call from its beginning to its end.
 * What both say, and what is read afterwards, must be what the plain directory gives for one of the moments at which the second can come there.
 */
#define _GNU_SOURCE
#include "histories.h"

#include <string.h>

enum { MOMENTS_MAX = 12, CALLS_MAX = 250 };

static struct outcome plain[MOMENTS_MAX][STEPS_MAX], got[STEPS_MAX];
static int nr_moments;

static bool fits(enum call call)
{
	return call != EXIT && call != KILL && call != FORK;
}

/* How far it is as at one of the moments; -1: to the end. */
static int judge_moments(const struct history *h, int last)
{
	int far = 0;

	for (int m = 0; m < nr_moments; m++) {
		int i = last;

		while (i < h->nr && outcome_equal(&plain[m][i], &got[i]))
			i++;
		if (i == h->nr)
			return -1;
		far = i > far ? i : far;
	}
	return far;
}

void beside_try(const struct variant *v, const struct history *h)
{
	int last = h->nr - 2, at;
	struct history whole = *h;
	struct scene sc = { 0 };
	bool done = false;

	if (last < h->nr_prefix || h->steps[last].slot == h->steps[last + 1].slot || !fits(h->steps[last].call) || !fits(h->steps[last + 1].call))
		return;
	for (int i = 0; i < h->nr; i++)
		scene_step(&sc, h->steps[i]);
	history_add_looks(&whole, &sc);
	__atomic_fetch_add(&tally()->histories, 1, __ATOMIC_RELAXED);
	for (nr_moments = 0; nr_moments < MOMENTS_MAX && !done; nr_moments++)
		drive_beside(&variants[0], &whole, last, nr_moments + 1, plain[nr_moments], &done);
	done = false;
	for (int nr = 1; nr <= CALLS_MAX && !done; nr++) {
		__atomic_fetch_add(&tally()->runs, 1, __ATOMIC_RELAXED);
		drive_beside(v, &whole, last, nr, got, &done);
		at = judge_moments(&whole, last);
		if (at >= 0) {
			inner_found(v, &whole, last, nr, at, true, &plain[0][at], &plain[nr_moments - 1][at], &got[at]);
			break;
		}
	}
}
