/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random histories of processes of three hosts that keep one file open: what each reads is not older than
 * what it has acquired, and of two writes with a release and an acquire in between the later one wins. One
 * call comes after the other. PLFS_TEST_ROUNDS changes the number of histories of each kind; PLFS_TEST_SEED:
 * the one of this seed, or so many from there on.
 */
#include "test/lib/near.h"
#include "test/lib/told.h"

#include <criterion/criterion.h>

enum { VERSIONS = 60, STEPS = 40 };

/* ---- the model ---- */

/* A write or a truncation, of which zeros are read. As its byte it has its number and one more. */
static struct version {
	size_t off, end;
	bool cuts, appends;
	int who;
	uint64_t before; /* bits of those that are earlier: seen by its process, or 20 ms older */
} versions[VERSIONS];
static int nr_versions;
static uint64_t knows[TOLD_PROCS], released, older; /* bits of versions */
static uint64_t closed, opened[TOLD_PROCS]; /* of those in closed files, and before the last open */
static uint64_t dead, home, lost;           /* of killed processes; no longer near, at home or not */
static const struct told_answer *last;
static bool is_open[TOLD_PROCS], only_reads[TOLD_PROCS];
static bool untold[TOLD_PROCS]; /* it only reads, and has acquired nothing since its host began to write */
static bool at_once;  /* all hosts see a write as soon as those of its own */
static bool comes_home; /* what is released */

static struct {
	int who;
	struct told_order o;
	long ret;
} history[STEPS];
static int nr_steps;
static uint64_t state; /* of the random numbers */

static void show(void)
{
	for (int i = 0; i < nr_steps; i++)
		fprintf(stderr, "  %d (%s): %s %ld+%zu (%d) -> %ld\n", history[i].who,
			told_hosts[history[i].who], told_act_names[history[i].o.act], (long)history[i].o.off,
			history[i].o.len, history[i].o.byte, history[i].ret);
}

static bool is_near(int v) { return told_near && versions[v].who < 2 && !(home >> v & 1); }

static void release(int who)
{
	for (int v = 0; v < nr_versions; v++)
		if (versions[v].who == who && !(dead >> v & 1))
			released |= 1ull << v;
	home |= comes_home ? released & ~lost : 0;
}

static bool are_together(int a, int b) { return at_once || !strcmp(told_hosts[a], told_hosts[b]); }

/* What was written on its host before it is seen as well, and from then on all that is. */
static void acquire(int who)
{
	knows[who] |= released;
	untold[who] = only_reads[who];
	for (int v = 0; v < nr_versions; v++) {
		if (!are_together(versions[v].who, who) || (lost & ~released) >> v & 1)
			continue;
		knows[who] |= 1ull << v;
		untold[who] = false;
	}
}

/* What is earlier than a write now. */
static uint64_t before(int who)
{
	uint64_t all = opened[who];

	if (!told_apart)
		return knows[who] | older;
	for (int v = 0; v < nr_versions; v++)
		if (are_together(versions[v].who, who))
			all |= knows[who] & 1ull << v;
	return all;
}

static void add_version(int who, size_t off, size_t end, bool cuts, bool appends)
{
	versions[nr_versions] = (struct version){ off, end, cuts, appends, who, before(who) };
	for (int i = 0; i < TOLD_PROCS; i++)
		if (are_together(i, who) && !untold[i])
			knows[i] |= 1ull << nr_versions;
	nr_versions++;
}

/* Of @known versions, whether none that is later than version @v has byte @at. */
static bool is_newest(uint64_t known, int v, size_t at)
{
	for (int k = 0; k < nr_versions; k++)
		if (known >> k & 1 && versions[k].off <= at && at < versions[k].end && k != v &&
		    (v < 0 || versions[k].before >> v & 1))
			return false;
	return true;
}

