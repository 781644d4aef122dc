/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * posix_spawn with every kind of file action and attribute, and of programs that lie in the directory.
 * Needs glibc 2.34: posix_spawn_file_actions_addclosefrom_np.
 */
#include "exec.h"
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>

static void spawned(int r, pid_t *pid)
{
	if (!r)
		say_child(*pid);
	say("posix_spawn = %s\n", r ? strerrorname_np(r) : "0");
}

/* Run a shell command with the actions. */
static void sh(const posix_spawn_file_actions_t *fa, const posix_spawnattr_t *attr, const char *command)
{
	char *argv[] = {"sh", "-c", (char *)command, NULL};
	pid_t pid = -1;

	spawned(posix_spawn(&pid, "/bin/sh", fa, attr, argv, environ), &pid);
}

CASE(spawned_with_opens)
{
	posix_spawn_file_actions_t fa;

	make("in", "first line\nsecond line\n");
	make("log", "already there\n");
	make("cut", "a long text that goes away\n");

	V(posix_spawn_file_actions_init(&fa));
	V(posix_spawn_file_actions_addopen(&fa, 0, at("in"), O_RDONLY, 0));
	V(posix_spawn_file_actions_addopen(&fa, 1, at("out"), O_WRONLY | O_CREAT | O_EXCL, 0640));
	V(posix_spawn_file_actions_adddup2(&fa, 1, 2));
	V(posix_spawn_file_actions_addopen(&fa, 5, at("log"), O_WRONLY | O_APPEND, 0));
	V(posix_spawn_file_actions_addopen(&fa, 6, at("cut"), O_RDWR | O_TRUNC, 0));
	sh(&fa, NULL, "read a; echo \"out $a\"; echo err >&2; echo appended >&5; echo cut >&6; cat");
	show("out");
	show("log");
	show("cut");
	sh(&fa, NULL, "echo never"); /* it exists by now */
	show("out");
	V(posix_spawn_file_actions_destroy(&fa));

	V(posix_spawn_file_actions_init(&fa));
	V(posix_spawn_file_actions_addopen(&fa, 1, at("none/out"), O_WRONLY | O_CREAT, 0644));
	sh(&fa, NULL, "echo never");
	V(posix_spawn_file_actions_destroy(&fa));

	V(posix_spawn_file_actions_init(&fa));
	V(posix_spawn_file_actions_addopen(&fa, 1, at("none"), O_WRONLY, 0));
	sh(&fa, NULL, "echo never");
	V(posix_spawn_file_actions_destroy(&fa));
	V(posix_spawn_file_actions_addopen(&fa, -1, at("in"), O_RDONLY, 0));
	V(posix_spawn_file_actions_addclose(&fa, -1));
}

