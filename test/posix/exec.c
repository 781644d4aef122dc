/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Running what lies in the directory, by every function of the exec family. Needs glibc 2.34: execveat.
 */
#include "exec.h"
#include <pthread.h>
#include <dlfcn.h>
#include <limits.h>
#include <spawn.h>

#ifndef AT_EXECVE_CHECK
#define AT_EXECVE_CHECK 0x10000
#endif

/* In a child: its exit status is 100 if the call comes back. */
#define EXEC(call) \
	IN_CHILD({ \
		T(call); \
		_exit(100); \
	})

CASE(every_exec)
{
	char *envp[] = {"WORD=from envp", "PATH=/usr/bin:/bin", NULL};
	int fd, dir = open(at(""), O_RDONLY | O_DIRECTORY);

	install("/bin/echo", "echo");
	install("/usr/bin/printenv", "printenv");
	script("s", "#!/bin/sh\necho \"${0##*/} $# $*\"\n");
	EXEC(execv(at("echo"), some));
	EXEC(execl(at("echo"), "echo", "a", "list", NULL));
	EXEC(execle(at("printenv"), "printenv", "WORD", NULL, envp));
	EXEC(execve(at("printenv"), (char *[]){"printenv", "WORD", NULL}, envp));
	EXEC(execvp(path("echo"), some));
	EXEC(execvpe(path("printenv"), (char *[]){"printenv", "WORD", NULL}, envp));
	EXEC(execlp(path("s"), "s", "1", "2", NULL));
	EXEC(execv(at("s"), some));
	EXEC(execv(at("s"), (char *[]){NULL}));
	EXEC(execveat(AT_FDCWD, at("echo"), some, environ, 0));
	EXEC(execveat(dir, "echo", some, environ, 0));
	EXEC(execveat(dir, "s", some, environ, 0));
	EXEC(fexecve(fd = open(at("echo"), O_RDONLY), some, environ));
	EXEC(fexecve(fd = open(at("echo"), O_RDONLY | O_CLOEXEC), some, environ));
	EXEC(fexecve(fd = open(at("echo"), O_PATH | O_CLOEXEC), some, environ));
	EXEC(fexecve(fd = open(at("s"), O_RDONLY), some, environ));
	EXEC(fexecve(fd = open(at("s"), O_RDONLY | O_CLOEXEC), some, environ));
	EXEC(execveat(open(at("echo"), O_RDONLY), "", some, environ, AT_EMPTY_PATH));
	EXEC(execveat(open(at("s"), O_RDONLY | O_CLOEXEC), "", some, environ, AT_EMPTY_PATH));
	(void)fd;
}

CASE(descriptor_of_a_fresh_binary)
{
	int fd;

	install("/bin/echo", "a");
	install("/bin/echo", "b");
	install("/bin/echo", "c");
	EXEC(fexecve(fd = open(at("a"), O_RDONLY), some, environ));
	EXEC(fexecve(fd = open(at("b"), O_PATH), some, environ));
	fd = open(at("c"), O_RDONLY);
	T(unlink(at("c")));
	EXEC(fexecve(fd, some, environ));
	EXEC(fexecve(fd, some, environ));
	close(fd);
}

/* A file without a name is still that file. */
CASE(opened_again_after_unlink)
{
	char link[32], buf[8] = "";
	int fd, again;

	make("f", "content");
	fd = open(at("f"), O_RDWR);
	T(unlink(at("f")));
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	again = open(link, O_RDONLY);
	T(read(again, buf, 7));
	say("%s\n", buf);
	T(write(fd, "more", 4));
	T(pread(again, buf, 7, 0));
	say("%s\n", buf);
	close(again);
	snprintf(link, sizeof link, "/dev/fd/%d", fd);
	again = open(link, O_WRONLY | O_APPEND);
	T(write(again, "!", 1));
	T(pread(fd, buf, 7, 1));
	say("%s\n", buf);
}

