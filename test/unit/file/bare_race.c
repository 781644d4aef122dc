/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small files, which stay in their stubs: a call in the middle of which somebody else claims or cuts the
 * file, and processes that write and append all the time.
 */
#include "test/lib/scratch.h"

#include "test/lib/calls.h"
#include "test/lib/flags.h"
#include "core/file/bare.h"

#include <criterion/criterion.h>

#define SMALL (64 * 1024)
#define BEYOND (BARE_SHARED * SMALL) /* a write that ends behind this makes a log */

TestSuite(bare_race, .init = scratch_setup_small, .fini = scratch_remove, .timeout = 300);

/* ---- in the middle of a call ---- */

static int stop_nr;
static enum call stop_call;

/* Before that call, and after the one before it, let the other go on. */
static int stop_once(enum call call)
{
	if (call != stop_call || !stop_nr || --stop_nr)
		return 0;
	raise_flag(&shared->started);
	await(&shared->claimed);
	return 0;
}

static int writes_small(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);
	int ret;

	(void)arg;
	lfill(&l, 0, 10, 1); /* what a first write does besides is done */
	raise_flag(&shared->done);
	calls_intercept();
	on_call = stop_once;
	ret = lfill(&l, 1000, 100, 7) != 100;
	on_call = NULL;
	raise_flag(&shared->started);
	return ret | lclose(&l);
}

/*
 * Call 1 of pread is the look before the write, call 2 that after it. What the other does in between has
 * returned before this write returns, but not before it began: it may be before or after, but the same for
 * all.
 */
static void claim_in_between(enum call call, int nr, int what)
{
	struct lfile l;
	char buf[100], again[100];
	unsigned of;
	pid_t pid;

	share();
	stop_call = call;
	stop_nr = nr;
	l = lopen("a", O_RDWR | O_CREAT);
	lclose(&l);
	pid = start_child(writes_small, NULL);
	await(&shared->done);
	l = lopen("a", O_RDWR);
	await(&shared->started);
	switch (what) {
	case 0:
		cr_assert_eq(lfill(&l, BEYOND, 100, 8), 100);
		cr_assert_eq(lfill(&l, 1000, 100, 8), 100);
		break;
	case 1:
		cr_assert_eq(lfill(&l, 1000, SMALL + 1, 8), SMALL + 1);
		cr_assert_eq(plfs_truncate(l.f, 500), 0);
		break;
	case 2:
		cr_assert_eq(lfill(&l, 1000, SMALL + 1, 8), SMALL + 1);
		cr_assert_eq(plfs_truncate(l.f, 0), 0);
		break;
	case 3:
		cr_assert_eq(lfill(&l, 0, SMALL + 1, 8), SMALL + 1);
		cr_assert_eq(plfs_in_body(l.f, PLFS_MAP_WRITE), 1);
		break;
	}
	raise_flag(&shared->claimed);
	cr_assert_eq(wait_child(pid), 0);
	/*
	 * This write returned last, and began before the other had returned: here it is always the later one.
	 */
	of = lcheck(&l, 1000, 100, 7) ? 8 : 7;
	cr_assert_eq(of, 7, "call %d, number %d, %d", call, nr, what);
	if (what == 1)
		cr_assert(plfs_size(l.f) == 1100 && lzeros(&l, 500, 500));
	if (what == 2)
		cr_assert(plfs_size(l.f) == 1100 && lzeros(&l, 0, 1000));
	plfs_pread(l.f, buf, sizeof(buf), 1000);
	lclose(&l);
	l = lopen("a", O_RDONLY);
	plfs_pread(l.f, again, sizeof(again), 1000);
	cr_assert_arr_eq(buf, again, sizeof(buf));
	lclose(&l);
	cr_assert_eq(lunlink("a"), 0);
	cr_assert_eq(count_files("data."), 0);
}

Test(bare_race, a_write_during_which_the_file_is_claimed_is_not_lost)
{
	for (int what = 0; what < 4; what++) {
		claim_in_between(CALL_PREAD, 1, what);
		claim_in_between(CALL_PWRITE, 1, what);
		claim_in_between(CALL_PREAD, 2, what);
	}
}

/* As a process with threads: while one of a single thread cuts it, no process can claim it. */
static int cuts_small(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);
	int ret;

	(void)arg;
	be_threaded();
	lfill(&l, 0, 1000, 1);
	raise_flag(&shared->done);
	calls_intercept();
	on_call = stop_once;
	ret = plfs_truncate(l.f, 100);
	on_call = NULL;
	raise_flag(&shared->started);
	return ret | lclose(&l);
}

