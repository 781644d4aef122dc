/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All short histories of two processes on one file, each on a plain directory and under the library, compared
 * call by call. This file says which there are: the states that they begin in, the calls, and the looks at
 * the end.
 */
#define _GNU_SOURCE
#include "histories.h"

#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * How a history begins. @alike: P and Q are in the same position, so that a history that Q begins is one that
 * P begins.
 */
static const struct {
	const char *name, *steps;
	bool alike;
} states[] = {
	{ "no file", "", true },
	{ "written by another and closed", "R.open R.w0 R.close", true },
	{ "written in two places and closed", "R.open R.w0 R.wfar R.close", true },
	{ "of a killed writer", "R.open R.w0 R.w50 R.kill", true },
	{ "in its body", "R.open R.w0 R.store R.done", true },
	{ "being written by another", "R.open R.w0", true },
	{ "open and written", "P.open P.w0", false },
	{ "open in both, written by one", "P.open P.w0 Q.open", false },
	{ "open in both, written and read by both", "P.open P.w0 Q.open Q.w50 Q.pread P.pread", false },
	{ "being read by one, and written by the other", "R.open R.w0 R.close P.rdonly P.pread Q.open Q.w50",
	  false },
	{ "open in both for appending", "P.append P.write Q.append Q.write", false },
	{ "in its body and open in both", "P.open P.w0 Q.open Q.pread P.store", false },
	{ "removed while open in both", "P.open P.w0 Q.open Q.unlink", false },
	{ "cut by another, with a descriptor for appending and one for writing",
	  "P.append P.write P.open P.fstat Q.open Q.cut0", false },
	{ "cut while open in both", "P.open P.w0 Q.open Q.pread Q.fcut30", false },
	{ "about to leave its stub",
	  "P.append P.write P.write P.write P.write P.write P.write P.write P.write P.pread Q.append",
	  false },
	{ "written, read and closed by one, and open in the other", "Q.open P.open P.w0 P.pread P.close",
	  false },
	{ "of logs of little, of which the next process makes one",
	  "R.open R.w0 R.done Q.append Q.write Q.close R.many", false },
};
enum { NR_STATES = sizeof(states) / sizeof(states[0]) };

static struct {
	int length, min_length, jobs, part, nr_parts, examples, state, at_step, at_call, at_next, stride;
	bool kills, beside, one; /* one: each history under one of the variants, in turn */
	unsigned crossed; /* one of so many pairs of calls; 0: not so */
	unsigned long random, seed, every;
	uint32_t variants;
	bool calls[NR_CALLS];
	bool commands; /* only with one: has_command() */
} opt = { .length = 3, .min_length = 1, .jobs = 1, .nr_parts = 1, .examples = 30, .state = -1, .every = 1,
	    .stride = 1 };

static struct outcome want[STEPS_MAX], got[STEPS_MAX];
static uint64_t next_history;

static void names_looked_at(struct history *h, const struct scene *sc)
{
	history_add(h, S, STAT);
	history_add(h, S, LOOK);
	if (sc->g) {
		history_add(h, S, STAT_G);
		history_add(h, S, LOOK_G);
	}
}

static void fds_looked_at(struct history *h, const struct scene *sc, int slot, bool size_first)
{
	int d = sc->depth[slot];

	if (sc->at[slot][d].nr_fds) {
		history_add(h, (enum slot)slot, size_first ? FSTAT : PREAD);
		history_add(h, (enum slot)slot, size_first ? PREAD : FSTAT);
	}
	if (sc->at[slot][d].map)
		history_add(h, (enum slot)slot, LOAD);
}

/*
 * By all who have it open, by a process that has not, by parents whose children have ended, and when all is
 * closed. The order is another for each history.
 */
static void add_looks(struct history *h, struct scene *sc, uint64_t nr)
{
	bool size_first = nr & 1, backwards = nr & 2;

	for (int i = P; i <= R; i++)
		fds_looked_at(h, sc, backwards ? R - i : i, size_first);
	names_looked_at(h, sc);
	for (int s = P; s <= R; s++) {
		while (sc->depth[s]) {
			struct step end = { (uint8_t)s, EXIT };

			history_add(h, (enum slot)s, EXIT);
			scene_step(sc, end);
			fds_looked_at(h, sc, s, size_first);
		}
		if (sc->at[s][0].nr_fds || sc->at[s][0].map)
			history_add(h, (enum slot)s, DONE);
	}
	names_looked_at(h, sc);
}

