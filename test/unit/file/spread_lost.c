/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One of three backends of a file (spread=) is away, or lost for ever: what can be read all the same, which
 * bytes are reported as lost, and giving up on them.
 */
#include "test/lib/calls.h"
#include "test/lib/near.h"

#include "core/backend/near_host.h"
#include "core/plfs_admin.h"

#include <criterion/criterion.h>

#include <unistd.h>

#define LEN 100000
#define NR 24 /* so many processes are not all in one of three backends */

static void by_process(void) { near_spread("process"); }

TestSuite(spread_lost, .init = by_process, .fini = near_remove);

static bool is_lost[NR + 1]; /* part i is in the backend that goes, NEAR_DIR/2; [NR] is not there */
static char lost_dir[100], aside[100];

static int count_lost(const char *prefix)
{
	size_t len = strlen(near_dir);
	int nr;

	strcpy(near_dir + len, "/2");
	nr = near_count(prefix);
	near_dir[len] = '\0';
	return nr;
}

static int write_part(void *arg)
{
	struct lfile l = made("a");
	long i = (long)arg;

	return lfill(&l, i * LEN, LEN, 1) != LEN || lclose(&l);
}

/* Its bytes are older than those of each part. */
static int write_all_before(void *arg)
{
	struct lfile l = made("a");

	(void)arg;
	return lfill(&l, 0, (NR + 1) * LEN, 2) != (NR + 1) * LEN || lclose(&l);
}

static int write_and_die(void *arg)
{
	struct lfile l = made("a");
	long i = (long)arg;

	if (lfill(&l, i * LEN, LEN, 1) == LEN)
		raise(SIGKILL);
	return 0;
}

static int read_part(void *arg)
{
	struct lfile l = lopen("a", O_RDONLY);
	long i = (long)arg;
	int ret = lcheck(&l, i * LEN, LEN, i == NR ? 2 : 1);

	lclose(&l);
	return ret == -EIO ? 5 : ret ? 1 : 0;
}

/* Begins as a read of what is there. */
static int read_across(void *arg)
{
	static char buf[LEN], right[LEN];
	struct lfile l = lopen("a", O_RDONLY);
	long i = (long)arg;
	ssize_t n = plfs_pread(l.f, buf, LEN, i * LEN + LEN / 2);

	lclose(&l);
	l = lopen("a", O_RDONLY);
	if (n > 0 && plfs_pread(l.f, right, (size_t)n, i * LEN + LEN / 2) != n)
		return 1;
	lclose(&l);
	return n == -EIO || (n > 0 && n <= LEN / 2 && !memcmp(buf, right, (size_t)n)) ? 0 : 2;
}

/* Parts in all backends; an older copy of each is home, or in a backend that stays. */
static void write_parts(void)
{
	int nr = 0;

	snprintf(lost_dir, sizeof(lost_dir), "%s/2", near_dir);
	snprintf(aside, sizeof(aside), "%s/aside", near_dir);
	do {
		lunlink("a");
		cr_assert_eq(in_child(write_all_before, NULL), 0);
	} while (count_lost("data."));
	for (long i = 0; i < NR; i++) {
		int before = count_lost("data.");

		cr_assert_eq(in_child(write_part, (void *)i), 0);
		is_lost[i] = count_lost("data.") > before;
		nr += is_lost[i];
	}
	cr_assert(nr > 0 && nr < NR);
}

static void lose(void) { cr_assert_eq(rename(lost_dir, aside), 0); }
static void bring_back(void) { cr_assert_eq(rename(aside, lost_dir), 0); }

static void read_parts(bool lost)
{
	for (long i = 0; i <= NR; i++)
		cr_assert_eq(in_child(read_part, (void *)i), lost && is_lost[i] ? 5 : 0, "part %ld", i);
}

/* ---- what check lists ---- */

static bool listed[NR + 1], listed_more;

static void note(void *arg, const struct plfs_finding *f)
{
	(void)arg;
	if (strcmp(f->code, "lost"))
		return;
	if (f->logical_off % LEN || f->len % LEN)
		listed_more = true;
	for (uint64_t i = f->logical_off / LEN; i < (f->logical_off + f->len) / LEN && i <= NR; i++)
		listed[i] = true;
}

static int list_lost(void *arg)
{
	struct plfs_check c = { .found = note, .repair = arg, .partial = arg };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("a", path);
	int ret = plfs_check(m, AT_FDCWD, path, &c);

	return ret != 1 || listed_more || memcmp(listed, is_lost, sizeof(listed));
}

static int repair_it(void *arg)
{
	struct plfs_check c = { .found = note, .repair = true };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("a", path);

	(void)arg;
	return plfs_check(m, AT_FDCWD, path, &c);
}

/* ---- giving up ---- */

static const char *given;

static int forget_it(void *arg)
{
	unsigned nr = 0, want = arg != NULL;
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("a", path);
	int ret = plfs_places_forget(m, AT_FDCWD, path, given, &nr);

	return ret ? -ret : nr != want;
}

