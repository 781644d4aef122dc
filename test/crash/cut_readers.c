/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A whole truncation by another process at each system call of a reader (test/lib/cut.h). The reader finds
 * the file as it was before or as it is afterwards.
 */
#include "test/lib/calls.h"
#include "test/lib/cut.h"

#include <criterion/criterion.h>

TestSuite(crash_cut_readers, .timeout = 300);

static int to_cutter[2], from_cutter[2];

static int cut_when_asked(void *arg)
{
	struct lfile l = lopen("f", O_RDWR);
	char c;

	(void)arg;
	while (write(from_cutter[1], "d", 1) == 1 && read(to_cutter[0], &c, 1) == 1 && c == 'c')
		if (plfs_truncate(l.f, cut_to))
			return 1;
	return lclose(&l) ? 1 : 0;
}

static int cut_at_last(enum call call)
{
	char c;

	(void)call;
	if (!--calls_left && (write(to_cutter[1], "c", 1) != 1 || read(from_cutter[0], &c, 1) != 1))
		die("cutter");
	return 0;
}

enum reader { HAS_WRITTEN, OPENS, WATCHES_NOTHING };

/* 2: it came to its end before the truncation. */
static int look_meanwhile(void *arg)
{
	enum reader reader = *(enum reader *)arg;
	bool newly = reader == OPENS;
	struct lfile l = { .fd = -1 };
	bool ok;

	if (!newly) {
		l = lopen("f", reader == HAS_WRITTEN ? O_RDWR : O_RDONLY);
		if (!cut_look("first", &l))
			return 1;
	}
	calls_intercept();
	on_call = cut_at_last;
	if (newly)
		l = lopen("f", O_RDONLY);
	ok = cut_look("meanwhile", &l) && (calls_left > 0 || cut_look("afterwards", &l));
	on_call = NULL;
	ok &= calls_left > 0 || *cut_seen == NEW;
	lclose(&l);
	return !ok ? 1 : calls_left > 0 ? 2 : 0;
}

static void remove_notice(void)
{
	char path[PATH_MAX];

	cr_assert(find_file("notice.", path));
	cr_assert_eq(unlink(path), 0);
}

static void cut_at_each(long to, enum reader reader)
{
	int code = 0;
	long nr = 1;
	pid_t pid;
	char c;

	cut_begin((struct cut_plan){ .options = "", .to = to });
	cr_assert(!pipe(to_cutter) && !pipe(from_cutter));
	for (; !code; nr++) {
		cut_know_file("", to);
		cr_assert_eq(in_child(cut_make_file, ""), 0);
		*cut_seen = OLD;
		calls_left = nr;
		if (reader == WATCHES_NOTHING)
			remove_notice(); /* as if another host had written it */
		pid = start_child(cut_when_asked, NULL);
		cr_assert_eq(read(from_cutter[0], &c, 1), 1);
		code = in_child(look_meanwhile, &reader);
		cr_assert(code == 0 || code == 2, "call %ld", nr);
		cr_assert_eq(write(to_cutter[1], "q", 1), 1);
		cr_assert_eq(wait_child(pid), 0);
		cr_assert_eq(in_child(cut_remove_file, NULL), 0);
	}
	cr_assert_gt(nr, 3);
	scratch_remove();
}

#define MEANWHILE(name, to) \
	Test(crash_cut_readers, name##_at_each_call_of_a_reader) { cut_at_each(to, HAS_WRITTEN); } \
	Test(crash_cut_readers, name##_at_each_call_of_an_open) { cut_at_each(to, OPENS); } \
	Test(crash_cut_readers, name##_at_each_call_of_a_reader_that_watches_nothing) \
	{ \
		cut_at_each(to, WATCHES_NOTHING); \
	}

MEANWHILE(to_nothing, 0)
MEANWHILE(below_what_is_in_the_stub, 700)
MEANWHILE(into_a_hole, 9000)
MEANWHILE(that_makes_it_longer, 150000)
