/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random histories of a file that three hosts write. They compact and repair it, some are killed, and of
 * some all that they have in the container is lost. A model knows each block's versions, and on which host
 * each may lie. Zeros may never be read where something is lost, nor an error where nothing is. What other
 * hosts wrote before may be read then, if no compact has taken it.
 *
 * SCALE=100 has more histories, others each time. PLFS_TEST_SEED=SEED is one, whose steps are printed.
 */
#include "core/base/sys.h"
#include "test/lib/calls.h"
#include "test/lib/scratch.h"

#include <criterion/criterion.h>
#include <sys/mman.h>

enum { BLOCKS = 16, BLOCK_LEN = 500, VERSIONS = 40, STEPS = 14, HOSTS = 3, CALLS_MAX = 900 };

TestSuite(crash_hosts_random, .timeout = 36000);

static const char *const hosts[HOSTS] = { "one", "two", "three" };

/* ---- the model ---- */

struct version {
	unsigned round;
	unsigned on;     /* bits of hosts: it lies on one of them */
	bool may_be;     /* its process was killed meanwhile: it is there, or it is not */
	bool unentered;  /* its process was killed before it published: its host may be unknown */
};

static struct block {
	struct version v[VERSIONS];
	int nr;
} model[BLOCKS];

static unsigned lost; /* bits of hosts that have lost what they had, of versions that are marked so */

static bool is_lost[BLOCKS][VERSIONS]; /* or may be */
static bool gives_up;		       /* a repair has given up what is lost */

/* What was read: a round, 0: zeros; -EIO. Shared with the children. */
static struct shared {
	int got[BLOCKS];
	time_t later_s;
	long calls_left;
} *shared;

static void add_version(int b, struct version v)
{
	struct block *m = &model[b];

	cr_assert_lt(m->nr, VERSIONS);
	is_lost[b][m->nr] = false;
	m->v[m->nr++] = v;
}

/* Whether the model allows what was read of block @b. */
static bool allowed(int b)
{
	bool falls = true; /* through all versions so far */

	for (int i = model[b].nr - 1; i >= 0; i--) {
		const struct version *v = &model[b].v[i];

		if (shared->got[b] == (int)v->round)
			return true;
		if (!v->may_be && !is_lost[b][i])
			return false;
		if (shared->got[b] == -EIO && is_lost[b][i])
			return true;
		falls &= v->may_be || v->unentered || (gives_up && is_lost[b][i]);
	}
	return shared->got[b] == -EIO ? lost != 0 : shared->got[b] == 0 && falls;
}

/* A killed process has written it, or not, from here on. */
static void settle(int b)
{
	struct block *m = &model[b];

	if (m->nr && m->v[m->nr - 1].may_be && !is_lost[b][m->nr - 1]) {
		if (shared->got[b] == (int)m->v[m->nr - 1].round)
			m->v[m->nr - 1].may_be = false;
		else if (shared->got[b] >= 0)
			m->nr--;
	}
}

/* What is read now is what there is. Behind it are those that may come back when it is lost. */
static void give_up(void)
{
	for (int b = 0; b < BLOCKS; b++) {
		struct block *m = &model[b];

		while (m->nr && shared->got[b] != (int)m->v[m->nr - 1].round)
			m->nr--;
		for (int i = 0; i < m->nr; i++) {
			m->v[i].unentered |= is_lost[b][i];
			is_lost[b][i] &= i + 1 < m->nr;
		}
	}
	lost = 0;
}

/* ---- processes ---- */

static int clock_later(clockid_t clock, struct timespec *now)
{
	int ret = clock_gettime(clock, now);

	now->tv_sec += shared->later_s;
	return ret;
}

static int die_or_stop(enum call call)
{
	(void)call;
	if (!--shared->calls_left)
		raise(calls_left ? SIGKILL : SIGSTOP);
	return 0;
}

struct job {
	int host, first, nr;
	unsigned round;
	long kill_at; /* call; 0: it is not killed */
	bool unclosed; /* it is killed before it closes the file */
	bool stops;   /* after its open; or, a compact, at call kill_at */
	int flags;
};

static void be(const struct job *j)
{
	be_host(hosts[j->host]);
	calls_intercept();
	sys.clock_gettime = clock_later;
	shared->calls_left = j->kill_at;
	calls_left = !j->stops;
	on_call = j->kill_at ? die_or_stop : NULL;
}

static int write_as(void *arg)
{
	const struct job *j = arg;
	struct lfile l;

	be(j);
	l = lopen("f", O_RDWR | O_CREAT | j->flags);
	if (j->stops)
		raise(SIGSTOP);
	if (j->nr && lfill(&l, (off_t)j->first * BLOCK_LEN, (size_t)j->nr * BLOCK_LEN, j->round) !=
			     (ssize_t)j->nr * BLOCK_LEN)
		return 1;
	if (j->unclosed)
		raise(SIGKILL);
	return lclose(&l) != 0;
}

