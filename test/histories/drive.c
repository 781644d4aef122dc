/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The driver's side of a history: servers are started once for each environment, and live until a history
 * ends or kills them; each history has files of its own. The driver ends and makes processes, and is woken
 * for nothing else.
 */
#define _GNU_SOURCE
#include "histories.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

const struct variant variants[] = {
	{ .name = "plain" },
	{ .name = "small", .preload = true, .options = "{small=256}" },
	{ .name = "logs", .preload = true, .inplace = true, .options = "{small=0}" },
	{ .name = "posix", .preload = true, .posix = true, .options = "{small=0}" },
	{ .name = "default", .preload = true, .inplace = true, .options = "" },
	{ .name = "flat", .preload = true, .options = "{mode=flat}" },
	{ .name = "near", .preload = true, .options = "{small=0,near=$HISTORIES_NEAR}" }, /* and a helper */
	{ .name = "closed", .preload = true, .options = "{small=0,near=$HISTORIES_NEAR,drain=close}" },
	{ .name = "ended", .preload = true, .options = "{small=0,near=$HISTORIES_NEAR,log-max=1}" },
	{ .name = "spread", .preload = true, .several = true, .options = "{small=0,spread=process}" },
	{ .name = "mirror", .preload = true, .several = true, .options = "{small=0,mirror=2}" },
};
const int nr_variants = sizeof(variants) / sizeof(variants[0]);

enum { ENV_PLAIN, ENV_PRELOAD, ENV_POSIX, NR_ENVS, TIMEOUT_MS = 20000, LOOK_MS = 200,
       WAIT_MS = 30 /* then a step waits for another that stands */ };

/* Servers that have the same environment: mappings of all variants that can share it. */
static struct env {
	struct board *board;
	int board_fd, said_fd; /* what they write to standard error */
	off_t said_len;
	pid_t zygote;
} envs[NR_ENVS];
static const char *base, *library;
static unsigned long nr_files;

static int env_of(const struct variant *v)
{
	return !v->preload ? ENV_PLAIN : v->posix ? ENV_POSIX : ENV_PRELOAD;
}

/* Behind what is in @map. */
static void add_mapping(char *map, const struct variant *v)
{
	char *to = map + strlen(map);

	to += sprintf(to, "%s", map[0] ? ":" : "");
	if (!v->inplace)
		to += sprintf(to, "/plfs-%s=", v->name);
	to += sprintf(to, "%s/%s", base, v->name);
	if (v->several)
		to += sprintf(to, ",%s/%s.2", base, v->name);
	sprintf(to, "%s", v->options);
}

static _Noreturn void fail(const char *what)
{
	perror(what);
	exit(2);
}

static void be_zygote(int e, int board_fd)
{
	char map[4096] = "";

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(board_fd, BOARD_FD) < 0 || dup2(envs[e].said_fd, STDERR_FILENO) < 0)
		fail("dup2");
	for (int i = 1; i < nr_variants; i++)
		if (env_of(&variants[i]) == e)
			add_mapping(map, &variants[i]);
	if (e != ENV_PLAIN && *library) {
		char near[4096];

		snprintf(near, sizeof(near), "%s/places", base);
		setenv("HISTORIES_NEAR", near, 1);
		setenv("LD_PRELOAD", library, 1);
		setenv("PLFS_MAP", map, 1);
	}
	if (e == ENV_POSIX)
		setenv("PLFS_CONSISTENCY", "posix", 1);
	execl("/proc/self/exe", "histories", "--serve", "-1", "0", NULL);
	fail("exec");
}

static int open_said(void)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/said.XXXXXX", base);
	fd = mkostemp(path, O_APPEND | O_CLOEXEC);
	if (fd < 0)
		fail(path);
	return fd;
}

static struct env *env_get(const struct variant *v)
{
	struct env *env = &envs[env_of(v)];