/* What may be read of byte @at by whoever knows these. */
static bool allows(uint64_t known, size_t at, unsigned char byte)
{
	if (byte)
		return byte <= nr_versions && !versions[byte - 1].cuts && versions[byte - 1].off <= at &&
		       at < versions[byte - 1].end && is_newest(known, byte - 1, at);
	if (is_newest(known, -1, at))
		return true;
	for (int v = 0; v < nr_versions; v++)
		if (versions[v].cuts && versions[v].off <= at && is_newest(known, v, at))
			return true;
	return false;
}

/* Bytes that are near are an error elsewhere, and not older ones. */
static bool may_fail(int who, size_t at)
{
	size_t from = at / TOLD_PIECE * TOLD_PIECE, to = from + TOLD_PIECE;

	for (int v = 0; v < nr_versions; v++)
		if (is_near(v) && (who >= 2 || lost >> v & 1) && versions[v].off < to &&
		    from < versions[v].end)
			return true;
	return false;
}

/* The size has at least what must be read of it. */
static bool is_read_well(int who)
{
	uint64_t known = knows[who];
	long size = last->ret;

	for (size_t at = 0; at < TOLD_LEN; at++) {
		bool fails = last->fails[at / TOLD_PIECE];

		if (size < 0 || (fails ? !may_fail(who, at) :
					 !allows(known, at, (long)at < size ? last->bytes[at] : 0))) {
			fprintf(stderr, "%ld bytes, byte %zu is %d%s:\n", size, at, last->bytes[at],
				fails ? ", an error" : "");
			return false;
		}
	}
	return true;
}

/* No other append has the bytes of this one, unless a truncation took them. */
static bool is_appended_well(size_t off, size_t end)
{
	bool cut = false;

	for (int v = nr_versions - 1; v >= 0 && !cut; v--) {
		cut = versions[v].cuts;
		if (versions[v].appends && versions[v].off < end && off < versions[v].end)
			return false;
	}
	return true;
}

/* Do it, in the model as well. False, and the history is shown: they differ. */
static bool step(int who, enum told_act what, size_t off, size_t len)
{
	struct told_order o = { what, (off_t)off, len, (unsigned char)(nr_versions + 1) };
	long ret;
	bool ok;

	if (what == OPEN || what == OPEN_READ) {
		only_reads[who] = what == OPEN_READ;
		opened[who] = closed;
	}
	if (what == OPEN || what == OPEN_READ || what == REFRESH)
		acquire(who);
	last = tell(who, o);
	ret = last->ret;
	history[nr_steps].who = who;
	history[nr_steps].o = o;
	history[nr_steps++].ret = ret;
	ok = ret == 0;
	switch (what) {
	case WRITE:
		ok = ret == (long)len;
		add_version(who, off, off + len, false, false);
		break;
	case APPEND:
		ok = ret >= 0 && is_appended_well((size_t)ret, (size_t)ret + len);
		for (size_t at = 0; at < len && ok; at++) /* behind all that it knows */
			ok = allows(knows[who], (size_t)ret + at, 0);
		add_version(who, ret < 0 ? 0 : (size_t)ret, (size_t)(ret < 0 ? 0 : ret) + len, false, true);
		break;
	case CUT:
		add_version(who, off, TOLD_LEN, true, false);
		break;
	case READ:
		ok = is_read_well(who);
		break;
	case SYNC:
		acquire(who);
		if (ret == -EIO && who < 2 && lost) { /* of what its host has written */
			ok = true;
			break;
		}
		release(who);
		for (int v = 0; v < nr_versions; v++) /* of all processes of the host */
			home |= who < 2 && versions[v].who < 2 ? 1ull << v & ~lost : 0;
		break;
	case CLOSE:
		release(who);
		for (int v = 0; v < nr_versions; v++)
			closed |= versions[v].who == who ? 1ull << v : 0;
		break;
	case COMMIT:
		release(who);
		break;
	case KILL:
		if (!told_near || who >= 2)
			release(who);
		for (int v = 0; v < nr_versions; v++)
			dead |= versions[v].who == who ? 1ull << v : 0;
		break;
	case DRAIN: /* what is near here; of killed processes too, unless it is open elsewhere */
		ok = ret >= 0;
		home |= who == TOLD_PROCS ? (ret ? closed : closed | dead) & ~lost : 0;
		released |= who == TOLD_PROCS && !ret ? dead & ~lost : 0;
		break;
	case LOSE: /* what was not released need not be an error */
		for (int v = 0; v < nr_versions; v++) {
			dead |= versions[v].who < 2 ? 1ull << v : 0;
			lost |= is_near(v) ? 1ull << v : 0;
		}
		for (int i = 0; i < TOLD_PROCS; i++)
			knows[i] &= ~(lost & ~released);
		is_open[0] = is_open[1] = false;
		break;
	case STAGE: /* host two has no place */
		ok = ret >= 0 || (who != TOLD_PROCS && ret == -ENOENT);
		break;
	case REPAIR:
		ok = ret >= 0 || ret == -EBUSY || ret == -EAGAIN;
		break;
	case PAUSE:
		older |= off > 20000 ? (1ull << nr_versions) - 1 : 0;
		break;
	case COMPACT:
		ok = ret >= 0 || ret == -EBUSY || ret == -EAGAIN || (ret == -EIO && told_near);
		break;
	default:
		break;
	}
	is_open[who] = what == OPEN || what == OPEN_READ || (is_open[who] && what != CLOSE && what != KILL);
	if (!ok)
		show();
	return ok;
}

