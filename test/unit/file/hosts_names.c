/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random histories of processes of three hosts that make, open, write, link, rename, exchange and remove the
 * same three names, with the command beside. One call comes after the other, or is made in the midst of
 * another one; then they give what they give in one order or in the other (names_world.h). A write is
 * followed by what an unlock does, and what a lock does comes before a read. Of histories with two calls at a
 * time there is a third as many (rounds.h). Or a process is stopped in the midst of a call while others go
 * on.
 */
#include "test/lib/asked.h"
#include "test/lib/calls.h"
#include "test/lib/gc.h"
#include "test/lib/look.h"
#include "test/lib/names_world.h"
#include "test/lib/near.h"
#include "test/lib/rounds.h"

#include "core/backend/mount.h"

enum { STEPS = 50, BLOCKED_MS = 300 };

static const char *const act_names[NR_ACTS] = {
	"open",	  "close",  "write",	"append", "read",    "ftruncate", "fstat",  "fsync", "cat", "stat",
	"unlink", "rename", "exchange", "link",	  "flatten", "compact",	  "repair", "check", "stat, map",
	"drain",  "stage --to=home", "drain --to=home", "stage", "stage --drop", "gc", "kill",
};

static const char *const hosts[WORLD_PROCS] = { "one", "one", "two", "three" };

static bool is_local, is_near, is_apart; /* the clocks of the hosts are an hour apart */

/* ---- in a process ---- */

static struct held {
	bool is, only_reads;
	struct lfile l;
} held[WORLD_SLOTS];

static const char *name_of_nr(int nr) { return nr == 0 ? "a" : nr == 1 ? "b" : "c"; }

static int close_it(struct held *h)
{
	int ret = h->is ? lclose(&h->l) : 0;

	h->is = false;
	return ret;
}

static long open_it(struct held *h, const struct world_order *o)
{
	long ret;

	close_it(h);
	ret = ltry(&h->l, name_of_nr(o->a), o->flags);
	h->is = !ret;
	h->only_reads = (o->flags & O_ACCMODE) == O_RDONLY;
	return ret;
}

static long or_errno(long ret) { return ret < 0 ? -errno : ret; }

static long size_of(const struct lfile *l)
{
	struct stat st;

	return l->f ? plfs_size(l->f) : fstat(l->fd, &st) ? -errno : st.st_size;
}

static long write_it(struct lfile *l, const struct world_order *o)
{
	static char buf[WORLD_LEN];
	off_t end;
	long ret;
	int ret2;

	memset(buf, o->byte, o->len);
	if (!l->f)
		return or_errno(pwrite(l->fd, buf, o->len, o->act == APPEND ? size_of(l) : o->off));
	ret = o->act == APPEND ? lappend(l, buf, o->len, &end) : plfs_pwrite(l->f, buf, o->len, o->off);
	ret2 = plfs_commit(l->f);
	return ret2 ? ret2 : ret;
}

/* What is behind the bytes that it gives says nothing: they may have been there, until it looked again. */
static long read_it(struct lfile *l, struct world_answer *a)
{
	long ret = l->f ? plfs_pread(l->f, a->bytes, WORLD_LEN, 0) :
			  or_errno(pread(l->fd, a->bytes, WORLD_LEN, 0));

	if (ret >= 0)
		memset(a->bytes + ret, 0, (size_t)(WORLD_LEN - ret));
	return ret;
}

static long with_held(struct held *h, const struct world_order *o, struct world_answer *a)
{
	struct plfs_file *f = h->l.f;
	enum world_act act = o->act;
	int ret = 0;

	if (h->only_reads && (act == WRITE || act == APPEND || act == CUT)) /* preload/ has refused it */
		act = READ;
	if (f && act == READ) /* a shared lock */
		ret = plfs_commit(f);
	if (ret)
		return ret;
	if (f && act != WRITE && act != APPEND)
		plfs_refresh(f);
	switch (act) {
	case WRITE:
	case APPEND:
		return write_it(&h->l, o);
	case READ:
		return read_it(&h->l, a);
	case CUT:
		return f ? plfs_truncate(f, o->off) : or_errno(ftruncate(h->l.fd, o->off));
	case SIZE:
		return size_of(&h->l);
	case SYNC:
		return f ? plfs_sync(f) : or_errno(fsync(h->l.fd));
	default:
		return close_it(h);
	}
}