	if (!env->board) {
		env->board_fd = memfd_create("board", MFD_CLOEXEC);
		if (env->board_fd < 0 || ftruncate(env->board_fd, sizeof(*env->board)))
			fail("memfd_create");
		env->board =
			mmap(NULL, sizeof(*env->board), PROT_READ | PROT_WRITE, MAP_SHARED, env->board_fd, 0);
		if (env->board == MAP_FAILED)
			fail("mmap");
		env->said_fd = open_said();
	}
	if (!env->zygote) {
		memset(env->board, 0, sizeof(*env->board));
		env->zygote = fork();
		if (!env->zygote)
			be_zygote(env_of(v), env->board_fd);
	}
	return env;
}

static void env_end(struct env *env)
{
	if (!env->zygote)
		return;
	kill(env->zygote, SIGKILL);
	waitpid(env->zygote, NULL, 0);
	env->zygote = 0;
	for (int s = 0; s < NR_SLOTS; s++)
		for (int d = env->board->parts[s].depth; d >= 0; d--)
			if (env->board->parts[s].stack[d].pid) {
				int fd = (int)syscall(SYS_pidfd_open, env->board->parts[s].stack[d].pid, 0);
				struct pollfd p = { .fd = fd, .events = POLLIN };

				if (fd < 0)
					continue;
				kill(env->board->parts[s].stack[d].pid, SIGKILL);
				poll(&p, 1, TIMEOUT_MS);
				close(fd);
			}
}

static void make_dir(const char *name, const char *end)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s%s", base, name, end);
	if (mkdir(path, 0755) && errno != EEXIST)
		fail(path);
}

void drive_begin(const char *dir, const char *preload, int cpu)
{
	cpu_set_t cpus;

	base = dir;
	library = preload;
	CPU_ZERO(&cpus);
	CPU_SET((size_t)cpu, &cpus);
	/* a turn is passed on by a switch, without waking another core */
	sched_setaffinity(0, sizeof(cpus), &cpus);
	make_dir("places", "");
	for (int i = 0; i < nr_variants; i++) {
		make_dir(variants[i].name, "");
		if (variants[i].several)
			make_dir(variants[i].name, ".2");
	}
}

void drive_anew(void)
{
	for (int e = 0; e < NR_ENVS; e++)
		env_end(&envs[e]);
}

void drive_end(void)
{
	drive_anew();
}

bool drive_said(const struct variant *v, char *line, size_t size)
{
	struct env *env = &envs[env_of(v)];
	off_t end = lseek(env->said_fd, 0, SEEK_END);
	ssize_t n;

	if (end == env->said_len)
		return false;
	n = pread(env->said_fd, line, size - 1, env->said_len);
	env->said_len = end;
	line[n < 0 ? 0 : n] = 0;
	line[strcspn(line, "\n")] = 0;
	return true;
}

/* Until the turn is the driver's. false: whoever has it has gone, or does not come back. */
static bool wait_for_turn(struct board *b)
{
	for (int ms = 0; ms < TIMEOUT_MS; ms += LOOK_MS) {
		struct part *part;

		if (word_wait_for(&b->driver_word, LOOK_MS))
			return true;
		part = &b->parts[b->steps[b->at].slot];
		if (b->at < b->nr_steps && part->stack[part->depth].pid &&
		    kill(part->stack[part->depth].pid, 0))
			return word_wait_for(&b->driver_word, LOOK_MS);
	}
	return false;
}

static bool spawn(struct env *env, int slot)
{
	env->board->zygote_slot = slot;
	word_wake(&env->board->zygote_word);
	return word_wait_for(&env->board->driver_word, TIMEOUT_MS);
}

/* Until @pid has ended, its files closed and its locks gone. */
static bool wait_for_end(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return poll(&p, 1, TIMEOUT_MS) == 1;
}

static void ended(struct part *part)
{
	memset(&part->stack[part->depth], 0, sizeof(part->stack[0]));
	if (part->depth)
		part->depth--;
}