/* What the command does, in a process of host one or two. */
static bool command(int of_host_two, enum told_act what)
{
	return step(TOLD_PROCS + of_host_two, what, 0, 0);
}

static bool is_same(const struct told_answer *a, const struct told_answer *b)
{
	if (a->ret == b->ret && !memcmp(a->bytes, b->bytes, TOLD_LEN) &&
	    !memcmp(a->fails, b->fails, sizeof(a->fails)))
		return true;
	fprintf(stderr, "not the same for all in the end:\n");
	show();
	return false;
}

static bool fails(const struct told_answer *a)
{
	for (size_t i = 0; i < ARRAY_SIZE(a->fails); i++)
		if (a->fails[i])
			return true;
	return false;
}

/* All see the same when all have closed it, and the plain file is that. */
static bool ends_well(int flattened)
{
	static struct told_answer first;
	bool ok = true;

	for (int who = 0; who < TOLD_PROCS && ok; who++)
		ok = !is_open[who] || step(who, CLOSE, 0, 0);
	ok = ok && (!told_near || command(0, DRAIN));
	for (int who = 0; who < TOLD_PROCS && ok; who++) {
		ok = step(who, OPEN, 0, 0) && step(who, READ, 0, 0);
		if (!who)
			first = *last;
		ok = ok && is_same(&first, last);
	}
	for (int who = 0; who < TOLD_PROCS; who++)
		if (is_open[who])
			tell(who, (struct told_order){ .act = CLOSE });
	if (!ok || flattened < 0)
		return ok;
	last = tell(TOLD_PROCS + flattened, (struct told_order){ .act = FLATTEN });
	return last->ret == -EIO ? fails(&first) : is_same(&first, last);
}

static void begin(uint64_t seed)
{
	state = seed * 7919;
	nr_versions = nr_steps = 0;
	released = older = closed = dead = home = lost = 0;
	memset(knows, 0, sizeof(knows));
	memset(is_open, 0, sizeof(is_open));
	memset(untold, 0, sizeof(untold));
}

/* ---- what was wrong once ---- */

/*
 * Process 1 has read the file before any process of its host wrote it. There was nothing by which it could
 * learn that process 0 began; @writes: and then it wrote itself.
 */
static void reads_what_another_of_its_host_begins(bool writes)
{
	told_start();
	begin(0);
	cr_assert(step(3, OPEN, 0, 0) && step(3, WRITE, 1000, 180) && step(3, CLOSE, 0, 0));
	cr_assert(step(1, OPEN, 0, 0) && step(1, READ, 0, 0));
	cr_assert(step(0, OPEN, 0, 0) && step(0, WRITE, 900, 49));
	cr_assert(!writes || step(1, WRITE, 0, 10));
	cr_assert(step(1, READ, 0, 0));
	told_end();
}