static long cat(const struct world_order *o, struct world_answer *a)
{
	struct world_order how = { .a = o->a, .flags = O_RDONLY };
	struct held h = { .is = false };
	long ret = open_it(&h, &how);

	if (!ret)
		ret = read_it(&h.l, a);
	close_it(&h);
	return ret;
}

static long change_names(const struct world_order *o)
{
	char from[PATH_MAX], to[PATH_MAX];
	struct plfs_mount *m = lpath(name_of_nr(o->a), from);

	lpath(name_of_nr(o->b), to);
	if (o->act == UNLINK)
		return plfs_unlink(m, AT_FDCWD, from);
	if (o->act == LINK)
		return plfs_link(m, AT_FDCWD, from, AT_FDCWD, to, 0);
	return plfs_rename(m, AT_FDCWD, from, AT_FDCWD, to, o->act == EXCHANGE ? RENAME_EXCHANGE : 0);
}

static void show_damage(void *arg, const struct plfs_finding *f)
{
	bool *any = arg;

	if (is_near || f->severity == PLFS_NOTED || f->severity == PLFS_REPAIRED || !strcmp(f->code, "busy"))
		return;
	fprintf(stderr, "%s: %s %s: %s\n", f->file, f->path, f->code, f->text);
	*any = true;
}

/* No file is damaged, but near on another host. @name "": all of them. */
static long examine(const char *name, bool repair)
{
	bool any = false;
	struct plfs_check check = { .repair = repair, .found = show_damage, .arg = &any };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath(name, path);
	long ret = *name ? plfs_check(m, AT_FDCWD, path, &check) : plfs_check_tree(m, m->backend, 1, &check);

	return any || (ret > 0 && !is_near) ? -EUCLEAN : ret;
}

static long stage(const char *name, bool drops)
{
	struct plfs_drain d = { 0 };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath(name, path);

	return plfs_stage_file(m, AT_FDCWD, path, drops, &d);
}

static long run(const struct world_order *o)
{
	struct plfs_gc g = { .age_ns = 0, .later_ns = HOUR_NS };
	struct plfs_drain d = { .keep = o->act == DRAIN_KEEP, .to_home = o->act == BRING };
	const char *name = name_of_nr(o->a);
	char path[PATH_MAX];

	lpath(name, path);
	switch (o->act) {
	case FLATTEN:
		return plfs_flatten(AT_FDCWD, path, NULL);
	case COMPACT:
		return lcompact(name);
	case REPAIR:
	case CHECK:
		return examine(o->b ? name : "", o->act == REPAIR);
	case LOOK:
		return look_at(name);
	case STAGE:
	case DROP:
		return stage(name, o->act == DROP);
	case GC:
		return gc(&g);
	default:
		return ldrain(name, &d);
	}
}

/* What the command does changes nothing that a program sees. */
static long command(const struct world_order *o)
{
	long ret = run(o);

	if (ret == -EIO && is_near) /* of logs of a killed process, until a drain where it was */
		return 0;
	return ret > 0 || ret == -EBUSY || ret == -EAGAIN || ret == -ENOENT || ret == -EMLINK ? 0 : ret;
}

static long do_it(const struct world_order *o, struct world_answer *a)
{
	switch (o->act) {
	case OPEN:
		return open_it(&held[o->slot], o);
	case CAT:
		return cat(o, a);
	case STAT:
		return stat_size(name_of_nr(o->a));
	case UNLINK:
	case RENAME:
	case EXCHANGE:
	case LINK:
		return change_names(o);
	case FLATTEN:
	case COMPACT:
	case REPAIR:
	case CHECK:
	case LOOK:
	case DRAIN:
	case DRAIN_KEEP:
	case BRING:
	case STAGE:
	case DROP:
	case GC:
		return command(o);
	default:
		return held[o->slot].is ? with_held(&held[o->slot], o, a) : 0;
	}
}

