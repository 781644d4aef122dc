/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Children that are made past fork(): by clone(), or by the numbers of fork and clone. One with memory of its
 * own gets what fork() does for it, or it would write into its parent's logs; and descriptors of its own
 * (CLONE_FILES is taken off), or it would close those that its parent's memory names. One that shares our
 * memory is a thread to us whatever else it is, as the child of a vfork() would be: the kernel's work goes on
 * in it, but if it has descriptors of its own it must not close or replace those of logical files.
 */
#include "bynumber.h"
#include "fdtable.h"
#include "proc.h"

#include <sched.h>

long bynumber_fork(long nr, long a, long b, long c, long d, long e)
{
	long pid;
	int err;

	proc_fork_prepare();
	pid = sys.syscall(nr, a, b, c, d, e);
	err = errno;
	if (pid)
		proc_fork_parent();
	else
		proc_fork_child();
	errno = err;
	return pid;
}

struct start {
	int (*fn)(void *arg);
	void *arg;
};

/* In the child. What it leaves, it leaves to no exit handler. */
static int started(void *arg)
{
	const struct start *s = arg;
	int status;

	proc_fork_child();
	status = s->fn(s->arg);
	plfs_exit_prepare();
	return status;
}

EXPORT int clone(int (*fn)(void *), void *stack, int flags, void *arg, ...)
{
	struct start s = {fn, arg};
	pid_t *parent_tid, *child_tid;
	void *tls;
	va_list ap;
	int pid, err;

	va_start(ap, arg);
	parent_tid = va_arg(ap, pid_t *);
	tls = va_arg(ap, void *);
	child_tid = va_arg(ap, pid_t *);
	va_end(ap);
	if (!shim_on() || (flags & CLONE_VM))
		return sys.clone(fn, stack, flags, arg, parent_tid, tls, child_tid);
	if (!fn || !stack)
		return (int)done(-EINVAL);
	proc_fork_prepare();
	pid = sys.clone(started, stack, flags & ~CLONE_FILES, &s, parent_tid, tls, child_tid);
	err = errno;
	proc_fork_parent();
	errno = err;
	return pid;
}
ALIAS(__clone, clone);

/*
 * Of several threads one would get descriptors of its own, but there is one table: what it closed would be no
 * logical file to the others either, and their next calls would reach the stub.
 */
EXPORT int unshare(int flags)
{
	if (flags & CLONE_FILES && shim_on() && !plfs_is_single_threaded() && fd_is_any_logical())
		return (int)done(-EINVAL);
	return (int)sys.syscall(SYS_unshare, flags);
}