CASE(errors)
{
	char long_name[PATH_MAX + 10];
	int fd;

	install("/bin/true", "x");
	T(symlink("x", at("link")));
	T(symlink("loop", at("loop")));
	make("text", "no program\n");
	make("empty", "");
	script("orphan", "#!/no/such/interpreter\n");
	memset(long_name, 'x', sizeof long_name);
	long_name[sizeof long_name - 1] = 0;
	EXEC(execv(at("none"), some));
	EXEC(execv(at("none/below"), some));
	EXEC(execv(at("x/below"), some));
	EXEC(execv(at("text"), some));
	EXEC(execv(at("loop"), some));
	EXEC(execv(at("orphan"), some));
	EXEC(execv(at("."), some));
	EXEC(execv(long_name, some));
	EXEC(execv("", some));
	EXEC(execveat(AT_FDCWD, at("link"), some, environ, AT_SYMLINK_NOFOLLOW));
	EXEC(fexecve(fd = open(at("text"), O_RDONLY), some, environ));
	T(chmod(at("text"), 0755));
	T(chmod(at("empty"), 0755));
	EXEC(execv(at("text"), some));
	EXEC(execv(at("empty"), some));
	EXEC(execvp(path("empty"), some));
	EXEC(fexecve(fd = open(at("text"), O_RDONLY), some, environ));
	EXEC(fexecve(fd = open(at("text"), O_RDWR), some, environ));
	EXEC(fexecve(fd = open(at("x"), O_RDWR), some, environ));
	EXEC(fexecve(fd = open(at("x"), O_WRONLY), some, environ));
	fd = open(at("x"), O_RDWR);
	EXEC(execv(at("x"), some));
	close(fd);
	EXEC(execv(at("x"), some));
	EXEC(execveat(AT_FDCWD, at("text"), some, environ, 0x40000000));
}

/* As some linkers write their output; while it is mapped it is open for writing, though no descriptor is. */
CASE(written_through_a_map)
{
	struct stat st;
	int in = open("/bin/echo", O_RDONLY), out = open(path("b"), O_RDWR | O_CREAT, 0755);
	char *from, *to;

	fstat(in, &st);
	T(ftruncate(out, st.st_size));
	from = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, in, 0);
	to = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, out, 0);
	memcpy(to, from, (size_t)st.st_size);
	close(out);
	EXEC(execv(path("b"), some));
	say("dlopen: %d\n", !dlopen(path("b"), RTLD_NOW));
	to[st.st_size - 1] ^= 1;
	T(munmap(to, (size_t)st.st_size));
	EXEC(execv(path("b"), some));
	T(system("cmp -l /bin/echo $P/b | wc -l"));
}

/* Where the kernel can say whether a file may be run, it says so and does not run it. */
CASE(only_checked)
{
	bool can = !execveat(AT_FDCWD, "/bin/true", some, environ, AT_EXECVE_CHECK);

	script("s", "#!/bin/echo\n");
	install("/bin/echo", "b");
	make("n", "");
	if (!can) {
		say("no such check here\n");
		return;
	}
	T(execveat(AT_FDCWD, at("s"), some, environ, AT_EXECVE_CHECK));
	T(execveat(AT_FDCWD, at("b"), some, environ, AT_EXECVE_CHECK));
	T(execveat(AT_FDCWD, at("n"), some, environ, AT_EXECVE_CHECK));
}

CASE(found_through_PATH)
{
	char dirs[PATH_MAX], dir[PATH_MAX];

	T(mkdir(at("bin"), 0755));
	T(mkdir(at("forbidden"), 0755));
	install("/bin/echo", "bin/prog");
	script("bin/plain", "echo \"a shell's: ${0##*/} $*\"\n");
	make("forbidden/prog", "not executable");
	T(mkdir(at("d"), 0755));
	T(mkdir(at("d/prog"), 0755));
	snprintf(dir, sizeof dir, "%s", at("none"));
	snprintf(dirs, sizeof dirs, "%s:%s:%s:%s::/usr/bin:/bin", dir, at("forbidden"), at("d"), at("bin"));
	setenv("PATH", dirs, 1);
	EXEC(execvp("prog", some));
	EXEC(execvp("plain", some));
	EXEC(execlp("prog", "prog", "as a list", NULL));
	EXEC(execvp("true", some));
	EXEC(execvp("no-such-program", some));
	EXEC(execvp("", some));
	IN_CHILD({
		T(chdir(at("bin")));
		setenv("PATH", "", 1);
		T(execvp("prog", some));
	});
	snprintf(dirs, sizeof dirs, "%s", at("forbidden"));
	setenv("PATH", dirs, 1);
	EXEC(execvp("prog", some));
	unsetenv("PATH");
	EXEC(execvp("true", some));
}