static void act(const void *order, void *answer)
{
	static const struct world_answer here = { .stopped = true };
	const struct world_order *o = order;
	struct world_answer *a = answer;

	memset(a, 0, sizeof(*a));
	asked_stop_at(o->stop_at, &here);
	a->ret = do_it(o, a);
	asked_stop_at(0, NULL);
}

static void begin(int who)
{
	char path[PATH_MAX];

	be_host(hosts[who]);
	be_hours_ahead(is_apart && who ? who - 1 : 0);
	if (is_near && strcmp(hosts[who], "one"))
		near_go_elsewhere();
	lpath("a", path)->store.remote = !is_local;
	calls_intercept();
}

static struct asked procs = { .nr = WORLD_PROCS, .order_len = sizeof(struct world_order),
			      .answer_len = sizeof(struct world_answer), .begin = begin, .act = act };

/* ---- histories ---- */

static struct {
	int who;
	struct world_order o;
	long ret;
} history[8 * STEPS];
static int nr_steps;
static bool is_held[WORLD_PROCS][WORLD_SLOTS];

static void show(void)
{
	for (int i = 0; i < nr_steps; i++) {
		const struct world_order *o = &history[i].o;

		fprintf(stderr, "  %d (%s): %s %s %s slot %d flags %#x %ld+%zu (%d) -> %ld",
			history[i].who, hosts[history[i].who], act_names[o->act], name_of_nr(o->a),
			name_of_nr(o->b), o->slot, (unsigned)o->flags, (long)o->off, o->len, o->byte,
			history[i].ret);
		fprintf(stderr, o->stop_at ? ", and at its call %d:\n" : "\n", o->stop_at);
	}
}

static void note(int who, struct world_order o, long ret)
{
	history[nr_steps].who = who;
	history[nr_steps].o = o;
	history[nr_steps++].ret = ret;
	if (o.act == OPEN || o.act == CLOSE)
		is_held[who][o.slot] = o.act == OPEN && !ret;
	if (o.act == KILL)
		memset(is_held[who], 0, sizeof(is_held[who]));
}

static bool is_right(bool right, const struct world_answer *a)
{
	if (right)
		return true;
	fprintf(stderr, "not as in a plain directory:\n");
	show();
	for (long i = 0; i < a->ret; i++)
		if (!i || a->bytes[i] != a->bytes[i - 1])
			fprintf(stderr, "  from %ld on: %d\n", i, a->bytes[i]);
	return false;
}

static bool step(int who, struct world_order o)
{
	static struct world_answer a;

	memset(&a, 0, sizeof(a));
	if (o.act == KILL)
		asked_kill(&procs, who);
	else
		asked_ask(&procs, who, &o, &a);
	note(who, o, a.ret);
	return is_right(world_did(who, &o, &a), &a);
}

/* @p is done whole before a system call of @o; or the process that does @o is killed there. */
static bool beside(int who_a, struct world_order o, int call, int who_b, struct world_order p)
{
	static struct world_answer a, b;
	static const struct world_order go_on;

	o.stop_at = call;
	asked_ask(&procs, who_a, &o, &a);
	if (!a.stopped) {
		o.stop_at = 0;
		note(who_a, o, a.ret);
		return is_right(world_did(who_a, &o, &a), &a) && (p.act == KILL || step(who_b, p));
	}
	if (p.act == KILL) {
		asked_kill(&procs, who_a);
		note(who_a, o, -EINPROGRESS);
		note(who_a, p, 0);
		return is_right(world_killed(who_a, &o), &a);
	}
	asked_order(&procs, who_b, &p);
	if (asked_answer(&procs, who_b, &b, BLOCKED_MS)) {
		asked_ask(&procs, who_a, &go_on, &a);
	} else { /* it waits for the other */
		asked_ask(&procs, who_a, &go_on, &a);
		asked_answer(&procs, who_b, &b, -1);
	}
	note(who_a, o, a.ret);
	note(who_b, p, b.ret);
	return is_right(world_did_both(who_a, &o, &a, who_b, &p, &b), &a);
}

enum { OTHERS_MAX = 5 };

static void done_by(const struct world_done *d) { note(d->who, d->o, d->a.ret); }

