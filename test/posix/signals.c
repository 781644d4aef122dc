/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What sigaction() and its relatives promise holds: what was set is told, and what comes with a signal
 * arrives, though it had to wait for a call on a file to end.
 */
#include "signals.h"

#include <pthread.h>

CASE(sigaction_tells_what_was_set)
{
	static const int flags[] = {0, SA_RESTART, SA_NODEFER, SA_ONSTACK | SA_NOCLDSTOP, (int)SA_RESETHAND,
				    SA_RESTART | SA_SIGINFO | SA_NODEFER};
	struct sigaction sa = {0}, old;

	tell(SIGUSR1);
	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
		sa.sa_flags = flags[i];
		if (flags[i] & SA_SIGINFO)
			sa.sa_sigaction = two;
		else
			sa.sa_handler = one;
		sigemptyset(&sa.sa_mask);
		sigaddset(&sa.sa_mask, (int)i + 1);
		T(sigaction(SIGUSR1, &sa, &old));
		say("was %s, flags %#x\n", name_of((void *)old.sa_handler), (unsigned)old.sa_flags);
		tell(SIGUSR1);
	}
	T(sigaction(SIGUSR1, &sa, &sa));
	say("in place: %s, flags %#x\n", name_of((void *)sa.sa_handler), (unsigned)sa.sa_flags);
	catch(SIGUSR1, SIG_IGN, 0);
	tell(SIGUSR1);
	catch(SIGUSR1, one, 0);
	catch(SIGUSR1, SIG_DFL, 0);
	tell(SIGUSR1);
	T(sigaction(SIGKILL, &sa, NULL));
	T(sigaction(SIGSTOP, NULL, &old));
	T(sigaction(0, &sa, NULL));
	T(sigaction(65, &sa, NULL));
	T(sigaction(32, &sa, NULL));
	T(sigaction(-1, NULL, NULL));
	catch(SIGUSR2, one, 0);
	IN_CHILD(tell(SIGUSR2));
	system("kill -USR2 $$; echo not reached"); /* caught here, but not in another program */
	tell(SIGINT);
}

CASE(relatives_of_sigaction)
{
	say("%s\n", name_of((void *)signal(SIGUSR1, one)));
	say("%s\n", name_of((void *)signal(SIGUSR1, SIG_IGN)));
	say("%s\n", name_of((void *)signal(SIGUSR1, count)));
	tell(SIGUSR1);
	raise(SIGUSR1);
	raise(SIGUSR1);
	T(hits);
	say("%s %s\n", name_of((void *)signal(SIGKILL, one)), strerrorname_np(errno));
	say("%s %s\n", name_of((void *)signal(99, one)), strerrorname_np(errno));
	say("%s %s\n", name_of((void *)signal(SIGUSR1, SIG_ERR)), strerrorname_np(errno));
	T(siginterrupt(SIGUSR1, 1));
	tell(SIGUSR1);
	signal(SIGUSR1, one);
	tell(SIGUSR1);
	T(siginterrupt(SIGUSR1, 0));
	tell(SIGUSR1);
	T(siginterrupt(99, 0));
	say("%s\n", name_of((void *)sysv_signal(SIGUSR1, count)));
	tell(SIGUSR1);
	raise(SIGUSR1);
	tell(SIGUSR1);
	T(hits);
	say("%s\n", name_of((void *)sigset(SIGUSR1, count)));
	tell(SIGUSR1);
	say("%s\n", name_of((void *)sigset(SIGUSR1, SIG_HOLD)));
	raise(SIGUSR1);
	T(hits);
	say("%s\n", name_of((void *)sigset(SIGUSR1, count)));
	T(hits);
	nothing_blocked();
	T(sigignore(SIGUSR1));
	tell(SIGUSR1);
}

static void say_mask(const char *what)
{
	sigset_t set;

	sigprocmask(SIG_BLOCK, NULL, &set);
	say("%s:", what);
	for (int sig = 1; sig < 32; sig++)
		if (sigismember(&set, sig))
			say(" %d", sig);
	say("\n");
}

static void say_fault(int sig) { say("handled %d\n", sig); }

/*
 * Masks that block the signals of faults are what the program made them, and one that is sent meanwhile
 * waits.
 */
CASE(masks_that_block_faults)
{
	struct sigaction act = {.sa_handler = say_fault}, old;
	sigset_t set, pending;
	int status;

	sigfillset(&act.sa_mask);
	T(sigaction(SIGBUS, &act, NULL));
	T(sigaction(SIGBUS, NULL, &old));
	say("%d %d %d\n", sigismember(&old.sa_mask, SIGBUS), sigismember(&old.sa_mask, SIGSEGV),
	    sigismember(&old.sa_mask, SIGUSR1));
	sigemptyset(&set);
	sigaddset(&set, SIGBUS);
	sigaddset(&set, SIGUSR1);
	T(sigprocmask(SIG_BLOCK, &set, NULL));
	say_mask("blocked");
	T(kill(getpid(), SIGBUS));
	say("sent\n");
	sigpending(&pending);
	say("pending %d\n", sigismember(&pending, SIGBUS));
	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	T(pthread_sigmask(SIG_BLOCK, &set, &pending));
	say("before: %d %d\n", sigismember(&pending, SIGBUS), sigismember(&pending, SIGSEGV));
	say_mask("both");
	T(sigprocmask(SIG_UNBLOCK, &set, NULL));
	say_mask("one");
	sigemptyset(&set);
	T(sigprocmask(SIG_SETMASK, &set, NULL));
	say_mask("none");
	say("%d\n", sigprocmask(99, &set, NULL) < 0 ? errno : 0);
	if (!fork()) {
		sigfillset(&set);
		sigprocmask(SIG_SETMASK, &set, NULL);
		*(volatile int *)NULL = 1;
		_exit(1);
	}
	wait(&status);
	say("ended by %d\n", WTERMSIG(status));
}