static bool end_process(struct part *part, enum call call)
{
	struct process *p = &part->stack[part->depth];
	int pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	bool ok;

	if (pidfd < 0)
		return false;
	if (call == KILL)
		kill(p->pid, SIGKILL);
	else
		word_wake(&p->word);
	ok = wait_for_end(pidfd);
	close(pidfd);
	ended(part);
	return ok;
}

static void begin(const struct variant *v, struct board *b, const struct history *h)
{
	char dir[1024];

	if (v->preload && !v->inplace && *library)
		snprintf(dir, sizeof(dir), "/plfs-%s", v->name);
	else
		snprintf(dir, sizeof(dir), "%s/%s", base, v->name);
	nr_files++;
	snprintf(b->f, sizeof(b->f), "%.200s/f%lu", dir, nr_files);
	snprintf(b->g, sizeof(b->g), "%.200s/g%lu", dir, nr_files);
	snprintf(b->h, sizeof(b->h), "%.200s/h%lu", dir, nr_files);
	memcpy(b->steps, h->steps, sizeof(h->steps));
	memset(b->outcomes, 0, sizeof(b->outcomes));
	b->nr_steps = h->nr;
	b->at = 0;
	b->driver_word = b->fork_word = 0;
	b->beside = false;
	memset(b->ended, 0, sizeof(b->ended));
	memset(b->begun, 0, sizeof(b->begun));
	memset(b->done, 0, sizeof(b->done));
}

/* The step at which the board is, and those that follow without the driver. */
static bool go_on(struct env *env)
{
	struct board *b = env->board;
	struct step s = b->steps[b->at];
	struct part *part = &b->parts[s.slot];

	if (!part->stack[0].pid && !spawn(env, s.slot))
		return false;
	if (s.call == EXIT || s.call == KILL) {
		if (!end_process(part, s.call))
			return false;
		b->at++;
		return true;
	}
	word_wake(&part->stack[part->depth].word);
	return wait_for_turn(b);
}

/* All servers are as they were: children ended, descriptors closed, names removed. */
static bool clean_up(struct env *env)
{
	struct board *b = env->board;
	bool ok = true;
	int last = S;

	b->at = b->nr_steps = 0;
	for (int s = 0; s < NR_SLOTS && ok; s++) {
		struct part *part = &b->parts[s];

		for (b->steps[0] = (struct step){ (uint8_t)s, EXIT }; part->depth && ok;)
			ok = end_process(part, EXIT);
		if (!part->stack[0].pid)
			continue;
		last = s;
	}
	for (int s = 0; s < NR_SLOTS; s++)
		if (b->parts[s].stack[0].pid && (b->parts[s].stack[0].nr_fds || b->parts[s].stack[0].map))
			b->steps[b->nr_steps++] = (struct step){ (uint8_t)s, DONE };
	b->steps[b->nr_steps++] = (struct step){ (uint8_t)last, REMOVE };
	while (ok && b->at < b->nr_steps)
		ok = go_on(env);
	return ok;
}

static bool finish(struct env *env, struct outcome *out, bool ok)
{
	struct board *b = env->board;

	if (!ok && env == &envs[ENV_PLAIN]) {
		struct history h = { .nr = b->nr_steps };
		char text[1024];

		memcpy(h.steps, b->steps, sizeof(h.steps));
		history_text(text, sizeof(text), &h);
		fprintf(stderr, "histories: no answer at step %d, without the library: %s\n", b->at, text);
	}
	if (!ok && b->at < STEPS_MAX) {
		b->outcomes[b->at].err = HANG;
		for (int i = b->at + 1; i < STEPS_MAX; i++)
			b->outcomes[i].err = GONE;
	}
	memcpy(out, b->outcomes, sizeof(b->outcomes));
	ok = ok && clean_up(env);
	if (!ok)
		env_end(env);
	return ok;
}

bool drive(const struct variant *v, const struct history *h, struct outcome *out)
{
	struct env *env = env_get(v);
	bool ok = true;

	begin(v, env->board, h);
	while (ok && env->board->at < h->nr)
		ok = go_on(env);
	return finish(env, out, ok);
}