CASE(spawned_with_every_action)
{
	posix_spawn_file_actions_t fa;
	int dir, fd;

	T(mkdir(at("d"), 0755));
	T(mkdir(at("d/e"), 0755));
	make("d/f", "in d\n");
	make("d/e/f", "in e\n");
	dir = open(at("d/e"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = open(at("d/f"), O_RDONLY | O_CLOEXEC);

	V(posix_spawn_file_actions_init(&fa));
	V(posix_spawn_file_actions_adddup2(&fa, 1, 9));
	V(posix_spawn_file_actions_adddup2(&fa, fd, fd)); /* survives */
	V(posix_spawn_file_actions_addchdir_np(&fa, at("d")));
	V(posix_spawn_file_actions_addopen(&fa, 0, "f", O_RDONLY, 0));
	V(posix_spawn_file_actions_addopen(&fa, 7, "new", O_WRONLY | O_CREAT, 0600));
	V(posix_spawn_file_actions_addfchdir_np(&fa, dir));
	V(posix_spawn_file_actions_addopen(&fa, 1, "out", O_WRONLY | O_CREAT, 0600));
	V(posix_spawn_file_actions_addclose(&fa, 7));
	V(posix_spawn_file_actions_addclose(&fa, 250));
	V(posix_spawn_file_actions_addclosefrom_np(&fa, 20));
	sh(&fa, NULL,
	   "cat; cat f; pwd | sed 's/.*case-[^/]*//'; echo to the old one >&9; (echo x >&7) 2>/dev/null || echo closed");
	show("d/e/out");
	show("d/new");
	sh(&fa, NULL, "echo twice");
	show("d/e/out");
	V(posix_spawn_file_actions_destroy(&fa));

	V(posix_spawn_file_actions_init(&fa));
	V(posix_spawn_file_actions_addchdir_np(&fa, at("none")));
	sh(&fa, NULL, "echo never");
	V(posix_spawn_file_actions_destroy(&fa));
	V(posix_spawn_file_actions_init(&fa));
	V(posix_spawn_file_actions_addchdir_np(&fa, at("d")));
	V(posix_spawn_file_actions_adddup2(&fa, 99, 1));
	sh(&fa, NULL, "echo never");
	V(posix_spawn_file_actions_destroy(&fa));
	sh(NULL, NULL, "exit 6");
}

/* The first numbers that are free in the parent are free in the child as well. */
CASE(spawned_from_numbers_that_are_not_open)
{
	posix_spawn_file_actions_t fa;
	int first = dup(0), fd;

	close(first);
	for (fd = first; fd < first + 3; fd++) {
		V(posix_spawn_file_actions_init(&fa));
		V(posix_spawn_file_actions_addopen(&fa, 1, at("out"), O_WRONLY | O_CREAT | O_TRUNC, 0600));
		V(posix_spawn_file_actions_adddup2(&fa, fd, 50));
		sh(&fa, NULL, "echo never");
		V(posix_spawn_file_actions_destroy(&fa));
	}
	show("out");
}

static void caught(int sig) { (void)sig; }

/* (Above are two signals that the C library keeps for itself.) */
CASE(spawned_with_attributes)
{
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t attr;
	struct sigaction act = {.sa_handler = caught};
	sigset_t set;

	sigaction(SIGUSR1, &act, NULL);
	signal(SIGUSR2, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	V(posix_spawn_file_actions_init(&fa));
	V(posix_spawn_file_actions_addopen(&fa, 1, at("out"), O_WRONLY | O_CREAT | O_APPEND, 0644));
	V(posix_spawnattr_init(&attr));
	V(posix_spawnattr_setflags(&attr,
				   POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP));
	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	V(posix_spawnattr_setsigdefault(&attr, &set));
	sigaddset(&set, SIGTERM);
	V(posix_spawnattr_setsigmask(&attr, &set));
	V(posix_spawnattr_setpgroup(&attr, 0));
	sh(&fa, &attr,
	   "grep -E 'Sig(Blk|Ign)' /proc/self/status | sed 's/[0-9a-f]\\{9\\}//'; [ $(ps -o pgid= $$) = $$ ] && echo own group");
	sh(&fa, NULL, "grep -E 'Sig(Blk|Ign)' /proc/self/status | sed 's/[0-9a-f]\\{9\\}//'");
	V(posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID));
	sh(&fa, &attr, "[ $(ps -o sid= $$) = $$ ] && echo own session");
	V(posix_spawnattr_setflags(&attr, POSIX_SPAWN_RESETIDS | POSIX_SPAWN_USEVFORK));
	sh(&fa, &attr, "id -u");
	sigprocmask(SIG_SETMASK, NULL, &set);
	say("blocked here: %d\n", sigismember(&set, SIGTERM));
	show("out");
	V(posix_spawnattr_destroy(&attr));
	V(posix_spawn_file_actions_destroy(&fa));
}

CASE(spawned_programs_of_the_directory)
{
	char dirs[PATH_MAX];
	pid_t pid;

	T(mkdir(at("bin"), 0755));
	install("/bin/echo", "bin/prog");
	script("bin/s", "#!/bin/sh\necho \"${0##*/} $*\"\n");
	script("bin/plain", "echo never\n");
	spawned(posix_spawn(&pid, at("bin/prog"), NULL, NULL, some, environ), &pid);
	spawned(posix_spawn(&pid, at("bin/s"), NULL, NULL, some, environ), &pid);
	spawned(posix_spawn(&pid, at("bin/plain"), NULL, NULL, some, environ), &pid);
	spawned(posix_spawn(&pid, at("bin/none"), NULL, NULL, some, environ), &pid);
	spawned(posix_spawn(&pid, at("bin"), NULL, NULL, some, environ), &pid);
	spawned(posix_spawnp(&pid, path("bin/prog"), NULL, NULL, some, environ), &pid);
	snprintf(dirs, sizeof dirs, "%s:/usr/bin:/bin", at("bin"));
	setenv("PATH", dirs, 1);
	spawned(posix_spawnp(&pid, "prog", NULL, NULL, some, environ), &pid);
	spawned(posix_spawnp(&pid, "s", NULL, NULL, some, environ), &pid);
	spawned(posix_spawnp(&pid, "plain", NULL, NULL, some, environ), &pid);
	spawned(posix_spawnp(&pid, "true", NULL, NULL, some, environ), &pid);
	spawned(posix_spawnp(&pid, "no-such-program", NULL, NULL, some, environ), &pid);
	V(waitpid(-1, NULL, 0));
}

/* The parent goes on with its own offset, and finds what the child wrote. */
CASE(spawned_while_files_are_open)
{
	posix_spawn_file_actions_t fa;
	char *cat[] = {"cat", NULL};
	pid_t pid;
	int fd;

	install("/bin/cat", "cat");
	fd = open(at("f"), O_RDWR | O_CREAT, 0644);
	T(write(fd, "not yet closed", 14));
	T(lseek(fd, 4, SEEK_SET));
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_adddup2(&fa, fd, 0);
	posix_spawn_file_actions_addopen(&fa, 1, at("copy"), O_WRONLY | O_CREAT, 0644);
	spawned(posix_spawn(&pid, at("cat"), &fa, NULL, cat, environ), &pid);
	T(lseek(fd, 0, SEEK_CUR));
	T(write(fd, "!", 1));
	show("copy");
	show("f");
	posix_spawn_file_actions_destroy(&fa);
}

static void *spawn_many(void *arg)
{
	posix_spawn_file_actions_t fa;
	char name[20], *echo[] = {"echo", name, NULL};
	pid_t pid;
	int i;

	for (i = 0; i < 5; i++) {
		snprintf(name, sizeof name, "%ld-%d", (long)arg, i);
		posix_spawn_file_actions_init(&fa);
		posix_spawn_file_actions_addopen(&fa, 1, getenv("LOG"), O_WRONLY | O_CREAT | O_APPEND, 0644);
		if (posix_spawn(&pid, getenv("ECHO"), &fa, NULL, echo, environ) ||
		    waitpid(pid, NULL, 0) != pid)
			say("failed\n");
		posix_spawn_file_actions_destroy(&fa);
	}
	return NULL;
}

CASE(spawned_by_many_threads)
{
	pthread_t threads[6];
	long i;

	install("/bin/echo", "echo");
	setenv("LOG", at("log"), 1);
	setenv("ECHO", at("echo"), 1);
	for (i = 0; i < 6; i++)
		pthread_create(&threads[i], NULL, spawn_many, (void *)i);
	for (i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
	T(system("sort $LOG | tr '\\n' ' '; sort -o $LOG $LOG"));
}
