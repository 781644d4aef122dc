/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a process sees of others behind a lock: all that they had released, and without a listing of the
 * container while its directories rest. Others are processes of this host, and of another that uses the same
 * local file system, as a container with a name of its own does.
 */
#include "test/lib/scratch.h"

#include "test/lib/calls.h"

#include "core/backend/mount.h"
#include "core/base/guard.h"
#include "core/file/file.h"
#include "core/read/watch.h"

#include <criterion/criterion.h>

TestSuite(acquired, .init = scratch_setup, .fini = scratch_remove, .timeout = 60);

#define LEN 20000

enum act { WRITE, PUBLISH, APPEND, TRUNCATE, MOVE, COMPACT, REPAIR, DIE, CLOSE };

struct order {
	enum act act;
	off_t off;
	size_t len;
	unsigned round;
};

struct other {
	const char *host;     /* NULL: this one */
	unsigned nr_hostdirs; /* of its mapping; 0: as here */
	pid_t pid;
	int ask[2], answer[2];
};

static int append(struct lfile *l, size_t len, unsigned round)
{
	char buf[LEN];
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	off_t end;

	pattern_fill(buf, len, (uint64_t)plfs_size(l->f), round);
	return plfs_appendv(l->f, &iov, 1, &end) != (ssize_t)len || plfs_commit(l->f);
}

static int act(struct lfile *l, const struct order *o)
{
	switch (o->act) {
	case WRITE:
		return lfill(l, o->off, o->len, o->round) != (ssize_t)o->len;
	case PUBLISH:
		return lfill(l, o->off, o->len, o->round) != (ssize_t)o->len || plfs_commit(l->f);
	case APPEND:
		return append(l, o->len, o->round);
	case TRUNCATE:
		return plfs_truncate(l->f, o->off);
	case MOVE:
		return plfs_in_body(l->f, PLFS_MAP_WRITE) != 1;
	case REPAIR:
		return lexamine("a", true);
	case COMPACT:
		return lcompact("a") < 0;
	case DIE:
		return raise(SIGKILL);
	default:
		return l->fd >= 0 && lclose(l);
	}
}

/* Opens the file with its first order. */
static int obey(void *arg)
{
	struct other *x = arg;
	struct lfile l = { .fd = -1 };
	struct order o;

	char path[PATH_MAX];

	if (x->nr_hostdirs)
		lpath("a", path)->spec->nr_hostdirs = x->nr_hostdirs;
	if (x->host)
		be_host(x->host);
	while (read(x->ask[0], &o, sizeof(o)) == sizeof(o)) {
		if (l.fd < 0 && o.act < COMPACT)
			l = lopen("a", o.act == APPEND ? O_WRONLY | O_APPEND : O_RDWR);
		if (act(&l, &o) || write(x->answer[1], "d", 1) != 1)
			return 1;
		if (o.act == CLOSE)
			return 0;
	}
	return 1;
}

/* Before this process knows its own host. */
static struct other start_with(const char *host, unsigned nr_hostdirs)
{
	struct other x = { .host = host, .nr_hostdirs = nr_hostdirs };

	cr_assert(!pipe(x.ask) && !pipe(x.answer));
	x.pid = start_child(obey, &x);
	close(x.answer[1]);
	return x;
}

static struct other start(const char *host) { return start_with(host, 0); }

static void have(struct other *x, enum act act, off_t off, size_t len, unsigned round)
{
	struct order o = { act, off, len, round };
	char c;

	cr_assert_eq(write(x->ask[1], &o, sizeof(o)), (ssize_t)sizeof(o));
	cr_assert_eq(read(x->answer[0], &c, 1), act != DIE, "act %d", act);
	if (act == DIE)
		cr_assert_eq(wait_child(x->pid), 256 + SIGKILL);
	if (act == CLOSE)
		cr_assert_eq(wait_child(x->pid), 0);
}

/* What a lock does. */
static void acquire(struct lfile *l) { cr_assert_eq(plfs_refresh(l->f), 0); }

static int nr_listings, nr_opens;

static int count_call(enum call call)
{
	nr_listings += call == CALL_GETDENTS;
	nr_opens += call == CALL_OPENAT || call == CALL_OPEN;
	return 0;
}

static void count_from_here(void)
{
	static bool intercepted;

	if (!intercepted)
		calls_intercept();
	intercepted = true;
	on_call = count_call;
	nr_listings = nr_opens = 0;
}

/* Whether a look lists nothing: the directories have rested, and are known. */
static bool is_at_rest(struct lfile *l)
{
	acquire(l);
	count_from_here();
	cr_assert_geq(plfs_size(l->f), 0);
	on_call = NULL;
	return !nr_listings;
}

