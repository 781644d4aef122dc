/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For the C cases of test/posix/run: a program of cases, each run by its name in a fresh process. A case
 * prints what it sees; run compares that with what the same case prints on a plain directory. "prog list"
 * names the cases.
 */
#ifndef POSIX_H
#define POSIX_H

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if !__GLIBC_PREREQ(2, 32)
#define strerrorname_np(err) strerror(err)
#endif

struct test_case {
	const char *name;
	void (*run)(void);
	struct test_case *next;
};
static struct test_case *cases, **cases_end = &cases;
static const char *self; /* this program, to exec */

#define CASE(fn) \
	static void fn(void); \
	static struct test_case case_##fn = { #fn, fn, NULL }; \
	static __attribute__((constructor)) void add_##fn(void) \
	{ \
		*cases_end = &case_##fn; \
		cases_end = &case_##fn.next; \
	} \
	static void fn(void)

/* A name in the directory of the case: absolute, or relative where run asks for it. Eight live at a time. */
static __attribute__((unused)) char *at(const char *name)
{
	static char ring[8][512];
	static int next;
	const char *inside = getenv("CASE_INSIDE");
	char *out = ring[next++ % 8];

	if (inside && *inside)
		snprintf(out, sizeof ring[0], "%s", *name ? name : ".");
	else
		snprintf(out, sizeof ring[0], "%s/%s", getenv("P"), name);
	return out;
}

static void say_result(const char *call, long ret, int err)
{
	if (ret < 0)
		dprintf(1, "%s = %ld %s\n", call, ret, strerrorname_np(err));
	else
		dprintf(1, "%s = %ld%s%s\n", call, ret, err ? " but errno became " : "",
			err ? strerrorname_np(err) : "");
}

/* Make a system call and print it with its result; one that succeeds must leave errno alone. */
#define T(call) \
	({ \
		long t_ret; \
		errno = 0; \
		t_ret = (long)(call); \
		say_result(#call, t_ret, errno); \
		t_ret; \
	})

/* The same for what returns an error number, a pointer or a count of items, and may touch errno. */
#define V(call) \
	({ \
		long v_ret = (long)(call); \
		dprintf(1, "%s = %ld\n", #call, v_ret); \
		v_ret; \
	})

#define say(...) dprintf(1, __VA_ARGS__)

/* The whole content of a name, through a descriptor of its own: long runs of a byte are abbreviated. */
static __attribute__((unused)) void show(const char *name)
{
	static char buf[1 << 22];
	ssize_t n, len = 0;
	int fd = open(at(name), O_RDONLY);

	if (fd < 0) {
		say("%s: %s\n", name, strerrorname_np(errno));
		return;
	}
	while ((n = read(fd, buf + len, sizeof buf - len)) > 0)
		len += n;
	say("%s: %s%zd bytes \"", name, n < 0 ? "read error after " : "", len);
	for (ssize_t i = 0, j; i < len; i = j) {
		for (j = i + 1; j < len && buf[j] == buf[i]; j++)
			;
		if (buf[i] >= ' ' && buf[i] < 127)
			say("%c", buf[i]);
		else
			say("\\%o", (unsigned char)buf[i]);
		if (j - i > 4)
			say("{%zd}", j - i);
		else
			j = i + 1;
	}
	say("\"\n");
	close(fd);
}

/* What is in a directory, and of which type. */
static __attribute__((unused)) void list_dir(const char *name)
{
	struct dirent **all;
	int n = scandir(at(name), &all, NULL, alphasort);

	for (int i = 0; i < n; i++)
		say("%s:%d ", all[i]->d_name, all[i]->d_type);
	say("(%d)\n", n);
}

static __attribute__((unused)) int rw(const char *name) { return open(at(name), O_RDWR | O_CREAT, 0644); }

static __attribute__((unused)) void make(const char *name, const char *text)
{
	int fd = open(at(name), O_WRONLY | O_CREAT | O_TRUNC, 0644);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || close(fd))
		say("make %s: %s\n", name, strerrorname_np(errno));
}

/* Run in a child, wait, print how it ended. */
#define IN_CHILD(...) \
	({ \
		pid_t c_pid = fork(); \
		if (c_pid == 0) { \
			__VA_ARGS__; \
			_exit(0); \
		} \
		say_child(c_pid); \
	})

static __attribute__((unused)) void say_child(pid_t pid)
{
	int status = 0;

	if (waitpid(pid, &status, 0) != pid)
		say("waitpid: %s\n", strerrorname_np(errno));
	else if (status)
		say("child: %s %d\n", WIFEXITED(status) ? "exit" : "signal",
		    WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

int main(int argc, char **argv)
{
	struct test_case *c;
	const char *inside = getenv("CASE_INSIDE");

	self = argv[0];
	for (c = cases; c; c = c->next) {
		if (argc < 2 || !strcmp(argv[1], "list")) {
			puts(c->name);
		} else if (!strcmp(argv[1], c->name)) {
			if (inside && *inside && chdir(getenv("P")))
				return 3;
			c->run();
			return 0;
		}
	}
	return argc > 1 && strcmp(argv[1], "list") ? 2 : 0;
}

#endif