/* The process that does @stopped stands before a system call, till others have done those @nr. */
static bool among(struct world_done *stopped, int call, struct world_done *others, int nr)
{
	static const struct world_order go_on;
	int done = 0;
	bool waits = false;

	stopped->o.stop_at = call;
	asked_ask(&procs, stopped->who, &stopped->o, &stopped->a);
	if (!stopped->a.stopped) {
		done_by(stopped);
		return is_right(world_did(stopped->who, &stopped->o, &stopped->a), &stopped->a);
	}
	while (done < nr && !waits) {
		struct world_done *d = &others[done++];

		asked_order(&procs, d->who, &d->o);
		waits = !asked_answer(&procs, d->who, &d->a, BLOCKED_MS);
	}
	asked_ask(&procs, stopped->who, &go_on, &stopped->a);
	if (waits)
		asked_answer(&procs, others[done - 1].who, &others[done - 1].a, -1);
	done_by(stopped);
	for (int i = 0; i < done; i++)
		done_by(&others[i]);
	return is_right(world_did_among(stopped, others, done), &stopped->a);
}

/* Clocks that differ let the later of two writes win if the file has been closed and opened in between. */
static bool opened_for(int who, struct world_order o)
{
	struct world_order how = o;

	how.act = CLOSE;
	if (!step(who, how))
		return false;
	how.act = OPEN;
	if (!step(who, how) || (is_held[who][o.slot] && !step(who, o)))
		return false;
	how.act = CLOSE;
	return step(who, how);
}

static struct world_order random_order(int who)
{
	static const enum world_act acts[] = { OPEN, OPEN, OPEN, CLOSE, WRITE, WRITE, WRITE, APPEND, READ,
					       READ, CUT, SIZE, SYNC, CAT, CAT, STAT, STAT, UNLINK, RENAME,
					       RENAME, EXCHANGE, LINK, FLATTEN, COMPACT, REPAIR, GC, CHECK,
					       LOOK };
	static const enum world_act near[] = { DRAIN, DRAIN, DRAIN_KEEP, STAGE, DROP };
	static const int flags[] = { O_RDONLY, O_RDWR, O_RDWR | O_TRUNC, O_RDWR | O_CREAT, O_RDWR | O_CREAT,
				     O_RDWR | O_CREAT | O_EXCL, O_RDWR | O_CREAT | O_TRUNC };
	struct world_order o = { .act = acts[rounds_rnd(ARRAY_SIZE(acts))] };

	o.slot = (int)rounds_rnd(WORLD_SLOTS);
	o.a = (int)rounds_rnd(WORLD_NAMES);
	o.b = (int)rounds_rnd(WORLD_NAMES);
	o.flags = flags[rounds_rnd(ARRAY_SIZE(flags))];
	o.off = (off_t)(rounds_rnd(8) ? rounds_rnd(12) * 100 : rounds_rnd(5000));
	o.len = o.act == APPEND ? 30 : 1 + rounds_rnd(rounds_rnd(2) ? 200 : 1200);
	o.byte = (unsigned char)(1 + nr_steps);
	if (!rounds_rnd(40))
		o.act = KILL;
	if (is_near && !rounds_rnd(8))
		o.act = near[rounds_rnd(strcmp(hosts[who], "one") ? 2 : ARRAY_SIZE(near))];
	else if (*near_dir && !is_near && !rounds_rnd(15))
		o.act = rounds_rnd(2) ? DRAIN : BRING;
	if (o.act == CUT && rounds_rnd(2))
		o.off = 0;
	if (!is_apart && o.act >= CLOSE && o.act <= SYNC && !is_held[who][o.slot])
		o.act = OPEN;
	return o;
}

static bool cuts(const struct world_order *o)
{
	return o->act == CUT || (o->act == OPEN && o->flags & O_TRUNC);
}

static bool writes(const struct world_order *o) { return o->act == WRITE || o->act == APPEND; }

static bool reads(const struct world_order *o)
{
	return o->act == READ || o->act == CAT || writes(o); /* READ for one that only reads */
}

/*
 * A write and a truncation at a time, on two hosts, may leave the size of the one, bytes of the other. The
 * end of an append is known there before its bytes.
 */
