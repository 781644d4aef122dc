/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All the ways in which a process with threads can end while they write, some of them through handlers of its
 * own; what they have been told is written must be there (records.h), and stat() say so before anybody has
 * opened the file.
 *
 *     ends WAY strided|append FILE PROGRESS SEED       write, and end
 *     ends check strided|append FILE PROGRESS SEED     a process that has seen nothing of it
 *     ends list                                        the ways; "oom" only where a control group of memory
 *                                                      can be made
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "records.h"

enum { NR_THREADS = 3 };

static bool append;
static int file;

/* ---- the process that ends ---- */

static void *write_records(void *arg)
{
	int writer = (int)(intptr_t)arg;
	struct life *life = this_life(writer);
	char *buf = malloc(LARGE_LEN);
	bool one_descriptor = mix64(seed + 7) % 2;
	int fd = one_descriptor ? file : open(shared_path, O_RDWR | (append ? O_APPEND : 0));

	for (long k = life->first; k < life->first + LIFE_RECORDS; k++) {
		size_t len = record_len(k);
		ssize_t n;

		if (append)
			append_fill(buf, writer, k);
		else
			strided_fill(buf, writer, k);
		n = append ? write(fd, buf, len) : pwrite(fd, buf, len, record_off(writer, k));
		if (n != (ssize_t)len)
			break; /* the descriptor has been closed by whoever ends us */
		atomic_store(&life->acked, k + 1);
	}
	free(buf);
	for (;;)
		pause();
	return arg;
}

static void by_abort(void) { abort(); }
static void by_fault(void) { *(char *volatile *)NULL = NULL; }
static void by_term(void) { raise(SIGTERM); }
static void by_kill(void) { raise(SIGKILL); }
static void by_exit(void) { exit(0); }
static void by_immediate_exit(void) { _exit(0); }
static void by_exec(void) { execl("/bin/true", "true", (char *)NULL); }

static void *exit_from_thread(void *arg)
{
	exit(0);
	return arg;
}

static void by_exit_of_thread(void)
{
	pthread_t t;

	pthread_create(&t, NULL, exit_from_thread, NULL);
	pthread_exit(NULL);
}

static void *exec_from_thread(void *arg)
{
	by_exec();
	return arg;
}

static void by_exec_of_thread(void)
{
	pthread_t t;

	pthread_create(&t, NULL, exec_from_thread, NULL);
	pthread_join(t, NULL);
}

static void exit_at_once(int sig) { _exit(sig); }

static void by_fault_with_handler(void)
{
	static char stack[65536];
	struct sigaction sa = { .sa_handler = exit_at_once, .sa_flags = SA_ONSTACK };

	sigaltstack(&(stack_t){ .ss_sp = stack, .ss_size = sizeof(stack) }, NULL);
	sigaction(SIGSEGV, &sa, NULL);
	by_fault();
}

static void by_abort_with_handler(void)
{
	signal(SIGABRT, exit_at_once);
	abort();
}

/* What a batch system does: a last word is asked for, and there is no time for it. */
static void sync_and_close(int sig)
{
	(void)sig;
	fsync(file);
	close(file);
	for (;;)
		pause();
}

static void by_term_then_kill(void)
{
	pid_t parent = getpid(), pid;

	signal(SIGTERM, sync_and_close);
	pid = fork();
	if (!pid) {
		kill(parent, SIGTERM);
		sleep_us(mix64(seed + 9) % 3000);
		kill(parent, SIGKILL);
		_exit(0);
	}
	for (;;)
		pause();
}

static int use_stack(volatile char *above)
{
	volatile char frame[4096];

	frame[0] = above ? above[0] : 1;
	return use_stack(frame) + frame[0];
}

static void by_stack_overflow(void) { use_stack(NULL); }

static void by_limit_of_time(void)
{
	setrlimit(RLIMIT_CPU, &(struct rlimit){ 0, 1 });
	for (;;)
		;
}

/* The parent has put us into a group of little memory: the kernel kills us while we ask for more. */
static void by_oom(void)
{
	for (;;) {
		char *p = malloc(1 << 20);

		if (p)
			memset(p, 1, 1 << 20);
	}
}