/* ---- a kill at a system call ---- */

/* false: it has gone; or, with @timeout_ms, goes on till then, or waits for something. */
static bool stopped(pid_t pid, int *status, int timeout_ms)
{
	const struct timespec pause = { .tv_nsec = 200000 };
	int waited_us = 0;
	pid_t got;

	if (timeout_ms < 0)
		return waitpid(pid, status, __WALL) == pid && WIFSTOPPED(*status);
	while (!(got = waitpid(pid, status, __WALL | WNOHANG)) && waited_us < timeout_ms * 1000) {
		nanosleep(&pause, NULL);
		waited_us += 200;
	}
	return got == pid && WIFSTOPPED(*status);
}

/* A process on its way through the system calls of a step. */
struct walk {
	pid_t pid;
	int step, entries;
	bool paused;
};

enum arrival { AT_CALL, PAST, NOT_YET };

static struct walk walk_begin(struct board *b, struct process *p)
{
	struct walk w = { .pid = p->pid, .step = b->at };
	int status;

	if (ptrace(PTRACE_SEIZE, w.pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC) ||
	    ptrace(PTRACE_INTERRUPT, w.pid, NULL, NULL) || !stopped(w.pid, &status, -1))
		fail("ptrace");
	word_wake(&p->word);
	ptrace(PTRACE_SYSCALL, w.pid, NULL, NULL);
	return w;
}

/*
 * Whether a stop before the call is one more case. A process that waits asks again and again: its pauses, and
 * what follows each, are all the same.
 */
static bool is_another(struct walk *w, uint64_t call)
{
	bool asks = w->paused;

	w->paused = call == SYS_clock_nanosleep;
	return !asks && !w->paused;
}

/* On to the @nr th call of the step, before which it is stopped. PAST: the step had fewer. */
static enum arrival walk_to(struct board *b, struct walk *w, int nr, int timeout_ms)
{
	int status;

	while (stopped(w->pid, &status, timeout_ms)) {
		bool call = WSTOPSIG(status) == (SIGTRAP | 0x80);
		long sig = call || status >> 16 ? 0 : WSTOPSIG(status);
		struct __ptrace_syscall_info info = { 0 };
		bool entry;

		if (call)
			ptrace(PTRACE_GET_SYSCALL_INFO, w->pid, sizeof(info), &info);
		entry = call && info.op == PTRACE_SYSCALL_INFO_ENTRY;
		if (b->done[w->step]) {
			ptrace(PTRACE_DETACH, w->pid, NULL, sig);
			return PAST;
		}
		if (entry && b->begun[w->step] && is_another(w, info.entry.nr) && ++w->entries == nr)
			return AT_CALL;
		ptrace(PTRACE_SYSCALL, w->pid, NULL, sig);
		if (w->paused && timeout_ms >= 0)
			return NOT_YET;
	}
	return timeout_ms < 0 ? PAST : NOT_YET;
}

static bool step_to(struct board *b, struct process *p, int nr)
{
	struct walk w = walk_begin(b, p);

	return walk_to(b, &w, nr, -1) == AT_CALL;
}

static bool step_and_kill(struct board *b, struct process *p, int nr)
{
	int status, pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	bool killed = step_to(b, p, nr);

	if (killed) {
		kill(p->pid, SIGKILL);
		waitpid(p->pid, &status, __WALL);
		wait_for_end(pidfd);
	}
	close(pidfd);
	return killed;
}

/* All before step @last, whose process there is. */
static bool go_to(struct env *env, int last)
{
	struct board *b = env->board;
	bool ok = true;

	b->nr_steps = last;
	while (ok && b->at < last)
		ok = go_on(env);
	return ok && (b->parts[b->steps[last].slot].stack[0].pid || spawn(env, b->steps[last].slot));
}

