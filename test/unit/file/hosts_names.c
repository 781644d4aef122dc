/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random histories of processes of three hosts that make, open, write, link, rename, exchange and remove the
 * same three names, with the command beside: each call gives what it gives in a plain directory, where the
 * same is done. One call comes after the other. A write is followed by what an unlock does, and what a lock
 * does comes before a read. PLFS_TEST_ROUNDS changes the number of histories of each kind; PLFS_TEST_SEED:
 * the one of this seed, or so many from there on.
 */
#include "test/lib/asked.h"
#include "test/lib/gc.h"
#include "test/lib/near.h"

#include "core/backend/mount.h"

enum { PROCS = 4, NAMES = 3, SLOTS = 2, STEPS = 50, FILE_LEN = 6000 };

enum act {
	OPEN, CLOSE, WRITE, APPEND, READ, CUT, SIZE, SYNC, /* with an open file, but for the first */
	CAT, STAT, UNLINK, RENAME, EXCHANGE, LINK, FLATTEN,
	COMPACT, REPAIR, DRAIN, KILL, NR_ACTS
};

static const char *const act_names[NR_ACTS] = {
	"open", "close",  "write",    "append", "read",	   "ftruncate", "fstat",  "fsync", "cat", "stat",
	"unlink", "rename", "exchange", "link",   "flatten", "compact",   "repair", "drain", "kill",
};

static const char *const hosts[PROCS] = { "one", "one", "two", "three" };

struct order {
	enum act act;
	int slot, a, b, flags;
	off_t off;
	size_t len;
	unsigned char byte;
};

struct answer {
	long ret, plain; /* what it gave, and what it gives in a plain directory */
	long differs;    /* the first byte that does; -1: none */
};

static bool is_local, is_near, is_apart; /* the clocks of the hosts are an hour apart */
static char plain_dir[64];

/* ---- in a process ---- */

/* An open file, and the one in the plain directory. */
struct held {
	bool is, only_reads;
	struct lfile l;
	int plain;
};

static struct held held[SLOTS];

static const char *name_of_nr(int nr) { return nr == 0 ? "a" : nr == 1 ? "b" : "c"; }

static const char *plain_path(int nr)
{
	static char paths[2][128];
	static int which;

	which = !which;
	snprintf(paths[which], sizeof(paths[which]), "%s/%s", plain_dir, name_of_nr(nr));
	return paths[which];
}

static int close_slot(struct held *h)
{
	int ret = 0;

	if (h->is) {
		ret = lclose(&h->l);
		close(h->plain);
	}
	h->is = false;
	return ret;
}

static long or_errno(long ret) { return ret < 0 ? -errno : ret; }

static void open_slot(struct held *h, const struct order *o, struct answer *a)
{
	close_slot(h);
	h->plain = open(plain_path(o->a), o->flags, 0644);
	a->plain = h->plain < 0 ? -errno : 0;
	a->ret = ltry(&h->l, name_of_nr(o->a), o->flags);
	h->is = !a->ret && !a->plain;
	h->only_reads = (o->flags & O_ACCMODE) == O_RDONLY;
	if (!a->ret && !h->is)
		lclose(&h->l);
	if (!a->plain && !h->is)
		close(h->plain);
}

static long file_size(const struct lfile *l)
{
	struct stat st;

	return l->f ? plfs_size(l->f) : fstat(l->fd, &st) ? -errno : st.st_size;
}

static long write_it(struct held *h, const struct order *o)
{
	char buf[FILE_LEN];
	off_t end;
	long ret;
	int ret2;

	memset(buf, o->byte, sizeof(buf));
	if (!h->l.f)
		return or_errno(pwrite(h->l.fd, buf, o->len, o->act == APPEND ? file_size(&h->l) : o->off));
	ret = o->act == APPEND ? lappend(&h->l, buf, o->len, &end) : plfs_pwrite(h->l.f, buf, o->len, o->off);
	ret2 = plfs_commit(h->l.f);
	return ret2 ? ret2 : ret;
}