static int compact_as(void *arg)
{
	int ret;

	be(arg);
	ret = lcompact("f");
	return ret < 0 ? 100 : ret;
}

static void ignore(void *arg, const struct plfs_finding *finding)
{
	(void)arg, (void)finding;
}

static int examine(const struct job *j, bool repair, bool partial)
{
	struct plfs_check check = { .found = ignore, .repair = repair, .partial = partial };
	char path[PATH_MAX];
	struct plfs_mount *m;

	be(j);
	m = lpath("f", path);
	return plfs_check(m, AT_FDCWD, path, &check) & 0xff;
}

static int repair_as(void *arg) { return examine(arg, true, false); }
static int give_up_as(void *arg) { return examine(arg, true, true); }
static int check_as(void *arg) { return examine(arg, false, false); }

static int round_of(const unsigned char *p, off_t off, unsigned rounds)
{
	size_t zeros = 0;

	while (zeros < BLOCK_LEN && !p[zeros])
		zeros++;
	if (zeros == BLOCK_LEN)
		return 0;
	for (unsigned round = 1; round <= rounds; round++)
		if (pattern_check(p, BLOCK_LEN, (uint64_t)off, round) == BLOCK_LEN)
			return (int)round;
	return -EILSEQ;
}

/* Behind the end there are zeros. */
static int look_as(void *arg)
{
	const struct job *j = arg;
	unsigned char buf[BLOCK_LEN];
	struct lfile l;

	be_host("reader");
	sys.clock_gettime = clock_later;
	l = lopen("f", O_RDONLY);
	for (int b = 0; b < BLOCKS; b++) {
		off_t off = (off_t)b * BLOCK_LEN;
		ssize_t n;

		memset(buf, 0, sizeof(buf));
		n = plfs_pread(l.f, buf, sizeof(buf), off);
		shared->got[b] = n < 0 ? (int)n : round_of(buf, off, j->round);
	}
	return lclose(&l) != 0;
}

/* ---- steps ---- */

static uint64_t seed, drawn;
static char said[STEPS * 100];
static unsigned rounds;
static bool later_there;
static struct job later; /* it has opened the file, and will write */
static pid_t later_pid;

static unsigned draw(unsigned nr) { return (unsigned)(mix64(seed * 1000003 + drawn++) % nr); }

__attribute__((format(printf, 1, 2))) static void say(const char *fmt, ...)
{
	size_t len = strlen(said);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(said + len, sizeof(said) - len, fmt, ap);
	va_end(ap);
}

static struct job draw_job(void)
{
	struct job j = { .host = (int)draw(HOSTS), .first = (int)draw(BLOCKS), .round = ++rounds };

	j.nr = 1 + (int)draw((unsigned)(BLOCKS - j.first));
	return j;
}

static void note_write(const struct job *j, bool may_be)
{
	struct version v = { j->round, 1u << j->host, may_be, may_be || j->unclosed };

	for (int b = j->first; b < j->first + j->nr; b++)
		add_version(b, v);
}

static void step_write(void)
{
	struct job j = draw_job();
	unsigned how = draw(6);
	int status;

	j.kill_at = how == 0 ? 1 + (long)draw(200) : 0;
	j.unclosed = how == 1;
	say(" %s:write(%d+%d=%u)%s%ld", hosts[j.host], j.first, j.nr, j.round, j.unclosed ? "unclosed" : "",
	    j.kill_at);
	status = in_child(write_as, &j);
	cr_assert(!status || status == 256 + SIGKILL, "%d", status);
	note_write(&j, status && !j.unclosed);
}

/* One that has opened the file goes on. */
static void step_later(void)
{
	int status;

	if (later_there) {
		say(" %s:goes-on(%d+%d=%u)", hosts[later.host], later.first, later.nr, later.round);
		kill(later_pid, SIGCONT);
		cr_assert_eq(wait_child(later_pid), 0);
		note_write(&later, false);
		later_there = false;
		return;
	}
	later = draw_job();
	later.stops = true;
	say(" %s:opens", hosts[later.host]);
	later_pid = start_child(write_as, &later);
	cr_assert(waitpid(later_pid, &status, WUNTRACED) == later_pid && WIFSTOPPED(status));
	later_there = true;
}

/* What is visible may lie on the host of a compact, from here on. What is hidden may be gone. */
static void note_moved(int host)
{
	for (int b = 0; b < BLOCKS; b++) {
		bool hidden = false;

		for (int i = model[b].nr - 1; i >= 0; i--) {
			struct version *v = &model[b].v[i];

			v->on |= is_lost[b][i] ? 0 : 1u << host;
			v->may_be |= hidden;
			hidden |= !v->may_be;
		}
	}
}

static bool has_files(const char *kind, int host)
{
	char prefix[40];

	snprintf(prefix, sizeof(prefix), "%s.%s-", kind, hosts[host]);
	return count_files(prefix) > 0;
}