static uint32_t variants_for(uint64_t nr)
{
	unsigned nth = (unsigned)(nr % (unsigned)__builtin_popcount(opt.variants));
	uint32_t set = opt.variants;

	if (!opt.one)
		return set;
	while (nth--)
		set &= set - 1;
	return set & -set;
}

static void try_all(struct history *h, uint64_t nr)
{
	struct tally *t = tally();
	uint32_t set = variants_for(nr);

	__atomic_fetch_add(&t->histories, 1, __ATOMIC_RELAXED);
	drive(&variants[0], h, want);
	for (int i = 1; i < nr_variants; i++) {
		if (!(set & 1u << i))
			continue;
		__atomic_fetch_add(&t->runs, 1, __ATOMIC_RELAXED);
		drive(&variants[i], h, got);
		judge(&variants[i], h, want, got);
	}
}

static bool is_mine(void)
{
	uint64_t nr = next_history++;

	nr += opt.seed % opt.every;
	return nr % opt.every == 0 && nr / opt.every % (uint64_t)opt.nr_parts == (uint64_t)opt.part;
}

/* A number that says nothing of where the history stands among others. */
static uint64_t mixed(uint64_t nr)
{
	return nr * 0x9e3779b97f4a7c15u >> 32;
}

/* A command is what is killed, or one of the two that are beside each other. */
static bool has_command(const struct history *h)
{
	int first = h->nr - (opt.kills ? 1 : 2);

	for (int i = first; i >= h->nr_prefix && i < h->nr; i++)
		if (call_command((enum call)h->steps[i].call))
			return true;
	return false;
}

static void try_history(const struct history *h, const struct scene *sc)
{
	struct history whole = *h;
	struct scene end = *sc;

	if ((opt.commands && !has_command(h)) || !is_mine())
		return;
	if (opt.kills || opt.beside || opt.crossed) {
		for (int i = 1; i < nr_variants; i++)
			if (variants_for(mixed(next_history)) & 1u << i) {
				if (opt.crossed)
					crossed_try(&variants[i], h, opt.crossed);
				else if (opt.kills)
					killed_try(&variants[i], h);
				else
					beside_try(&variants[i], h, opt.stride);
			}
		return;
	}
	add_looks(&whole, &end, next_history);
	try_all(&whole, mixed(next_history));
}

/* Looks that follow each other are tried in one order. */
static bool in_order(const struct history *h)
{
	struct step last, before;

	if (h->nr - h->nr_prefix < 2)
		return true;
	last = h->steps[h->nr - 1];
	before = h->steps[h->nr - 2];
	return !call_looks((enum call)last.call) || !call_looks((enum call)before.call) ||
	       before.slot < last.slot || (before.slot == last.slot && before.call < last.call);
}

/* A look at the end is not tried: looks are made there anyway. */
static void try_from(const struct history *h, const struct scene *sc, int left, bool alike)
{
	int nr = h->nr - h->nr_prefix;
	bool looks = nr > 1 && call_looks((enum call)h->steps[h->nr - 1].call);

	if (nr >= opt.min_length && !looks)
		try_history(h, sc);
	if (!left)
		return;
	for (int slot = P; slot <= Q - alike; slot++)
		for (int call = 0; call < NR_CALLS; call++) {
			struct history longer = *h;
			struct scene then = *sc;

			if (!opt.calls[call] ||
			    !scene_step(&then, (struct step){ (uint8_t)slot, (uint8_t)call }))
				continue;
			history_add(&longer, (enum slot)slot, (enum call)call);
			if (!in_order(&longer))
				continue;
			try_from(&longer, &then, left - 1, false);
		}
}

static void begin_state(struct history *h, struct scene *sc, int state)
{
	if (history_parse(h, states[state].steps))
		abort();
	memset(sc, 0, sizeof(*sc));
	for (int i = 0; i < h->nr; i++)
		scene_step(sc, h->steps[i]);
	if (strstr(states[state].steps, "R.done"))
		memset(&sc->at[R], 0, sizeof(sc->at[R]));
	h->nr_prefix = h->nr;
}

