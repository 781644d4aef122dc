/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file to which two other processes append, first the one, then the other, in the middle of a read. No byte
 * that the read returns may be a hole: who sees the second append sees the first.
 */
#include "test/lib/scratch.h"

#include "test/lib/calls.h"

#include "core/dropping/live.h"
#include "core/file/file.h"

#include <criterion/criterion.h>

TestSuite(appended_meanwhile, .init = scratch_setup, .fini = scratch_remove, .timeout = 120);
TestSuite(appended_meanwhile_small, .init = scratch_setup_small, .fini = scratch_remove, .timeout = 120);

#define NR_WRITERS 2
#define PIECE_LEN 100 /* of each append */

static struct writer_process {
	pid_t pid;
	int ask[2], answer[2];
} writers[NR_WRITERS];

static int append_when_asked(void *arg)
{
	struct writer_process *w = arg;
	struct lfile l = lopen("file", O_RDWR);
	char piece[PIECE_LEN], c = 'd';
	off_t end;

	be_single_threaded();
	memset(piece, 'a' + (int)(w - writers), sizeof(piece));
	do {
		if (lappend(&l, piece, sizeof(piece), &end) != PIECE_LEN || write(w->answer[1], &c, 1) != 1)
			return 1;
	} while (read(w->ask[0], &c, 1) == 1 && c != 'e');
	return lclose(&l);
}

/* Of a new file with @len bytes in it. */
static void start_writers(size_t len)
{
	static char bytes[1 << 16];
	struct lfile l;
	char c;

	(void)lunlink("file");
	l = made("file");
	memset(bytes, 'a', sizeof(bytes));
	cr_assert_eq(plfs_pwrite(l.f, bytes, len, 0), (ssize_t)len);
	cr_assert_eq(lclose(&l), 0);
	for (int i = 0; i < NR_WRITERS; i++) {
		cr_assert(!pipe(writers[i].ask) && !pipe(writers[i].answer));
		writers[i].pid = start_child(append_when_asked, &writers[i]);
		cr_assert_eq(read(writers[i].answer[0], &c, 1), 1);
	}
}

static void end_writers(void)
{
	for (int i = 0; i < NR_WRITERS; i++) {
		cr_assert_eq(write(writers[i].ask[1], "e", 1), 1);
		cr_assert_eq(wait_child(writers[i].pid), 0);
	}
}

static int first; /* who is the first */

/* In a handler of a signal too. */
static void have_both_append(void)
{
	for (int i = 0; i < NR_WRITERS; i++) {
		struct writer_process *w = &writers[(first + i) % NR_WRITERS];
		char c;

		if (write(w->ask[1], "a", 1) != 1 || read(w->answer[0], &c, 1) != 1)
			_exit(99);
	}
}

/* ---- at the calls of the read ---- */

#define CALLS_MAX 40 /* some more than a look at the container makes */
#define CALLS_MET 40

static long due; /* counted down to 0, from which call on they append at each of CALLS_MET */

static int append_at_call(enum call call)
{
	(void)call;
	if (--due <= 0 && due > -CALLS_MET)
		have_both_append();
	return 0;
}

static void check_read(struct lfile *l, size_t len, long at_call)
{
	static char buf[1 << 20];
	ssize_t n = plfs_pread(l->f, buf, len, 0);

	cr_assert_geq(n, NR_WRITERS * PIECE_LEN);
	cr_assert_eq(n % PIECE_LEN, 0);
	for (ssize_t i = 0; i < n; i++)
		cr_assert(buf[i] == 'a' || buf[i] == 'b', "appended from call %ld on: byte %zd of %zd is %d",
			  at_call, i, n, buf[i]);
}

