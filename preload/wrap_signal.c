/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls that install a signal handler, or set the mask. Inside the C library all but sigaction() install
 * it where we cannot see it, so they are made from sigaction() here, as they are there.
 */
#include "signal.h"

static bool interrupts[NSIG]; /* what siginterrupt() said, for signal() to come */

EXPORT int sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	return signal_set(sig, act, old);
}
ALIAS(__sigaction, sigaction);

EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *old) { return signal_mask(how, set, old); }

EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	int saved ERRNO_KEPT = errno;

	return signal_mask(how, set, old) ? errno : 0;
}

/* Install @handler with a mask of @sig itself if @defer, else of nothing; what was there, or SIG_ERR. */
static sighandler_t install(int sig, sighandler_t handler, int flags, bool defer)
{
	struct sigaction act = {.sa_handler = handler, .sa_flags = flags}, old;
	sigset_t set;

	sigemptyset(&set);
	if (handler == SIG_ERR || sigaddset(&set, sig)) {
		errno = EINVAL;
		return SIG_ERR;
	}
	if (defer)
		act.sa_mask = set;
	return signal_set(sig, &act, &old) ? SIG_ERR : old.sa_handler;
}

EXPORT sighandler_t signal(int sig, sighandler_t handler)
{
	bool interrupted = sig > 0 && sig < NSIG && __atomic_load_n(&interrupts[sig], __ATOMIC_RELAXED);

	return install(sig, handler, interrupted ? 0 : SA_RESTART, true);
}
ALIAS(bsd_signal, signal);
ALIAS(ssignal, signal);

EXPORT sighandler_t __sysv_signal(int sig, sighandler_t handler)
{
	return install(sig, handler, (int)(SA_RESETHAND | SA_NODEFER | SA_INTERRUPT), false);
}
ALIAS(sysv_signal, __sysv_signal);

/* A handler that is there changes its flags inside the C library, which leaves it what it is: ours. */
EXPORT int siginterrupt(int sig, int flag)
{
	int r;

	shim_on();
	r = sys.siginterrupt(sig, flag);
	if (!r)
		__atomic_store_n(&interrupts[sig], flag, __ATOMIC_RELAXED);
	return r;
}

/* System V's: to hold a signal back is a disposition. */
EXPORT sighandler_t sigset(int sig, sighandler_t disposition)
{
	sigset_t set, before;
	sighandler_t was;

	shim_on();
	sigemptyset(&set);
	if (disposition == SIG_ERR || sigaddset(&set, sig)) {
		errno = EINVAL;
		return SIG_ERR;
	}
	if (disposition == SIG_HOLD) {
		struct sigaction old;

		was = signal_set(sig, NULL, &old) ? SIG_ERR : old.sa_handler;
	} else {
		was = install(sig, disposition, 0, false);
	}
	if (was == SIG_ERR ||
	    sys.sigprocmask(disposition == SIG_HOLD ? SIG_BLOCK : SIG_UNBLOCK, &set, &before))
		return SIG_ERR;
	return sigismember(&before, sig) ? SIG_HOLD : was;
}