/* That takes 20 ms at least, so this waits as often as it must. */
static void rest(struct lfile *l)
{
	while (!is_at_rest(l))
		usleep(5000);
}

/* The same where another host may write: then it never rests. */
static void rest_perhaps(struct lfile *l)
{
	for (int i = 0; i < 8 && !is_at_rest(l); i++)
		usleep(5000);
}

/* This process has a log and maps, and knows the directories. */
static struct lfile ready(void)
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, 4 * LEN, 1), 4 * LEN);
	cr_assert_eq(plfs_commit(l.f), 0);
	acquire(&l);
	cr_assert_eq(lcheck(&l, 0, 4 * LEN, 1), 0);
	rest(&l);
	return l;
}

/* Two write the same bytes in turn with this process, as with a counter under a lock. */
Test(acquired, overwrites_in_turn_take_no_listing)
{
	struct other one = start(NULL), two = start(NULL);
	struct lfile l = ready();

	have(&one, PUBLISH, 0, 8, 2);
	have(&two, PUBLISH, 0, 8, 3);
	rest(&l);
	for (unsigned round = 4; round < 7; round++) { /* their logs are opened here */
		acquire(&l);
		cr_assert_eq(lfill(&l, 0, 8, round), 8);
		have(&one, PUBLISH, 0, 8, round);
		acquire(&l);
		cr_assert_eq(lcheck(&l, 0, 8, round), 0);
		have(&two, PUBLISH, 0, 8, round);
		acquire(&l);
		cr_assert_eq(lcheck(&l, 0, 8, round), 0);
	}
	count_from_here();
	for (unsigned round = 10; round < 200; round += 4) {
		have(&one, PUBLISH, 0, 8, round);
		have(&two, PUBLISH, 0, 8, round + 1);
		acquire(&l);
		cr_assert_eq(lcheck(&l, 0, 8, round + 1), 0, "round %u", round);
		have(&two, PUBLISH, 0, 8, round + 2);
		have(&one, PUBLISH, 0, 8, round + 3);
		acquire(&l);
		cr_assert_eq(lcheck(&l, 0, 8, round + 3), 0, "round %u", round);
		cr_assert_eq(lfill(&l, 0, 8, round), 8);
		cr_assert_eq(plfs_commit(l.f), 0);
	}
	cr_assert_eq(nr_listings, 0);
	cr_assert_eq(nr_opens, 0);
	on_call = NULL;
	have(&one, CLOSE, 0, 0, 0);
	have(&two, CLOSE, 0, 0, 0);
	acquire(&l);
	cr_assert_eq(lcheck(&l, 8, 4 * LEN - 8, 1), 0);
	lclose(&l);
}

enum { SLOTS = 5, BATCH_MAX = 400 }; /* fewer than a live file has records */

static void overwrite_at_random(struct other *others, unsigned *rounds, unsigned nr)
{
	static unsigned round = 1;

	for (unsigned i = 0; i < nr; i++) {
		unsigned slot = (unsigned)rand() % SLOTS;

		rounds[slot] = ++round;
		have(&others[rand() % 2], PUBLISH, 8 * slot, 8, round);
	}
}

static void check_slots(struct lfile *l, const unsigned *rounds)
{
	for (unsigned slot = 0; slot < SLOTS; slot++)
		cr_assert_eq(lcheck(l, 8 * slot, 8, rounds[slot]), 0, "slot %u", slot);
}

/* Who has been away for a while finds records in the node index, and some in the live files. */
Test(acquired, overwrites_that_fill_the_live_files_take_no_listing)
{
	struct other others[] = { start(NULL), start(NULL) };
	struct lfile l = ready(), fresh;
	unsigned rounds[SLOTS];

	for (unsigned slot = 0; slot < SLOTS; slot++)
		rounds[slot] = 1;
	overwrite_at_random(others, rounds, 2000); /* there is a node index */
	rest(&l);
	count_from_here();
	for (int i = 0; i < 20; i++) {
		overwrite_at_random(others, rounds, 1 + (unsigned)rand() % BATCH_MAX);
		acquire(&l);
		check_slots(&l, rounds);
		if (i % 3 == 0) {
			rounds[0] = 100000 + (unsigned)i;
			cr_assert_eq(lfill(&l, 0, 8, rounds[0]), 8);
		}
	}
	cr_assert_eq(nr_listings, 0);
	on_call = NULL;
	fresh = lopen("a", O_RDONLY);
	check_slots(&fresh, rounds);
	lclose(&fresh);
	have(&others[0], CLOSE, 0, 0, 0);
	have(&others[1], CLOSE, 0, 0, 0);
	lclose(&l);
}