/* @anew: the reader opens the file for each read. */
static void read_at_each_call(int who_first, bool anew)
{
	struct lfile l;
	long at_call = 0;

	first = who_first;
	start_writers(0);
	calls_intercept();
	l = lopen("file", O_RDONLY);
	do {
		due = ++at_call;
		on_call = append_at_call;
		if (anew) {
			lclose(&l);
			l = lopen("file", O_RDONLY);
		}
		check_read(&l, 1 << 20, at_call);
		on_call = NULL;
	} while (due <= 0 && at_call < CALLS_MAX);
	cr_assert_gt(at_call, anew ? 10 : 1);
	lclose(&l);
	end_writers();
}

Test(appended_meanwhile, an_opened_file_has_no_hole) { read_at_each_call(0, true); }
Test(appended_meanwhile, an_opened_file_has_no_hole_the_other_way_round) { read_at_each_call(1, true); }
Test(appended_meanwhile, an_open_file_gets_no_hole) { read_at_each_call(0, false); }
Test(appended_meanwhile, an_open_file_gets_no_hole_the_other_way_round) { read_at_each_call(1, false); }

/* A small file: at some call the appends make it too long to stay in its stub. */
Test(appended_meanwhile_small, who_reads_a_stub_that_gets_logs_meets_no_hole)
{
	long at_call = 0;

	calls_intercept();
	do {
		struct lfile l;

		start_writers(65500 - NR_WRITERS * PIECE_LEN);
		l = lopen("file", O_RDONLY);
		cr_assert_eq(count_files("data."), 0);
		due = ++at_call;
		on_call = append_at_call;
		check_read(&l, 1 << 20, at_call);
		on_call = NULL;
		lclose(&l);
		end_writers();
	} while (due <= 0 && at_call < CALLS_MAX);
	cr_assert_gt(at_call, 2);
}

/* ---- between its looks at two live files, which are no calls ---- */

static uint8_t *lives[NR_WRITERS];
static int nr_met, nr_wanted;

static void protect(int live, int prot) { mprotect(lives[live], LIVE_INDEX_LEN, prot); }

/* The reader has looked at the first live file, and is about to look at the second: they append. */
static void meet(int sig, siginfo_t *info, void *context)
{
	int live =
		(uint8_t *)info->si_addr >= lives[1] && (uint8_t *)info->si_addr < lives[1] + LIVE_INDEX_LEN;

	(void)sig, (void)context;
	protect(live, PROT_READ);
	if (live && nr_met++ < nr_wanted)
		have_both_append();
	if (nr_met < nr_wanted)
		protect(!live, PROT_NONE);
}

/* @times: so often they append in one read */
static void read_between_looks(int who_first, int times)
{
	struct sigaction act = { .sa_sigaction = meet, .sa_flags = SA_SIGINFO }, before;
	ssize_t len = NR_WRITERS * PIECE_LEN;
	struct lfile l;

	first = who_first;
	start_writers(0);
	l = lopen("file", O_RDONLY);
	check_read(&l, len, 0);
	cr_assert_eq(l.f->ino->v.r.watch.nr_lives, NR_WRITERS);
	for (int i = 0; i < NR_WRITERS; i++)
		lives[i] = (uint8_t *)l.f->ino->v.r.watch.lives[i].map;
	sigaction(SIGSEGV, &act, &before);
	have_both_append();
	nr_met = 0;
	nr_wanted = times;
	protect(1, PROT_NONE);
	check_read(&l, 3 * len, 0); /* no more than what is there after the look: no other is needed for it */
	cr_assert_geq(nr_met, 1);
	protect(0, PROT_READ);
	protect(1, PROT_READ);
	sigaction(SIGSEGV, &before, NULL);
	nr_met = nr_wanted;
	check_read(&l, 1 << 20, 0);
	lclose(&l);
	end_writers();
}

Test(appended_meanwhile, who_follows_writers_meets_no_hole)
{
	read_between_looks(0, 1);
	read_between_looks(1, 1);
}

Test(appended_meanwhile, who_follows_writers_that_never_rest_meets_no_hole)
{
	read_between_looks(0, 1000);
	read_between_looks(1, 1000);
}
