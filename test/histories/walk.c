/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A step of a history, walked through call by call (ptrace): killed before one of its system calls, or
 * stopped there while the step of another process is carried out. Of a step that is a command, it is the
 * command's process that is walked with, from the first file of ours that it names.
 */
#define _GNU_SOURCE
#include "drive.h"

#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int wait_ms = 30; /* then a step waits for another that stands */

void drive_stall(int ms) { wait_ms = ms; }

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
	bool starts; /* a command that has named no file of ours yet */
};

enum arrival { AT_CALL, PAST, NOT_YET };

static struct walk walk_begin(struct board *b, struct process *p)
{
	struct walk w = { .pid = p->pid, .step = b->at };
	long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC;
	int status;

	w.starts = call_command((enum call)b->steps[w.step].call) != NULL;
	if (w.starts)
		options |= PTRACE_O_TRACEFORK;
	if (ptrace(PTRACE_SEIZE, w.pid, NULL, options) ||
	    ptrace(PTRACE_INTERRUPT, w.pid, NULL, NULL) || !stopped(w.pid, &status, -1))
		drive_fail("ptrace");
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

/* From the one that makes the command's process to that. */
static void follow(struct walk *w)
{
	unsigned long child;
	int status;

	ptrace(PTRACE_GETEVENTMSG, w->pid, NULL, &child);
	ptrace(PTRACE_DETACH, w->pid, NULL, NULL);
	w->pid = (pid_t)child;
	if (!stopped(w->pid, &status, -1) || ptrace(PTRACE_SETOPTIONS, w->pid, NULL, PTRACE_O_TRACESYSGOOD))
		drive_fail("ptrace");
	ptrace(PTRACE_SYSCALL, w->pid, NULL, NULL);
}

/* Whether the call opens, or looks at, a file below our directory. */
static bool names_ours(pid_t pid, uint64_t call, uint64_t path)
{
	char name[1024] = "";
	size_t len = strlen(drive_dir());
	struct iovec to = { name, len }, from = { (void *)(uintptr_t)path, len };

	return (call == SYS_openat || call == SYS_openat2 || call == SYS_newfstatat || call == SYS_statx) &&
	       len < sizeof(name) && process_vm_readv(pid, &to, 1, &from, 1, 0) == (ssize_t)len &&
	       !memcmp(name, drive_dir(), len);
}

/* Whether a stop at the entry of this call is one. */
static bool is_counted(struct board *b, struct walk *w, uint64_t call, uint64_t path)
{
	w->starts = w->starts && !names_ours(w->pid, call, path);
	return b->begun[w->step] && !w->starts && is_another(w, call);
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
		if (status >> 16 == PTRACE_EVENT_FORK && w->starts) {
			follow(w);
			continue;
		}
		if (b->done[w->step]) {
			ptrace(PTRACE_DETACH, w->pid, NULL, sig);
			return PAST;
		}
		if (entry && is_counted(b, w, info.entry.nr, info.entry.args[1]) && ++w->entries == nr)
			return AT_CALL;
		ptrace(PTRACE_SYSCALL, w->pid, NULL, sig);
		if (w->paused && timeout_ms >= 0)
			return NOT_YET;
	}
	return timeout_ms < 0 ? PAST : NOT_YET;
}

/* Who stands there then; 0: the step had fewer calls. */
static pid_t step_to(struct board *b, struct process *p, int nr)
{
	struct walk w = walk_begin(b, p);

	return walk_to(b, &w, nr, -1) == AT_CALL ? w.pid : 0;
}

static bool step_and_kill(struct board *b, struct process *p, int nr)
{
	int status, pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	bool killed = step_to(b, p, nr) != 0;

	if (killed) {
		kill(p->pid, SIGKILL);
		waitpid(p->pid, &status, __WALL);
		process_wait_for_end(pidfd);
	}
	close(pidfd);
	return killed;
}

/* At its @nr th call, while its parent waits for it. false: it had fewer. */
static bool kill_command(struct board *b, int nr)
{
	struct part *part = &b->parts[b->steps[b->at].slot];
	pid_t stands = step_to(b, &part->stack[part->depth], nr);
	int status;

	if (stands) {
		kill(stands, SIGKILL);
		waitpid(stands, &status, __WALL);
	}
	return stands != 0;
}

/* All before step @last, whose process there is. */
static bool go_to(struct env *env, int last)
{
	struct board *b = env->board;
	bool ok = true;

	b->nr_steps = last;
	while (ok && b->at < last)
		ok = env_go_on(env);
	return ok && (b->parts[b->steps[last].slot].stack[0].pid || env_spawn(env, b->steps[last].slot));
}

bool drive_and_kill(const struct variant *v, const struct history *h, int last, int nr, struct outcome *out,
		    bool *done)
{
	struct env *env = env_get(v);
	struct board *b = env->board;
	bool ok = true;

	board_begin(v, b, h);
	*done = false;
	ok = go_to(env, last);
	b->nr_steps = last + 1;
	if (ok && call_command((enum call)h->steps[last].call)) {
		*done = !kill_command(b, nr);
		ok = board_wait_for_turn(b);
	} else if (ok) {
		struct part *part = &b->parts[h->steps[last].slot];

		if ( !step_and_kill(b, &part->stack[part->depth], nr)) {
			*done = true;
			ok = board_wait_for_turn(b);
		} else {
			part_ended(part);
			b->at = last + 2; /* it is dead already */
		}
	}
	b->nr_steps = h->nr;
	while (ok && b->at < h->nr)
		ok = env_go_on(env);
	return env_finish(env, out, ok);
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

	board_begin(v, b, h);
	if (!go_to(env, last) ||
	    (!b->parts[h->steps[last + 1].slot].stack[0].pid && !env_spawn(env, h->steps[last + 1].slot)))
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
		ok = env_go_on(env);
	return env_finish(env, out, ok);
}

bool drive_beside(const struct variant *v, const struct history *h, int last, int nr, struct outcome *out,
		  bool *done)
{
	struct env *env = env_get(v);
	struct board *b = env->board;
	bool ok = begin_beside(env, v, h, last);

	if (ok) {
		pid_t stands = step_to(b, process_of(b, last), nr);

		*done = !stands;
		b->at = last + 1;
		word_wake(&process_of(b, last + 1)->word);
		wait_for_ended(b, last + 1, *done ? TIMEOUT_MS : wait_ms);
		if (stands)
			ptrace(PTRACE_DETACH, stands, NULL, NULL);
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
		pid_t stands = step_to(b, process_of(b, last), nr);
		struct walk next;
		enum arrival at;

		*done = !stands;
		b->at = last + 1;
		next = walk_begin(b, process_of(b, last + 1));
		at = walk_to(b, &next, nr_next, *done ? -1 : wait_ms);
		if (!*done)
			ptrace(PTRACE_DETACH, stands, NULL, NULL);
		wait_for_ended(b, last, at == AT_CALL ? wait_ms : TIMEOUT_MS);
		if (at == NOT_YET) /* it waited for the other, which has ended */
			at = walk_to(b, &next, nr_next, -1);
		*done_next = at == PAST;
		if (at == AT_CALL)
			ptrace(PTRACE_DETACH, next.pid, NULL, NULL);
	}
	return end_beside(env, h, last, out, ok);
}