/* ---- what comes with a signal that had to wait: sent by a thread while this one writes ---- */

static pthread_t main_thread;

static void busy_until_stopped(void)
{
	char buf[512] = "busy";
	int fd = open(at("busy"), O_RDWR | O_CREAT, 0644);

	for (int i = 0; !stop && i < 10000000; i++)
		pwrite(fd, buf, sizeof buf, i % 1000 * 512);
	T(close(fd));
	T(unlink(at("busy")));
}

static volatile int in_handler, deepest, bad_info;
static volatile int values, next_value;

static void check_info(int sig, siginfo_t *info, void *context)
{
	sigset_t set;

	sigprocmask(SIG_BLOCK, NULL, &set);
	if (info->si_signo != sig || info->si_code != SI_QUEUE || info->si_pid != getpid() ||
	    info->si_uid != getuid() || !context || !sigismember(&set, sig) || !sigismember(&set, SIGUSR2))
		bad_info++;
	if (info->si_value.sival_int != next_value++)
		values++;
	append_line('h');
	hits++;
}

static void *queues_values(void *arg)
{
	union sigval value;

	(void)arg;
	for (value.sival_int = 0; value.sival_int < 2000; value.sival_int++) {
		while (sigqueue(getpid(), SIGRTMIN + 3, value))
			usleep(100);
		if (value.sival_int % 10 == 0)
			usleep(300);
	}
	while (hits < 2000)
		usleep(100);
	stop = true;
	return NULL;
}

/* Block everything in the threads that are made while it runs. */
static void start_quietly(pthread_t *t, void *(*fn)(void *))
{
	sigset_t all, before;

	main_thread = pthread_self();
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_create(t, NULL, fn, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

CASE(queued_signals_keep_values_and_order)
{
	struct sigaction sa = {.sa_sigaction = check_info, .sa_flags = SA_SIGINFO | SA_RESTART};
	pthread_t t;

	start("lines");
	sigaddset(&sa.sa_mask, SIGUSR2);
	sigaction(SIGRTMIN + 3, &sa, NULL);
	start_quietly(&t, queues_values);
	busy_until_stopped();
	pthread_join(t, NULL);
	say("%d signals, %d bad, %d out of order\n", hits, bad_info, values);
	check_lines("lines");
	nothing_blocked();
}

/* On a loaded machine many become one, when the other thread does not run. */
static void *kills_main(void *arg)
{
	(void)arg;
	for (int i = 0; i < 500 || (hits <= 10 && i < 100000); i++) {
		pthread_kill(main_thread, SIGUSR1);
		usleep(200);
	}
	stop = true;
	return NULL;
}

/* With SA_NODEFER a handler may be interrupted by its own signal. */
static void nests(int sig)
{
	(void)sig;
	in_handler++;
	if (in_handler > deepest)
		deepest = in_handler;
	append_line('h');
	if (in_handler == 1) {
		hits++;
		raise(SIGUSR1);
	}
	in_handler--;
}

CASE(handler_interrupted_by_its_own_signal)
{
	pthread_t t;

	start("lines");
	catch(SIGUSR1, nests, SA_NODEFER | SA_RESTART);
	start_quietly(&t, kills_main);
	busy_until_stopped();
	pthread_join(t, NULL);
	say("%s, %s\n", hits > 10 ? "some" : "none", deepest > 1 ? "nested" : "not nested");
	check_lines("lines");
	nothing_blocked();
}

static char alternate[1 << 16];
static volatile int off_stack;

static void on_stack(int sig)
{
	char here;

	(void)sig;
	if (&here < alternate || &here >= alternate + sizeof alternate)
		off_stack++;
	append_line('h');
	hits++;
}

CASE(handler_on_an_alternate_stack)
{
	stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate}, old;
	pthread_t t;

	T(sigaltstack(&stack, NULL));
	start("lines");
	catch(SIGUSR1, on_stack, SA_ONSTACK | SA_RESTART);
	start_quietly(&t, kills_main);
	busy_until_stopped();
	pthread_join(t, NULL);
	say("%s, %d off the stack\n", hits > 10 ? "some" : "none", off_stack);
	T(sigaltstack(NULL, &old));
	T(old.ss_flags);
	check_lines("lines");
}

/* One shot: handled once, then the default, which is to ignore SIGURG. */
static void *kills_once(void *arg)
{
	(void)arg;
	for (int i = 0; i < 20; i++) {
		pthread_kill(main_thread, SIGURG);
		usleep(1000);
	}
	stop = true;
	return NULL;
}

CASE(handler_for_one_time)
{
	pthread_t t;

	for (int i = 0; i < 20; i++) {
		catch(SIGURG, count, (int)SA_RESETHAND);
		stop = false;
		start_quietly(&t, kills_once);
		busy_until_stopped();
		pthread_join(t, NULL);
	}
	T(hits);
	tell(SIGURG);
	nothing_blocked();
}
