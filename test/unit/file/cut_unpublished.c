/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file of which the stub does not say the length yet, as its writer has it open: that writer truncates it
 * before the 1st, 2nd, 3rd... system call of another process. What that one finds is of before or of after.
 */
#include "test/lib/near.h"

#include "test/lib/asked.h"
#include "test/lib/calls.h"

#include <criterion/criterion.h>

enum { BEGIN = 100000, LEN = 17000, CUT = 13725 };

TestSuite(cut_unpublished, .fini = near_remove, .timeout = 30);

/* ---- who writes and truncates ---- */

enum act { WRITE, CUT_IT, CLOSE };

static struct lfile written;

static void begin(int who) { (void)who; }

static void act(const void *order, void *answer)
{
	int *ret = answer;

	switch (*(const enum act *)order) {
	case WRITE:
		written = made("file");
		*ret = lfill(&written, BEGIN, LEN, 1) != LEN;
		break;
	case CUT_IT: *ret = plfs_truncate(written.f, CUT); break;
	case CLOSE: *ret = lclose(&written); break;
	}
}

static struct asked writer = {
	.nr = 1, .order_len = sizeof(enum act), .answer_len = sizeof(int), .begin = begin, .act = act,
};

static int let_it(enum act order)
{
	int ret;

	asked_ask(&writer, 0, &order, &ret);
	return ret;
}

/* ---- who looks ---- */

static long left;
static int cut_ret;

static int cut_before(enum call call)
{
	(void)call;
	if (left > 0 && !--left)
		cut_ret = let_it(CUT_IT);
	return 0;
}

static unsigned char buf[2 * (BEGIN + LEN)];

static off_t size_it(struct lfile *r) { return plfs_size(r->f); }
static off_t read_it(struct lfile *r) { return plfs_pread(r->f, buf, sizeof(buf), 0); }
static off_t stat_it(struct lfile *r) { return r->f ? stat_size("file") : -1; }

/* To close one may lock the end of the file, for which a truncation waits. */
static off_t open_it(struct lfile *r)
{
	int (*hook)(enum call call) = on_call;

	on_call = NULL;
	cr_assert_eq(lclose(r), 0);
	on_call = hook;
	*r = lopen("file", O_RDONLY);
	return read_it(r);
}

enum how { FRESH, HAS_READ, HAS_LOCKED, NR_HOW };

/* Returns whether there was so late a call. */
static bool is_right(off_t (*look)(struct lfile *r), enum how how, long nth)
{
	struct lfile r;
	off_t found;

	cr_assert_eq(let_it(WRITE), 0);
	r = lopen("file", O_RDWR);
	if (how != FRESH)
		cr_assert_eq(read_it(&r), BEGIN + LEN);
	if (how == HAS_LOCKED)
		cr_assert_eq(plfs_refresh(r.f), 0);
	left = nth;
	cut_ret = 0;
	on_call = cut_before;
	found = look(&r);
	on_call = NULL;
	cr_assert(found == BEGIN + LEN || found == CUT, "%d, call %ld: %ld", how, nth, (long)found);
	cr_assert_eq(cut_ret, 0);
	found = left > 0 ? BEGIN + LEN : CUT;
	cr_assert_eq(size_it(&r), found, "%d, call %ld", how, nth);
	cr_assert_eq(read_it(&r), found, "%d, call %ld", how, nth);
	cr_assert_eq(lclose(&r), 0);
	cr_assert_eq(let_it(CLOSE), 0);
	cr_assert_eq(lunlink("file"), 0);
	return left <= 0;
}

static void at_each_call(off_t (*look)(struct lfile *r))
{
	asked_start(&writer);
	calls_intercept();
	for (enum how how = FRESH; how < NR_HOW; how++) {
		long nth = 1;

		while (is_right(look, how, nth))
			nth++;
	}
	asked_end(&writer);
}

static void setup(void)
{
	scratch_in_memory = true;
	scratch_setup();
}

static void setup_near(void)
{
	scratch_in_memory = true;
	near_setup(",drain=close");
}

Test(cut_unpublished, a_size_is_of_before_or_after, .init = setup) { at_each_call(size_it); }
Test(cut_unpublished, a_read_is_of_before_or_after, .init = setup) { at_each_call(read_it); }
Test(cut_unpublished, a_stat_is_of_before_or_after, .init = setup) { at_each_call(stat_it); }
Test(cut_unpublished, an_open_is_of_before_or_after, .init = setup) { at_each_call(open_it); }
Test(cut_unpublished, a_size_near_is_of_before_or_after, .init = setup_near) { at_each_call(size_it); }
Test(cut_unpublished, a_read_near_is_of_before_or_after, .init = setup_near) { at_each_call(read_it); }
Test(cut_unpublished, a_stat_near_is_of_before_or_after, .init = setup_near) { at_each_call(stat_it); }
Test(cut_unpublished, an_open_near_is_of_before_or_after, .init = setup_near) { at_each_call(open_it); }