static long write_plain(int fd, const struct order *o)
{
	char buf[FILE_LEN];
	struct stat st;

	memset(buf, o->byte, sizeof(buf));
	fstat(fd, &st);
	return or_errno(pwrite(fd, buf, o->len, o->act == APPEND ? st.st_size : o->off));
}

static void read_both(struct lfile *l, int plain, struct answer *a)
{
	char buf[FILE_LEN] = "", want[FILE_LEN] = "";

	a->ret = l->f ? plfs_pread(l->f, buf, FILE_LEN, 0) : or_errno(pread(l->fd, buf, FILE_LEN, 0));
	a->plain = or_errno(pread(plain, want, FILE_LEN, 0));
	for (long i = 0; i < FILE_LEN && a->differs < 0; i++)
		a->differs = buf[i] != want[i] ? i : -1;
}

/* With a file open. */
static void with_held(struct held *h, const struct order *o, struct answer *a)
{
	struct plfs_file *f = h->l.f;
	enum act what = o->act;
	struct stat st;

	if (h->only_reads && (what == WRITE || what == APPEND || what == CUT)) /* preload/ has refused it */
		what = READ;
	if (f && what == READ) /* a shared lock */
		a->ret = plfs_commit(f);
	if (a->ret)
		return;
	if (f && what != WRITE && what != APPEND)
		plfs_refresh(f);
	switch (what) {
	case WRITE:
	case APPEND:
		a->ret = write_it(h, o);
		a->plain = write_plain(h->plain, o);
		break;
	case READ:
		read_both(&h->l, h->plain, a);
		break;
	case CUT:
		a->ret = f ? plfs_truncate(f, o->off) : or_errno(ftruncate(h->l.fd, o->off));
		a->plain = or_errno(ftruncate(h->plain, o->off));
		break;
	case SIZE:
		a->ret = file_size(&h->l);
		a->plain = fstat(h->plain, &st) ? -errno : st.st_size;
		break;
	case SYNC:
		a->ret = f ? plfs_sync(f) : or_errno(fsync(h->l.fd));
		break;
	default:
		a->ret = close_slot(h);
		break;
	}
}

static void cat(const struct order *o, struct answer *a)
{
	struct held h = { .is = false };
	struct order how = { .a = o->a, .flags = O_RDONLY };

	open_slot(&h, &how, a);
	if (h.is)
		read_both(&h.l, h.plain, a);
	close_slot(&h);
}

static long change_names(const struct order *o)
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

static long change_plain_names(const struct order *o)
{
	const char *from = plain_path(o->a), *to = plain_path(o->b);

	if (o->act == UNLINK)
		return or_errno(unlink(from));
	if (o->act == LINK)
		return or_errno(link(from, to));
	return or_errno(renameat2(AT_FDCWD, from, AT_FDCWD, to, o->act == EXCHANGE ? RENAME_EXCHANGE : 0));
}

static void ignore(void *arg, const struct plfs_finding *finding)
{
	(void)arg, (void)finding;
}

/* What the command does changes nothing that a program sees. */
static void command(const struct order *o, struct answer *a)
{
	struct plfs_check check = { .found = ignore, .repair = true };
	struct plfs_drain d = { 0 };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath(name_of_nr(o->a), path);

	if (o->act == FLATTEN)
		a->ret = plfs_flatten(AT_FDCWD, path, NULL);
	else if (o->act == COMPACT)
		a->ret = lcompact(name_of_nr(o->a));
	else if (o->act == REPAIR)
		a->ret = plfs_check(m, AT_FDCWD, path, &check);
	else
		a->ret = plfs_drain_file(m, AT_FDCWD, path, &d);
	if (a->ret > 0 || a->ret == -EBUSY || a->ret == -EAGAIN || a->ret == -ENOENT || a->ret == -EMLINK)
		a->ret = 0;
}

