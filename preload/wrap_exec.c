// SPDX-License-Identifier: BSD-3-Clause
/*
 * exec and posix_spawn in all their forms. Before the image goes: offsets to the kernel, logs closed; with
 * it go our settings in the environment. Executing a logical file is refused.
 */
#include "env.h"
#include "fdtable.h"
#include "path.h"

struct exec {
	struct where w;
	struct env env;
};

/* Whether the file is a stub, of which the kernel would run the header. */
static bool is_logical(const struct where *w, int at_flags)
{
	struct stat st;

	return w->m && !sys.fstatat(w->dirfd, w->path, &st, at_flags) && plfs_maybe_stub(st.st_mode);
}

/* Whether @fd, which is to be run itself, is one. */
static bool is_logical_fd(int fd)
{
	struct ofile *f = fd_get(fd);

	if (f)
		fd_put(f);
	return f != NULL;
}

/* Get ready: x->w is what to run, x->env.vars its environment. @path NULL: nothing to translate. 0 or -errno.
 */
static int exec_begin(struct exec *x, int dirfd, const char *path, char *const envp[])
{
	int r = path_find(&x->w, dirfd, path);

	x->env.vars = envp;
	x->env.map = NULL;
	if (!r)
		r = path_through(&x->w, 0);
	if (r < 0 || !shim_active)
		return r;
	if (is_logical(&x->w, 0))
		return (int)refused("exec", EACCES);
	r = env_complete(&x->env, envp);
	if (r < 0)
		return r;
	fd_share_all();
	plfs_exec_prepare();
	return 0;
}

/* The real call came back. */
static int exec_failed(struct exec *x, int r)
{
	int saved = errno;

	env_release(&x->env);
	errno = saved;
	return r;
}

EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
	struct exec x;
	int r = exec_begin(&x, AT_FDCWD, path, envp);

	if (r < 0)
		return (int)done(r);
	return exec_failed(&x, sys.execve(x.w.path, argv, x.env.vars));
}

EXPORT int execv(const char *path, char *const argv[]) { return execve(path, argv, environ); }

/* A name without a slash is looked for by the C library. */
EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
	struct exec x;
	bool search = file && !strchr(file, '/');
	int r = exec_begin(&x, AT_FDCWD, search ? NULL : file, envp);

	if (r < 0)
		return (int)done(r);
	return exec_failed(&x, sys.execvpe(search ? file : x.w.path, argv, x.env.vars));
}

EXPORT int execvp(const char *file, char *const argv[]) { return execvpe(file, argv, environ); }

EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
	struct exec x;
	int r = is_logical_fd(fd) ? (int)refused("fexecve", EACCES) : exec_begin(&x, AT_FDCWD, NULL, envp);

	if (r < 0)
		return (int)done(r);
	return exec_failed(&x, sys.fexecve(fd, argv, x.env.vars));
}

EXPORT int execveat(int dirfd, const char *path, char *const argv[], char *const envp[], int flags)
{
	struct exec x;
	bool self = path && !*path && (flags & AT_EMPTY_PATH);
	int r = self && is_logical_fd(dirfd) ? (int)refused("execveat", EACCES)
	                                     : exec_begin(&x, dirfd, path, envp);

	if (r < 0)
		return (int)done(r);
	return exec_failed(&x, sys.execveat(x.w.dirfd, x.w.path, argv, x.env.vars, flags));
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

/* ---- posix_spawn: returns its error, and the process lives on ---- */

static int spawn_begin(struct exec *x, const char *path, char *const envp[])
{
	int r = path_find(&x->w, AT_FDCWD, path);

	x->env.vars = envp;
	x->env.map = NULL;
	if (!r)
		r = path_through(&x->w, 0);
	if (r < 0 || !shim_active)
		return r;
	if (is_logical(&x->w, 0))
		return (int)refused("posix_spawn", EACCES);
	r = env_complete(&x->env, envp);
	if (r < 0)
		return r;
	fd_share_all();
	plfs_fork_prepare(); /* commits everything, which is what the child needs */
	plfs_fork_parent();
	return 0;
}

EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	struct exec x;
	int r = spawn_begin(&x, path, envp);

	if (r < 0)
		return -r;
	r = sys.posix_spawn(pid, x.w.path, actions, attr, argv, x.env.vars);
	return exec_failed(&x, r);
}

EXPORT int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	struct exec x;
	bool search = file && !strchr(file, '/');
	int r = spawn_begin(&x, search ? NULL : file, envp);

	if (r < 0)
		return -r;
	r = sys.posix_spawnp(pid, search ? file : x.w.path, actions, attr, argv, x.env.vars);
	return exec_failed(&x, r);
}

/* ---- what the child of a spawn opens by itself, inside the C library ---- */

/* A stub would be read, or its header truncated away; a new file would be no logical one. A plain file can be had. */
EXPORT int posix_spawn_file_actions_addopen(posix_spawn_file_actions_t *actions, int fd, const char *path, int flags,
                                            mode_t mode)
{
	struct where w;
	struct stat st;
	int r = path_find(&w, AT_FDCWD, path);

	if (!r)
		r = path_before_open(&w, flags);
	if (!r && w.m && (sys.fstatat(w.dirfd, w.path, &st, 0) ? flags & O_CREAT : plfs_maybe_stub(st.st_mode)))
		r = (int)refused("posix_spawn_file_actions_addopen", EOPNOTSUPP);
	return r < 0 ? -r : sys.posix_spawn_file_actions_addopen(actions, fd, w.path, flags, mode);
}

EXPORT int posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t *actions, const char *path)
{
	struct where w;
	int r = path_find(&w, AT_FDCWD, path);

	return r < 0 ? -r : sys.posix_spawn_file_actions_addchdir_np(actions, w.path);
}
