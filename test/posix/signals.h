/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For cases with signals: handlers that are set and counted, what sigaction() tells of them, and lines that a
 * program and its handlers append to one file.
 */
#include "posix.h"

#include <signal.h>

#define LINE 64

static volatile sig_atomic_t hits;
static volatile bool stop;

static __attribute__((unused)) void catch(int sig, void (*handler)(int), int flags)
{
	struct sigaction sa = {.sa_handler = handler, .sa_flags = flags};

	sigaction(sig, &sa, NULL);
}

static __attribute__((unused)) void every_us(long us)
{
	struct itimerval it = {{0, us}, {0, us}};

	setitimer(ITIMER_REAL, &it, NULL);
}

static __attribute__((unused)) void count(int sig)
{
	(void)sig;
	hits++;
}

static __attribute__((unused)) void nothing_blocked(void)
{
	sigset_t set;

	sigprocmask(SIG_BLOCK, NULL, &set);
	for (int sig = 1; sig < NSIG; sig++)
		if (sigismember(&set, sig) == 1)
			say("signal %d is still blocked\n", sig);
}

/* ---- lines ---- */

static int shared_fd; /* opened for appending */
static volatile int written[2]; /* lines in it: of main, of the handler */

static __attribute__((unused)) void append_line(char who)
{
	char line[LINE];

	memset(line, who, sizeof line);
	line[LINE - 1] = '\n';
	if (write(shared_fd, line, sizeof line) == sizeof line)
		__atomic_fetch_add(&written[who == 'h'], 1, __ATOMIC_RELAXED);
}

/* Every line is whole, and there are as many as were written; how many is chance, so the file goes. */
static __attribute__((unused)) void check_lines(const char *name)
{
	char line[LINE];
	int seen[2] = {0}, bad = 0, fd = open(at(name), O_RDONLY);
	ssize_t n;

	while ((n = read(fd, line, sizeof line)) > 0) {
		bool whole = n == LINE && line[LINE - 1] == '\n' && (line[0] == 'h' || line[0] == 'm');

		for (int i = 0; whole && i < LINE - 1; i++)
			whole = line[i] == line[0];
		bad += !whole;
		seen[line[0] == 'h']++;
	}
	close(fd);
	say("%s: torn %d, main %s, handler %s\n", name, bad, seen[0] == written[0] ? "all" : "not all",
	    seen[1] == written[1] ? "all" : "not all");
	if (seen[0] != written[0] || seen[1] != written[1])
		say("%d of %d, %d of %d\n", seen[0], written[0], seen[1], written[1]);
	unlink(at(name));
}

static char dir[512]; /* of the case; at() is not for several threads, nor for handlers */

static __attribute__((unused)) void start(const char *name)
{
	strcpy(dir, at(""));
	shared_fd = open(at(name), O_WRONLY | O_CREAT | O_APPEND, 0644);
}

/* ---- what sigaction() tells ---- */

static __attribute__((unused)) void one(int sig) { (void)sig; }
static __attribute__((unused)) void two(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)info, (void)context;
}

static __attribute__((unused)) const char *name_of(void *handler)
{
	return handler == (void *)SIG_DFL    ? "default"
	       : handler == (void *)SIG_IGN  ? "ignore"
	       : handler == (void *)SIG_ERR  ? "error"
	       : handler == (void *)SIG_HOLD ? "hold"
	       : handler == (void *)one      ? "one"
	       : handler == (void *)two      ? "two"
	       : handler == (void *)count    ? "count"
					     : "a stranger";
}

static __attribute__((unused)) void tell(int sig)
{
	struct sigaction old;

	if (sigaction(sig, NULL, &old)) {
		say("signal %d: %s\n", sig, strerrorname_np(errno));
		return;
	}
	say("signal %d: %s, flags %#x, mask", sig, name_of((void *)old.sa_handler), (unsigned)old.sa_flags);
	for (int i = 1; i < NSIG; i++)
		if (sigismember(&old.sa_mask, i) == 1)
			say(" %d", i);
	say("\n");
}
