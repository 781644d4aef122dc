/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loading what lies in the directory: dlopen and dlmopen.
 */
#include "exec.h"
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>

/* The source text compiled to a shared object, there or, with an absolute name, elsewhere. */
static void build(const char *out, const char *options, const char *source)
{
	char command[8192];

	snprintf(command, sizeof command, "gcc -shared -fPIC -w -x c -o %s - %s <<'END'\n%s\nEND",
		 *out == '/' ? out : at(out), options, source);
	if (system(command))
		say("cannot compile %s\n", out);
}

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
	say("none: %d %d %d\n", !dlopen(path("text.so"), RTLD_NOW), !dlopen(path("none.so"), RTLD_NOW),
	    !dlopen(path("."), RTLD_NOW));
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

static volatile int loads;

/* It is open, so that a copy is loaded, and changes, so that it is another one each time. */
static void *load_again_and_again(void *name)
{
	int fd = open(name, O_RDWR);

	for (int i = 0; loads && i < 200; i++) {
		(void)!pwrite(fd, &i, sizeof i, 0);
		if (dlopen(name, RTLD_NOW))
			break;
	}
	close(fd);
	return NULL;
}

CASE(forks_while_a_thread_loads)
{
	char name[4096], *text = calloc(1, 1000000);
	pthread_t thread;
	int status, hung = 0, fd;
	pid_t pid;

	memset(text, 'x', 999999);
	make("f", text);
	make("g", "no library");
	free(text);
	fd = open(at("g"), O_RDONLY);
	snprintf(name, sizeof name, "%s", at("f"));
	loads = 1;
	pthread_create(&thread, NULL, load_again_and_again, name);
	for (int i = 0; i < 10 && !hung; i++) {
		usleep(1000);
		if ((pid = fork()) == 0) {
			alarm(20);
			_exit(dlopen(at("g"), RTLD_NOW) != NULL);
		}
		waitpid(pid, &status, 0);
		/* the C library's loader may have been in the midst of something: it may crash */
		hung = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
	}
	say("hung: %d\n", hung);
	loads = 0;
	pthread_join(thread, NULL);
	close(fd);
	T(unlink(at("f")));
	T(unlink(at("g")));
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

/*
 * A name without a slash is looked for where the caller's RUNPATH says: the caller is not the library in
 * front.
 */
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