static bool is_promised(int who, const struct world_order *o, int other, const struct world_order *p)
{
	bool apart = (cuts(o) && writes(p)) || (writes(o) && cuts(p)) || (o->act == APPEND && reads(p)) ||
		     (p->act == APPEND && reads(o));

	return !apart || !strcmp(hosts[who], hosts[other]);
}

/* On another host stat() shows the stub's own length until a truncation is finished; cut_killed.c has it. */
static bool may_be_killed(const struct world_order *o) { return !writes(o) && !cuts(o); }

/* What a write or a truncation has done processes of its host may see before others do. */
static bool may_be_among(int who, const struct world_order *o, int other, const struct world_order *p)
{
	bool one_host = is_local || !strcmp(hosts[who], hosts[other]);

	return who != other && p->act != KILL && (one_host || (!writes(o) && !cuts(o))) &&
	       is_promised(who, o, other, p);
}

/* In a plain directory too others may come between the look at the name and what is done to the file. */
static bool is_several(const struct world_order *o)
{
	return o->act == CAT || o->act == STAT || (o->act == OPEN && o->flags & O_TRUNC);
}

static bool stopped_step(void)
{
	static struct world_done stopped, others[OTHERS_MAX];
	int nr = 0, call = 1 + (int)rounds_rnd(rounds_rnd(2) ? 8 : 60);

	stopped.who = (int)rounds_rnd(WORLD_PROCS);
	stopped.o = random_order(stopped.who);
	if (stopped.o.act == KILL || is_several(&stopped.o))
		return step(stopped.who, stopped.o);
	for (int left = 1 + (int)rounds_rnd(2 * OTHERS_MAX); left && nr < OTHERS_MAX; left--) {
		others[nr].who = (int)rounds_rnd(WORLD_PROCS);
		others[nr].o = random_order(others[nr].who);
		others[nr].o.byte = (unsigned char)(others[nr].o.byte + 1 + nr);
		nr += may_be_among(stopped.who, &stopped.o, others[nr].who, &others[nr].o);
	}
	return nr ? among(&stopped, call, others, nr) : step(stopped.who, stopped.o);
}

static bool random_step(bool besides)
{
	int who = (int)rounds_rnd(WORLD_PROCS), other = (int)rounds_rnd(WORLD_PROCS);
	struct world_order o = random_order(who), p = random_order(other);
	int call = 1 + (int)rounds_rnd(rounds_rnd(2) ? 8 : 60);

	if (is_apart && o.act >= WRITE && o.act <= SIZE)
		return opened_for(who, o);
	if (besides && who != other && o.act != KILL && (p.act != KILL || may_be_killed(&o)) &&
	    is_promised(who, &o, other, &p))
		return beside(who, o, call, other, p);
	return step(who, o);
}

/* All have closed all, and each sees the same. */
static bool ends_well(void)
{
	bool ok = true;

	for (int who = 0; who < WORLD_PROCS; who++)
		for (int slot = 0; slot < WORLD_SLOTS && ok; slot++)
			ok = step(who, (struct world_order){ .act = CLOSE, .slot = slot });
	for (int nr = 0; nr < WORLD_NAMES && ok && is_near; nr++)
		ok = step(0, (struct world_order){ .act = DRAIN, .a = nr });
	for (int who = 0; who < WORLD_PROCS; who++)
		for (int nr = 0; nr < WORLD_NAMES && ok; nr++)
			ok = step(who, (struct world_order){ .act = CAT, .a = nr }) &&
			     step(who, (struct world_order){ .act = STAT, .a = nr });
	for (int nr = 0; nr < WORLD_NAMES && ok; nr++)
		ok = step(nr, (struct world_order){ .act = UNLINK, .a = nr });
	return ok;
}

enum how { ONE_AFTER_THE_OTHER, BESIDES, STOPS };

static bool is_played(const void *arg)
{
	const enum how *how = arg;
	bool ok = true;
	int nr;

	nr_steps = 0;
	memset(is_held, 0, sizeof(is_held));
	world_begin();
	nr = 4 + (int)rounds_rnd(STEPS - 4);
	for (int i = 0; i < nr && ok; i++)
		ok = *how == STOPS && !rounds_rnd(3) ? stopped_step() : random_step(*how == BESIDES);
	return ok && ends_well();
}