static uint64_t rnd(void)
{
	static uint64_t x;

	if (!x)
		x = opt.seed * 0x9e3779b97f4a7c15u + (uint64_t)opt.part + 1;
	x ^= x << 13;
	x ^= x >> 7;
	return x ^= x << 17;
}

static void try_random(void)
{
	struct history h;
	struct scene sc;
	int length = 5 + (int)(rnd() % 8), slots = 2 + (rnd() % 3 == 0);

	begin_state(&h, &sc, opt.state >= 0 ? opt.state : (int)(rnd() % NR_STATES));
	while (h.nr - h.nr_prefix < length) {
		struct step s = { (uint8_t)(rnd() % (unsigned)slots), (uint8_t)(rnd() % NR_CALLS) };

		if ((s.call == EXEC || s.call == KILL || s.call == EXIT || s.call == FORK) && rnd() % 3)
			continue;
		if (opt.calls[s.call] && scene_step(&sc, s))
			history_add(&h, (enum slot)s.slot, (enum call)s.call);
	}
	add_looks(&h, &sc, rnd());
	try_all(&h, rnd());
}

static void be_driver(const char *dir, const char *preload)
{
	char mine[4096];
	cpu_set_t cpus;
	int nth = opt.part, cpu = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sched_getaffinity(0, sizeof(cpus), &cpus);
	for (nth %= CPU_COUNT(&cpus); nth || !CPU_ISSET((size_t)cpu, &cpus); cpu++)
		nth -= CPU_ISSET((size_t)cpu, &cpus);
	snprintf(mine, sizeof(mine), "%s/%d", dir, opt.part);
	if (mkdtemp(strcat(mine, ".XXXXXX")) == NULL)
		exit(2);
	drive_begin(mine, preload, cpu);
	for (unsigned long i = 0; i < opt.random; i++)
		if (i % (unsigned)opt.nr_parts == (unsigned)opt.part)
			try_random();
	for (int s = 0; s < NR_STATES && !opt.random; s++) {
		struct history h;
		struct scene sc;

		if (opt.state >= 0 && opt.state != s)
			continue;
		begin_state(&h, &sc, s);
		try_from(&h, &sc, opt.length, states[s].alike);
	}
	if (!opt.part)
		tally()->possible = opt.random ? opt.random : next_history;
	drive_end();
}

static void run_one(const char *dir, const char *preload, const char *text)
{
	struct history h;
	char a[400], b[400];
	bool done, done_next;

	if (history_parse(&h, text)) {
		fprintf(stderr, "not a history: %s\n", text);
		exit(2);
	}
	drive_begin(dir, preload, 0);
	drive(&variants[0], &h, want);
	for (int v = 1; v < nr_variants; v++) {
		if (!(opt.variants & 1u << v))
			continue;
		if (opt.at_next)
			drive_crossed(&variants[v], &h, opt.at_step - 1, opt.at_call, opt.at_next, got, &done,
				      &done_next);
		else if (opt.at_step)
			(opt.beside ? drive_beside : drive_and_kill)(&variants[v], &h, opt.at_step - 1,
								     opt.at_call, got, &done);
		else
			drive(&variants[v], &h, got);
		printf("%s\n", variants[v].name);
		for (int i = 0; i < h.nr; i++) {
			outcome_text(a, sizeof(a), &want[i]);
			outcome_text(b, sizeof(b), &got[i]);
			printf("  %c.%-8s %-40s", "PQRS"[h.steps[i].slot],
			       call_word((enum call)h.steps[i].call), a);
			puts(outcome_equal(&want[i], &got[i]) ? "" : b);
		}
	}
	drive_end();
}

static uint32_t variants_of(const char *words)
{
	uint32_t set = 0;

	for (int i = 1; i < nr_variants; i++)
		if (strstr(words, variants[i].name))
			set |= 1u << i;
	return set;
}

static void choose_calls(const char *words, bool only)
{
	for (int c = 0; c < NR_CALLS; c++) {
		const char *at = strstr(words, call_word((enum call)c));
		size_t len = strlen(call_word((enum call)c));

		for (; at && ((at != words && at[-1] != ',') || (at[len] && at[len] != ','));
		     at = strstr(at + 1, call_word((enum call)c)))
			;
		opt.calls[c] = only ? at != NULL : opt.calls[c] && !at;
	}
}