static int places_left(void *arg, const struct plfs_place *p)
{
	*(int *)arg += !strncmp(p->path, lost_dir, strlen(lost_dir));
	return 0;
}

static int count_places(void *arg)
{
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("a", path);
	int nr = 0;

	(void)arg;
	return plfs_places_of(m, AT_FDCWD, path, places_left, &nr) ? 100 : nr;
}

/* ---- tests ---- */

Test(spread_lost, bytes_of_other_backends_are_read_and_no_older_copy_of_the_rest)
{
	write_parts();
	lose();
	read_parts(true);
	for (long i = 0; i < NR; i++)
		if (!is_lost[i] && is_lost[i + 1])
			cr_assert_eq(in_child(read_across, (void *)i), 0);
	bring_back();
	read_parts(false);
}

Test(spread_lost, check_lists_exactly_the_lost_bytes_and_repair_changes_nothing)
{
	write_parts();
	lose();
	cr_assert_eq(in_child(list_lost, NULL), 0);
	cr_assert_eq(in_child(list_lost, "repair"), 0);
	read_parts(true);
	bring_back();
	cr_assert_eq(in_child(repair_it, NULL), 0);
	read_parts(false);
}

/* Whether a process that was killed has written other bytes, only the lost backend knows. */
Test(spread_lost, with_a_killed_process_there_nothing_is_read_until_it_is_back_and_repaired)
{
	int left;

	write_parts();
	do {
		left = count_lost("live.");
		cr_assert_eq(in_child(write_and_die, (void *)NR), 256 + SIGKILL);
	} while (count_lost("live.") == left);
	lose();
	for (long i = 0; i <= NR; i++)
		cr_assert_eq(in_child(read_part, (void *)i), 5);
	bring_back();
	cr_assert_eq(in_child(repair_it, NULL), 0);
	lose();
	for (long i = 0; i < NR; i++)
		cr_assert_eq(in_child(read_part, (void *)i), is_lost[i] ? 5 : 0);
	cr_assert_eq(in_child(read_part, (void *)NR), 5);
}

static int die_before_live(enum call call)
{
	if (call == CALL_OPENAT && calls_left && !--calls_left)
		raise(SIGKILL);
	return 0;
}

static int die_at(void *arg)
{
	calls_left = (long)arg;
	calls_intercept();
	on_call = die_before_live;
	write_part((void *)0);
	on_call = NULL;
	return calls_left ? 0 : 1;
}

/* The bytes of spread.N.HOSTs at home. */
static off_t notes_len(void)
{
	char path[PATH_MAX], *name;
	off_t len = 0;
	struct stat st;

	cr_assert(find_file("spread.", path));
	name = strstr(path, "/spread.") + sizeof("/spread.") - 1;
	for (*name = '1'; *name <= '7'; ++*name)
		len += stat(path, &st) ? 0 : st.st_size - PLACE_LEN;
	return len;
}

/* So many are without a live file, at least. */
static long notes_alone(void) { return notes_len() / 16 - near_count("live."); }

/* Of a process that was killed after its note, at whichever call, a repair leaves none. */
Test(spread_lost, a_repair_removes_notes_without_live_files)
{
	long noted = 0, at;

	write_parts();
	for (long killed = at = 1; killed; at++) {
		long before = notes_alone();

		killed = 0;
		for (int i = 0; i < 6; i++) /* some are in the backend that goes */
			killed |= in_child(die_at, (void *)at) == 256 + SIGKILL;
		noted = notes_alone() > before ? at : noted;
	}
	/* those that were not killed may have removed them */
	for (int i = 0; i < 100 && notes_alone() <= 0; i++)
		in_child(die_at, (void *)(noted ? noted : 1 + i % at));
	cr_assert_gt(notes_alone(), 0, "some have a note alone");
	cr_assert_eq(in_child(repair_it, NULL), 0);
	cr_assert_eq(notes_len(), 0);
	is_lost[0] = false;
	lose();
	for (long i = 1; i <= NR; i++)
		cr_assert_eq(in_child(read_part, (void *)i), is_lost[i] ? 5 : 0);
}

Test(spread_lost, a_backend_that_is_given_up_leaves_its_bytes_lost_and_the_file_in_use)
{
	struct lfile l;

	write_parts();
	given = lost_dir;
	cr_assert_eq(in_child(forget_it, "1"), EBUSY);
	lose();
	cr_assert_eq(in_child(count_places, NULL), 1);
	given = "/none";
	cr_assert_eq(in_child(forget_it, NULL), 0);
	given = lost_dir;
	cr_assert_eq(in_child(forget_it, "1"), 0);
	cr_assert_eq(in_child(count_places, NULL), 0);
	read_parts(true);
	cr_assert_eq(in_child(list_lost, NULL), 0);
	for (long i = 0; i < NR; i++)
		if (is_lost[i])
			cr_assert_eq(in_child(write_part, (void *)i), 0);
	memset(is_lost, 0, sizeof(is_lost));
	read_parts(false);
	cr_assert_eq(in_child(list_lost, NULL), 0);
	l = lopen("a", O_RDWR | O_TRUNC);
	cr_assert_eq(lclose(&l), 0);
	cr_assert_eq(in_child(write_part, (void *)0), 0);
	cr_assert_eq(in_child(read_part, (void *)0), 0);
	cr_assert_eq(in_child(repair_it, NULL), 0);
	cr_assert_eq(lunlink("a"), 0);
	cr_assert_eq(count_files("data.") + count_files("spread."), 0);
}