static void play_how(enum how how)
{
	static const int shares[] = { [ONE_AFTER_THE_OTHER] = 1, [BESIDES] = 3, [STOPS] = 6 };

	asked_start(&procs);
	cr_assert(rounds_play(100, shares[how], is_played, &how));
	asked_end(&procs);
	gc_now(); /* of files whose last process was killed */
	cr_assert_eq(count_files("data.") + count_files("index.") + count_files("live."), 0);
}

static void play(bool besides) { play_how(besides ? BESIDES : ONE_AFTER_THE_OTHER); }

static void setup(void)
{
	scratch_in_memory = true;
	scratch_setup();
}

static void setup_apart(void)
{
	is_apart = true;
	setup();
}

static void setup_local(void)
{
	is_local = true;
	setup();
}

static void setup_small(void)
{
	scratch_in_memory = is_local = true;
	scratch_setup_small();
}

static void setup_near(void)
{
	scratch_in_memory = is_near = true;
	near_setup(",drain=none,release=home");
}

static void setup_copies(void)
{
	scratch_in_memory = true;
	near_setup_copies("");
}

static void setup_spread(void)
{
	scratch_in_memory = true;
	near_spread("process");
}

TestSuite(hosts_names, .init = setup, .fini = scratch_remove, .timeout = 3600);
TestSuite(hosts_names_apart, .init = setup_apart, .fini = scratch_remove, .timeout = 3600);
TestSuite(hosts_names_local, .init = setup_local, .fini = scratch_remove, .timeout = 3600);
TestSuite(hosts_names_small, .init = setup_small, .fini = scratch_remove, .timeout = 3600);
TestSuite(hosts_names_near, .init = setup_near, .fini = near_remove, .timeout = 3600);
TestSuite(hosts_names_copies, .init = setup_copies, .fini = near_remove, .timeout = 3600);
TestSuite(hosts_names_spread, .init = setup_spread, .fini = near_remove, .timeout = 3600);

Test(hosts_names, are_as_in_a_plain_directory) { play(false); }
Test(hosts_names_apart, are_as_in_a_plain_directory_with_clocks_that_differ) { play(false); }
Test(hosts_names_local, are_as_in_a_plain_directory_on_a_local_file_system) { play(false); }
Test(hosts_names_small, are_as_in_a_plain_directory_with_bytes_in_the_stubs) { play(false); }
Test(hosts_names_near, are_as_in_a_plain_directory_with_logs_that_a_release_brings_home) { play(false); }
Test(hosts_names_copies, are_as_in_a_plain_directory_with_copies_of_the_logs) { play(false); }
Test(hosts_names_spread, are_as_in_a_plain_directory_with_logs_in_several_backends) { play(false); }
Test(hosts_names, also_with_a_call_in_the_midst_of_another) { play(true); }
Test(hosts_names_local, also_with_a_call_in_the_midst_of_another) { play(true); }
Test(hosts_names_small, also_with_a_call_in_the_midst_of_another) { play(true); }
Test(hosts_names_near, also_with_a_call_in_the_midst_of_another) { play(true); }
Test(hosts_names_copies, also_with_a_call_in_the_midst_of_another) { play(true); }
Test(hosts_names_spread, also_with_a_call_in_the_midst_of_another) { play(true); }
Test(hosts_names, also_if_a_process_is_stopped_for_a_while) { play_how(STOPS); }
Test(hosts_names_local, also_if_a_process_is_stopped_for_a_while) { play_how(STOPS); }
Test(hosts_names_small, also_if_a_process_is_stopped_for_a_while) { play_how(STOPS); }
Test(hosts_names_near, also_if_a_process_is_stopped_for_a_while) { play_how(STOPS); }
Test(hosts_names_copies, also_if_a_process_is_stopped_for_a_while) { play_how(STOPS); }
Test(hosts_names_spread, also_if_a_process_is_stopped_for_a_while) { play_how(STOPS); }
