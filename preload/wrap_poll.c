/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting for descriptors. The kernel's answer is right but for the library's own descriptors: to it they are
 * files, always ready. It is corrected afterwards, so that waiting itself costs nothing more.
 */
#include "bynumber.h"
#include "fdtable.h"

#include <sys/epoll.h>
#include <sys/select.h>

/* Before the library has started there are no descriptors of its own, and a wait need not start it. */
static inline void need_table(void)
{
	if (unlikely(!sys.poll))
		sys_init();
}

static COLD int mark_hidden(int ret, struct pollfd *fds, nfds_t nr)
{
	for (nfds_t i = 0; i < nr; i++) {
		if (!fd_is_hidden(fds[i].fd))
			continue;
		ret += !fds[i].revents;
		fds[i].revents = POLLNVAL;
	}
	return ret;
}

/* @ret of a poll() of @nr entries. The kernel has written to all of them. */
static inline int polled(int ret, struct pollfd *fds, nfds_t nr)
{
	int top = -1;

	if (unlikely(ret < 0))
		return ret;
	for (nfds_t i = 0; i < nr; i++) /* no branch: most numbers are low, and so are all of them */
		top = fds[i].fd > top ? fds[i].fd : top;
	return likely(top < __atomic_load_n(&fd_hidden_low, __ATOMIC_RELAXED)) ? ret :
										 mark_hidden(ret, fds, nr);
}

EXPORT HOT int poll(struct pollfd *fds, nfds_t nr, int timeout_ms)
{
	need_table();
	return polled(sys.poll(fds, nr, timeout_ms), fds, nr);
}
ALIAS(__poll, poll);

EXPORT HOT int ppoll(struct pollfd *fds, nfds_t nr, const struct timespec *timeout, const sigset_t *mask)
{
	need_table();
	return polled(sys.ppoll(fds, nr, timeout, mask), fds, nr);
}

extern int __poll_chk(struct pollfd *fds, nfds_t nr, int timeout_ms, size_t room);
EXPORT int __poll_chk(struct pollfd *fds, nfds_t nr, int timeout_ms, size_t room)
{
	if (room / sizeof(*fds) < nr)
		__chk_fail();
	return poll(fds, nr, timeout_ms);
}

extern int __ppoll_chk(struct pollfd *fds, nfds_t nr, const struct timespec *timeout, const sigset_t *mask,
		       size_t room);
EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t nr, const struct timespec *timeout, const sigset_t *mask,
		       size_t room)
{
	if (room / sizeof(*fds) < nr)
		__chk_fail();
	return ppoll(fds, nr, timeout, mask);
}

/* Whether one of the library's own descriptors below @nr is ready in @set. */
static bool has_hidden(int nr, const fd_set *set)
{
	for (int fd = __atomic_load_n(&fd_hidden_low, __ATOMIC_RELAXED); set && fd < nr; fd++) {
		if (FD_ISSET(fd, set) && fd_is_hidden(fd))
			return true;
	}
	return false;
}

static int selected(int ret, int nr, const fd_set *in, const fd_set *out)
{
	return likely(ret <= 0) || (!has_hidden(nr, in) && !has_hidden(nr, out)) ? ret : (int)done(-EBADF);
}

EXPORT HOT int select(int nr, fd_set *restrict in, fd_set *restrict out, fd_set *restrict except,
		      struct timeval *restrict timeout)
{
	need_table();
	return selected(sys.select(nr, in, out, except, timeout), nr, in, out);
}
ALIAS(__select, select);

EXPORT HOT int pselect(int nr, fd_set *restrict in, fd_set *restrict out, fd_set *restrict except,
                   const struct timespec *restrict timeout, const sigset_t *restrict mask)
{
	need_table();
	return selected(sys.pselect(nr, in, out, except, timeout, mask), nr, in, out);
}

EXPORT int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	return sys.epoll_ctl(epfd, op, fd_seen(fd), event);
}

/* The kernel's own say how long is left, which the C library's do not. */
long bynumber_poll(long nr, void *fds, unsigned long nr_fds, long c, long d, long e)
{
	return polled((int)sys.syscall(nr, fds, nr_fds, c, d, e), fds, nr_fds);
}

long bynumber_select(long nr, int nr_fds, void *in, void *out, long d, long e, long f)
{
	return selected((int)sys.syscall(nr, nr_fds, in, out, d, e, f), nr_fds, in, out);
}
