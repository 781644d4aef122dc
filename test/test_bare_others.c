/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small files, which stay in their stubs: what happens to who is at one while somebody else claims, cuts, moves or
 * removes it.
 */
#include "scratch.h"

#include "calls.h"
#include "flags.h"

#include <criterion/criterion.h>

#define SMALL (64 * 1024)

#define SUITE(name) TestSuite(name, .init = scratch_setup_small, .fini = scratch_remove, .timeout = 300)

SUITE(bare_others);
SUITE(bare_race);

static int writes_large(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	if (lfill(&l, 50, 100, 2) != 100 || lfill(&l, SMALL, 100, 2) != 100)
		return 1;
	raise_flag(&shared->claimed);
	await(&shared->done);
	return lclose(&l);
}

Test(bare_others, who_has_written_before_the_claim_goes_on_in_a_log)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	pid_t pid;

	share();
	lfill(&l, 0, 200, 1);
	pid = start_child(writes_large, NULL);
	await(&shared->claimed);
	cr_assert_eq(lcheck(&l, 0, 50, 1) | lcheck(&l, 50, 100, 2) | lcheck(&l, 150, 50, 1), 0);
	cr_assert_eq(lcheck(&l, SMALL, 100, 2), 0);
	lfill(&l, 100, 10, 3);
	cr_assert_eq(count_files("data."), 2);
	cr_assert_eq(lcheck(&l, 50, 50, 2) | lcheck(&l, 100, 10, 3), 0);
	raise_flag(&shared->done);
	cr_assert_eq(wait_child(pid), 0);
	cr_assert_eq(lcheck(&l, 50, 50, 2) | lcheck(&l, 100, 10, 3) | lcheck(&l, 110, 40, 2), 0);
	lclose(&l);
}

Test(bare_others, whose_mode_is_changed_by_who_knows_of_no_container_has_one_of_that_mode)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	char path[PATH_MAX];
	struct stat st;
	pid_t pid;

	share();
	lfill(&l, 0, 200, 1);
	pid = start_child(writes_large, NULL);
	await(&shared->claimed);
	cr_assert(find_file("data.", path) && !stat(path, &st));
	cr_assert_neq(st.st_mode & 0077, 0);
	lpath("a", path);
	cr_assert_eq(plfs_chmod(AT_FDCWD, path, 0600, 0), 0);
	cr_assert(find_file("data.", path) && !stat(path, &st));
	cr_assert_eq(st.st_mode & 0077, 0);
	raise_flag(&shared->done);
	cr_assert_eq(wait_child(pid), 0);
	lclose(&l);
}

Test(bare_others, who_reads_sees_each_write_whether_in_the_stub_or_a_log)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT), r = { 0 };
	pid_t pid;

	share();
	lfill(&l, 0, 200, 1);
	r = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&r, 0, 200, 1), 0);
	lfill(&l, 0, 200, 4);
	cr_assert_eq(lcheck(&r, 0, 200, 4), 0);
	pid = start_child(writes_large, NULL);
	await(&shared->claimed);
	cr_assert_eq(lcheck(&r, 50, 100, 2), 0);
	lfill(&l, 60, 10, 5);
	cr_assert_eq(lcheck(&r, 60, 10, 5), 0);
	raise_flag(&shared->done);
	cr_assert_eq(wait_child(pid), 0);
	lclose(&r);
	lclose(&l);
}

static int maps_to_read(void *arg)
{
	struct stat before, after;
	struct lfile l;

	lclose(arg); /* the one who writes is another process */
	l = lopen("a", O_RDONLY);
	if (fstat(l.fd, &before) || plfs_in_body(l.f, PLFS_MAP_READ) != 1 || fstat(l.fd, &after))
		return 1;
	return before.st_mtim.tv_sec != after.st_mtim.tv_sec || before.st_mtim.tv_nsec != after.st_mtim.tv_nsec || lclose(&l);
}

Test(bare_others, a_map_to_read_shows_what_who_has_it_open_writes_beyond_the_limit)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	char byte = 0;

	lfill(&l, 0, 1000, 1);
	cr_assert_eq(in_child(maps_to_read, &l), 0);
	cr_assert_eq(plfs_pwrite(l.f, "new", 3, 0), 3);
	lfill(&l, 1000, SMALL, 2);
	cr_assert_eq(count_files("data."), 0);
	cr_assert_eq(pread(l.fd, &byte, 1, PLFS_BODY_OFF), 1);
	cr_assert_eq(byte, 'n');
	lclose(&l);
}