Test(spread_lost, what_killed_processes_had_there_is_given_up_as_well)
{
	write_parts();
	do {
		cr_assert_eq(in_child(write_and_die, (void *)0), 256 + SIGKILL);
	} while (!count_lost("live."));
	cr_assert_eq(in_child(write_part, (void *)0), 0);
	is_lost[0] = false;
	lose();
	given = lost_dir;
	cr_assert_eq(in_child(forget_it, "1"), 0);
	for (long i = 1; i <= NR; i++)
		cr_assert_eq(in_child(read_part, (void *)i), is_lost[i] ? 5 : 0);
}

/* While it is away. */
Test(spread_lost, a_file_can_be_emptied_and_removed)
{
	struct lfile l;

	write_parts();
	lose();
	l = lopen("a", O_RDWR | O_TRUNC);
	cr_assert_eq(lclose(&l), 0);
	cr_assert_eq(in_child(write_part, (void *)0), 0);
	cr_assert_eq(in_child(read_part, (void *)0), 0);
	cr_assert_eq(lunlink("a"), 0);
	cr_assert_eq(count_files("data.") + count_files("spread."), 0);
}

/* ---- errors of the moment ---- */

static enum call bad_call;
static int bad_errno, nth;
static bool fired;

/* Each from the nth on, or that one alone. */
static bool persistent;

static int fail_nth(enum call call)
{
	if (call != bad_call || (nth && --nth) || (fired && !persistent))
		return 0;
	fired = true;
	return bad_errno;
}

static int forget_failing(void *arg)
{
	int before = count_files("spread."), ret;

	nth = (int)(long)arg;
	calls_intercept();
	on_call = fail_nth;
	ret = forget_it("1");
	on_call = NULL;
	return count_files("spread.") != before ? 2 : ret <= 1 ? 3 : !fired;
}

/* An error, as of a network file system whose server starts anew, is no proof that the backend has gone. */
static void forget_with(enum call call, int err)
{
	bad_call = call;
	bad_errno = err;
	for (int all = 0; all < 2; all++) {
		long i = 1;
		int ret;

		persistent = all;
		while (!(ret = in_child(forget_failing, (void *)i)))
			i++;
		cr_assert_eq(ret, 1, "call %s %ld, errno %d: %d", CALL_NAMES[call], i, err, ret);
		cr_assert_gt(i, 1);
	}
}

Test(spread_lost, a_backend_that_cannot_be_looked_at_is_not_given_up)
{
	static const int errors[] = { EIO, ESTALE, EACCES, ENOTCONN };

	write_parts();
	given = lost_dir;
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		forget_with(CALL_OPENAT, errors[i]);
		forget_with(CALL_OPEN, errors[i]);
		forget_with(CALL_FSTAT, errors[i]);
		forget_with(CALL_PREAD, errors[i]);
	}
	read_parts(false);
}

static int gc_top(void *arg, const char *top, const char *home)
{
	struct plfs_drain d = { .dry = false };
	char path[PATH_MAX];

	(void)arg, (void)home;
	plfs_drain_place(lpath("a", path), top, true, &d);
	return 0;
}

static int gc_failing(void *arg)
{
	nth = (int)(long)arg;
	calls_intercept();
	on_call = fail_nth;
	plfs_places_in(lost_dir, gc_top, NULL);
	on_call = NULL;
	return !fired;
}

/* Whichever call of a collection gives the error: what the file has stays. */
Test(spread_lost, a_collection_that_cannot_look_removes_nothing_of_a_file)
{
	static const int errors[] = { EIO, ESTALE, EACCES, ENOTCONN };
	static const enum call calls[] = { CALL_OPENAT, CALL_OPEN, CALL_FSTAT, CALL_FSTATAT, CALL_GETDENTS };
	int logs;

	write_parts();
	logs = count_lost("data.");
	for (size_t e = 0; e < ARRAY_SIZE(errors); e++)
		for (size_t c = 0; c < sizeof(calls) / sizeof(*calls); c++) {
			bad_errno = errors[e];
			bad_call = calls[c];
			persistent = false;
			for (long i = 1; !in_child(gc_failing, (void *)i); i++)
				cr_assert_eq(count_lost("data."), logs);
		}
	read_parts(false);
}