Test(bare_race, a_file_that_is_claimed_while_it_is_cut_is_cut)
{
	static const enum call calls[] = { CALL_PREAD, CALL_FTRUNCATE, CALL_PREAD };

	for (int i = 0; i < 3; i++) {
		struct lfile l = lopen("a", O_RDWR | O_CREAT);
		pid_t pid;

		lclose(&l);
		share();
		stop_call = calls[i];
		stop_nr = 1 + i / 2;
		pid = start_child(cuts_small, NULL);
		await(&shared->started);
		l = lopen("a", O_RDWR);
		lfill(&l, 500, SMALL + 1, 2);
		raise_flag(&shared->claimed);
		cr_assert_eq(wait_child(pid), 0);
		cr_assert_eq(plfs_size(l.f), 100, "call %d: %lld", i, (long long)plfs_size(l.f));
		cr_assert_eq(lcheck(&l, 0, 100, 1), 0);
		lfill(&l, 2000, 10, 2);
		cr_assert(lzeros(&l, 100, 1900));
		lclose(&l);
		lunlink("a");
	}
}

/* ---- an append that would grow beyond what stays bare, while it is cut to a length ---- */

static int appends_when_asked(void *arg)
{
	struct lfile l = lopen("a", O_RDWR | O_APPEND);
	off_t end;
	char buf[100];

	(void)arg;
	memset(buf, 'F', sizeof(buf));
	be_single_threaded();
	await(&shared->started);
	if (lappend(&l, buf, sizeof(buf), &end) != sizeof(buf))
		return 1;
	raise_flag(&shared->done);
	return lclose(&l);
}

static int append_before(enum call call)
{
	(void)call;
	if (!stop_nr || --stop_nr)
		return 0;
	raise_flag(&shared->started);
	for (int i = 0; i < 100 && !shared->done; i++) /* it may have to wait for us */
		usleep(1000);
	return 0;
}

/* At the @stop_nr-th system call of the truncation. 0: it made so many; 1: fewer; 2: it failed. */
static int cuts_to_a_length(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);
	int ret;

	(void)arg;
	be_single_threaded();
	on_call = append_before;
	ret = plfs_truncate(l.f, 200);
	on_call = NULL;
	raise_flag(&shared->started);
	return lclose(&l) || ret ? 2 : stop_nr != 0;
}

/* Returns whether the truncation made @nth system calls. */
static bool append_meets_cut(int nth)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	pid_t pid;
	int fewer;
	char c;

	share();
	lfill(&l, 0, 120, 1);
	lclose(&l);
	pid = start_child(appends_when_asked, NULL);
	stop_nr = nth;
	fewer = in_child(cuts_to_a_length, NULL);
	cr_assert_leq(fewer, 1);
	cr_assert_eq(wait_child(pid), 0);
	l = lopen("a", O_RDONLY);
	if (plfs_size(l.f) == 200)
		cr_assert(plfs_pread(l.f, &c, 1, 120) == 1 && c == 'F',
			  "at call %d the append was cut off from 120 on", nth);
	else
		cr_assert(plfs_size(l.f) == 300 && plfs_pread(l.f, &c, 1, 200) == 1 && c == 'F',
			  "at call %d", nth);
	lclose(&l);
	lunlink("a");
	return !fewer;
}

static void setup_very_small(void) { scratch_map("{small=256}"); }

Test(bare_cut, an_append_is_before_a_truncation_or_behind_it, .init = setup_very_small,
     .fini = scratch_remove)
{
	int nth = 1;

	calls_intercept();
	while (append_meets_cut(nth))
		nth++;
	cr_assert_gt(nth, 3);
}

#define NR_WRITERS 3
#define RECORD 100

/* Small writes all over, each checked at once; @arg says whose. */
static int writes_all_the_time(void *arg)
{
	int me = *(int *)arg;
	struct lfile l;

	await(&shared->started);
	l = lopen("a", O_RDWR);
	for (int i = 0; i < 200; i++) {
		off_t off = ((off_t)i * NR_WRITERS + me) * RECORD;

		if (lfill(&l, off, RECORD, 1) != RECORD || lcheck(&l, off, RECORD, 1))
			return 1;
		if (i % 20 == 19) { /* alone again, perhaps */
			lclose(&l);
			l = lopen("a", O_RDWR);
		}
	}
	for (int i = 0; i < 200; i++)
		if (lcheck(&l, ((off_t)i * NR_WRITERS + me) * RECORD, RECORD, 1))
			return 2;
	return lclose(&l);
}

Test(bare_race, no_write_is_lost)
{
	static int who[NR_WRITERS] = { 0, 1, 2 };

	for (int round = 0; round < 20; round++) {
		struct lfile l = lopen("a", O_RDWR | O_CREAT);
		pid_t pids[NR_WRITERS];

		lclose(&l);
		share();
		for (int i = 0; i < NR_WRITERS; i++)
			pids[i] = start_child(writes_all_the_time, &who[i]);
		raise_flag(&shared->started);
		for (int i = 0; i < NR_WRITERS; i++)
			cr_assert_eq(wait_child(pids[i]), 0, "round %d", round);
		l = lopen("a", O_RDONLY);
		cr_assert_eq(lcheck(&l, 0, 200 * NR_WRITERS * RECORD, 1), 0);
		lclose(&l);
		lunlink("a");
		cr_assert_eq(count_files("") - count_files("writers."), 1);
	}
}

