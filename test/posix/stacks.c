/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls on a small stack: of a thread, and of a signal handler. 32 KiB are enough (libplfs.7, LIMITS). */
#include "posix.h"
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#define STACK_LEN 32768

/* Each returns what it does on a plain directory, and none needs much stack there. */
static void call_all(void)
{
	char buf[64] = "", here[256], there[256];
	struct stat st;
	DIR *dir;
	int fd;

	snprintf(here, sizeof here, "%s", at("f"));
	snprintf(there, sizeof there, "%s", at("g"));
	fd = T(open(here, O_RDWR | O_CREAT, 0644));
	T(pwrite(fd, "a byte or two", 13, 100000));
	T(pread(fd, buf, 6, 100000));
	T(fsync(fd));
	T(ftruncate(fd, 200000));
	T(fstat(fd, &st));
	T(lseek(fd, 0, SEEK_END));
	T(close(fd));
	T(stat(here, &st));
	T(access(here, R_OK));
	T(truncate(here, 150000));
	T(chmod(here, 0640));
	T(link(here, there));
	T(rename(there, here));
	T(unlink(there));
	T(rename(here, there));
	T(symlink("g", at("l")));
	T(readlink(at("l"), buf, 10));
	T(mkdir(at("d"), 0755));
	dir = opendir(at("d"));
	while (dir && readdir(dir))
		;
	closedir(dir);
	T(rmdir(at("d")));
	fd = T(open(there, O_WRONLY | O_APPEND));
	T(write(fd, "the end", 7));
	T(close(fd));
	T(open("/proc/self/fd/none", O_RDONLY));
	T(rename("/nowhere/a", "/nowhere/b"));
	T(unlink("/nowhere/a"));
	T(readlink("/nowhere/a", buf, 10));
}

static void *in_thread(void *arg)
{
	call_all();
	return arg;
}

CASE(calls_on_the_stack_of_a_small_thread)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_LEN);
	pthread_create(&thread, &attr, in_thread, NULL);
	pthread_join(thread, NULL);
	show("g");
}

static void on_signal(int sig)
{
	(void)sig;
	call_all();
}

/* Below the stack is memory that nobody may touch. */
CASE(calls_on_a_small_signal_stack)
{
	char *mem = mmap(NULL, 2 * STACK_LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = {.ss_sp = mem + STACK_LEN, .ss_size = STACK_LEN};
	struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};

	mprotect(mem, STACK_LEN, PROT_NONE);
	T(sigaltstack(&stack, NULL));
	T(sigaction(SIGUSR1, &act, NULL));
	T(raise(SIGUSR1));
	show("g");
}
