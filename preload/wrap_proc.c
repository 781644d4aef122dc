/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes: their beginnings (fork, vfork, daemon, system, popen), ends (exit in its forms) and being waited
 * for.
 *
 * fork() itself is not replaced. Its work is done in pthread_atfork() handlers, for three reasons: handlers
 * of the program that write to a logical file run while our locks are free, in parent and child; forks inside
 * the C library (daemon, forkpty) come by as well; and the order with other preloaded libraries is the C
 * library's.
 */
#include "proc.h"

#include "fdtable.h"
#include "path.h"
#include "signal.h"
#include "stream.h"

#include <pty.h>
#include <utmp.h>

/*
 * stdio's list of streams. fork() locks it after our handler has run, and fflush(NULL) in another thread
 * holds it while it writes through us: taken first here, the order is the same for both.
 */
extern void _IO_list_lock(void) __attribute__((weak));
extern void _IO_list_unlock(void) __attribute__((weak));
extern void _IO_list_resetlock(void) __attribute__((weak));

/* Whether the process that forks has one thread: the child asks, and the C library speaks of that by then. */
static bool is_alone;

void proc_fork_prepare(void)
{
	critical_enter();
	if (_IO_list_lock)
		_IO_list_lock();
	fd_freeze();
	is_alone = __libc_single_threaded;
	plfs_fork_prepare();
	signal_freeze();
}

void proc_fork_parent(void)
{
	signal_thaw();
	plfs_fork_parent();
	fd_thaw();
	if (_IO_list_unlock)
		_IO_list_unlock();
	critical_leave();
}

void proc_fork_child(void)
{
	signal_thaw();
	plfs_fork_child();
	if (!is_alone)
		fd_disown();
	fd_thaw();
	stream_fork_child();
	if (!is_alone)
		path_fork_child();
	dl_fork_child();
	fts_fork_child();
	if (_IO_list_resetlock)
		_IO_list_resetlock();
	critical_leave();
}

void proc_watch_forks(void) { pthread_atfork(proc_fork_prepare, proc_fork_parent, proc_fork_child); }

/*
 * The child of a real vfork() shares our memory but not our descriptors: its close() and dup2() would change
 * the parent's table. So it is a fork(), which POSIX allows.
 */
EXPORT pid_t vfork(void) { return sys.fork(); }
ALIAS(__vfork, vfork);

/* fork() without handlers: of ours, those that the child cannot do without. */
EXPORT pid_t _Fork(void)
{
	pid_t pid;

	if (!shim_on())
		return sys._Fork();
	proc_fork_prepare();
	pid = sys._Fork();
	if (pid)
		proc_fork_parent();
	else
		proc_fork_child();
	return pid;
}

/* In the C library the parent ends here without a word, and the child gives descriptors 0 to 2 to /dev/null.
 */
EXPORT int daemon(int nochdir, int noclose)
{
	int fd, r;

	if (!shim_on())
		return sys.daemon(nochdir, noclose);
	fd_share_all();
	plfs_exec_prepare();
	r = sys.daemon(nochdir, noclose);
	if (r < 0)
		return r;
	if (!nochdir)
		path_cwd_changed();
	for (fd = 0; !noclose && fd <= STDERR_FILENO; fd++)
		fd_drop(fd);
	return r;
}

/* The terminal @fd has become descriptors 0 to 2, and is closed as what it was. */
static void became_standard(int fd)
{
	int i;

	for (i = 0; i <= STDERR_FILENO; i++)
		fd_drop(i);
	if (fd > STDERR_FILENO)
		fd_drop(fd);
}

EXPORT int login_tty(int fd)
{
	bool on = shim_on();
	int r = sys.login_tty ? sys.login_tty(fd) : (int)done(-ENOSYS);

	if (!r && on)
		became_standard(fd);
	return r;
}

EXPORT pid_t forkpty(int *master, char *name, const struct termios *termp, const struct winsize *winp)
{
	bool on = shim_on();
	pid_t pid = sys.forkpty ? sys.forkpty(master, name, termp, winp) : (pid_t)done(-ENOSYS);

	if (!pid && on)
		became_standard(-1);
	return pid;
}

/* ---- children that the C library makes ---- */

void proc_share_with_child(void)
{
	if (!shim_on())
		return;
	fd_share_all();
	plfs_fork_prepare();
	plfs_fork_parent();
}

/* A child has ended, and with that released what it wrote: who waited for it, expects to see that. */
static long waited(long ret)
{
	int saved = errno;

	if (ret >= 0 && shim_active)
		fd_refresh_all();
	errno = saved;
	return ret;
}

EXPORT int system(const char *command)
{
	proc_share_with_child();
	return (int)waited(sys.system(command));
}

EXPORT FILE *popen(const char *command, const char *type)
{
	proc_share_with_child();
	return sys.popen(command, type);
}
ALIAS(_IO_popen, popen);

EXPORT int pclose(FILE *stream)
{
	shim_on();
	return (int)waited(sys.pclose(stream));
}

EXPORT pid_t wait(int *status)
{
	shim_on();
	return (pid_t)waited(sys.wait(status));
}
ALIAS(__wait, wait);

EXPORT pid_t waitpid(pid_t pid, int *status, int options)
{
	shim_on();
	return (pid_t)waited(sys.waitpid(pid, status, options));
}
ALIAS(__waitpid, waitpid);

EXPORT pid_t wait3(int *status, int options, struct rusage *usage)
{
	shim_on();
	return (pid_t)waited(sys.wait3(status, options, usage));
}

EXPORT pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
	shim_on();
	return (pid_t)waited(sys.wait4(pid, status, options, usage));
}

EXPORT int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	shim_on();
	return (int)waited(sys.waitid(type, id, info, options));
}

/* ---- the end ---- */

EXPORT void _exit(int status)
{
	if (shim_on() || shim_observes)
		plfs_exit_prepare();
	sys._exit(status);
	__builtin_unreachable();
}
ALIAS(_Exit, _exit);

EXPORT void quick_exit(int status)
{
	if (shim_on() || shim_observes)
		plfs_exit_prepare(); /* handlers of at_quick_exit() may still write: it is closed as soon as
		                        it is made */
	sys.quick_exit(status);
	__builtin_unreachable();
}