static const struct way {
	const char *name;
	void (*end)(void);
	int status; /* as wait(2) has it */
} ways[] = {
	{ "abort", by_abort, SIGABRT },
	{ "fault", by_fault, SIGSEGV },
	{ "term", by_term, SIGTERM },
	{ "kill", by_kill, SIGKILL },
	{ "exit", by_exit, 0 },
	{ "immediate-exit", by_immediate_exit, 0 },
	{ "exec", by_exec, 0 },
	{ "exit-of-thread", by_exit_of_thread, 0 },
	{ "exec-of-thread", by_exec_of_thread, 0 },
	{ "fault-with-handler", by_fault_with_handler, SIGSEGV << 8 },
	{ "abort-with-handler", by_abort_with_handler, SIGABRT << 8 },
	{ "term-then-kill", by_term_then_kill, SIGKILL },
	{ "stack-overflow", by_stack_overflow, SIGSEGV },
	{ "limit-of-time", by_limit_of_time, SIGXCPU },
	{ "oom", by_oom, SIGKILL },
};

/* ---- a group with little memory ---- */

static char group[300];

static bool put(const char *name, const char *text)
{
	char file_name[400];
	int fd;
	bool ok;

	snprintf(file_name, sizeof(file_name), "%s/%s", group, name);
	fd = open(file_name, O_WRONLY);
	ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	if (fd >= 0)
		close(fd);
	return ok;
}

/* Version 2 of control groups, or 1. */
static bool make_group(void)
{
	static const char *const roots[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/memory" };

	for (int i = 0; i < 2; i++) {
		snprintf(group, sizeof(group), "%s/plfs-test.%d", roots[i], (int)getpid());
		if (mkdir(group, 0755))
			continue;
		if (put(i ? "memory.limit_in_bytes" : "memory.max", "50331648"))
			return true;
		rmdir(group);
	}
	return false;
}

/* ---- all of it ---- */

static void write_and_end(const struct way *way)
{
	const struct rlimit none = { 0, 0 };
	pthread_t t;

	setrlimit(RLIMIT_CORE, &none);
	file = open(shared_path, O_RDWR | O_CREAT | (append ? O_APPEND : 0), 0644);
	if (file < 0)
		die("%s: open", shared_path);
	for (intptr_t w = 0; w < NR_THREADS; w++)
		if (pthread_create(&t, NULL, write_records, (void *)w))
			die("pthread_create");
	sleep_us(mix64(seed + 2) % 30000);
	way->end();
	die("%s: still here", way->name);
}

static int end_one(const struct way *way)
{
	bool oom = way->end == by_oom;
	int status;
	pid_t pid;

	if (oom && !make_group())
		die("no control group of memory can be made");
	atomic_store(&progress->nr_lives, 1);
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		if (oom && !put("cgroup.procs", "0"))
			die("cannot enter %s", group);
		write_and_end(way);
	}
	if (waitpid(pid, &status, 0) != pid)
		die("waitpid");
	if (oom)
		rmdir(group);
	printf("%s: status %#x, acknowledged: %ld\n", way->name, status, nr_acked());
	errno = 0;
	if (status != way->status)
		die("%s: status %#x instead of %#x", way->name, status, way->status);
	return 0;
}

int main(int argc, char **argv)
{
	const size_t nr_ways = sizeof(ways) / sizeof(ways[0]);
	const struct way *way = ways;

	if (argc == 2 && !strcmp(argv[1], "list")) {
		for (size_t i = 0; i < nr_ways; i++)
			if (ways[i].end != by_oom)
				puts(ways[i].name);
		if (make_group() && !rmdir(group))
			puts("oom");
		return 0;
	}
	while (way < ways + nr_ways && argc == 6 && strcmp(way->name, argv[1]))
		way++;
	if (argc != 6 || (way == ways + nr_ways && strcmp(argv[1], "check"))) {
		fprintf(stderr, "usage: ends WAY|check strided|append FILE PROGRESS SEED, ends list\n");
		return 2;
	}
	append = !strcmp(argv[2], "append");
	shared_path = argv[3];
	seed = strtoull(argv[5], NULL, 0);
	nr_writers = NR_THREADS;
	rows_init();
	progress_open(argv[4]);
	return strcmp(argv[1], "check") ? end_one(way) : check_records(append);
}