static int appends_all_the_time(void *arg)
{
	char line[21];
	off_t end;

	be_single_threaded();
	await(&shared->started);
	for (int i = 0; i < 20; i++) {
		struct lfile l = lopen("a", O_RDWR | O_APPEND);

		for (int k = 0; k < 10; k++) {
			snprintf(line, sizeof(line), "%d says %011d\n", *(int *)arg, i * 10 + k);
			if (lappend(&l, line, 20, &end) != 20 || end % 20)
				return 1;
		}
		if (lclose(&l))
			return 2;
	}
	return 0;
}

/*
 * Makes a log of it in the middle of it all; what it writes is where nobody appends yet, and cut off again.
 */
static int claims_after_a_while(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);
	char byte;

	await(&shared->started);
	usleep((unsigned)*(int *)arg * 300);
	if (plfs_pread(l.f, &byte, 1, 0) == 1 && plfs_pwrite(l.f, &byte, 1, 0) != 1)
		return 1;
	return lclose(&l);
}

Test(bare_race, no_append_is_lost)
{
	static int who[NR_WRITERS] = { 0, 1, 2 };

	for (int round = 0; round < 20; round++) {
		struct lfile l = lopen("a", O_RDWR | O_CREAT);
		int next[NR_WRITERS] = { 0 };
		pid_t pids[NR_WRITERS + 1];
		char line[21] = "";

		lclose(&l);
		share();
		for (int i = 0; i < NR_WRITERS; i++)
			pids[i] = start_child(appends_all_the_time, &who[i]);
		pids[NR_WRITERS] = start_child(claims_after_a_while, &round);
		raise_flag(&shared->started);
		for (int i = 0; i <= NR_WRITERS; i++)
			cr_assert_eq(wait_child(pids[i]), 0, "round %d", round);
		l = lopen("a", O_RDONLY);
		cr_assert_eq(plfs_size(l.f), NR_WRITERS * 200 * 20);
		for (off_t off = 0; off < NR_WRITERS * 200 * 20; off += 20) {
			int by, i;

			plfs_pread(l.f, line, 20, off);
			cr_assert_eq(sscanf(line, "%d says %d", &by, &i), 2, "at %ld: %s", (long)off, line);
			cr_assert_eq(i, next[by]++);
		}
		lclose(&l);
		lunlink("a");
	}
}

/* Between its look at the header and its write: the other gets so far as it can, or some time. */
static int wait_at_fstat(enum call call)
{
	if (call == CALL_FSTAT && !shared->started) {
		raise_flag(&shared->started);
		for (int i = 0; i < 100 && !shared->claimed; i++)
			usleep(1000);
	}
	return 0;
}

static int appends_slowly(void *arg)
{
	struct lfile l = lopen("a", O_RDWR | O_APPEND);
	off_t end;
	int ret;

	(void)arg;
	be_single_threaded();
	calls_intercept();
	on_call = wait_at_fstat;
	ret = lappend(&l, "small", 5, &end) != 5;
	on_call = NULL;
	raise_flag(&shared->done);
	return ret | lclose(&l);
}

/* Between its look at the end and its telling of the new one. */
static int wait_at_growth(enum call call)
{
	if (call == CALL_FALLOCATE) {
		raise_flag(&shared->claimed);
		await(&shared->done);
	}
	return 0;
}

Test(bare_race, an_append_to_the_stub_and_one_to_a_log_never_overlap)
{
	struct lfile l = lopen("b", O_RDWR | O_CREAT);
	char buf[11] = "";
	off_t end;
	pid_t pid;

	/* The backend is known from here on: what is looked at next is the file. */
	lfill(&l, 0, 1, 1);
	lfill(&l, 0, 1, 1);
	lclose(&l);
	l = lopen("a", O_RDWR | O_CREAT);
	share();
	lclose(&l);
	pid = start_child(appends_slowly, NULL);
	await(&shared->started);
	l = lopen("a", O_RDWR | O_APPEND);
	calls_intercept();
	on_call = wait_at_growth;
	cr_assert_eq(lappend(&l, "large", 5, &end), 5); /* this process has threads */
	on_call = NULL;
	cr_assert_eq(wait_child(pid), 0);
	cr_assert_eq(plfs_size(l.f), 10);
	cr_assert_eq(plfs_pread(l.f, buf, 10, 0), 10);
	cr_assert(!strcmp(buf, "smalllarge") || !strcmp(buf, "largesmall"), "%s", buf);
	lclose(&l);
}