/* Between the header that names a container and the first log in it. */
static int stop_before_the_log(enum call call)
{
	static int stage;

	if (call == CALL_PWRITE && !stage)
		stage = 1;
	else if (call == CALL_OPENAT && stage == 1) {
		stage = 2;
		raise_flag(&shared->started);
		await(&shared->claimed);
	}
	return 0;
}

static int claims_slowly(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);
	int ret;

	(void)arg;
	calls_intercept();
	on_call = stop_before_the_log;
	ret = lfill(&l, 0, 100, 2) != 100; /* not alone */
	on_call = NULL;
	raise_flag(&shared->done);
	pause();
	return ret;
}

Test(bare_others, who_reads_while_a_container_is_still_empty_sees_what_comes)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	pid_t pid;

	share();
	lfill(&l, 0, 200, 1);
	lclose(&l);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 200, 1), 0);
	pid = start_child(claims_slowly, NULL);
	await(&shared->started);
	cr_assert_eq(lcheck(&l, 0, 200, 1), 0);
	raise_flag(&shared->claimed);
	await(&shared->done);
	cr_assert_eq(lcheck(&l, 0, 100, 2), 0);
	cr_assert_eq(lcheck(&l, 100, 100, 1), 0);
	kill(pid, SIGKILL);
	wait_child(pid);
	lclose(&l);
}

/* Nobody may go by a container of which he has not heard. */
static int claims_and_unlinks(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	lfill(&l, SMALL, 100, 2);
	lunlink("a");
	return lclose(&l);
}

Test(bare_others, the_last_to_close_removes_a_container_that_it_has_not_known)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);

	lfill(&l, 0, 100, 1);
	cr_assert_eq(in_child(claims_and_unlinks, NULL), 0);
	cr_assert_eq(count_files("data."), 1);
	lclose(&l);
	cr_assert_eq(count_files("data."), 0);
	cr_assert_eq(count_files(""), 2); /* the format file, and who writes (writers.h) */
}

static int unlinked_at;

static int claims_meanwhile(enum call call)
{
	if (call == CALL_UNLINKAT && !unlinked_at++) {
		struct lfile l = lopen("a", O_RDWR);

		lfill(&l, 0, SMALL + 1, 1);
		lclose(&l);
	}
	return 0;
}

Test(bare_others, a_container_made_just_before_the_name_goes_is_removed)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);

	lfill(&l, 0, 100, 1);
	lclose(&l);
	calls_intercept();
	on_call = claims_meanwhile;
	cr_assert_eq(lunlink("a"), 0);
	on_call = NULL;
	cr_assert_eq(count_files("data."), 0);
}

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
	lfill(&l, 0, 10, 1); /* alone: from here on the stub is written */
	raise_flag(&shared->done);
	calls_intercept();
	on_call = stop_once;
	ret = lfill(&l, 1000, 100, 7) != 100;
	on_call = NULL;
	raise_flag(&shared->started);
	return ret | lclose(&l);
}

/*
 * Call 1 of pread is the look before the write, call 2 that after it. What the other does in between has returned before
 * this write returns, but not before it began: it may be before or after, but the same for all.
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
		cr_assert_eq(lfill(&l, 1000, 100, 8), 100);
		break;
	case 1:
		cr_assert_eq(lfill(&l, 1000, SMALL, 8), SMALL);
		cr_assert_eq(plfs_truncate(l.f, 500), 0);
		break;
	case 2:
		cr_assert_eq(lfill(&l, 1000, SMALL, 8), SMALL);
		cr_assert_eq(plfs_truncate(l.f, 0), 0);
		break;
	case 3:
		cr_assert_eq(lfill(&l, 0, SMALL + 1, 8), SMALL + 1);
		cr_assert_eq(plfs_in_body(l.f, PLFS_MAP_WRITE), 1);
		break;
	}
	raise_flag(&shared->claimed);
	cr_assert_eq(wait_child(pid), 0);
	/* This write returned last, and began before the other had returned: here it is always the later one. */
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

static int cuts_small(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);
	int ret;

	(void)arg;
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
		lfill(&l, 500, SMALL, 2);
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

/* Makes a log of it in the middle of it all; what it writes is where nobody appends yet, and cut off again. */
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
