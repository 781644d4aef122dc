/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between the kernel and the program's handlers. The kernel knows one handler, on_signal(), with the
 * program's flags and mask; the program's own are in a table, and what sigaction() tells of the past is made
 * from it. SIG_DFL and SIG_IGN go to the kernel as they are.
 *
 * A signal that may not be handled now is sent once more, to this thread and with all that came with it, and
 * blocked by the mask that the kernel puts back when on_signal() returns. Unblocking it is all that
 * critical_leave() has to do: masks, alternate stacks, siginfo, the context, nesting and handlers that never
 * return stay the kernel's.
 *
 * Two signals are handled whether the program wants it or not, for bad addresses that it gives us, and for
 * files that we have mapped and that are cut or fail under us (core/base/guard.h).
 *
 * These two must never be blocked: the kernel kills a thread that faults while they are. So the masks that
 * the program sets do without them, and what it asked for is remembered for each thread, and told when it
 * asks. One that another process sends meanwhile is held back by blocking it after all. (A new thread, and a
 * new image, begin without them in their masks.)
 *
 * Handlers installed past us (by a system call, or before we were there) run as ever.
 */
#include "signal.h"

#include <sys/syscall.h>
#include <ucontext.h>

#define OUR_FLAGS (SA_SIGINFO | SA_RESETHAND) /* of which the kernel is not told the program's wish */

struct action {
	void (*handler)(int sig, siginfo_t *info, void *context); /* takes one argument without SA_SIGINFO */
	int flags;                                                /* of OUR_FLAGS */
	uint64_t masked; /* of FAULT_BITS, what it wants blocked meanwhile */
	/* it is the default, and the program has not touched it: the kernel's flags are not its own */
	bool unset;
};

#define FAULT_BITS (1ULL << (SIGSEGV - 1) | 1ULL << (SIGBUS - 1))

/* of FAULT_BITS, as the program believes */
static __thread uint64_t blocked __attribute__((tls_model("initial-exec")));

static uint64_t bit_of(int sig) { return 1ULL << (sig - 1); }

/* Take those of @bits that are in @set out of it; which they were. */
static uint64_t take_out(sigset_t *set, uint64_t bits)
{
	uint64_t had = 0;

	for (int sig = 1; sig <= SIGSEGV; sig++) {
		if (bits & bit_of(sig) && sigismember(set, sig) > 0) {
			sigdelset(set, sig);
			had |= bit_of(sig);
		}
	}
	return had;
}

static void put_in(sigset_t *set, uint64_t bits)
{
	for (int sig = 1; sig <= SIGSEGV; sig++)
		if (bits & bit_of(sig))
			sigaddset(set, sig);
}

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER; /* innermost */
static struct action table[NSIG]; /* changed with the lock */

/*
 * Raised by what the thread itself does this moment: it cannot wait, and if it is our doing it is the end
 * anyway.
 */
static bool is_fault(int sig, const siginfo_t *info)
{
	switch (sig) {
	case SIGSEGV:
	case SIGBUS:
	case SIGFPE:
	case SIGILL:
	case SIGTRAP:
	case SIGSYS:
		return info->si_code > 0;
	case SIGABRT: /* abort() */
		return info->si_code == SI_TKILL && info->si_pid == sys.getpid();
	default:
		return false;
	}
}

/* Have the kernel keep @sig, which stays blocked when the handler returns. False: it cannot. */
static bool hold_back(int sig, siginfo_t *info, ucontext_t *context)
{
	int saved ERRNO_KEPT = errno;
	long pid = sys.getpid(), tid = sys.syscall(SYS_gettid);
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	sys.sigprocmask(SIG_BLOCK, &set, NULL); /* with SA_NODEFER it would come back at once */
	/*
	 * Its queue is full: a signal that does not queue is kept all the same, though without its
	 * particulars.
	 */
	if (sys.syscall(SYS_rt_tgsigqueueinfo, pid, tid, sig, info) && sys.syscall(SYS_tgkill, pid, tid, sig))
		return false;
	sigaddset(&context->uc_sigmask, sig);
	return true;
}

/* The same until the thread leaves its critical section. */
static bool put_off(int sig, siginfo_t *info, ucontext_t *context)
{
	if (!hold_back(sig, info, context))
		return false;
	critical.pending |= bit_of(sig);
	return true;
}

static void on_signal(int sig, siginfo_t *info, void *context);

static bool is_default(void (*handler)(int sig, siginfo_t *info, void *context))
{
	return (uintptr_t)handler == (uintptr_t)SIG_DFL;
}

/* What the program wants to be called now, and with SA_RESETHAND for the last time. */
static struct action take_once(int sig)
{
	struct sigaction now;
	struct action a;

	mutex_lock(&table_lock);
	a = table[sig];
	if ((a.flags & (int)SA_RESETHAND) && !sys.sigaction(sig, NULL, &now) &&
	    now.sa_sigaction == on_signal) {
		now.sa_handler = SIG_DFL;
		now.sa_flags = (now.sa_flags & ~OUR_FLAGS) | a.flags;
		sys.sigaction(sig, &now, NULL);
	}
	mutex_unlock(&table_lock);
	return a;
}

