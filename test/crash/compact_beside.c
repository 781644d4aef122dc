/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs compact, or the sweep at a close, beside a truncation to nothing: one stops at a call, the other runs
 * to a call of its own and stops there, the first goes on as far as it gets, and then the other. Whichever
 * calls these are, the file is empty afterwards.
 */
#include "core/file/sweep.h"
#include "test/lib/calls.h"
#include "test/lib/scratch.h"
#include "test/lib/turn.h"

#include <criterion/criterion.h>

#define LEN 3000
#define PART 1000
#define WAIT_US 30000 /* until who goes on has come to its end, or to a lock */

TestSuite(crash_compact_beside, .timeout = 900);

static int write_part(void *arg)
{
	int part = *(int *)arg;
	struct lfile l = lopen("f", O_RDWR | O_CREAT);

	return lfill(&l, part * PART, PART, 1) != PART || lclose(&l);
}

static int compact(void *arg)
{
	struct plfs_progress watch = { .arg = NULL };
	struct plfs_compact k = { .dry = false };
	char path[PATH_MAX];
	int ret;

	(void)arg;
	lpath("f", path);
	calls_intercept();
	on_call = stop_at_last;
	ret = plfs_compact(path, &k, &watch);
	return ret < 0 && ret != -EBUSY && ret != -EAGAIN ? 1 : 0; /* it may refuse */
}

static int sweep_it(void *arg)
{
	struct lfile l = lopen("f", O_RDWR);

	(void)arg;
	sweep_little_at = 2;
	if (lfill(&l, 0, PART / 2, 1) != PART / 2)
		return 1;
	calls_intercept();
	on_call = stop_at_last;
	return lclose(&l) ? 2 : 0;
}

static int empty_it(void *arg)
{
	struct lfile l = lopen("f", O_RDWR);
	int ret;

	(void)arg;
	calls_intercept();
	on_call = stop_at_last;
	ret = plfs_truncate(l.f, 0);
	on_call = NULL;
	return ret || lclose(&l);
}

static int is_empty(void *arg)
{
	struct lfile l = lopen("f", O_RDWR);
	off_t size = plfs_size(l.f);

	(void)arg;
	if (size || stat_size("f")) {
		fprintf(stderr, "its size is %lld, by stat %lld\n", (long long)size, (long long)stat_size("f"));
		return 1;
	}
	if (lfill(&l, LEN, 1, 2) != 1 || !lzeros(&l, 0, LEN))
		return 2;
	return lclose(&l) ? 3 : lunlink("f") != 0;
}

struct part {
	pid_t pid;
	enum { WAITS, STOPS, ENDED } state;
	int code; /* as of wait_child() */
};

/* Until it has ended or stopped, or for a while. */
static void look(struct part *p)
{
	int status;

	p->state = WAITS;
	for (int us = 0; us < WAIT_US && p->state == WAITS; us += 500) {
		if (waitpid(p->pid, &status, WNOHANG | WUNTRACED) == p->pid) {
			p->state = WIFSTOPPED(status) ? STOPS : ENDED;
			p->code = WIFEXITED(status) ? WEXITSTATUS(status) : 256;
		} else {
			usleep(500);
		}
	}
}

static struct part start_at(int (*fn)(void *arg), long nr)
{
	struct part p = { .code = 0 };

	calls_left = nr;
	p.pid = start_child(fn, NULL);
	look(&p);
	return p;
}

static void go_on(struct part *p)
{
	if (p->state == ENDED)
		return;
	kill(p->pid, SIGCONT);
	look(p);
}

/* Who waited for the other up to now may stop only then. */
static void finish(struct part *p)
{
	while (p->state != ENDED)
		go_on(p);
}

/* Bits: 1: who compacts, 2: who empties came to no stop at its call. */
static unsigned at_calls(int (*what)(void *arg), long nr, long nr_cut)
{
	struct part compacts, empties;
	unsigned none;

	for (int part = 0; part < LEN / PART; part++)
		cr_assert_eq(in_child(write_part, &part), 0);
	compacts = start_at(what, nr);
	empties = start_at(empty_it, nr_cut);
	none = (compacts.state != STOPS) | (empties.state != STOPS) << 1;
	go_on(&compacts);
	go_on(&empties);
	finish(&compacts);
	finish(&empties);
	cr_assert(!compacts.code && !empties.code, "calls %ld and %ld: %d, %d", nr, nr_cut, compacts.code,
		  empties.code);
	cr_assert_eq(in_child(is_empty, NULL), 0, "calls %ld and %ld", nr, nr_cut);
	return none;
}

/* Of all pairs of calls some, others in each run. */
static void at_each_pair(int (*what)(void *arg))
{
	struct turn turn = turn_begin(37), cut = { 0 };
	unsigned over = 0;
	int nr = 0;

	scratch_in_memory = true;
	scratch_setup();
	for (; !(over & 1); turn.nr += turn.step)
		for (cut = turn_begin(11), over = 0; !over; cut.nr += cut.step, nr++)
			over = at_calls(what, turn.nr, cut.nr);
	cr_log_info("%d pairs of %ld and %ld calls\n", nr, turn.nr, cut.nr);
	scratch_remove();
}

Test(crash_compact_beside, what_is_emptied_meanwhile_is_empty) { at_each_pair(compact); }
Test(crash_compact_beside, what_is_emptied_beside_a_sweep_is_empty) { at_each_pair(sweep_it); }