static void act(const void *order, void *answer)
{
	const struct order *o = order;
	struct answer *a = answer;
	struct stat st;

	*a = (struct answer){ .differs = -1 };
	switch (o->act) {
	case OPEN:
		open_slot(&held[o->slot], o, a);
		break;
	case CAT:
		cat(o, a);
		break;
	case STAT:
		a->ret = stat_size(name_of_nr(o->a));
		a->plain = stat(plain_path(o->a), &st) ? -errno : st.st_size;
		break;
	case UNLINK:
	case RENAME:
	case EXCHANGE:
	case LINK:
		a->ret = change_names(o);
		a->plain = change_plain_names(o);
		break;
	case FLATTEN:
	case COMPACT:
	case REPAIR:
	case DRAIN:
		command(o, a);
		break;
	default:
		if (held[o->slot].is)
			with_held(&held[o->slot], o, a);
		break;
	}
}

static void begin(int who)
{
	char path[PATH_MAX];

	be_host(hosts[who]);
	be_hours_ahead(is_apart && who ? who - 1 : 0);
	if (is_near && strcmp(hosts[who], "one"))
		near_go_elsewhere();
	lpath("a", path)->store.remote = !is_local;
}

/* ---- histories ---- */

static struct asked procs = { .nr = PROCS, .order_len = sizeof(struct order),
			      .answer_len = sizeof(struct answer), .begin = begin, .act = act };

static struct {
	int who;
	struct order o;
	struct answer a;
} history[4 * STEPS + 16 * PROCS];
static int nr_steps;
static uint64_t state; /* of the random numbers */

static void show(void)
{
	for (int i = 0; i < nr_steps; i++) {
		const struct order *o = &history[i].o;
		const struct answer *a = &history[i].a;

		fprintf(stderr, "  %d (%s): %s %s %s slot %d flags %#x %ld+%zu (%d) -> %ld, plain %ld\n",
			history[i].who, hosts[history[i].who], act_names[o->act], name_of_nr(o->a),
			name_of_nr(o->b), o->slot, (unsigned)o->flags, (long)o->off, o->len, o->byte, a->ret,
			a->plain);
	}
}

static size_t rnd(size_t below)
{
	state = mix64(state + 1);
	return (size_t)(state >> 16) % below;
}

static bool is_held[PROCS][SLOTS];

static bool step(int who, struct order o)
{
	struct answer a = { .differs = -1 };

	if (o.act == KILL)
		asked_kill(&procs, who);
	else
		asked_ask(&procs, who, &o, &a);
	history[nr_steps].who = who;
	history[nr_steps].o = o;
	history[nr_steps++].a = a;
	if (o.act == OPEN || o.act == CLOSE)
		is_held[who][o.slot] = o.act == OPEN && !a.ret;
	if (o.act == KILL)
		memset(is_held[who], 0, sizeof(is_held[who]));
	if (a.ret == a.plain && a.differs < 0)
		return true;
	fprintf(stderr, "not as in a plain directory, byte %ld:\n", a.differs);
	show();
	return false;
}

/* Clocks that differ let the later of two writes win if the file has been closed and opened in between. */
static bool opened_for(int who, struct order o)
{
	struct order how = o;

	how.act = CLOSE;
	if (!step(who, how))
		return false;
	how.act = OPEN;
	if (!step(who, how) || (is_held[who][o.slot] && !step(who, o)))
		return false;
	how.act = CLOSE;
	return step(who, how);
}

