/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Running and loading what lies in the directory, call by call: the exec family, posix_spawn with every kind of file
 * action, dlopen.
 */
#include "posix.h"
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>

#ifndef AT_EXECVE_CHECK
#define AT_EXECVE_CHECK 0x10000
#endif

/* The same with a slash in it: a name that is not looked for elsewhere. */
static char *path(const char *name)
{
	char *out = at(name);

	if (!strchr(out, '/')) {
		memmove(out + 2, out, strlen(out) + 1);
		memcpy(out, "./", 2);
	}
	return out;
}

/* A copy of a program of the system, there. */
static void install(const char *from, const char *name)
{
	char command[1024];

	snprintf(command, sizeof command, "cp %s %s", from, at(name));
	if (system(command))
		say("cannot copy %s\n", from);
}

static void script(const char *name, const char *text)
{
	make(name, text);
	T(chmod(at(name), 0755));
}

/* The source text compiled to a shared object, there or, with an absolute name, elsewhere. */
static void build(const char *out, const char *options, const char *source)
{
	char command[8192];

	snprintf(command, sizeof command, "gcc -shared -fPIC -w -x c -o %s - %s <<'END'\n%s\nEND", *out == '/' ? out : at(out), options,
		 source);
	if (system(command))
		say("cannot compile %s\n", out);
}

/* In a child: its exit status is 100 if the call comes back. */
#define EXEC(call)                                                                                                \
	IN_CHILD({                                                                                                \
		T(call);                                                                                          \
		_exit(100);                                                                                       \
	})

static char *const some[] = {"argv0", "one", "two words", "", NULL};

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

/* ---- posix_spawn ---- */

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
	sh(&fa, NULL, "cat; cat f; pwd | sed 's/.*case-[^/]*//'; echo to the old one >&9; (echo x >&7) 2>/dev/null || echo closed");
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
	V(posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP));
	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	V(posix_spawnattr_setsigdefault(&attr, &set));
	sigaddset(&set, SIGTERM);
	V(posix_spawnattr_setsigmask(&attr, &set));
	V(posix_spawnattr_setpgroup(&attr, 0));
	sh(&fa, &attr, "grep -E 'Sig(Blk|Ign)' /proc/self/status | sed 's/[0-9a-f]\\{9\\}//'; [ $(ps -o pgid= $$) = $$ ] && echo own group");
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
		if (posix_spawn(&pid, getenv("ECHO"), &fa, NULL, echo, environ) || waitpid(pid, NULL, 0) != pid)
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

/* ---- dlopen ---- */

static const char plugin[] =
	"#include <fcntl.h>\n#include <stdio.h>\n#include <unistd.h>\n"
	"int save(const char *path) { int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644); char c = 0;\n"
	"  int ok = write(fd, \"by a plugin\", 11) == 11 && pread(fd, &c, 1, 3) == 1 && c == 'a'; close(fd); return ok; }\n"
	"int print(const char *path) { FILE *f = fopen(path, \"w\"); fprintf(f, \"printed by a plugin\"); return fclose(f); }\n";

static int load_and_save(const char *what, int flags, const char *name)
{
	void *h = dlopen(what, flags);
	int (*save)(const char *), (*print)(const char *);

	if (!h) {
		say("dlopen: %s\n", strstr(dlerror(), ": ") + 2);
		return 1;
	}
	*(void **)&save = dlsym(h, "save");
	*(void **)&print = dlsym(h, "print");
	say("save %d\n", save(at(name)));
	show(name);
	say("print %d\n", print(at(name)));
	show(name);
	return dlclose(h);
}

CASE(dlopened)
{
	void *a, *b;
	int fd;

	build("p.so", "", plugin);
	T(load_and_save(path("p.so"), RTLD_NOW, "f"));
	T(load_and_save(path("p.so"), RTLD_NOW | RTLD_DEEPBIND, "g"));
	a = dlopen(path("p.so"), RTLD_NOW);
	b = dlopen(path("p.so"), RTLD_NOW | RTLD_NOLOAD);
	say("the same: %d\n", a && a == b);
	build("held.so", "", plugin);
	fd = open(at("held.so"), O_RDONLY);
	T(load_and_save(path("held.so"), RTLD_NOW, "h"));
	a = dlopen(path("held.so"), RTLD_NOW);
	b = dlopen(path("held.so"), RTLD_NOW | RTLD_NOLOAD);
	say("the same: %d\n", a && a == b);
	build("other.so", "", "int other = 5;");
	b = dlopen(path("other.so"), RTLD_LAZY);
	say("another: %d\n", b && a != b && *(int *)dlsym(b, "other") == 5);
	close(fd);
	make("text.so", "no library");
	say("none: %d %d %d\n", !dlopen(path("text.so"), RTLD_NOW), !dlopen(path("none.so"), RTLD_NOW), !dlopen(path("."), RTLD_NOW));
	say("not executable is no matter: %d\n", chmod(at("p.so"), 0444) || !dlopen(path("p.so"), RTLD_NOW));
	T(unlink(at("p.so")));
	T(unlink(at("held.so")));
	T(unlink(at("other.so")));
}

/* Elsewhere too: bound so, it would find the C library before us. */
CASE(dlopened_deeply_from_elsewhere)
{
	char dir[] = "/tmp/plfs-dl.XXXXXX", so[64];

	if (!mkdtemp(dir))
		return;
	snprintf(so, sizeof so, "%s/p.so", dir);
	build(so, "", plugin);
	T(load_and_save(so, RTLD_NOW | RTLD_DEEPBIND, "f"));
	unlink(so);
	rmdir(dir);
}

CASE(dlmopened)
{
	void *h;

	build("p.so", "", "int number = 7;");
	h = dlmopen(LM_ID_BASE, path("p.so"), RTLD_NOW);
	say("base: %d\n", h ? *(int *)dlsym(h, "number") : -1);
	h = dlmopen(LM_ID_NEWLM, path("p.so"), RTLD_NOW);
	say("new: %d\n", h ? *(int *)dlsym(h, "number") : -1);
	T(unlink(at("p.so")));
}

/* A name without a slash is looked for where the caller's RUNPATH says: the caller is not the library in front. */
CASE(dlopened_through_the_RUNPATH_of_the_caller)
{
	char dir[] = "/tmp/plfs-dl.XXXXXX", so[64], options[128];
	int (*find)(void);
	void *h;

	if (!mkdtemp(dir))
		return;
	snprintf(so, sizeof so, "%s/libplugin-of-it.so", dir);
	build(so, "", "int number = 8;");
	snprintf(so, sizeof so, "%s/libcaller.so", dir);
	snprintf(options, sizeof options, "-Wl,-rpath,%s", dir);
	build(so, options,
	      "#include <dlfcn.h>\nint find(void) { void *h = dlopen(\"libplugin-of-it.so\", 2);\n"
	      "void *g = dlopen(\"$ORIGIN/libplugin-of-it.so\", 2); return h && g == h ? *(int *)dlsym(h, \"number\") : -1; }\n");
	h = dlopen(so, RTLD_NOW);
	*(void **)&find = h ? dlsym(h, "find") : NULL;
	say("found: %d\n", h ? find() : -2);
	say("not from here: %d\n", !dlopen("libplugin-that-is-not-there.so", RTLD_NOW));
	unlink(so);
	snprintf(so, sizeof so, "rm -r %s", dir);
	T(system(so));
}
