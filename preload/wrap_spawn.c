/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * posix_spawn and posix_spawnp. The C library's child shares our memory, so it can do nothing for us: where a
 * file action or the program itself is ours, the child is a fork() that does it all as any program would.
 * What went wrong in it comes back through a pipe, which a successful exec closes.
 */
#include "env.h"
#include "fdtable.h"
#include "program.h"
#include "spawn_actions.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define KNOWN_FLAGS \
	(POSIX_SPAWN_RESETIDS | POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | \
	 POSIX_SPAWN_SETSCHEDPARAM | POSIX_SPAWN_SETSCHEDULER | POSIX_SPAWN_USEVFORK | POSIX_SPAWN_SETSID)

struct spawn {
	const char *file;
	bool search;
	const posix_spawn_file_actions_t *actions;
	const posix_spawnattr_t *attr;
	char *const *argv, *const *envp;
	short flags; /* of @attr */
	sigset_t mask; /* the caller's */
};

/* ---- the child ---- */

/* Handlers are the program's; none may run here. */
static void reset_signals(const struct spawn *s)
{
	struct sigaction act;
	sigset_t dfl;
	int sig;

	sigemptyset(&dfl);
	if (s->flags & POSIX_SPAWN_SETSIGDEF)
		posix_spawnattr_getsigdefault(s->attr, &dfl);
	for (sig = 1; sig < _NSIG; sig++) {
		if (sigaction(sig, NULL, &act))
			continue;
		if (act.sa_handler == SIG_DFL || (act.sa_handler == SIG_IGN && sigismember(&dfl, sig) != 1))
			continue;
		memset(&act, 0, sizeof(act));
		act.sa_handler = SIG_DFL;
		sigaction(sig, &act, NULL);
	}
}

static int set_scheduling(const struct spawn *s)
{
	struct sched_param param;
	int policy;

	if (!(s->flags & (POSIX_SPAWN_SETSCHEDPARAM | POSIX_SPAWN_SETSCHEDULER)))
		return 0;
	posix_spawnattr_getschedparam(s->attr, &param);
	posix_spawnattr_getschedpolicy(s->attr, &policy);
	if (s->flags & POSIX_SPAWN_SETSCHEDULER)
		return sched_setscheduler(0, policy, &param) < 0 ? -errno : 0;
	return sched_setparam(0, &param) ? -errno : 0;
}

/* What the attributes ask for, in the C library's order. 0 or -errno. */
static int set_attributes(const struct spawn *s)
{
	pid_t pgrp = 0;
	int r;

	reset_signals(s);
	r = set_scheduling(s);
	if (!r && s->flags & POSIX_SPAWN_SETSID && setsid() < 0)
		r = -errno;
	if (s->flags & POSIX_SPAWN_SETPGROUP)
		posix_spawnattr_getpgroup(s->attr, &pgrp);
	if (!r && s->flags & POSIX_SPAWN_SETPGROUP && setpgid(0, pgrp))
		r = -errno;
	if (!r && s->flags & POSIX_SPAWN_RESETIDS && (setegid(getgid()) || seteuid(getuid())))
		r = -errno;
	return r;
}

static void __attribute__((noreturn)) run_child(struct spawn *s, const int *pipe_fd)
{
	int r = set_attributes(s);

	if (!r)
		r = spawn_actions_do(s->actions);
	if (!r) {
		if (s->flags & POSIX_SPAWN_SETSIGMASK)
			posix_spawnattr_getsigmask(s->attr, &s->mask);
		pthread_sigmask(SIG_SETMASK, &s->mask, NULL);
		fd_share_all();
		plfs_exec_prepare();
		r = s->search ? program_search_and_run(s->file, false, s->argv, s->envp)
		              : program_run(AT_FDCWD, s->file, 0, s->argv, s->envp);
	}
	sys.write(*pipe_fd, &r, sizeof(r));
	_exit(127);
}

/* ---- the parent ---- */

/* What the child said, or 0 if it is another program now. */
static int hear(int fd)
{
	int r = 0;
	ssize_t n;

	do {
		n = sys.read(fd, &r, sizeof(r));
	} while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(r) ? r : 0;
}