static bool random_step(void)
{
	static const enum act acts[] = { OPEN, OPEN, OPEN, CLOSE, WRITE, WRITE, WRITE, APPEND, READ, READ,
					 CUT, SIZE, SYNC, CAT, CAT, STAT, STAT, UNLINK, RENAME, RENAME,
					 EXCHANGE, LINK, FLATTEN, COMPACT, REPAIR };
	static const int flags[] = { O_RDONLY, O_RDWR, O_RDWR | O_TRUNC, O_RDWR | O_CREAT, O_RDWR | O_CREAT,
				     O_RDWR | O_CREAT | O_EXCL, O_RDWR | O_CREAT | O_TRUNC };
	struct order o = { .act = acts[rnd(ARRAY_SIZE(acts))] };
	int who = (int)rnd(PROCS);

	o.slot = (int)rnd(SLOTS);
	o.a = (int)rnd(NAMES);
	o.b = (int)rnd(NAMES);
	o.flags = flags[rnd(ARRAY_SIZE(flags))];
	o.off = (off_t)(rnd(8) ? rnd(12) * 100 : rnd(FILE_LEN - 1200));
	o.len = 1 + rnd(rnd(2) ? 200 : 1200);
	o.byte = (unsigned char)(1 + nr_steps);
	if (!rnd(40))
		o.act = KILL;
	if (is_near && !rnd(10))
		o.act = DRAIN;
	if (o.act == CUT && rnd(2))
		o.off = 0;
	if (is_apart && o.act >= WRITE && o.act <= SIZE)
		return opened_for(who, o);
	if (o.act >= CLOSE && o.act <= SYNC && !is_held[who][o.slot])
		o.act = OPEN;
	return step(who, o);
}

/* All have closed all, and each sees the same. */
static bool ends_well(void)
{
	bool ok = true;

	for (int who = 0; who < PROCS; who++)
		for (int slot = 0; slot < SLOTS && ok; slot++)
			ok = step(who, (struct order){ .act = CLOSE, .slot = slot });
	for (int nr = 0; nr < NAMES && ok && is_near; nr++)
		ok = step(0, (struct order){ .act = DRAIN, .a = nr });
	for (int who = 0; who < PROCS; who++)
		for (int nr = 0; nr < NAMES && ok; nr++)
			ok = step(who, (struct order){ .act = CAT, .a = nr }) &&
			     step(who, (struct order){ .act = STAT, .a = nr });
	for (int nr = 0; nr < NAMES && ok; nr++)
		ok = step(nr, (struct order){ .act = UNLINK, .a = nr });
	return ok;
}

static bool is_played(uint64_t seed)
{
	bool ok = true;
	int nr;

	nr_steps = 0;
	state = seed * 7919;
	nr = 4 + (int)rnd(STEPS - 4);
	for (int i = 0; i < nr && ok; i++)
		ok = random_step();
	ok = ok && ends_well();
	if (!ok)
		fprintf(stderr, "PLFS_TEST_SEED=%lu\n", (unsigned long)seed);
	return ok;
}

static void play(void)
{
	const char *rounds = getenv("PLFS_TEST_ROUNDS"), *given = getenv("PLFS_TEST_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : rounds ? (uint64_t)time(NULL) * 1000 : 1;
	int nr = rounds ? atoi(rounds) : given ? 1 : 150;
	bool ok = true;

	new_dir(plain_dir, sizeof(plain_dir));
	asked_start(&procs);
	for (int i = 0; i < nr && ok; i++)
		ok = is_played(seed + (uint64_t)i);
	asked_end(&procs);
	shell("rm -r %s", plain_dir);
	cr_assert(ok);
	gc_now(); /* of files whose last process was killed */
	cr_assert_eq(count_files("data.") + count_files("index.") + count_files("live."), 0);
}

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

Test(hosts_names, are_as_in_a_plain_directory) { play(); }
Test(hosts_names_apart, are_as_in_a_plain_directory_with_clocks_that_differ) { play(); }
Test(hosts_names_local, are_as_in_a_plain_directory_on_a_local_file_system) { play(); }
Test(hosts_names_small, are_as_in_a_plain_directory_with_bytes_in_the_stubs) { play(); }
Test(hosts_names_near, are_as_in_a_plain_directory_with_logs_that_a_release_brings_home) { play(); }
Test(hosts_names_copies, are_as_in_a_plain_directory_with_copies_of_the_logs) { play(); }
Test(hosts_names_spread, are_as_in_a_plain_directory_with_logs_in_several_backends) { play(); }