/* A look at the size takes what others wrote, before this process's own write is in the maps. */
Test(acquired, a_write_of_its_own_is_not_on_top_of_later_ones)
{
	struct other one = start(NULL);
	struct lfile l = ready();

	for (unsigned round = 2; round < 20; round += 2) {
		have(&one, PUBLISH, 0, 8, 50);
		acquire(&l);
		cr_assert_eq(lcheck(&l, 0, 8, 50), 0);
		cr_assert_eq(lfill(&l, 0, 8, round), 8);
		have(&one, PUBLISH, 0, 8, round + 1);
		acquire(&l);
		cr_assert_eq(plfs_size(l.f), 4 * LEN);
		cr_assert_eq(lcheck(&l, 0, 8, round + 1), 0, "round %u", round);
	}
	have(&one, CLOSE, 0, 0, 0);
	lclose(&l);
}

static void sees_all(const char *host)
{
	struct other one = start(host), two = start(host), three = start(host);
	struct lfile l = ready();

	rest_perhaps(&l);
	have(&one, PUBLISH, 10, 8, 2); /* a new log */
	acquire(&l);
	cr_assert_eq(lcheck(&l, 10, 8, 2), 0, "a first write");
	rest_perhaps(&l);
	have(&one, PUBLISH, 20, 8, 3);
	acquire(&l);
	cr_assert_eq(lcheck(&l, 20, 8, 3), 0, "a second one");
	rest_perhaps(&l);
	have(&two, WRITE, 30, 8, 4);
	have(&two, DIE, 0, 0, 0);
	acquire(&l);
	cr_assert_eq(lcheck(&l, 30, 8, 4), 0, "that of a killed process, which published nothing");
	rest_perhaps(&l);
	have(&one, TRUNCATE, LEN, 0, 0);
	rest_perhaps(&l);
	have(&one, PUBLISH, 3 * LEN, LEN, 5);
	acquire(&l);
	cr_assert(lzeros(&l, LEN, 2 * LEN), "a truncation, and the old size after it");
	cr_assert_eq(lcheck(&l, 3 * LEN, LEN, 5), 0);
	rest_perhaps(&l);
	have(&one, TRUNCATE, 0, 0, 0);
	rest_perhaps(&l);
	have(&one, PUBLISH, 0, 4 * LEN, 6);
	acquire(&l);
	cr_assert_eq(lcheck(&l, 0, 4 * LEN, 6), 0, "all anew");
	have(&one, CLOSE, 0, 0, 0);
	acquire(&l);
	cr_assert_eq(lcheck(&l, 0, 4 * LEN, 6), 0, "its log is closed");
	rest_perhaps(&l);
	have(&three, PUBLISH, 40, 8, 7);
	acquire(&l);
	cr_assert_eq(lcheck(&l, 40, 8, 7), 0, "a new log of a host that has been there before");
	have(&three, CLOSE, 0, 0, 0);
	lclose(&l);
}

/* A reader's file is written over and compacted, and goes on being written. */
static void sees_what_was_compacted(const char *host)
{
	struct other one = start(host), two = start(host), three = start(host);
	struct lfile l = ready();

	lclose(&l);
	l = lopen("a", O_RDONLY);
	rest_perhaps(&l);
	have(&one, PUBLISH, 0, LEN, 2);
	acquire(&l);
	cr_assert_eq(lcheck(&l, 0, LEN, 2), 0);
	have(&one, CLOSE, 0, 0, 0);
	rest_perhaps(&l);
	have(&three, COMPACT, 0, 0, 0);
	acquire(&l);
	cr_assert_eq(lcheck(&l, 0, LEN, 2), 0);
	cr_assert_eq(lcheck(&l, LEN, 3 * LEN, 1), 0);
	rest_perhaps(&l);
	have(&two, PUBLISH, LEN, LEN, 3);
	acquire(&l);
	cr_assert_eq(lcheck(&l, LEN, LEN, 3), 0);
	have(&two, CLOSE, 0, 0, 0);
	have(&three, CLOSE, 0, 0, 0);
	lclose(&l);
}

Test(acquired, what_processes_of_this_host_compacted_is_seen) { sees_what_was_compacted(NULL); }
Test(acquired, what_another_host_compacted_is_seen) { sees_what_was_compacted("elsewhere"); }

Test(acquired, what_processes_of_this_host_did_is_seen) { sees_all(NULL); }
Test(acquired, what_another_host_did_on_the_same_file_system_is_seen) { sees_all("elsewhere"); }