static void lose(int host)
{
	bool all = draw(2);

	say(" %s:lose%s", hosts[host], all ? "-all" : "");
	/* a log that has nothing, as a killed process leaves, may be missed as well */
	if (has_files("data", host) || has_files("live", host) || has_files("index", host))
		lost |= 1u << host;
	shell("rm -f %s/.plfs/[0-9a-f]*/*/hostdir.*/%s.%s-*", scratch, all ? "*" : "[dil]*", hosts[host]);
	for (int b = 0; b < BLOCKS; b++)
		for (int i = 0; i < model[b].nr; i++)
			is_lost[b][i] |= (model[b].v[i].on & 1u << host) != 0;
}

static void step_lose(void) { lose((int)draw(HOSTS)); }

/*
 * It is killed, or stands while another host loses what it has. Not its own: that has something all the time,
 * by which a loss goes unnoticed.
 */
static void step_compact(void)
{
	struct job j = { .host = (int)draw(HOSTS) };
	unsigned how = draw(3);
	int status;
	pid_t pid;

	j.kill_at = how ? 1 + (long)draw(CALLS_MAX) : 0;
	j.stops = how == 2;
	say(" %s:compact%ld%s", hosts[j.host], j.kill_at, j.stops ? "[" : "");
	pid = start_child(compact_as, &j);
	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	note_moved(j.host);
	if (!WIFSTOPPED(status)) {
		say(status ? "!" : "");
		return;
	}
	lose((j.host + 1 + (int)draw(HOSTS - 1)) % HOSTS);
	say(" ]");
	kill(pid, SIGCONT);
	wait_child(pid);
	note_moved(j.host);
}

static void step_repair(void)
{
	struct job j = { .host = (int)draw(HOSTS), .kill_at = draw(3) ? 0 : 1 + (long)draw(CALLS_MAX) };

	say(" %s:repair%ld", hosts[j.host], j.kill_at);
	in_child(repair_as, &j);
}

static void look(void);

static void step_give_up(void)
{
	struct job j = { .host = (int)draw(HOSTS) };

	say(" %s:partial", hosts[j.host]);
	in_child(give_up_as, &j);
	if (!lost || in_child(check_as, &j))
		return;
	gives_up = true;
	look();
	gives_up = false;
	give_up();
}

static void step_truncate(void)
{
	struct job j = { .host = (int)draw(HOSTS), .flags = O_TRUNC };

	say(" %s:truncate", hosts[j.host]);
	cr_assert_eq(in_child(write_as, &j), 0);
	for (int b = 0; b < BLOCKS; b++)
		model[b].nr = 0;
	lost = 0;
}

/* ---- histories ---- */

static void look(void)
{
	struct job j = { .round = rounds };

	for (int i = 0; i < 2; i++) { /* the first may keep its map for the next */
		cr_assert_eq(in_child(look_as, &j), 0, "seed %lu:%s", (unsigned long)seed, said);
		for (int b = 0; b < BLOCKS; b++)
			cr_assert(allowed(b), "PLFS_TEST_SEED=%lu: block %d reads as %d:%s",
				  (unsigned long)seed, b, shared->got[b], said);
	}
	for (int b = 0; b < BLOCKS; b++)
		settle(b);
}

static void (*const steps[])(void) = {
	step_write, step_write, step_write, step_write, step_later, step_later, step_compact, step_compact,
	step_compact, step_lose, step_repair, step_give_up, step_truncate,
};

static void history(uint64_t nr)
{
	seed = nr;
	drawn = rounds = lost = 0;
	gives_up = false;
	memset(model, 0, sizeof(model));
	*said = '\0';
	shared->later_s = 0;
	later_there = false;
	cr_assert_eq(in_child(write_as, &(struct job){ .host = 0 }), 0); /* now there is a file */
	step_write();
	for (int i = 0; i < STEPS; i++) {
		shared->later_s += 100; /* the file is so old that a purge could have taken something */
		steps[draw(sizeof(steps) / sizeof(*steps))]();
		look();
	}
	if (later_there)
		step_later();
	look();
	scratch_clear();
}

/*
 * A compact that copied nothing made an empty log, and its host was missed when that had gone. One made zeros
 * into bytes that somebody wrote, where a log went while it copied.
 */
static const uint64_t found[] = { 1795748122013, 1795747961139, 1795748230242 };

Test(crash_hosts_random, that_lose_what_they_wrote_give_errors_and_others_do_not)
{
	const char *one = getenv("PLFS_TEST_SEED"), *scale = getenv("SCALE");
	long times = scale ? atol(scale) : 1;
	uint64_t first = times > 1 ? (uint64_t)time(NULL) * 1000 : 1, nr = 12 * (uint64_t)times;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(shared, MAP_FAILED);
	scratch_in_memory = true;
	scratch_setup();
	if (one) {
		history(strtoull(one, NULL, 10));
		fprintf(stderr, "%s\n", said);
	}
	for (uint64_t i = 0; i < nr && !one; i++)
		history(first + i);
	for (size_t i = 0; i < sizeof(found) / sizeof(*found) && !one; i++)
		history(found[i]);
	scratch_remove();
}