/* 0 or -errno. */
static int spawn_by_fork(pid_t *pid, struct spawn *s)
{
	int saved ERRNO_KEPT = errno;
	int fds[2], r = 0;
	pid_t child;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	fds[1] = sys_fd_hide(fds[1]); /* whatever the actions close, or put something onto */
	sys_fd_own(&fds[1]);
	child = sys.fork();
	if (!child) {
		sys.close(fds[0]); /* or an action could use its number */
		run_child(s, &fds[1]);
	}
	if (child < 0)
		r = -errno;
	sys_fd_close(&fds[1]);
	if (!r)
		r = hear(fds[0]);
	sys.close(fds[0]);
	if (r && child > 0)
		sys.waitpid(child, NULL, 0);
	if (!r && pid)
		*pid = child;
	return r;
}

/* With all signals blocked and no cancellation, as the C library does it. */
static int spawn_ours(pid_t *pid, struct spawn *s)
{
	int r, state;
	sigset_t all;

	if (s->attr)
		posix_spawnattr_getflags(s->attr, &s->flags);
	if (s->flags & ~KNOWN_FLAGS)
		return (int)refused("posix_spawn with an attribute of a later C library", EINVAL);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &s->mask);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	r = spawn_by_fork(pid, s);
	pthread_setcancelstate(state, NULL);
	pthread_sigmask(SIG_SETMASK, &s->mask, NULL);
	return r;
}

/* By the C library; 0 or -errno. */
static int spawn_theirs(pid_t *pid, const struct spawn *s)
{
	fd_share_all();
	plfs_fork_prepare(); /* commits everything, which is what the child needs */
	plfs_fork_parent();
	return -(s->search ? sys.posix_spawnp : sys.posix_spawn)(pid, s->file, s->actions, s->attr, s->argv,
								 s->envp);
}

static int spawn(pid_t *pid, struct spawn *s)
{
	struct env env;
	int r = env_complete(&env, s->envp);

	if (r < 0)
		return -r;
	s->envp = env.vars;
	if (spawn_actions_are_ours(s->actions) || program_is_ours(s->file, s->search, s->envp))
		r = spawn_ours(pid, s);
	else
		r = spawn_theirs(pid, s);
	env_release(&env);
	return -r;
}

EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	struct spawn s = {.file = path, .actions = actions, .attr = attr, .argv = argv, .envp = envp};

	if (!shim_on())
		return sys.posix_spawn(pid, path, actions, attr, argv, envp);
	return spawn(pid, &s);
}

EXPORT int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	struct spawn s = {
		.file = file, .search = true, .actions = actions, .attr = attr, .argv = argv, .envp = envp
	};

	if (!shim_on())
		return sys.posix_spawnp(pid, file, actions, attr, argv, envp);
	return spawn(pid, &s);
}

/* ---- the same with a descriptor for the child instead of its number: glibc 2.39 ---- */

typedef int spawn_fn(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
		     const posix_spawnattr_t *attr, char *const argv[], char *const envp[]);

/*
 * A number for the descriptor is kept free, so that there is one when the child has been made: where there is
 * none, there is to be no child. Nobody else waits for the child. 0, or the error.
 */
static int spawn_with_fd(spawn_fn *fn, int *pidfd, const char *file,
			 const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attr,
			 char *const argv[], char *const envp[])
{
	int saved ERRNO_KEPT = errno;
	int kept = sys.open("/dev/null", O_RDONLY | O_CLOEXEC), r;
	pid_t pid;
	long fd;

	if (kept < 0)
		return errno;
	r = fn(&pid, file, actions, attr, argv, envp);
	sys.close(kept);
	if (r)
		return r;
	fd = sys.syscall(SYS_pidfd_open, pid, 0);
	if (fd >= 0) {
		*pidfd = (int)fd;
		return 0;
	}
	r = errno; /* another thread was faster */
	sys.syscall(SYS_kill, pid, SIGKILL);
	sys.syscall(SYS_wait4, pid, NULL, 0, NULL);
	return r;
}

EXPORT int pidfd_spawn(int *pidfd, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	if (!shim_on() && sys.pidfd_spawn)
		return sys.pidfd_spawn(pidfd, path, actions, attr, argv, envp);
	return spawn_with_fd(posix_spawn, pidfd, path, actions, attr, argv, envp);
}

EXPORT int pidfd_spawnp(int *pidfd, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	if (!shim_on() && sys.pidfd_spawnp)
		return sys.pidfd_spawnp(pidfd, file, actions, attr, argv, envp);
	return spawn_with_fd(posix_spawnp, pidfd, file, actions, attr, argv, envp);
}