/* The other host's log is there when this one looks, and the same bytes are written by both in turn. */
Test(acquired, overwrites_of_another_host_are_seen_in_turn)
{
	struct other one = start("elsewhere"), two = start(NULL);
	struct lfile l = ready();

	for (unsigned round = 2; round < 40; round += 3) {
		have(&one, PUBLISH, 0, 8, round);
		acquire(&l);
		cr_assert_eq(lcheck(&l, 0, 8, round), 0);
		cr_assert_eq(lfill(&l, 0, 8, round + 1), 8);
		cr_assert_eq(plfs_commit(l.f), 0);
		have(&two, PUBLISH, 0, 8, round + 2);
		acquire(&l);
		cr_assert_eq(lcheck(&l, 0, 8, round + 2), 0);
	}
	have(&one, CLOSE, 0, 0, 0);
	have(&two, CLOSE, 0, 0, 0);
	lclose(&l);
}

/* ---- whatever the first is that another does, to a process that lists nothing any more ---- */

static void sees_first(const char *host, unsigned nr_hostdirs, enum act first)
{
	struct other one = start_with(host, nr_hostdirs);
	struct lfile l = ready();

	switch (first) {
	case APPEND:
		have(&one, APPEND, 0, 100, 2);
		acquire(&l);
		cr_assert_eq(lcheck(&l, 4 * LEN, 100, 2), 0);
		break;
	case TRUNCATE:
		have(&one, TRUNCATE, LEN, 0, 0);
		acquire(&l);
		cr_assert_eq(plfs_size(l.f), LEN);
		cr_assert_eq(lcheck(&l, 0, LEN, 1), 0);
		have(&one, PUBLISH, 3 * LEN, 8, 2);
		acquire(&l);
		cr_assert(lzeros(&l, LEN, 2 * LEN));
		cr_assert_eq(lcheck(&l, 3 * LEN, 8, 2), 0);
		break;
	case MOVE:
		have(&one, MOVE, 0, 0, 0);
		have(&one, PUBLISH, 10, 8, 2);
		acquire(&l);
		cr_assert_eq(lcheck(&l, 10, 8, 2), 0);
		break;
	default:
		have(&one, PUBLISH, 10, 8, 2);
		acquire(&l);
		cr_assert_eq(lcheck(&l, 10, 8, 2), 0);
		rest_perhaps(&l);
		have(&one, PUBLISH, 10, 8, 3);
		acquire(&l);
		cr_assert_eq(lcheck(&l, 10, 8, 3), 0);
	}
	have(&one, CLOSE, 0, 0, 0);
	acquire(&l);
	cr_assert_eq(lcheck(&l, 0, 8, 1), 0);
	cr_assert_eq(lclose(&l), 0);
}

Test(acquired, a_first_write_here_is_seen) { sees_first(NULL, 0, PUBLISH); }
Test(acquired, a_first_write_elsewhere_is_seen) { sees_first("elsewhere", 0, PUBLISH); }
Test(acquired, a_first_write_through_other_hostdirs_is_seen) { sees_first(NULL, 7, PUBLISH); }
Test(acquired, a_first_append_here_is_seen) { sees_first(NULL, 0, APPEND); }
Test(acquired, a_first_append_elsewhere_is_seen) { sees_first("elsewhere", 0, APPEND); }
Test(acquired, a_truncation_here_is_seen) { sees_first(NULL, 0, TRUNCATE); }
Test(acquired, a_truncation_elsewhere_is_seen) { sees_first("elsewhere", 0, TRUNCATE); }
Test(acquired, a_truncation_through_other_hostdirs_is_seen) { sees_first(NULL, 7, TRUNCATE); }
Test(acquired, a_move_into_the_body_here_is_seen) { sees_first(NULL, 0, MOVE); }
Test(acquired, a_move_into_the_body_through_other_hostdirs_is_seen) { sees_first(NULL, 7, MOVE); }

/* Whose notice somebody has removed: who begins to write makes another, which nobody here has mapped. */
Test(acquired, a_first_write_after_the_notice_was_removed_is_seen)
{
	struct other one = start(NULL);
	struct lfile l = ready();
	char path[PATH_MAX];

	cr_assert(find_file("notice.", path));
	cr_assert_eq(unlink(path), 0);
	rest(&l);
	have(&one, PUBLISH, 10, 8, 2);
	acquire(&l);
	cr_assert_eq(lcheck(&l, 10, 8, 2), 0);
	have(&one, CLOSE, 0, 0, 0);
	lclose(&l);
}