CASE(offset_goes_with_it)
{
	int fd;

	install("/bin/cat", "cat");
	make("f", "0123456789");
	fd = open(at("f"), O_RDWR);
	T(lseek(fd, 4, SEEK_SET));
	IN_CHILD({
		dup2(fd, 0);
		T(execv(at("cat"), (char *[]){"cat", NULL}));
	});
	T(lseek(fd, 0, SEEK_CUR));
	T(write(fd, "and more", 8));
	IN_CHILD({
		T(lseek(fd, -4, SEEK_CUR));
		dup2(fd, 0);
		T(execv(at("cat"), (char *[]){"cat", NULL}));
	});
	show("f");
}

/* ---- a file without a name, which nobody but a program has open that has not begun yet ---- */

#define HELD 9

/* What that program does: the case below runs it. */
CASE(goes_on_with_what_it_inherits)
{
	char buf[64] = "";
	struct stat st;

	T(write(HELD, "second ", 7));
	T(fsync(HELD));
	T(pread(HELD, buf, sizeof buf - 1, 0));
	say("%s\n", buf);
	if (!fstat(HELD, &st))
		say("%ld bytes, %ld names\n", (long)st.st_size, (long)st.st_nlink);
	T(close(HELD));
}

/* Ready, with HELD and @in as its standard input, when this returns. */
static pid_t held_after_exec(char *const argv[], int in)
{
	int begun[2];
	pid_t pid;
	char c;

	T(pipe2(begun, O_CLOEXEC));
	pid = fork();
	if (!pid) {
		dup2(in, 0);
		execv(argv[0], argv);
		_exit(100);
	}
	close(begun[1]);
	T(read(begun[0], &c, 1));
	close(begun[0]);
	return pid;
}

static pid_t held_after_spawn(char *const argv[], int in)
{
	posix_spawn_file_actions_t actions;
	pid_t pid = -1;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in, 0);
	T(posix_spawn(&pid, argv[0], &actions, NULL, argv, environ));
	posix_spawn_file_actions_destroy(&actions);
	return pid;
}

/* The same with actions on the file. */
static pid_t held_after_spawn_with_it(char *const argv[], int in)
{
	posix_spawn_file_actions_t actions;
	pid_t pid = -1;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in, 0);
	posix_spawn_file_actions_adddup2(&actions, HELD, HELD + 1);
	posix_spawn_file_actions_addclose(&actions, HELD + 1);
	T(posix_spawn(&pid, argv[0], &actions, NULL, argv, environ));
	posix_spawn_file_actions_destroy(&actions);
	return pid;
}

static void go_on_without_a_name(int flags, pid_t (*hold)(char *const argv[], int in))
{
	char waits[512], *argv[] = {waits, (char *)self, "goes_on_with_what_it_inherits", NULL};
	int go[2], fd;
	pid_t pid;

	snprintf(waits, sizeof waits, "%s/waits", getenv("BIN"));
	fd = T(open(at("f"), O_RDWR | O_CREAT | O_CLOEXEC | flags, 0644));
	T(write(fd, "first ", 6));
	T(pipe2(go, O_CLOEXEC));
	T(dup2(fd, HELD));
	close(fd);
	pid = hold(argv, go[0]);
	close(HELD);
	close(go[0]);
	IN_CHILD(T(unlink(at("f"))));
	close(go[1]);
	say_child(pid);
}

CASE(unlinked_while_a_program_begins)
{
	go_on_without_a_name(O_APPEND, held_after_exec);
	go_on_without_a_name(O_APPEND, held_after_spawn);
	go_on_without_a_name(O_APPEND, held_after_spawn_with_it);
	go_on_without_a_name(0, held_after_exec);
}

static bool ended;

static void *opens_and_writes(void *arg)
{
	while (!__atomic_load_n(&ended, __ATOMIC_RELAXED)) {
		int fd = open(arg, O_WRONLY | O_APPEND | O_CREAT, 0644);

		if (fd < 0 || write(fd, "line\n", 5) != 5 || close(fd))
			say("failed\n");
	}
	return NULL;
}

/* What a thread of the parent had locked by then, nobody unlocks in the child. */
CASE(beside_threads_that_open)
{
	pthread_t threads[2];
	int nr_bad = 0, status;

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, opens_and_writes, i ? at("f") : at("g"));
	for (int i = 0; i < 300; i++) {
		pid_t pid = fork();

		if (!pid) {
			alarm(10);
			execl("/bin/true", "true", NULL);
			_exit(9);
		}
		waitpid(pid, &status, 0);
		nr_bad += status != 0;
	}
	__atomic_store_n(&ended, true, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	say("%d of 300 did not end\n", nr_bad);
	unlink(at("f"));
	unlink(at("g"));
}