static const struct option options[] = {
	{ "length", required_argument, NULL, 'l' },
	{ "min-length", required_argument, NULL, 'm' },
	{ "random", required_argument, NULL, 'r' },
	{ "seed", required_argument, NULL, 's' },
	{ "jobs", required_argument, NULL, 'j' },
	{ "part", required_argument, NULL, 'p' },
	{ "variants", required_argument, NULL, 'v' },
	{ "examples", required_argument, NULL, 'e' },
	{ "run", required_argument, NULL, 'R' },
	{ "kills", no_argument, NULL, 'k' },
	{ "state", required_argument, NULL, 'S' },
	{ "every", required_argument, NULL, 'E' },
	{ "at", required_argument, NULL, 'a' },
	{ "beside", no_argument, NULL, 'b' },
	{ "crossed", required_argument, NULL, 'c' },
	{ "stall", required_argument, NULL, 't' },
	{ "stride", required_argument, NULL, 'i' },
	{ "commands", no_argument, NULL, 'C' },
	{ "one", no_argument, NULL, '1' },
	{ "only", required_argument, NULL, 'o' },
	{ "without", required_argument, NULL, 'w' },
	{ NULL, 0, NULL, 0 },
};

static const char *take_options(int argc, char **argv)
{
	const char *text = NULL;
	int c;

	memset(opt.calls, 1, sizeof(opt.calls));
	opt.variants = variants_of("small logs posix default flat");
	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0)
		switch (c) {
		case 'l': opt.length = atoi(optarg); break;
		case 'm': opt.min_length = atoi(optarg); break;
		case 'r': opt.random = strtoul(optarg, NULL, 10); break;
		case 's': opt.seed = strtoul(optarg, NULL, 10); break;
		case 'j': opt.jobs = atoi(optarg); break;
		case 'p': sscanf(optarg, "%d/%d", &opt.part, &opt.nr_parts); break;
		case 'v': opt.variants = variants_of(optarg); break;
		case 'e': opt.examples = atoi(optarg); break;
		case 'E': opt.every = strtoul(optarg, NULL, 10); break;
		case 'R': text = optarg; break;
		case 'k': opt.kills = true; break;
		case 'a': sscanf(optarg, "%d/%d/%d", &opt.at_step, &opt.at_call, &opt.at_next); break;
		case 'b': opt.beside = true; break;
		case 'c': opt.crossed = (unsigned)atoi(optarg); break;
		case 'i': opt.stride = atoi(optarg); break;
		case 't': drive_stall(atoi(optarg)); break;
		case 'C': opt.commands = true; break;
		case '1': opt.one = true; break;
		case 'S': opt.state = atoi(optarg); break;
		case 'o': choose_calls(optarg, true); break;
		case 'w': choose_calls(optarg, false); break;
		default: exit(2);
		}
	if (argc - optind != 2) {
		fprintf(stderr, "usage: histories [OPTION...] DIRECTORY LIBRARY\n");
		exit(2);
	}
	return text;
}

int main(int argc, char **argv)
{
	int part, nr_parts, status = 0, ret = 0;
	const char *text;
	struct tally *t;

	if (argc == 4 && !strcmp(argv[1], "--serve")) {
		struct board *board =
			mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, BOARD_FD, 0);

		if (board == MAP_FAILED)
			return 2;
		serve(board, atoi(argv[2]), atoi(argv[3]));
	}
	if (argc == 3 && !strcmp(argv[1], "--many"))
		return count_more_in(argv[2]);
	text = take_options(argc, argv);
	judge_begin();
	if (text) {
		run_one(argv[optind], argv[optind + 1], text);
		return 0;
	}
	part = opt.part * opt.jobs;
	nr_parts = opt.nr_parts * opt.jobs;
	fflush(stdout);
	for (int i = 0; i < opt.jobs; i++)
		if (!fork()) {
			opt.part = part + i;
			opt.nr_parts = nr_parts;
			be_driver(argv[optind], argv[optind + 1]);
			_exit(0);
		}
	while (wait(&status) > 0)
		if (status)
			ret = 1;
	t = tally();
	if (judge_report(opt.examples))
		ret = 1;
	printf("%lu of %lu histories, %lu runs under the library, %lu kills, %lu differ, %lu of them not again\n",
	       t->histories, t->possible, t->runs, t->kills, t->differences, t->not_again);
	return ret;
}
