/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes by descriptor and by stream, and ends in the way that its argument says. Prints nothing.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static FILE *stream;
static int fd;

static void at_end(void) { fputs("at the end ", stream), dprintf(fd, "at the end "); }

static void *end_here(void *how)
{
	if (!strcmp(how, "thread_exit"))
		exit(4);
	if (!strcmp(how, "thread_abort"))
		abort();
	return NULL;
}

static void handler(int sig)
{
	write(fd, "handled ", 8);
	_exit(sig);
}

int main(int argc, char **argv)
{
	struct rlimit none = {0, 0};
	char *how = argv[1], *big;
	pthread_t t;

	setrlimit(RLIMIT_CORE, &none);
	fd = open(argv[2], O_WRONLY | O_CREAT | O_APPEND, 0644);
	stream = fopen(argv[3], "a");
	if (argc < 4 || fd < 0 || !stream)
		return 99;
	write(fd, "written ", 8);
	fputs("printed ", stream);
	if (!strcmp(how, "flushed_abort") || !strcmp(how, "flushed_kill"))
		fflush(stream);
	big = memset(malloc(300000), 'b', 300000);
	write(fd, big, 300000);
	write(fd, " after", 6);
	atexit(at_end);
	at_quick_exit(at_end);
	if (!strcmp(how, "return"))
		return 3;
	if (!strcmp(how, "exit"))
		exit(3);
	if (!strcmp(how, "_exit"))
		_exit(3);
	if (!strcmp(how, "quick_exit"))
		quick_exit(3);
	if (strstr(how, "abort") && strncmp(how, "thread", 6))
		abort();
	if (strstr(how, "kill"))
		raise(SIGKILL);
	if (!strcmp(how, "segv"))
		*(volatile char *)16 = 1;
	if (!strcmp(how, "term"))
		raise(SIGTERM);
	if (!strcmp(how, "pipe"))
		raise(SIGPIPE);
	if (!strcmp(how, "handled")) {
		signal(SIGTERM, handler);
		raise(SIGTERM);
	}
	if (!strcmp(how, "exec"))
		execl("/bin/sh", "sh", "-c", "echo from the next image >>$0", argv[2], NULL);
	if (!strcmp(how, "pthread_exit"))
		pthread_exit(NULL);
	pthread_create(&t, NULL, end_here, how);
	pthread_join(t, NULL);
	return 98;
}
