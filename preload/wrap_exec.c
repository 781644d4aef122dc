/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exec in all its forms. Before the image goes: offsets to the kernel, logs closed; with it go our settings
 * in the environment.
 */
#include "env.h"
#include "fdtable.h"
#include "program.h"

/* Get ready: @env->vars is the next image's environment. 0 or -errno. */
static int exec_begin(struct env *env, char *const envp[])
{
	int r = env_complete(env, envp);

	if (r < 0)
		return r;
	fd_share_all();
	plfs_exec_prepare();
	return 0;
}

/* It did not work. */
static int exec_failed(struct env *env, int r)
{
	env_release(env);
	return (int)done(r);
}

EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
	struct env env;
	int r;

	if (!shim_on())
		return sys.execve(path, argv, envp);
	r = exec_begin(&env, envp);
	return r < 0 ? (int)done(r) : exec_failed(&env, program_run(AT_FDCWD, path, 0, argv, env.vars));
}

EXPORT int execv(const char *path, char *const argv[]) { return execve(path, argv, environ); }

EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
	struct env env;
	int r;

	if (!shim_on())
		return sys.execvpe(file, argv, envp);
	r = exec_begin(&env, envp);
	return r < 0 ? (int)done(r) : exec_failed(&env, program_search_and_run(file, true, argv, env.vars));
}

EXPORT int execvp(const char *file, char *const argv[]) { return execvpe(file, argv, environ); }

EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
	struct env env;
	int r;

	if (!shim_on() || fd < 0 || !argv || !envp)
		return sys.fexecve(fd, argv, envp);
	r = exec_begin(&env, envp);
	return r < 0 ? (int)done(r) : exec_failed(&env, program_run_fd(fd, 0, argv, env.vars));
}

EXPORT int execveat(int dirfd, const char *path, char *const argv[], char *const envp[], int flags)
{
	bool self = path && !*path && (flags & AT_EMPTY_PATH) && dirfd >= 0;
	struct env env;
	int r;

	if (!shim_on())
		return sys.execveat(dirfd, path, argv, envp, flags);
	r = exec_begin(&env, envp);
	if (r < 0)
		return (int)done(r);
	return exec_failed(&env, self ? program_run_fd(dirfd, flags, argv, env.vars)
	                              : program_run(dirfd, path, flags, argv, env.vars));
}

/* ---- execl: the arguments as a list ---- */

/* How many arguments @ap holds up to its NULL, which is not counted. */
static size_t count_args(va_list ap)
{
	va_list copy;
	size_t nr = 0;

	va_copy(copy, ap);
	while (va_arg(copy, char *))
		nr++;
	va_end(copy);
	return nr;
}

/* @argv gets @first and @nr more, and the NULL. */
static void take_args(char **argv, const char *first, size_t nr, va_list *ap)
{
	size_t i;

	argv[0] = (char *)first;
	for (i = 1; i <= nr; i++)
		argv[i] = va_arg(*ap, char *);
	argv[nr + 1] = va_arg(*ap, char *);
}

EXPORT int execl(const char *path, const char *arg, ...)
{
	va_list ap;
	size_t nr;

	va_start(ap, arg);
	nr = arg ? count_args(ap) : 0;
	char *argv[nr + 2];

	argv[0] = argv[1] = NULL;
	if (arg)
		take_args(argv, arg, nr, &ap);
	va_end(ap);
	return execve(path, argv, environ);
}

EXPORT int execlp(const char *file, const char *arg, ...)
{
	va_list ap;
	size_t nr;

	va_start(ap, arg);
	nr = arg ? count_args(ap) : 0;
	char *argv[nr + 2];

	argv[0] = argv[1] = NULL;
	if (arg)
		take_args(argv, arg, nr, &ap);
	va_end(ap);
	return execvpe(file, argv, environ);
}

EXPORT int execle(const char *path, const char *arg, ...)
{
	char *const *envp;
	va_list ap;
	size_t nr;

	va_start(ap, arg);
	nr = arg ? count_args(ap) : 0;
	char *argv[nr + 2];

	argv[0] = argv[1] = NULL;
	if (arg)
		take_args(argv, arg, nr, &ap);
	envp = va_arg(ap, char *const *);
	va_end(ap);
	return execve(path, argv, envp);
}