/* Records that a repair has moved to the node index, and who writes after that. */
Test(acquired, what_a_repair_left_is_seen)
{
	struct other one = start(NULL), two = start(NULL), three = start(NULL);
	struct lfile l = ready();

	lclose(&l);
	l = lopen("a", O_RDONLY);
	have(&one, WRITE, 10, 8, 2);
	acquire(&l);
	cr_assert_eq(lcheck(&l, 10, 8, 2), 0);
	have(&one, DIE, 0, 0, 0);
	rest(&l);
	have(&two, REPAIR, 0, 0, 0);
	acquire(&l);
	cr_assert_eq(lcheck(&l, 10, 8, 2), 0);
	rest_perhaps(&l);
	have(&three, PUBLISH, 20, 8, 3);
	acquire(&l);
	cr_assert_eq(lcheck(&l, 20, 8, 3), 0);
	cr_assert_eq(lcheck(&l, 10, 8, 2), 0);
	have(&two, CLOSE, 0, 0, 0);
	have(&three, CLOSE, 0, 0, 0);
	lclose(&l);
}

/* Never old bytes: an error as long as the container has a live file that cannot be read. */
static void sees_damage(off_t len)
{
	struct other one = start(NULL);
	struct lfile l = ready();
	char path[PATH_MAX];

	lclose(&l);
	l = lopen("a", O_RDONLY);
	guard_handle_faults();
	have(&one, PUBLISH, 0, 8, 2);
	acquire(&l);
	cr_assert_eq(lcheck(&l, 0, 8, 2), 0);
	rest(&l);
	cr_assert(find_file("live.", path));
	cr_assert_eq(len < 0 ? unlink(path) : truncate(path, len), 0);
	for (int i = 0; i < 10; i++) {
		acquire(&l);
		cr_assert_eq(lcheck(&l, 0, 8, 2), -EIO, "look %d", i);
	}
	have(&one, DIE, 0, 0, 0);
	lclose(&l);
}

Test(acquired, a_live_file_that_was_removed_is_noticed) { sees_damage(-1); }
Test(acquired, a_live_file_that_was_cut_to_nothing_is_noticed) { sees_damage(0); }
Test(acquired, a_live_file_that_was_cut_in_its_header_is_noticed) { sees_damage(512); }
Test(acquired, a_live_file_that_was_cut_in_its_records_is_noticed) { sees_damage(4096); }

static int to_go;

static int fail_once(enum call call)
{
	(void)call;
	return --to_go ? 0 : EIO;
}

/* Whichever call of it failed: it may have renewed the watch, and kept the maps. */
Test(acquired, what_a_look_that_failed_has_missed_is_seen_by_the_next)
{
	struct other one = start(NULL);
	struct lfile l = ready();
	char byte;

	lclose(&l);
	l = lopen("a", O_RDONLY);
	have(&one, PUBLISH, 0, 8, 2);
	acquire(&l);
	cr_assert_eq(lcheck(&l, 0, 8, 2), 0);
	for (int nth = 1; nth < 40; nth++) {
		rest(&l);
		have(&one, TRUNCATE, LEN, 0, 0);
		have(&one, PUBLISH, 3 * LEN, LEN, (unsigned)nth);
		to_go = nth;
		on_call = fail_once;
		acquire(&l);
		(void)!plfs_pread(l.f, &byte, 1, LEN);
		on_call = NULL;
		acquire(&l);
		cr_assert(lzeros(&l, LEN, 2 * LEN), "call %d", nth);
		cr_assert_eq(lcheck(&l, 3 * LEN, LEN, (unsigned)nth), 0, "call %d", nth);
	}
	have(&one, CLOSE, 0, 0, 0);
	lclose(&l);
}

/* None of them is watched. */
Test(acquired, more_writers_than_are_watched_are_seen)
{
	enum { NR = WATCH_LIVES_MAX + 1 };
	static struct other others[NR];
	struct lfile l;

	for (int i = 0; i < NR; i++)
		others[i] = start(NULL);
	l = made("a");
	cr_assert_eq(lfill(&l, 0, 4 * LEN, 1), 4 * LEN);
	for (int i = 0; i < NR; i++)
		have(&others[i], WRITE, 8 * i, 8, 2);
	acquire(&l);
	cr_assert_eq(lcheck(&l, 0, 8 * NR, 2), 0);
	rest_perhaps(&l);
	have(&others[0], WRITE, 0, 8, 3);
	acquire(&l);
	cr_assert_eq(lcheck(&l, 0, 8, 3), 0);
	for (int i = 0; i < NR; i++)
		have(&others[i], DIE, 0, 0, 0);
	lclose(&l);
}
