/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a process sees of others behind a lock: all that they had released, and without a listing of the
 * container where the watch shows it. Others are processes of this host, and of another that uses the same
 * local file system, as a container with a name of its own does.
 */
#include "test/lib/scratch.h"

#include "test/lib/calls.h"

#include "core/file/file.h"

#include <criterion/criterion.h>

TestSuite(acquired, .init = scratch_setup, .fini = scratch_remove, .timeout = 60);

#define LEN 20000

enum act { WRITE, PUBLISH, TRUNCATE, COMPACT, DIE, CLOSE };

struct order {
	enum act act;
	off_t off;
	size_t len;
	unsigned round;
};

struct other {
	const char *host; /* NULL: this one */
	pid_t pid;
	int ask[2], answer[2];
};

static const char *name_of_host;

static int name_elsewhere(char *name, size_t len)
{
	snprintf(name, len, "%s", name_of_host);
	return 0;
}

static int act(struct lfile *l, const struct order *o)
{
	switch (o->act) {
	case WRITE:
		return lfill(l, o->off, o->len, o->round) != (ssize_t)o->len;
	case PUBLISH:
		return lfill(l, o->off, o->len, o->round) != (ssize_t)o->len || plfs_commit(l->f);
	case TRUNCATE:
		return plfs_truncate(l->f, o->off);
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

	name_of_host = x->host;
	if (name_of_host)
		sys.gethostname = name_elsewhere;
	while (read(x->ask[0], &o, sizeof(o)) == sizeof(o)) {
		if (l.fd < 0 && o.act < COMPACT)
			l = lopen("a", O_RDWR);
		if (act(&l, &o) || write(x->answer[1], "d", 1) != 1)
			return 1;
		if (o.act == CLOSE)
			return 0;
	}
	return 1;
}

/* Before this process knows its own host. */
static struct other start(const char *host)
{
	struct other x = { .host = host };

	cr_assert(!pipe(x.ask) && !pipe(x.answer));
	x.pid = start_child(obey, &x);
	close(x.answer[1]);
	return x;
}

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
	calls_intercept();
	on_call = count_call;
	nr_listings = nr_opens = 0;
}

/* This process has a log and maps, and has looked again since it has entered its host. */
static struct lfile ready(void)
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, 4 * LEN, 1), 4 * LEN);
	cr_assert_eq(plfs_commit(l.f), 0);
	for (int i = 0; i < 2; i++) {
		acquire(&l);
		cr_assert_eq(lcheck(&l, 0, 4 * LEN, 1), 0);
	}
	return l;
}

/* Two write the same bytes in turn with this process, as with a counter under a lock. */
Test(acquired, overwrites_in_turn_take_no_listing)
{
	struct other one = start(NULL), two = start(NULL);
	struct lfile l = ready();

	have(&one, PUBLISH, 0, 8, 2);
	have(&two, PUBLISH, 0, 8, 3);
	for (unsigned round = 4; round < 7; round++) { /* the logs that they have begun are known then */
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

	have(&one, PUBLISH, 10, 8, 2); /* a new log */
	acquire(&l);
	cr_assert_eq(lcheck(&l, 10, 8, 2), 0, "a first write");
	have(&one, PUBLISH, 20, 8, 3);
	acquire(&l);
	cr_assert_eq(lcheck(&l, 20, 8, 3), 0, "a second one");
	have(&two, WRITE, 30, 8, 4);
	have(&two, DIE, 0, 0, 0);
	acquire(&l);
	cr_assert_eq(lcheck(&l, 30, 8, 4), 0, "that of a killed process, which published nothing");
	have(&one, TRUNCATE, LEN, 0, 0);
	have(&one, PUBLISH, 3 * LEN, LEN, 5);
	acquire(&l);
	cr_assert(lzeros(&l, LEN, 2 * LEN), "a truncation, and the old size after it");
	cr_assert_eq(lcheck(&l, 3 * LEN, LEN, 5), 0);
	have(&one, TRUNCATE, 0, 0, 0);
	have(&one, PUBLISH, 0, 4 * LEN, 6);
	acquire(&l);
	cr_assert_eq(lcheck(&l, 0, 4 * LEN, 6), 0, "all anew");
	have(&one, CLOSE, 0, 0, 0);
	acquire(&l);
	cr_assert_eq(lcheck(&l, 0, 4 * LEN, 6), 0, "its log is closed");
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
	have(&one, PUBLISH, 0, LEN, 2);
	acquire(&l);
	cr_assert_eq(lcheck(&l, 0, LEN, 2), 0);
	have(&one, CLOSE, 0, 0, 0);
	have(&three, COMPACT, 0, 0, 0);
	acquire(&l);
	cr_assert_eq(lcheck(&l, 0, LEN, 2), 0);
	cr_assert_eq(lcheck(&l, LEN, 3 * LEN, 1), 0);
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