/* Its unlock has learnt of the truncation; the map of its last read has not. */
static void reads_nothing_that_was_cut(void)
{
	told_start();
	begin(0);
	cr_assert(step(0, OPEN, 0, 0) && step(0, READ, 0, 0));
	cr_assert(step(1, OPEN, 0, 0) && step(1, WRITE, 800, 56) && step(1, READ, 0, 0));
	cr_assert(step(0, CUT, 0, 0));
	cr_assert(step(1, COMMIT, 0, 0) && step(1, READ, 0, 0));
	told_end();
}

/*
 * Host three, whose clock is ahead, truncates it; host two does so after that, and writes, without a look in
 * between. When it truncates that away, no host has lost anything.
 */
static void truncates_behind_one_that_is_ahead(void)
{
	told_start();
	begin(0);
	cr_assert(step(1, OPEN, 0, 0) && step(1, WRITE, 200, 106));
	cr_assert(step(2, OPEN, 0, 0) && step(3, OPEN, 0, 0) && step(3, READ, 0, 0));
	cr_assert(step(3, WRITE, 900, 67) && step(3, CUT, 0, 0));
	cr_assert(step(2, CUT, 0, 0) && step(1, CLOSE, 0, 0));
	cr_assert(step(2, WRITE, 496, 171) && step(3, WRITE, 1432, 66));
	cr_assert(step(2, CUT, 0, 0) && step(3, WRITE, 0, 27) && step(2, CLOSE, 0, 0));
	cr_assert(ends_well(-1));
	told_end();
}

/* ---- histories ---- */

static size_t rnd(size_t below)
{
	state = mix64(state + 1);
	return (size_t)(state >> 16) % below;
}

static bool random_step(bool cuts)
{
	static const enum told_act acts[] = { CLOSE, WRITE, WRITE, WRITE, WRITE, APPEND, READ, READ, READ,
					 COMMIT, COMMIT, REFRESH, REFRESH, SYNC, COMPACT, CUT };
	static const enum told_act commands[] = { COMPACT, REPAIR, DRAIN, STAGE };
	bool kills = !rnd(30);
	int who = (int)rnd(TOLD_PROCS);
	enum told_act what = acts[rnd(ARRAY_SIZE(acts) - !cuts)];
	size_t off = rnd(8) ? rnd(12) * 100 : rnd(TOLD_LEN - 1200), len = 1 + rnd(rnd(2) ? 200 : 1200);

	if (!rnd(60)) /* longer than a lease lasts, or than clocks differ */
		return step(who, PAUSE, rnd(2) ? 9000 : 25000, 0);
	if (told_near && !rnd(60))
		return step(0, LOSE, 0, 0);
	if (!rnd(12))
		return command((int)rnd(2), commands[rnd(told_near ? 4 : 2)]);
	if (!is_open[who])
		return step(who, rnd(4) ? OPEN : OPEN_READ, 0, 0);
	if (kills)
		return step(who, KILL, 0, 0);
	if (only_reads[who] && (what == WRITE || what == APPEND || what == CUT))
		what = READ;
	if (what == APPEND)
		len = 30;
	return step(who, what, what == CUT && rnd(2) ? 0 : off, len);
}

static bool is_played(uint64_t seed, bool cuts)
{
	int nr;
	bool ok;

	begin(seed);
	nr = 4 + (int)rnd(STEPS - 3 * TOLD_PROCS - 4);
	ok = step((int)rnd(TOLD_PROCS), OPEN, 0, 0);
	for (int i = 1; i < nr && ok; i++)
		ok = random_step(cuts);
	ok = ok && ends_well(rnd(4) ? -1 : (int)rnd(2));
	if (!ok)
		fprintf(stderr, "PLFS_TEST_SEED=%lu\n", (unsigned long)seed);
	return tell(0, (struct told_order){ .act = UNLINK })->ret == 0 && ok;
}