bool drive_and_kill(const struct variant *v, const struct history *h, int last, int nr, struct outcome *out,
		    bool *done)
{
	struct env *env = env_get(v);
	struct board *b = env->board;
	bool ok = true;

	begin(v, b, h);
	*done = false;
	ok = go_to(env, last);
	b->nr_steps = last + 1;
	if (ok) {
		struct part *part = &b->parts[h->steps[last].slot];

		if ( !step_and_kill(b, &part->stack[part->depth], nr)) {
			*done = true;
			ok = wait_for_turn(b);
		} else {
			ended(part);
			b->at = last + 2; /* it is dead already */
		}
	}
	b->nr_steps = h->nr;
	while (ok && b->at < h->nr)
		ok = go_on(env);
	return finish(env, out, ok);
}

/* ---- a step in the middle of another ---- */

static bool wait_for_ended(struct board *b, int step, int timeout_ms)
{
	for (int ms = 0; ms < timeout_ms && !__atomic_load_n(&b->ended[step], __ATOMIC_ACQUIRE); ms += 10)
		word_wait_for(&b->driver_word, 10);
	return __atomic_load_n(&b->ended[step], __ATOMIC_ACQUIRE);
}

static struct process *process_of(struct board *b, int step)
{
	struct part *part = &b->parts[b->steps[step].slot];

	return &part->stack[part->depth];
}

static bool begin_beside(struct env *env, const struct variant *v, const struct history *h, int last)
{
	struct board *b = env->board;

	begin(v, b, h);
	if (!go_to(env, last) ||
	    (!b->parts[h->steps[last + 1].slot].stack[0].pid && !spawn(env, h->steps[last + 1].slot)))
		return false;
	b->beside = true;
	return true;
}

/* Both steps have been let go on. The rest follows. */
static bool end_beside(struct env *env, const struct history *h, int last, struct outcome *out, bool ok)
{
	struct board *b = env->board;

	if (ok) {
		b->at = last;
		ok = wait_for_ended(b, last, TIMEOUT_MS) && wait_for_ended(b, last + 1, TIMEOUT_MS);
		b->beside = false;
		b->driver_word = 0;
		b->at = last + 2;
	}
	b->nr_steps = h->nr;
	while (ok && b->at < h->nr)
		ok = go_on(env);
	return finish(env, out, ok);
}

bool drive_beside(const struct variant *v, const struct history *h, int last, int nr, struct outcome *out,
		  bool *done)
{
	struct env *env = env_get(v);
	struct board *b = env->board;
	bool ok = begin_beside(env, v, h, last);

	if (ok) {
		struct process *p = process_of(b, last);

		*done = !step_to(b, p, nr);
		b->at = last + 1;
		word_wake(&process_of(b, last + 1)->word);
		wait_for_ended(b, last + 1, *done ? TIMEOUT_MS : WAIT_MS);
		if (!*done)
			ptrace(PTRACE_DETACH, p->pid, NULL, NULL);
	}
	return end_beside(env, h, last, out, ok);
}

bool drive_crossed(const struct variant *v, const struct history *h, int last, int nr, int nr_next,
		   struct outcome *out, bool *done, bool *done_next)
{
	struct env *env = env_get(v);
	struct board *b = env->board;
	bool ok = begin_beside(env, v, h, last);

	if (ok) {
		struct process *p = process_of(b, last);
		struct walk next;
		enum arrival at;

		*done = !step_to(b, p, nr);
		b->at = last + 1;
		next = walk_begin(b, process_of(b, last + 1));
		at = walk_to(b, &next, nr_next, *done ? -1 : WAIT_MS);
		if (!*done)
			ptrace(PTRACE_DETACH, p->pid, NULL, NULL);
		wait_for_ended(b, last, at == AT_CALL ? WAIT_MS : TIMEOUT_MS);
		if (at == NOT_YET) /* it waited for the other, which has ended */
			at = walk_to(b, &next, nr_next, -1);
		*done_next = at == PAST;
		if (at == AT_CALL)
			ptrace(PTRACE_DETACH, next.pid, NULL, NULL);
	}
	return end_beside(env, h, last, out, ok);
}
