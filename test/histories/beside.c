/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two calls at once: one process stands before a system call of its call, at each in turn, while another
 * carries out a call from its beginning to its end, or to a system call of its own, where it stands until the
 * first has ended. What both say, and what is read afterwards, must be what the plain directory gives for one
 * of the moments at which they can meet.
 */
#define _GNU_SOURCE
#include "histories.h"

#include <string.h>

enum { MOMENTS_MAX = 64, MOMENTS_EACH = 8, CALLS_MAX = 400 };

static struct outcome plain[MOMENTS_MAX][STEPS_MAX], got[STEPS_MAX];
static int nr_moments;

static bool fits(enum call call)
{
	return call != EXIT && call != KILL && call != FORK && call != BOTH;
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

/*
 * The last two steps are of two processes, and @whole has the looks that follow them. Returns the first; -1.
 */
static int prepare(struct history *whole, const struct history *h)
{
	int last = h->nr - 2;
	struct scene sc = { 0 };

	if (last < h->nr_prefix || h->steps[last].slot == h->steps[last + 1].slot ||
	    !fits(h->steps[last].call) || !fits(h->steps[last + 1].call))
		return -1;
	*whole = *h;
	for (int i = 0; i < h->nr; i++)
		scene_step(&sc, h->steps[i]);
	history_add_looks(whole, &sc);
	__atomic_fetch_add(&tally()->histories, 1, __ATOMIC_RELAXED);
	nr_moments = 0;
	return last;
}

/* false: it differs from all moments, and that is noted. */
static bool judge_it(const struct variant *v, const struct history *whole, struct inner in)
{
	int at = judge_moments(whole, in.last);

	__atomic_fetch_add(&tally()->runs, 1, __ATOMIC_RELAXED);
	if (at >= 0)
		inner_found(v, whole, in, at, &plain[0][at], &plain[nr_moments - 1][at], &got[at]);
	return at < 0;
}

void beside_try(const struct variant *v, const struct history *h, int stride)
{
	struct history whole;
	int last = prepare(&whole, h);
	bool done = false;

	if (last < 0)
		return;
	for (; nr_moments < MOMENTS_MAX && !done; nr_moments++)
		drive_beside(&variants[0], &whole, last, nr_moments + 1, plain[nr_moments], &done);
	done = false;
	for (int nr = 1; nr <= CALLS_MAX && !done; nr += stride) {
		drive_beside(v, &whole, last, nr, got, &done);
		if (!judge_it(v, &whole, (struct inner){ BESIDE, last, nr, 0 }))
			return;
	}
}

static void cross_plainly(const struct history *whole, int last)
{
	bool done = false;

	for (int nr = 1; nr <= MOMENTS_EACH && !done; nr++) {
		bool done_next = false;

		for (int next = 1; next <= MOMENTS_EACH && !done_next; next++)
			drive_crossed(&variants[0], whole, last, nr, next, plain[nr_moments++], &done,
				      &done_next);
	}
}

void crossed_try(const struct variant *v, const struct history *h, unsigned sample)
{
	struct history whole;
	int last = prepare(&whole, h);
	bool done = false;
	unsigned pair = 0;

	if (last < 0)
		return;
	cross_plainly(&whole, last);
	for (int nr = 1; nr <= CALLS_MAX && !done; nr++) {
		bool done_next = false;

		/* Each call of the first meets some of the second, others each time. */
		for (int next = 1 + (int)(pair++ % sample); next <= CALLS_MAX && !done_next && !done;
		     next += (int)sample) {
			drive_crossed(v, &whole, last, nr, next, got, &done, &done_next);
			if (!judge_it(v, &whole, (struct inner){ CROSSED, last, nr, next }))
				return;
		}
	}
}