/* The same without a lock, where that can be: the flags of an action are there before it. */
static struct action take_action(int sig)
{
	struct action a = {0};

	a.handler = __atomic_load_n(&table[sig].handler, __ATOMIC_ACQUIRE);
	a.flags = __atomic_load_n(&table[sig].flags, __ATOMIC_RELAXED);
	return a.flags & (int)SA_RESETHAND ? take_once(sig) : a;
}

/* For a signal that we handle though the program does not: as if we did not. */
static void die(int sig, siginfo_t *info)
{
	struct sigaction act = {.sa_handler = SIG_DFL};

	sys.sigaction(sig, &act, NULL);
	/* else the instruction that we return to does it again, with a better core dump */
	if (info->si_code <= 0)
		sys.syscall(SYS_rt_tgsigqueueinfo, sys.getpid(), sys.syscall(SYS_gettid), sig, info);
}

/*
 * A handler that is called inside a section, for a fault, may leave by siglongjmp(): the section ends here.
 */
static void on_signal(int sig, siginfo_t *info, void *context)
{
	unsigned depth = critical.depth;
	struct action a;

	if ((sig == SIGSEGV || sig == SIGBUS) && info->si_code > 0 && user_fixup(context))
		return;
	if (sig == SIGBUS && info->si_code > 0 && guard_fault(info->si_addr))
		return;
	if (unlikely(bit_of(sig) & blocked)) {
		if (is_fault(sig, info))
			die(sig, info);
		else
			hold_back(sig, info, context);
		return;
	}
	if (depth && !is_fault(sig, info) && put_off(sig, info, context))
		return;
	a = take_action(sig);
	critical.depth = 0;
	if (is_default(a.handler))
		die(sig, info);
	else
		a.handler(sig, info, context);
	critical_resume(depth);
}

/* Whether we have to handle @sig for the program to get @act. */
static bool is_ours(int sig, const struct sigaction *act)
{
	if (is_default(act->sa_sigaction))
		return sig == SIGSEGV || sig == SIGBUS;
	return act->sa_handler != SIG_IGN;
}

/* Let @sig go to the handler in @act: @act becomes what the kernel is told. With the table's lock. */
static void enter_action(int sig, struct sigaction *act)
{
	uint64_t masked = take_out(&act->sa_mask, FAULT_BITS);

	if (act->sa_sigaction != on_signal) { /* else it is one that the program read past us */
		table[sig].unset = false;
		table[sig].masked = masked;
		__atomic_store_n(&table[sig].flags, act->sa_flags & OUR_FLAGS, __ATOMIC_RELAXED);
		__atomic_store_n(&table[sig].handler, act->sa_sigaction, __ATOMIC_RELEASE);
	}
	act->sa_sigaction = on_signal;
	act->sa_flags = (act->sa_flags & ~OUR_FLAGS) | SA_SIGINFO;
}

int signal_set(int sig, const struct sigaction *act, struct sigaction *old)
{
	struct sigaction want, was;
	struct action before;
	int r;

	if (!shim_on() || sig < 1 || sig >= NSIG)
		return sys.sigaction(sig, act, old);
	if (act)
		want = *act;
	mutex_lock(&table_lock);
	before = table[sig];
	if (act && is_ours(sig, &want))
		enter_action(sig, &want);
	r = sys.sigaction(sig, act ? &want : NULL, &was);
	if (r < 0)
		table[sig] = before;
	mutex_unlock(&table_lock);
	if (!r && was.sa_sigaction == on_signal) {
		was.sa_sigaction = before.handler;
		put_in(&was.sa_mask, before.masked);
		was.sa_flags = before.unset ? 0 : (was.sa_flags & ~OUR_FLAGS) | before.flags;
	}
	if (!r && old)
		*old = was;
	return r;
}

int signal_mask(int how, const sigset_t *set, sigset_t *old)
{
	uint64_t before = blocked, asked = 0;
	sigset_t want;
	int r;

	if (!shim_on() || (set && !user_has_bytes(set, sizeof(*set))))
		return sys.sigprocmask(how, set, old);
	if (set) {
		want = *set;
		asked = take_out(&want, FAULT_BITS);
		if (how == SIG_UNBLOCK)
			put_in(&want, asked); /* one may be held back */
		else if (how == SIG_BLOCK)
			asked |= before;
		/* before one that was held back comes */
		blocked = how == SIG_UNBLOCK ? before & ~asked : asked;
	}
	r = sys.sigprocmask(how, set ? &want : NULL, old);
	if (r)
		blocked = before;
	else if (old)
		put_in(old, before);
	return r;
}

static void guard(int sig)
{
	struct sigaction act = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO}, now;

	if (sys.sigaction(sig, NULL, &now) || !is_default(now.sa_sigaction))
		return; /* somebody was earlier, or it is ignored */
	table[sig].unset = true;
	sys.sigaction(sig, &act, NULL);
}

void signal_guard_faults(void)
{
	guard(SIGSEGV);
	guard(SIGBUS);
}

void signal_freeze(void) { mutex_lock(&table_lock); }

void signal_thaw(void) { mutex_unlock(&table_lock); }