static void play(bool cuts)
{
	const char *rounds = getenv("PLFS_TEST_ROUNDS"), *given = getenv("PLFS_TEST_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : rounds ? (uint64_t)time(NULL) * 1000 : 1;
	int nr = rounds ? atoi(rounds) : given ? 1 : 250;
	bool ok = true;

	told_start();
	for (int i = 0; i < nr && ok; i++)
		ok = is_played(seed + (uint64_t)i, cuts);
	cr_assert(ok);
	told_end();
}

static void setup(void)
{
	scratch_in_memory = true;
	scratch_setup();
}

static void setup_at_once(void)
{
	setenv("PLFS_CONSISTENCY", "posix", 1);
	at_once = true;
	setup();
}

static void setup_near(void)
{
	scratch_in_memory = told_near = true;
	near_setup(",drain=none");
}

static void setup_near_at_once(void)
{
	setenv("PLFS_CONSISTENCY", "posix", 1);
	at_once = true;
	setup_near();
}

static void setup_near_home(void)
{
	scratch_in_memory = told_near = comes_home = true;
	near_setup(",drain=none,release=home");
}

static void setup_copies(void)
{
	scratch_in_memory = true;
	near_setup_copies("");
}

static void setup_apart(void)
{
	told_apart = true;
	setup();
}

static void setup_local(void)
{
	told_local = true;
	setup();
}

static void setup_small(void)
{
	scratch_in_memory = told_local = true;
	scratch_setup_small();
}

static void setup_spread(void)
{
	scratch_in_memory = true;
	near_spread("process");
}

TestSuite(hosts_order, .init = setup, .fini = scratch_remove, .timeout = 3600);
TestSuite(hosts_order_at_once, .init = setup_at_once, .fini = scratch_remove, .timeout = 3600);
TestSuite(hosts_order_near, .init = setup_near, .fini = near_remove, .timeout = 3600);
TestSuite(hosts_order_near_at_once, .init = setup_near_at_once, .fini = near_remove, .timeout = 3600);
TestSuite(hosts_order_near_home, .init = setup_near_home, .fini = near_remove, .timeout = 3600);
TestSuite(hosts_order_copies, .init = setup_copies, .fini = near_remove, .timeout = 3600);
TestSuite(hosts_order_apart, .init = setup_apart, .fini = scratch_remove, .timeout = 3600);
TestSuite(hosts_order_local, .init = setup_local, .fini = scratch_remove, .timeout = 3600);
TestSuite(hosts_order_small, .init = setup_small, .fini = scratch_remove, .timeout = 3600);
TestSuite(hosts_order_spread, .init = setup_spread, .fini = near_remove, .timeout = 3600);

Test(hosts_order, what_another_of_the_host_begins_is_read) { reads_what_another_of_its_host_begins(false); }
Test(hosts_order, what_another_of_the_host_began_is_read_by_one_that_writes)
{
	reads_what_another_of_its_host_begins(true);
}
Test(hosts_order, what_another_of_the_host_cut_off_is_not_read) { reads_nothing_that_was_cut(); }
Test(hosts_order, what_was_acquired_is_read_and_the_later_write_wins) { play(false); }
Test(hosts_order, also_if_it_is_truncated) { play(true); }
Test(hosts_order_at_once, is_that_of_all_calls_with_posix) { play(true); }
Test(hosts_order_near, is_the_same_or_an_error_with_logs_that_are_near) { play(true); }
Test(hosts_order_near_at_once, is_the_same_or_an_error_also_with_posix) { play(true); }
Test(hosts_order_near_home, is_the_same_with_logs_that_a_release_brings_home) { play(true); }
Test(hosts_order_copies, is_the_same_with_copies_of_the_logs) { play(true); }
Test(hosts_order_spread, is_the_same_with_logs_in_several_backends) { play(true); }
Test(hosts_order_local, is_the_same_on_a_local_file_system) { play(true); }
Test(hosts_order_small, is_the_same_with_bytes_in_the_stub) { play(true); }
Test(hosts_order_apart, is_the_same_with_clocks_that_differ_if_it_is_closed_and_opened) { play(true); }
Test(hosts_order_apart, a_truncation_behind_that_of_a_host_that_is_ahead_loses_nothing)
{
	truncates_behind_one_that_is_ahead();
}
